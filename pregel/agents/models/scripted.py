"""A model that says what a script says: for tests, examples and demos. It needs no network and no key."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeAlias
from uuid import uuid4

from pregel.agents.models.base import ChatModel, ChatRequest, ModelProfile
from pregel.errors import AsyncOnlyError, DefinitionError, InvalidInputError
from pregel.flow import on_thread
from pregel.messages import AIMessage, AIMessageChunk, tool_call, tool_call_chunk
from pregel.messages.convert import kind_of
from pregel.runnable import is_async_callable


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of a script, when a text or a message does not say enough. `delay` in seconds, before the answer.

    `chunks`: the pieces to stream, when they are to be cut otherwise than by words. `error` is raised in the place of
    an answer, after `chunks` were streamed.
    """

    answer: str | AIMessage = ""
    delay: float = 0.0
    chunks: Sequence[AIMessageChunk] | None = None
    error: Exception | None = None


Line: TypeAlias = str | AIMessage | Exception | Turn
Answering: TypeAlias = Callable[[ChatRequest], Line | Awaitable[Line]]
Script: TypeAlias = Iterable[Line | Answering] | Answering


def call_tool(name: str, args: Mapping[str, Any] | None = None, *, id: str | None = None) -> AIMessage:
    """An answer that calls one tool. Two of them add up with `call_tools`."""
    return AIMessage("", tool_calls=[tool_call(name=name, args=dict(args or {}), id=id or f"call_{uuid4().hex[:12]}")])


def call_tools(*answers: AIMessage) -> AIMessage:
    """One answer with the tool calls of several."""
    return AIMessage("", tool_calls=[call for answer in answers for call in answer.tool_calls])


class ScriptedModel(ChatModel):
    """A model that answers from a script: texts, messages, exceptions to raise, `Turn`s, or functions of the request.

    The script is a list, read one line a call, or one function that answers every call. `by_turn` reads the line by
    how many answers the request holds already, so that a process that starts anew goes on where the history stands.
    `requests` keeps what was asked. InvalidInputError when the script is at its end.

    A coroutine function answers where it is awaited, and is an AsyncOnlyError where its caller blocks; any other
    function runs on a thread where it is awaited.
    """

    provider = "scripted"

    def __init__(
        self,
        script: Script,
        *,
        model: str = "scripted",
        by_turn: bool = False,
        loop: bool = False,
        profile: ModelProfile | None = None,
    ) -> None:
        self.script: Any = script if callable(script) else [script] if isinstance(script, str) else list(script)
        for line in self.script if isinstance(self.script, list) else [self.script]:
            _check(line)
        self.model, self.by_turn, self.loop, self.profile = model, by_turn, loop, profile
        self.requests: list[ChatRequest] = []
        self._lock = Lock()

    @property
    def calls(self) -> int:
        """How often the model was asked."""
        return len(self.requests)

    def generate(self, request: ChatRequest) -> AIMessage:
        turn = self._turn(request)
        if turn.delay:  # a sleep of no time lets others have the processor
            time.sleep(turn.delay)
        return _answer(turn)

    async def agenerate(self, request: ChatRequest) -> AIMessage:
        import asyncio

        turn = await self._aturn(request)
        if turn.delay:
            await asyncio.sleep(turn.delay)
        return _answer(turn)

    def chunks(self, request: ChatRequest) -> Iterator[AIMessageChunk]:
        turn = self._turn(request)
        if turn.delay:
            time.sleep(turn.delay)
        yield from _pieces(turn)

    async def achunks(self, request: ChatRequest) -> AsyncIterator[AIMessageChunk]:
        import asyncio

        turn = await self._aturn(request)
        if turn.delay:
            await asyncio.sleep(turn.delay)
        for piece in _pieces(turn):
            yield piece

    def _turn(self, request: ChatRequest) -> Turn:
        line = self._line(request)
        if not callable(line):
            return self._read(line)
        if is_async_callable(line):
            raise self._not_here(line)
        made = line(request)
        if inspect.iscoroutine(made):  # of a coroutine function that another one calls
            made.close()
            raise self._not_here(line)
        return self._read(made)

    async def _aturn(self, request: ChatRequest) -> Turn:
        line = self._line(request)
        if not callable(line):
            return self._read(line)
        made = line(request) if is_async_callable(line) else await on_thread(line, request)
        return self._read(await made if inspect.isawaitable(made) else made)

    def _not_here(self, line: Any) -> AsyncOnlyError:
        return AsyncOnlyError(
            f"The script of {self!r} has to be awaited at {line!r}, and its caller blocks.",
            fix="Use the async API (ainvoke, astream, ...), or write a plain function.",
        )

    def _read(self, line: Any) -> Turn:
        if isinstance(line, Turn):
            return line
        if isinstance(line, Exception):
            return Turn(error=line)
        if isinstance(line, str) or (hasattr(line, "model_copy") and kind_of(line) == "ai"):
            return Turn(answer=line)
        raise InvalidInputError(
            f"The script of {self!r} gave {line!r}, which is no answer.",
            fix="Give a text, an AIMessage, an exception or a Turn; pieces go into Turn(chunks=[...]).",
        )

    def _line(self, request: ChatRequest) -> Any:
        with self._lock:
            index = len(self.requests)
            self.requests.append(request)
        if callable(self.script):
            return self.script
        if self.by_turn:
            index = sum(kind_of(message) == "ai" for message in request.messages)
        if self.loop and self.script:
            index %= len(self.script)
        if index < len(self.script):
            return self.script[index]
        raise InvalidInputError(
            f"The script of {self!r} has {len(self.script)} lines, and line {index + 1} was asked for.",
            fix="Write more lines, or pass loop=True.",
        )


