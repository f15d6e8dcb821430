"""What a scripted run did, effect by effect, and the write-ahead rules that it must have kept.

1. Nothing starts before the claim, and what came with it, is stored.
2. A step's checkpoint is stored before the next step's code starts (``sync``); all but one append are (``async``).
3. A finished task's writes are stored before its update is shown, and before anything else runs (``sync``).
4. Every started task ends in exactly one of Done, Failed, Paused, Gone, and no two attempts of one are out at once.
5. After a cancellation nothing starts but the second half of a subgraph task, whose work is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

from pregel.checkpoint.keys import id_text, task_bytes
from pregel.checkpoint.records import Append, Saved
from pregel.engine.effects import Cancel, Done, Entered, Failed, Gone, Loaded, Paused, Result, Step, TaskEvent
from pregel.engine.task import Task
from pregel.types import Durability

What = Literal["load", "store", "append", "emit", "cancel", "after", "start", "run", "hear", "fault", "end"]
ENDS = (Done, Failed, Paused, Gone)


class Entry(NamedTuple):
    """One line of a trace. `about` is what the effect was about: a Step, an Append, a Task, an event, a chunk."""

    what: What
    about: object

    def __str__(self) -> str:
        return f"{self.what:7}{_shown(self.about)}"


class Trace:
    """The lines of one run, in order."""

    def __init__(self, durability: Durability = "sync") -> None:
        self.durability = durability
        self.lines: list[Entry] = []

    def add(self, what: What, about: object) -> None:
        """One more line."""
        self.lines.append(Entry(what, about))

    def about(self, what: What) -> Iterator[Any]:
        """What the lines of one kind are about."""
        return (line.about for line in self.lines if line.what == what)

    def tail(self, count: int = 25) -> str:
        """The last lines, numbered."""
        first = max(0, len(self.lines) - count)
        return "\n".join(f"{number:4} {line}" for number, line in enumerate(self.lines[first:], first))

    def broken_rule(self) -> str:
        """The first write-ahead rule that this run broke, in plain words; empty when it kept them all."""
        rules = _Rules(self.durability)
        for line in self.lines:
            if (check := _CHECKS.get(line.what)) and (broken := check(rules, line.about)):
                return broken
        return ""


class _Rules:
    """What is known to be stored, shown and out, at one line of a trace."""

    def __init__(self, durability: Durability) -> None:
        self.durability = durability
        self.claimed = False
        self.cancelled = False
        self.checkpoints: set[str] = set()
        self.in_flight = 0
        self.names: dict[str, tuple[str, str]] = {}  # task id -> namespace and node
        self.tasks: set[str] = set()  # ids whose writes are stored
        self.stored: Counter[tuple[str, str]] = Counter()
        self.shown: Counter[tuple[str, str]] = Counter()
        self.out: set[Task] = set()
        self.over: set[Task] = set()
        self.done: list[Task] = []  # finished, and nothing ran since
        self.unjournaled: set[str] = set()  # namespaces that store nothing

    def loaded(self, event: Loaded) -> str:
        for saved in event.opened.saved if event.opened is not None else ():
            if saved is not None:
                self._found(saved)
        return ""

    def _found(self, saved: Saved) -> None:
        self.checkpoints.add(saved.id)
        for write in saved.writes:
            if write.idx >= 0:
                self._landed(write.task, saved.ns, write.name)

    def _landed(self, task: str, ns: str, name: str) -> None:
        if task not in self.tasks:
            self.tasks.add(task)
            self.stored[ns, name] += 1

    def wanted(self, step: Step) -> str:
        self.in_flight += 1
        self.names.update((id_text(task_bytes(record.task)), (record.ns, record.name)) for record in step.records()[0])
        return ""

    def appended(self, append: Append) -> str:
        self.claimed = True
        self.in_flight = 0  # an append takes along what was held back before it
        self.checkpoints.update(id_text(row.id) for row in append.checkpoints)
        for row in append.writes:
            if row.idx >= 0:
                task = id_text(row.task)
                self._landed(task, *self.names.get(task, ("", "")))
        return ""

    def emitted(self, chunk: tuple[str, str, Any]) -> str:
        ns, mode, data = chunk
        if mode != "updates" or self.durability != "sync" or ns in self.unjournaled or not self.claimed:
            return ""
        for name in data:
            if not name.startswith("__"):
                self.shown[ns, name] += 1
                if self.shown[ns, name] > self.stored[ns, name]:
                    return f"the update of {name!r} in {ns!r} is shown before its writes are stored"
        return ""

    def started(self, task: Task) -> str:
        if task in self.out or any(other.id == task.id for other in self.out):
            return f"task {task.name!r} ({task.id}) starts while an attempt of it is still out"
        if self.cancelled and task.phase != "leave":
            return f"task {task.name!r} ({task.id}) starts after the cancellation"
        self.out.add(task)
        if task.frame.journal is None:
            self.unjournaled.add(task.frame.ns)
            return ""
        if not self.claimed:
            return f"task {task.name!r} starts before the claim is stored"
        if self.durability == "exit" or task.checkpoint in self.checkpoints:
            return ""
        if self.durability == "async" and self.in_flight <= 1:
            return ""
        return f"task {task.name!r} starts before its checkpoint {task.checkpoint} is stored"

    def ran(self, task: Task) -> str:
        done, self.done = self.done, []
        for other in done if self.durability == "sync" else ():
            if other.id not in self.tasks:
                return f"task {other.name!r} ({other.id}) finished, and {task.name!r} runs before its writes are stored"
        return ""

    def heard(self, event: object) -> str:
        if isinstance(event, Entered):
            self.out.discard(event.task)
        if isinstance(event, Cancel):
            self.cancelled = True
        if not isinstance(event, ENDS):
            return ""
        task = event.task
        if task in self.over:
            return f"task {task.name!r} ({task.id}) ends twice"
        self.over.add(task)
        self.out.discard(task)
        if isinstance(event, Done) and task.frame.journal is not None:
            self.done.append(task)
        return ""

    def ended(self, result: object) -> str:
        if result is not None and self.out:
            return f"the run is over and has not heard of {', '.join(sorted(task.name for task in self.out))}"
        return ""


_CHECKS: dict[What, Callable[[_Rules, Any], str]] = {
    "load": _Rules.loaded,
    "store": _Rules.wanted,
    "append": _Rules.appended,
    "emit": _Rules.emitted,
    "start": _Rules.started,
    "run": _Rules.ran,
    "hear": _Rules.heard,
    "end": _Rules.ended,
}


def _shown(about: object) -> str:
    match about:
        case Step():
            writes = [f"{record.name}:{[name for name, _ in record.writes]}" for record in about.records()[0]]
            saves = [f"{save.ns!r} step {save.step} ({save.source})" for save in about.saves]
            release = about.release.status if about.release is not None else "-"
            return f"claim={about.claim} writes={writes} saves={saves} release={release}"
        case Append():
            return f"seq {about.seq} + {about.k}: {len(about.checkpoints)} checkpoints, {len(about.writes)} writes"
        case Task():
            return f"{about.name} {about.phase} attempt {about.attempt} in {about.frame.ns!r} ({about.id})"
        case Loaded():
            return f"{[getattr(request, 'ns', None) for request in about.requests]}"
        case TaskEvent():
            error = f": {about.error!r}" if isinstance(about, Failed) else ""
            return f"{type(about).__name__} {about.task.name} ({about.task.id}){error}"
        case Result():
            return f"{about.status} {about.values!r}" + (f" {about.error!r}" if about.error is not None else "")
        case str() | tuple():
            return str(about)
        case _:
            return type(about).__name__
