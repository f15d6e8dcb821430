"""A message that a model says piece by piece, as the events of its content blocks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Said = dict[str, Any]
_SPOKEN = {"text": "text", "reasoning": "reasoning"}  # kind of block -> the key of its words


@dataclass(slots=True)
class _Block:
    """A block that is being said: `whole` is what is known of it, `words` come piece by piece."""

    index: int
    kind: str
    whole: dict[str, Any]
    words: list[str]

    def finished(self) -> Said:
        if self.kind != "tool_call_chunk":
            key = _SPOKEN.get(self.kind)
            content = self.whole if key is None else {**self.whole, key: "".join(self.words)}
        else:
            content = as_call(self.whole, "".join(self.words))
        return {"event": "content-block-finish", "index": self.index, "content": content}


class Utterance:
    """One message. `events` takes each piece of it, `end` closes what is open."""

    __slots__ = ("_blocks", "_metadata", "_start", "_usage")

    def __init__(self, first: Any) -> None:
        role = {"AIMessageChunk": "ai"}.get(first.type, first.type.removesuffix("MessageChunk").lower())
        self._start: Said | None = {"event": "message-start", "role": role, "id": first.id}
        self._blocks: dict[tuple[str, Any], _Block] = {}
        self._usage: Any = None
        self._metadata: dict[str, Any] = {}

    def events(self, piece: Any) -> Iterator[Said]:
        """What a piece adds."""
        if self._start is not None:
            start, self._start = self._start, None
            yield start
        for block in _blocks(piece.content, piece):
            yield from self._say(block)
        for chunk in getattr(piece, "tool_call_chunks", ()):
            yield from self._call(chunk)
        if usage := getattr(piece, "usage_metadata", None):
            self._usage = usage if self._usage is None else _added(self._usage, usage)
        self._metadata.update(piece.response_metadata)

    def end(self) -> Iterator[Said]:
        """The ends of its blocks, and its own."""
        for block in self._blocks.values():
            yield block.finished()
        finish: Said = {"event": "message-finish"}
        if self._usage is not None:
            finish["usage"] = self._usage
        if self._metadata:
            finish["metadata"] = self._metadata
        yield finish

    def _say(self, block: Mapping[str, Any]) -> Iterator[Said]:
        kind = str(block.get("type", "non_standard"))
        key = _SPOKEN.get(kind)
        if key is None:  # a picture, a citation: it comes whole
            made = self._begun((kind, len(self._blocks)), kind, dict(block))
            yield {"event": "content-block-start", "index": made.index, "content": made.whole}
            return
        place = (kind, block.get("index"))
        if place not in self._blocks:
            if not block.get(key):
                return
            made = self._begun(place, kind, {"type": kind})
            yield {"event": "content-block-start", "index": made.index, "content": {"type": kind, key: ""}}
        made = self._blocks[place]
        made.whole.update({name: value for name, value in block.items() if name not in (key, "index")})
        if words := block.get(key):
            made.words.append(words)
            delta = {"type": f"{kind}-delta", key: words}
            yield {"event": "content-block-delta", "index": made.index, "delta": delta}

    def _begun(self, place: tuple[str, Any], kind: str, whole: dict[str, Any]) -> _Block:
        made = self._blocks[place] = _Block(len(self._blocks), kind, whole, [])
        return made

    def _call(self, chunk: Mapping[str, Any]) -> Iterator[Said]:
        place = ("call", chunk.get("index") if chunk.get("index") is not None else chunk.get("id"))
        if place not in self._blocks:
            whole = {"type": "tool_call_chunk", "id": chunk.get("id"), "name": chunk.get("name"), "args": ""}
            if chunk.get("index") is not None:
                whole["index"] = chunk["index"]
            made = self._begun(place, "tool_call_chunk", whole)
            yield {"event": "content-block-start", "index": made.index, "content": dict(whole)}
        made = self._blocks[place]
        made.whole["name"] = made.whole["name"] or chunk.get("name")
        made.whole["id"] = made.whole["id"] or chunk.get("id")
        if words := chunk.get("args"):
            made.words.append(words)
            delta = {"type": "tool-call-delta", "args": words}
            yield {"event": "content-block-delta", "index": made.index, "delta": delta}


def _blocks(content: Any, piece: Any) -> Iterable[Mapping[str, Any]]:
    """The blocks of a piece but its tool calls, which come in `tool_call_chunks`."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if not content:
        return []
    return [block for block in piece.content_blocks if block["type"] not in ("tool_call_chunk", "tool_call")]


def as_call(known: Mapping[str, Any], text: str) -> dict[str, Any]:
    """A tool call whose arguments are there, or what it is when they are no JSON object."""
    whole = {"type": "tool_call", "id": known["id"], "name": known["name"]}
    try:
        args = json.loads(text) if text else {}
    except json.JSONDecodeError as error:
        return {**whole, "type": "invalid_tool_call", "args": text, "error": str(error)}
    if not isinstance(args, dict):
        return {**whole, "type": "invalid_tool_call", "args": text, "error": "The arguments are no JSON object."}
    return {**whole, "args": args}


def _added(left: Any, right: Any) -> Any:
    from pregel.messages.usage import add_usage  # loaded with the messages

    return add_usage(left, right)