def _check(line: Any) -> None:
    """DefinitionError for a function whose call could give no answer."""
    if inspect.isgeneratorfunction(line) or inspect.isasyncgenfunction(line):
        raise DefinitionError(
            f"{line!r} is a generator function, and no line of a script.",
            fix="Return the whole answer; the pieces to stream go into Turn(chunks=[...]).",
        )


def _answer(turn: Turn) -> AIMessage:
    if turn.error is not None:
        raise turn.error
    return AIMessage(turn.answer) if isinstance(turn.answer, str) else turn.answer.model_copy()


def _pieces(turn: Turn) -> Iterator[AIMessageChunk]:
    if turn.chunks is not None:
        yield from turn.chunks
    if turn.error is not None or turn.chunks is not None:
        if turn.error is not None:
            raise turn.error
        return
    answer = _answer(turn)
    yield from (_piece(answer, content=part) for part in _parts(answer.content))
    for index, call in enumerate(answer.tool_calls):
        text = json.dumps(call["args"], ensure_ascii=False)
        head = tool_call_chunk(name=call["name"], args=text[:1], id=call["id"], index=index)
        yield _piece(answer, tool_call_chunks=[head])
        yield _piece(answer, tool_call_chunks=[tool_call_chunk(args=text[1:], index=index)])
    for offset, bad in enumerate(answer.invalid_tool_calls):
        at = len(answer.tool_calls) + offset
        yield _piece(
            answer, tool_call_chunks=[tool_call_chunk(name=bad["name"], args=bad["args"], id=bad["id"], index=at)]
        )
    yield AIMessageChunk(
        "",
        id=answer.id,
        name=answer.name,
        additional_kwargs=answer.additional_kwargs,
        response_metadata=answer.response_metadata,
        usage_metadata=answer.usage_metadata,
        chunk_position="last",
    )


def _piece(answer: AIMessage, content: Any = "", **fields: Any) -> AIMessageChunk:
    return AIMessageChunk(content, id=answer.id, **fields)


def _parts(content: Any) -> Iterator[Any]:
    """A text by words, each with the space before it; blocks one by one."""
    if not isinstance(content, str):
        yield from ([{**block, "index": at} if isinstance(block, dict) else block] for at, block in enumerate(content))
        return
    words = content.split(" ")
    yield from (word if at == 0 else f" {word}" for at, word in enumerate(words) if word or at)
