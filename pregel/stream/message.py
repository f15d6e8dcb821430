"""One message of a run, as it is said: its words, its reasoning and its tool calls piece by piece, and it whole.

1. What was said is kept with the message, so each part of it can be read at any time, and more than once.
2. Whoever reads on, or asks for what is not there yet, moves the run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pregel.stream.pump import Pump

if TYPE_CHECKING:
    from pregel.messages import BaseMessage

T = TypeVar("T")
Said = Mapping[str, Any]


class Pieces(Generic[T]):
    """Something that comes piece by piece. `done`: there is no more of it."""

    __slots__ = ("_pump", "done", "error", "items", "whole")

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self.items: list[T] = []
        self.whole: Any = None  # when it is done, where that is not what the pieces add up to
        self.done = False
        self.error: BaseException | None = None

    @property
    def ready(self) -> bool:
        """Whether it is whole, for those who wait for that."""
        return self.done

    def push(self, piece: T) -> None:
        """Add a piece."""
        self.items.append(piece)
        self._pump.stirred()

    def end(self, whole: Any = None, error: BaseException | None = None) -> None:
        """There is no more of it."""
        if not self.done:
            self.done, self.whole, self.error = True, whole, error
            self._pump.stirred()

    def result(self) -> Any:
        """The whole of what is done; the error that cut it off."""
        if self.error is not None:
            raise self.error
        return self.whole


class _Next:
    """The wish for one piece more than there were."""

    __slots__ = ("pieces", "place")

    def __init__(self, pieces: Pieces[Any]) -> None:
        self.pieces = pieces
        self.place = 0

    @property
    def ready(self) -> bool:
        return self.place < len(self.pieces.items) or self.pieces.done

    def take(self) -> Any:
        """The piece; StopIteration behind the last one, or what cut it off."""
        if self.place < len(self.pieces.items):
            self.place += 1
            return self.pieces.items[self.place - 1]
        if self.pieces.error is not None:
            raise self.pieces.error
        raise StopIteration


class BlockingPieces(Pieces[T]):
    """Iterate for the pieces; `get`, or `str`, gives the whole and moves the run until it is there."""

    __slots__ = ()

    def __iter__(self) -> Iterator[T]:
        following = _Next(self)
        while True:
            self._pump.pull(following)
            try:
                piece = following.take()
            except StopIteration:
                return
            yield piece

    def get(self) -> Any:
        """The whole of it."""
        self._pump.pull(self)
        return self.result()

    def __str__(self) -> str:
        return str(self.get())


class AwaitingPieces(Pieces[T]):
    """Iterate with ``async for`` for the pieces; await it for the whole."""

    __slots__ = ()

    async def __aiter__(self) -> AsyncIterator[T]:
        following = _Next(self)
        while True:
            await self._pump.apull(following)
            try:
                piece = following.take()
            except StopIteration:
                return
            yield piece

    async def get(self) -> Any:
        """The whole of it."""
        await self._pump.apull(self)
        return self.result()

    def __await__(self) -> Generator[Any, None, Any]:
        return self.get().__await__()


class _Message:
    """What both kinds of message streams are: `kind` makes their parts."""

    kind: Any

    def __init__(self, pump: Pump, namespace: tuple[str, ...], node: str | None, message_id: str | None) -> None:
        self.namespace = list(namespace)
        self.node = node
        self.message_id = message_id
        self.text: Any = self.kind(pump)
        self.reasoning: Any = self.kind(pump)
        self.tool_calls: Any = self.kind(pump)
        self._events: Any = self.kind(pump)
        self._said: Any = self.kind(pump)  # the message itself, when it is done
        self._blocks: dict[int, dict[str, Any]] = {}
        self._role = "ai"

    @property
    def done(self) -> bool:
        """Whether it has been said to its end, or was cut off."""
        return bool(self._said.done)

    @property
    def output_message(self) -> BaseMessage | None:
        """The message, if it is done."""
        found: BaseMessage | None = self._said.whole
        return found

    def dispatch(self, event: Said) -> None:
        """Take in an event of the message."""
        self._events.push(event)
        match event:
            case {"event": "message-start"}:
                self._role = str(event.get("role", "ai"))
            case {"event": "content-block-start", "index": index, "content": content}:
                self._blocks[index] = dict(content)
            case {"event": "content-block-delta", "index": index, "delta": delta}:
                self._piece(index, delta)
            case {"event": "content-block-finish", "index": index, "content": content}:
                self._blocks[index] = dict(content)
            case {"event": "message-finish"}:
                self._finish(event)

    def _piece(self, index: int, delta: Said) -> None:
        match delta:
            case {"type": "text-delta", "text": words}:
                self.text.push(words)
            case {"type": "reasoning-delta", "reasoning": words}:
                self.reasoning.push(words)
            case {"type": "tool-call-delta", "args": words}:
                self.tool_calls.push({**self._blocks.get(index, {}), "args": words})

    def _finish(self, event: Said) -> None:
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        message = _whole(self._role, self.message_id, blocks, event)
        self._close(message)

    def tell(self, message: Any) -> None:
        """Take in a message that comes whole."""
        if message.text:
            self.text.push(message.text)
        self._close(message)

    def _close(self, message: Any) -> None:
        self.text.end("".join(self.text.items))
        self.reasoning.end("".join(self.reasoning.items))
        self.tool_calls.end(list(getattr(message, "tool_calls", ())))
        self._events.end()
        self._said.end(message)

    def fail(self, error: BaseException) -> None:
        """It was cut off."""
        for part in (self.text, self.reasoning, self.tool_calls, self._events, self._said):
            part.end(error=error)


class MessageStream(_Message):
    """A message of a blocking run. Iterate `text`, `reasoning` or `tool_calls` for their pieces, or it for its events.

    ``str(message.text)`` and ``message.tool_calls.get()`` are whole; `output` is the message.
    """

    kind = BlockingPieces
    text: BlockingPieces[str]
    reasoning: BlockingPieces[str]
    tool_calls: BlockingPieces[dict[str, Any]]

    @property
    def output(self) -> BaseMessage:
        """The message, when it has been said to its end."""
        message: BaseMessage = self._said.get()
        return message

    def __iter__(self) -> Iterator[Said]:
        return iter(self._events)


class AsyncMessageStream(_Message):
    """The same in an awaited run: await `text`, `reasoning`, `tool_calls` or `output` for the whole."""

    kind = AwaitingPieces
    text: AwaitingPieces[str]
    reasoning: AwaitingPieces[str]
    tool_calls: AwaitingPieces[dict[str, Any]]

    @property
    def output(self) -> AwaitingPieces[Any]:
        """The message: await it."""
        said: AwaitingPieces[Any] = self._said
        return said

    def __aiter__(self) -> AsyncIterator[Said]:
        return aiter(self._events)


def _whole(role: str, id: str | None, blocks: list[dict[str, Any]], finish: Said) -> BaseMessage:
    """The message that events amount to: text alone as a str, anything else as blocks; calls stand beside both."""
    from pregel import messages  # loaded with the first message

    calls = [block for block in blocks if block["type"] == "tool_call"]
    broken = [block for block in blocks if block["type"] == "invalid_tool_call"]
    rest = [block for block in blocks if block not in calls and block not in broken]
    text_only = all(block["type"] == "text" for block in rest)
    content: Any = "".join(block["text"] for block in rest) if text_only else rest
    known: dict[str, Any] = {"id": id, "response_metadata": dict(finish.get("metadata") or {})}
    if role != "ai":
        kind = {"human": messages.HumanMessage, "system": messages.SystemMessage}.get(role)
        return messages.ChatMessage(content, role=role, **known) if kind is None else kind(content, **known)
    return messages.AIMessage(
        content,
        tool_calls=[{"name": one["name"], "args": one["args"], "id": one["id"]} for one in calls],
        invalid_tool_calls=broken,
        usage_metadata=finish.get("usage"),
        **known,
    )
