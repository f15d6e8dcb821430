"""Messages that are being streamed: pieces that add up with `+`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, Unpack, cast

from pregel.messages.base import BaseMessage
from pregel.messages.calls import (
    ToolCallChunk,
    calls_of_chunks,
    checked_calls,
    checked_chunks,
    checked_invalid_calls,
    tool_call_chunk,
)
from pregel.messages.combine import best_id, merge_content, merge_dicts, merge_lists
from pregel.messages.content import Content
from pregel.messages.fields import MessageFields
from pregel.messages.kinds import AIMessage, ChatMessage, FunctionMessage, HumanMessage, SystemMessage, ToolMessage
from pregel.messages.usage import UsageMetadata, add_usage


class BaseMessageChunk(BaseMessage):
    """A piece of a message. `piece + piece` is a longer piece."""

    __slots__ = ()
    WHOLE: ClassVar[type[BaseMessage]] = BaseMessage
    SAME: ClassVar[tuple[str, ...]] = ()  # fields that pieces of one message agree on

    def __add__(self, other: object) -> Self:
        others = list(other) if isinstance(other, (list, tuple)) else [other]
        if not others or not all(isinstance(piece, BaseMessageChunk) for piece in others):
            return NotImplemented
        pieces = cast("list[BaseMessage]", [self, *others])
        for field in self.SAME:
            if len({getattr(piece, field) for piece in pieces}) > 1:
                raise ValueError(f"Pieces of {type(self).__name__} with different {field} do not add up.")
        return self.from_fields(self._sum(pieces))

    def _sum(self, pieces: Sequence[BaseMessage]) -> dict[str, Any]:
        return {
            **self._own_fields(pieces),
            "content": merge_content(*(piece.content for piece in pieces)),
            "additional_kwargs": merge_dicts(*(piece.additional_kwargs for piece in pieces)),
            "response_metadata": merge_dicts(*(piece.response_metadata for piece in pieces)),
            "name": next((piece.name for piece in pieces if piece.name), None),
            "id": best_id(piece.id for piece in pieces),
            "extra": merge_dicts(*(piece.extra or {} for piece in pieces)) or None,
        }

    def _own_fields(self, pieces: Sequence[BaseMessage]) -> dict[str, Any]:
        return {field: getattr(self, field) for field in self.SAME}


class HumanMessageChunk(HumanMessage, BaseMessageChunk):
    """A piece of a HumanMessage."""

    __slots__ = ()
    type: ClassVar[str] = "HumanMessageChunk"
    WHOLE = HumanMessage


class SystemMessageChunk(SystemMessage, BaseMessageChunk):
    """A piece of a SystemMessage."""

    __slots__ = ()
    type: ClassVar[str] = "SystemMessageChunk"
    WHOLE = SystemMessage


class FunctionMessageChunk(FunctionMessage, BaseMessageChunk):
    """A piece of a FunctionMessage."""

    __slots__ = ()
    type: ClassVar[str] = "FunctionMessageChunk"
    WHOLE = FunctionMessage
    SAME = ("name",)


class ChatMessageChunk(ChatMessage, BaseMessageChunk):
    """A piece of a ChatMessage."""

    __slots__ = ()
    type: ClassVar[str] = "ChatMessageChunk"
    WHOLE = ChatMessage
    SAME = ("role",)


class ToolMessageChunk(ToolMessage, BaseMessageChunk):
    """A piece of a ToolMessage. One failed piece makes the whole a failure; the last artifact wins."""

    __slots__ = ()
    type: ClassVar[str] = "ToolMessageChunk"
    WHOLE = ToolMessage
    SAME = ("tool_call_id",)

    def _own_fields(self, pieces: Sequence[BaseMessage]) -> dict[str, Any]:
        tools = [piece for piece in pieces if isinstance(piece, ToolMessage)]
        artifacts = [piece.artifact for piece in tools if piece.artifact is not None]
        failed = any(piece.status == "error" for piece in tools)
        return {
            "tool_call_id": self.tool_call_id,
            "artifact": artifacts[-1] if artifacts else None,
            "status": "error" if failed else "success",
        }


class AIMessageChunk(AIMessage, BaseMessageChunk):
    """A piece of an AIMessage. `chunk_position` is "last" on the piece that ends it.

    `tool_calls` and `invalid_tool_calls` say what `tool_call_chunks` amount to so far. They are worked out when they
    are first read: a stream of n pieces would otherwise parse its arguments n times.
    """

    __slots__ = ("chunk_position", "tool_call_chunks")

    type: ClassVar[str] = "AIMessageChunk"
    WHOLE = AIMessage
    DEFAULTS: ClassVar[dict[str, Any]] = {**AIMessage.DEFAULTS, "tool_call_chunks": list, "chunk_position": None}

    tool_call_chunks: list[ToolCallChunk]
    chunk_position: Literal["last"] | None

    def __init__(
        self,
        content: Content | None = None,
        *,
        tool_call_chunks: Iterable[Mapping[str, Any]] | Iterable[ToolCallChunk] = (),
        tool_calls: Iterable[Mapping[str, Any]] = (),
        invalid_tool_calls: Iterable[Mapping[str, Any]] = (),
        usage_metadata: UsageMetadata | None = None,
        chunk_position: Literal["last"] | None = None,
        **fields: Unpack[MessageFields],
    ) -> None:
        BaseMessage.__init__(self, content, **fields)
        self.usage_metadata = usage_metadata
        self.chunk_position = chunk_position
        self.tool_call_chunks = checked_chunks(cast("Any", tool_call_chunks))
        if self.tool_call_chunks:
            return
        if tool_calls or invalid_tool_calls:
            self.tool_calls, self.invalid_tool_calls = (
                checked_calls(tool_calls),
                checked_invalid_calls(invalid_tool_calls),
            )
            self.tool_call_chunks = [_as_chunk(call) for call in self.tool_calls]
        elif "tool_calls" in self.additional_kwargs:
            self.tool_call_chunks = [
                _raw_chunk(raw) for raw in self.additional_kwargs["tool_calls"] if "function" in raw
            ]

    def __getattr__(self, name: str) -> Any:
        if name in ("tool_calls", "invalid_tool_calls"):
            self.tool_calls, self.invalid_tool_calls = calls_of_chunks(self.tool_call_chunks)
            return self.tool_calls if name == "tool_calls" else self.invalid_tool_calls
        return super().__getattr__(name)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """The message that `to_fields` was taken from, unchecked."""
        message = super().from_fields(fields)
        if message.tool_call_chunks and "tool_calls" not in fields and "invalid_tool_calls" not in fields:
            del message.tool_calls, message.invalid_tool_calls
        return message

    def _own_fields(self, pieces: Sequence[BaseMessage]) -> dict[str, Any]:
        mine = [piece for piece in pieces if isinstance(piece, AIMessageChunk)]
        usage = self.usage_metadata
        chunks: list[ToolCallChunk] = self.tool_call_chunks
        for piece in mine[1:]:
            usage = add_usage(usage, piece.usage_metadata)
            chunks = merge_lists(chunks, piece.tool_call_chunks) if piece.tool_call_chunks else chunks
        last = any(piece.chunk_position == "last" for piece in mine)
        return {
            "usage_metadata": usage,
            "tool_call_chunks": chunks,
            "chunk_position": "last" if last else None,
        }


def _as_chunk(call: Mapping[str, Any]) -> ToolCallChunk:
    args = json.dumps(call["args"], ensure_ascii=False)
    return tool_call_chunk(name=call["name"], args=args, id=call["id"])


def _raw_chunk(raw: Mapping[str, Any]) -> ToolCallChunk:
    function = raw["function"]
    return tool_call_chunk(
        name=function.get("name"), args=function.get("arguments"), id=raw.get("id"), index=raw.get("index")
    )


def message_chunk_to_message(chunk: BaseMessage) -> BaseMessage:
    """The whole message of a piece, with its id; any other message as it is."""
    if not isinstance(chunk, BaseMessageChunk):
        return chunk
    whole = chunk.WHOLE
    fields = {name: getattr(chunk, name) for name in whole.DEFAULTS}
    return whole.from_fields({**fields, "extra": chunk.extra})
