"""Somebody else's chat model (LangChain's, by its shape alone) as one of ours: nothing of theirs is imported."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from pregel.agents.models.base import ChatModel, ChatRequest, ToolSpec, as_chunk
from pregel.errors import InvalidInputError
from pregel.messages import AIMessage, AIMessageChunk, BaseMessage, convert_to_openai_messages, whole_messages
from pregel.messages.convert import kind_of
from pregel.owned import Owned
from pregel.runnable import Runnable, RunnableLambda, coerce_to_runnable
from pregel.tokens import Sink, screening


def is_foreign_model(thing: object) -> bool:
    """Whether it looks like a chat model of another library."""
    return not isinstance(thing, (ChatModel, type)) and hasattr(thing, "bind_tools") and hasattr(thing, "invoke")


class ForeignModel(ChatModel):
    """A chat model of another library: messages go in as OpenAI's dicts, attributes are read off what comes out.

    A model that is not LangChain's, only shaped like it, gets our messages themselves. What it streams is reported
    once, by us: it does not report to the run itself while we call it.
    """

    def __init__(self, foreign: Any) -> None:
        self.foreign = foreign
        self.tells_by_itself = hasattr(foreign, "callbacks")  # LangChain's do
        self.model = str(getattr(foreign, "model_name", None) or getattr(foreign, "model", None) or "")
        self.provider = str(getattr(foreign, "_llm_type", "")).partition("-")[0]
        profile = getattr(foreign, "profile", None)
        self.profile = dict(profile) if profile else None  # type: ignore[assignment]
        bases = {cls.__module__.partition(".")[0] for cls in type(foreign).__mro__}
        self.takes_dicts = any(base.startswith("langchain") for base in bases)

    def generate(self, request: ChatRequest) -> AIMessage:
        with screening(_unheard):
            return _answer(self._ready(request).invoke(self._messages(request.messages)))

    async def agenerate(self, request: ChatRequest) -> AIMessage:
        ready = self._ready(request)
        if not hasattr(ready, "ainvoke"):
            return await super().agenerate(request)
        with screening(_unheard):
            return _answer(await ready.ainvoke(self._messages(request.messages)))

    def chunks(self, request: ChatRequest) -> Iterator[AIMessageChunk]:
        ready = self._ready(request)
        if not hasattr(ready, "stream"):
            yield from super().chunks(request)
            return
        pieces = iter(ready.stream(self._messages(request.messages)))
        while True:
            with screening(_unheard):
                piece = next(pieces, None)
            if piece is None:
                return
            yield _chunk(piece)

    async def achunks(self, request: ChatRequest) -> AsyncIterator[AIMessageChunk]:
        ready = self._ready(request)
        if not hasattr(ready, "astream"):
            async with Owned(super().achunks(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        async with Owned(ready.astream(self._messages(request.messages))) as pieces:
            while True:
                with screening(_unheard):
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                yield _chunk(piece)

    def with_structured_output(self, schema: Any, *, include_raw: bool = False, **settings: Any) -> Runnable:
        """Its own runnable, for a schema of a kind that it knows; otherwise ours."""
        own = getattr(self.foreign, "with_structured_output", None)
        untitled = isinstance(schema, Mapping) and "title" not in schema
        if own is None or untitled or is_dataclass(schema) or self.bound.settings:
            return super().with_structured_output(schema, include_raw=include_raw, **settings)
        made = own(schema, **({"include_raw": True} if include_raw else {}), **settings)
        return RunnableLambda(lambda given: self._messages(whole_messages(given))) | coerce_to_runnable(made)

    def _ready(self, request: ChatRequest) -> Any:
        """The foreign model with the request's tools and settings bound."""
        settings = dict(request.settings)
        if request.output is not None:
            output = request.output
            titled = {"title": output.name, **output.schema}  # LangChain's model of OpenAI takes the name from there
            schema: dict[str, Any] = {"name": output.name, "schema": titled}
            if output.strict is not None:
                schema["strict"] = output.strict
            settings["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.tools:
            tools = [tool.as_openai() if isinstance(tool, ToolSpec) else dict(tool) for tool in request.tools]
            if request.tool_choice is not None:
                settings["tool_choice"] = request.tool_choice
            return self.foreign.bind_tools(tools, **settings)
        return self.foreign.bind(**settings) if settings else self.foreign

    def _messages(self, messages: Sequence[BaseMessage]) -> Any:
        return convert_to_openai_messages(messages) if self.takes_dicts else list(messages)


def _unheard(sink: Sink) -> Sink:
    return lambda piece: None


_FIELDS = ("additional_kwargs", "response_metadata", "name", "id", "usage_metadata")


def _answer(answer: Any) -> AIMessage:
    if isinstance(answer, AIMessage):
        return answer
    if not hasattr(answer, "content") or kind_of(answer) != "ai":
        raise InvalidInputError(
            f"The model answered with a {type(answer).__name__}.", fix="A chat model answers with an AI message."
        )
    calls, bad = getattr(answer, "tool_calls", ()), getattr(answer, "invalid_tool_calls", ())
    return AIMessage(answer.content, tool_calls=calls, invalid_tool_calls=bad, **_fields(answer))


def _chunk(chunk: Any) -> AIMessageChunk:
    if isinstance(chunk, AIMessageChunk):
        return chunk
    pieces = getattr(chunk, "tool_call_chunks", None)
    if pieces is None:  # a model that cannot stream gives its whole answer
        return as_chunk(_answer(chunk))
    position = getattr(chunk, "chunk_position", None)
    return AIMessageChunk(chunk.content, **_fields(chunk), tool_call_chunks=pieces, chunk_position=position)


def _fields(message: Any) -> dict[str, Any]:
    return {name: getattr(message, name, None) for name in _FIELDS}
