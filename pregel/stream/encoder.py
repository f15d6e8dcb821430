"""Makes the events of a run from the parts of its stream; what models say becomes the events of content blocks.

1. A message that a model streams is a ``message-start``, for each of its blocks a start, deltas and a finish, and a
   ``message-finish``; one that was not streamed is itself. Both have their metadata with them, and the pieces of a
   message its id ("message_id").
2. A message whose last piece does not say so ends with the task that it comes from; if that fails, it has no end.
3. Messages of tools are left out: mode ``tools`` tells of calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pregel.stream.protocol import ProtocolEvent, made_event
from pregel.stream.utterance import Utterance

_Path = tuple[str, ...]


class Encoder:
    """The messages of one run that are being said, and what turns parts into events."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[tuple[_Path, str | None], tuple[Utterance, dict[str, Any]]] = {}

    def events(self, part: dict[str, Any]) -> Iterable[ProtocolEvent]:
        """The events of a part of a stream (``version="v2"``)."""
        mode, path, data = part["type"], part["ns"], part["data"]
        if mode == "messages":
            return self._message(path, *data)
        event = made_event(mode, path, data)
        if "interrupts" in part:
            event["params"]["interrupts"] = part["interrupts"]
        if mode == "tasks" and self._open and "result" in data:
            return [*self._ended(path, f"{data['name']}:{data['id']}", cut_off=data["error"] is not None), event]
        return (event,)

    def rest(self) -> Iterator[ProtocolEvent]:
        """The ends of messages that have not ended when the run does."""
        for key in [*self._open]:
            yield from self._finish(key)

    def _message(self, path: _Path, message: Any, metadata: dict[str, Any]) -> Iterator[ProtocolEvent]:
        if not type(message).__name__.endswith("Chunk"):
            if message.type != "tool":
                yield made_event("messages", path, (message, metadata))
            return
        if message.type in ("tool", "ToolMessageChunk"):
            return
        key = (path, message.id)
        if key not in self._open:
            self._open[key] = (Utterance(message), {**metadata, "message_id": message.id})
        utterance, metadata = self._open[key]
        for said in utterance.events(message):
            yield made_event("messages", path, (said, metadata))
        if getattr(message, "chunk_position", None) == "last":
            yield from self._finish(key)

    def _ended(self, path: _Path, task: str, *, cut_off: bool) -> Iterator[ProtocolEvent]:
        """The ends of what a task was saying."""
        for key, (_, metadata) in [*self._open.items()]:
            if key[0] == path and speaker_of(metadata) == task:
                if cut_off:
                    del self._open[key]
                else:
                    yield from self._finish(key)

    def _finish(self, key: tuple[_Path, str | None]) -> Iterator[ProtocolEvent]:
        utterance, metadata = self._open.pop(key)
        for said in utterance.end():
            yield made_event("messages", key[0], (said, metadata))


def speaker_of(metadata: Mapping[str, Any]) -> str:
    """The task that says a message, as name and id."""
    return str(metadata.get("langgraph_checkpoint_ns", "")).rpartition("|")[2]
