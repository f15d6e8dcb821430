"""What a run shows of itself while it goes: its steps, the nodes that run, the words of models."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pregel.cli.answers import visible
from pregel.cli.values import shortened
from pregel.errors import told
from pregel.types import StreamMode

MODES: list[StreamMode] = ["debug", "messages", "values"]


@dataclass(eq=False, slots=True)
class Running:
    """A task that runs: `place` names the graphs around its node, and the node."""

    step: int
    place: str
    since: float = field(default_factory=time.monotonic)
    words: list[str] = field(default_factory=list)  # of the message that it says now

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since


class View(Protocol):
    """Where the progress of a run is shown. It is open from the first call to `close`."""

    def started(self, task: Running) -> None: ...

    def ended(self, task: Running, how: str, note: str) -> None:
        """`how`: done, failed or asks; `note`: the error."""

    def said(self, task: Running, words: str) -> None: ...

    def close(self) -> None: ...


class Progress:
    """Reads the chunks of a run, and tells a view. `values` are the newest of the run itself."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.values: Any = None
        self._running: dict[str, Running] = {}  # by task id

    def take(self, chunk: tuple[Sequence[str], str, Any]) -> None:
        """Take in a chunk of a stream with subgraphs, in `MODES`."""
        path, mode, data = chunk
        if mode == "values":
            if not path:
                self.values = data
        elif mode == "messages":
            self._words(*data)
        elif data["type"] == "task":
            place = "/".join([*[part.partition(":")[0] for part in path], data["payload"]["name"]])
            task = self._running[data["payload"]["id"]] = Running(data["step"], visible(place))
            self.view.started(task)
        elif data["type"] == "task_result":
            self._ended(data["payload"])

    def _words(self, message: Any, where: Any) -> None:
        if not message.type.startswith(("ai", "AI")) or not message.text:
            return
        task = self._running.get(str(where.get("langgraph_checkpoint_ns", "")).rpartition(":")[2])
        if task is not None:
            words = visible(message.text)
            task.words.append(words)
            self.view.said(task, words)

    def _ended(self, payload: Any) -> None:
        task = self._running.pop(payload["id"], None)
        if task is None:
            return
        error = payload["error"]
        note = "" if error is None else visible(shortened(f"{type(error).__name__}: {told(error, str)}"))
        self.view.ended(task, "failed" if note else "asks" if payload["interrupts"] else "done", note)


class PlainView:
    """Lines: one for each start and each end of a task, and the words of models after the node that says them."""

    def __init__(self, say: Any, piece: Any) -> None:
        self._say, self._piece = say, piece
        self._speaking: Running | None = None

    def started(self, task: Running) -> None:
        self._line(f"step {task.step}: {task.place}")

    def ended(self, task: Running, how: str, note: str) -> None:
        self._line(f"step {task.step}: {task.place} {how}{f': {note}' if note else ''} ({task.seconds:.1f} s)")

    def said(self, task: Running, words: str) -> None:
        if self._speaking is not task:
            self.close()
            self._piece(f"{task.place}> ")
            self._speaking = task
        self._piece(words)

    def close(self) -> None:
        if self._speaking is not None:
            self._say()
            self._speaking = None

    def _line(self, text: str) -> None:
        self.close()
        self._say(text)
