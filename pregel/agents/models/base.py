"""A chat model, and what an adapter for a provider has to write.

**An adapter is one class in one file.** It subclasses `ChatModel`, sets `provider`, `model` and, where known,
`profile`, and writes up to four methods. All take a `ChatRequest`, which is plain data, complete and checked:

========================  ==========================================================================================
``generate(request)``     The whole answer, by blocking: an `AIMessage`. The only one that must be there.
``agenerate(request)``    The same, awaited. Without it `generate` runs on a thread.
``chunks(request)``       The answer as `AIMessageChunk` pieces that add up with ``+``, the last one with
                          ``chunk_position="last"``. Without it the whole answer is one piece.
``achunks(request)``      The same, as an async iterator. Without it `agenerate` gives the one piece.
========================  ==========================================================================================

What an adapter maps, and nothing else does:

1. *Messages.* `request.messages` are whole messages, the system message first when there is one. Tool results follow
   their calls, in call order. Content is text or blocks (`pregel.messages`); `message.content_blocks` has them in the
   standard shapes. An adapter drops empty system texts and what its provider has no form for, or refuses it by name.
2. *Tools.* `request.tools` holds `ToolSpec`, and dicts that are the provider's own and go out as they are. `extras`
   of a spec are for the provider (``cache_control``, ``strict``).
3. *Tool choice.* None and "auto": the model decides; "any": some tool; "none": no tool; else the name of the tool.
4. *Output.* `request.output` asks for JSON by a schema (`OutputSchema`); only providers with ``structured_output`` in
   their `profile` are asked.
5. *Settings.* `request.settings` are keywords of the provider's call (temperature, max_tokens, stop, ...). They go out
   as they are, on top of those that the model was made with.
6. *The answer.* Text, tool calls with their arguments parsed (what cannot be parsed is an `invalid_tool_call`), `id` as
   the provider gave it, `usage_metadata` (input tokens include cached ones), and ``response_metadata`` with
   ``model_provider``, ``model_name`` and ``finish_reason`` (on one chunk only: texts add up).
7. *Errors.* The client's exceptions become those of `models.errors`, raised ``from`` them. Retries are a middleware's.

An adapter keeps no state between calls, so that one object serves threads and event loops at once. Everything else
(`invoke`, `stream`, `bind_tools`, structured output) is here, once.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias
from uuid import uuid4

from typing_extensions import TypedDict

from pregel.agents.tools.base import Tool
from pregel.agents.tools.foreign import as_tool, is_foreign_tool
from pregel.config import RunnableConfig
from pregel.engine.heard import surrounding
from pregel.errors import InvalidInputError
from pregel.flow import on_thread
from pregel.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message, whole_messages
from pregel.messages.reducer import Messages
from pregel.owned import Owned
from pregel.runnable import Runnable
from pregel.telemetry import active
from pregel.tokens import Sink, token_sink

if TYPE_CHECKING:
    from pregel.interop.langchain_calls import HeardCall

ModelInput: TypeAlias = Messages


class ModelProfile(TypedDict, total=False):
    """What is known of a model. Sizes in tokens."""

    max_input_tokens: int
    max_output_tokens: int
    tool_calling: bool
    structured_output: bool
    image_inputs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as a model is told of it. `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    extras: Mapping[str, Any] = field(default_factory=dict)

    def as_openai(self) -> dict[str, Any]:
        """The spec in the shape that OpenAI's chat API and most libraries take."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSchema:
    """JSON that an answer must be. `strict`: the provider must guarantee it; None leaves that to the provider."""

    name: str
    schema: Mapping[str, Any]
    description: str = ""
    strict: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """What one call asks of a model: plain data, complete. See the module for what each field means."""

    messages: Sequence[BaseMessage] = ()
    tools: Sequence[ToolSpec | Mapping[str, Any]] = ()
    tool_choice: str | None = None
    output: OutputSchema | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def override(self, **fields: Any) -> ChatRequest:
        """A copy with some fields replaced."""
        return replace(self, **fields)


class ChatModel(Runnable):
    """A chat model. Subclasses write `generate` and, where they can, its three siblings.

    `bound` is what `bind` and `bind_tools` added: part of every request.
    """

    provider: str = ""
    model: str = ""
    profile: ModelProfile | None = None
    bound: ChatRequest = ChatRequest()
    has_async = True
    tells_by_itself = False  # it has a run of its own for LangChain's handlers

    # -- what an adapter writes ----------------------------------------------------------------------------------------

    def generate(self, request: ChatRequest) -> AIMessage:
        """The answer."""
        raise NotImplementedError(f"{type(self).__name__} has no generate method.")

    async def agenerate(self, request: ChatRequest) -> AIMessage:
        """The answer, awaited."""
        return await on_thread(self.generate, request)

    def chunks(self, request: ChatRequest) -> Iterator[AIMessageChunk]:
        """The answer in pieces."""
        yield as_chunk(self.generate(request))

    async def achunks(self, request: ChatRequest) -> AsyncIterator[AIMessageChunk]:
        """The answer in pieces, awaited."""
        yield as_chunk(await self.agenerate(request))

    # -- what everybody calls ------------------------------------------------------------------------------------------

    def request(self, input: ModelInput, **settings: Any) -> ChatRequest:
        """The request for an input: a text, a message, or a list of message-like things."""
        return self.bound.override(
            messages=whole_messages(input),
            settings={**self.bound.settings, **settings} if settings else self.bound.settings,
        )

    def invoke(self, input: Any, config: RunnableConfig | None = None, **settings: Any) -> AIMessage:
        """The answer to an input; keywords are settings of the provider's call."""
        return answered(self, self.request(input, **settings), tags_of(config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **settings: Any) -> AIMessage:
        """The answer to an input, awaited."""
        return await aanswered(self, self.request(input, **settings), tags_of(config))

    def stream(self, input: Any, config: RunnableConfig | None = None, **settings: Any) -> Iterator[AIMessageChunk]:
        """The answer in pieces that share one id."""
        sink, request = _sink(self, tags_of(config)), self.request(input, **settings)
        chunks = _named(self.chunks(request))
        if (heard := _heard(self, request, tags_of(config))) is not None:
            chunks = _heard_chunks(heard, chunks)
        for chunk in chunks if active() is None else _traced(self, request, chunks):
            if sink is not None:
                sink(chunk)
            yield chunk

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **settings: Any
    ) -> AsyncIterator[AIMessageChunk]:
        """The answer in pieces that share one id, awaited."""
        id, sink, request = _new_id(), _sink(self, tags_of(config)), self.request(input, **settings)
        pieces = self.achunks(request)
        if (heard := _heard(self, request, tags_of(config))) is not None:
            pieces = _aheard_chunks(heard, pieces)
        async with Owned(pieces if active() is None else _atraced(self, request, pieces)) as owned:
            async for piece in owned:
                chunk = _with_id(piece, id)
                if sink is not None:
                    sink(chunk)
                yield chunk

    def call(self, value: Any, running: Any) -> AIMessage:
        return self.invoke(value)

    async def acall(self, value: Any, running: Any) -> AIMessage:
        return await self.ainvoke(value)

    def bind(self, **settings: Any) -> Self:
        """The same model with settings that go into every call."""
        return self._bind(settings={**self.bound.settings, **settings})

    def bind_tools(self, tools: Sequence[Any], *, tool_choice: str | None = None, **settings: Any) -> Self:
        """The same model with tools that it may call: tools, functions, or a provider's own dicts."""
        fields: dict[str, Any] = {"settings": {**self.bound.settings, **settings}}
        if tool_choice is not None:
            fields["tool_choice"] = "any" if tool_choice in ("required", True) else tool_choice
        return self._bind(tools=[tool_spec(tool) for tool in tools], **fields)

    def with_structured_output(self, schema: Any, *, include_raw: bool = False, **settings: Any) -> Runnable:
        """A runnable whose output is the schema's type, or {"raw", "parsed", "parsing_error"} with `include_raw`."""
        from pregel.agents.structured_output import StructuredModel

        return StructuredModel(self.bind(**settings), schema, include_raw=include_raw)

    def _bind(self, **fields: Any) -> Self:
        bound = copy.copy(self)
        bound.bound = self.bound.override(**fields)
        return bound

    def get_name(self, suffix: str | None = None) -> str:
        return self.model or type(self).__name__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"


def tool_spec(tool: Any) -> ToolSpec | Mapping[str, Any]:
    """What a model is told of a tool; a dict is the provider's own and stays."""
    if isinstance(tool, (ToolSpec, Mapping)):
        return tool
    if not isinstance(tool, Tool) and not callable(tool) and not is_foreign_tool(tool):
        raise InvalidInputError(f"{tool!r} is no tool.", fix="Give a tool, a function, or a provider's dict.")
    tool = as_tool(tool)
    return ToolSpec(
        name=tool.name, description=tool.description, parameters=tool.parameters, extras=dict(tool.extras or {})
    )


# -- one call ----------------------------------------------------------------------------------------------------------


def answered(model: ChatModel, request: ChatRequest, tags: Sequence[str] = ()) -> AIMessage:
    """The answer to a request. Its pieces are reported as they come when somebody listens."""
    if (heard := _heard(model, request, tags)) is not None:
        with heard:
            heard.output = _measured(model, request, tags)
            return heard.output  # type: ignore[no-any-return]  # it is what was put there
    return _measured(model, request, tags)


def _measured(model: ChatModel, request: ChatRequest, tags: Sequence[str]) -> AIMessage:
    if (telemetry := active()) is None:
        return _answered(model, request, tags)
    with telemetry.chat(model.provider, model.model, request.settings) as chat:
        answer = _answered(model, request, tags)
        chat.answered(answer)
        return answer


def _answered(model: ChatModel, request: ChatRequest, tags: Sequence[str]) -> AIMessage:
    sink = _sink(model, tags)
    if sink is None:
        return model.generate(request)
    chunks: list[AIMessageChunk] = []
    for chunk in _named(model.chunks(request)):
        sink(chunk)
        chunks.append(chunk)
    return whole_answer(chunks)


async def aanswered(model: ChatModel, request: ChatRequest, tags: Sequence[str] = ()) -> AIMessage:
    """The same, awaited."""
    if (heard := _heard(model, request, tags)) is not None:
        async with heard:
            heard.output = await _ameasured(model, request, tags)
            return heard.output  # type: ignore[no-any-return]  # it is what was put there
    return await _ameasured(model, request, tags)


async def _ameasured(model: ChatModel, request: ChatRequest, tags: Sequence[str]) -> AIMessage:
    if (telemetry := active()) is None:
        return await _aanswered(model, request, tags)
    with telemetry.chat(model.provider, model.model, request.settings) as chat:
        answer = await _aanswered(model, request, tags)
        chat.answered(answer)
        return answer


async def _aanswered(model: ChatModel, request: ChatRequest, tags: Sequence[str]) -> AIMessage:
    sink = _sink(model, tags)
    if sink is None:
        return await model.agenerate(request)
    chunks: list[AIMessageChunk] = []
    id = _new_id()
    async with Owned(model.achunks(request)) as pieces:
        async for piece in pieces:
            chunk = _with_id(piece, id)
            sink(chunk)
            chunks.append(chunk)
    return whole_answer(chunks)


def _heard(model: ChatModel, request: ChatRequest, tags: Sequence[str]) -> HeardCall | None:
    """The run of a call for LangChain's handlers; None when nobody hears of it, or the model tells by itself."""
    if model.tells_by_itself or surrounding() is None:
        return None
    from pregel.interop.langchain_calls import model_run  # it is needed where LangChain is loaded

    about = {**request.settings, "provider": model.provider, "model": model.model}
    return model_run(type(model).__name__, about, request.messages, tags)


def _heard_chunks(heard: HeardCall, chunks: Iterator[AIMessageChunk]) -> Iterator[AIMessageChunk]:
    """The pieces as they are, within a run that is told of them all."""
    seen = []
    with heard:
        for chunk in chunks:
            seen.append(chunk)
            yield chunk
        heard.output = whole_answer(seen)


async def _aheard_chunks(heard: HeardCall, chunks: AsyncIterator[AIMessageChunk]) -> AsyncIterator[AIMessageChunk]:
    """The same, awaited."""
    seen = []
    async with heard, Owned(chunks) as owned:
        async for chunk in owned:
            seen.append(chunk)
            yield chunk
        heard.output = whole_answer(seen)


def _traced(model: ChatModel, request: ChatRequest, chunks: Iterator[AIMessageChunk]) -> Iterator[AIMessageChunk]:
    """The pieces as they are, with a span around them."""
    if (telemetry := active()) is None:
        yield from chunks
        return
    with telemetry.chat(model.provider, model.model, request.settings, attach=False) as chat:
        seen = []
        for chunk in chunks:
            seen.append(chunk)
            yield chunk
        chat.answered(whole_answer(seen))


async def _atraced(
    model: ChatModel, request: ChatRequest, chunks: AsyncIterator[AIMessageChunk]
) -> AsyncIterator[AIMessageChunk]:
    """The same, awaited."""
    telemetry = active()
    async with Owned(chunks) as owned:
        if telemetry is None:
            async for chunk in owned:
                yield chunk
            return
        with telemetry.chat(model.provider, model.model, request.settings, attach=False) as chat:
            seen = []
            async for chunk in owned:
                seen.append(chunk)
                yield chunk
            chat.answered(whole_answer(seen))


def _sink(model: ChatModel, tags: Sequence[str]) -> Sink | None:
    """Who wants to hear a call's pieces; see `pregel.tokens`."""
    return token_sink(tags=tags, metadata={"ls_provider": model.provider, "ls_model_name": model.model})


def tags_of(config: RunnableConfig | None) -> Sequence[str]:
    """The tags that a call is given."""
    return (config or {}).get("tags") or ()


def whole_answer(chunks: Sequence[AIMessageChunk]) -> AIMessage:
    """The message that the pieces add up to."""
    if not chunks:
        return AIMessage("")
    first, *others = chunks
    whole = message_chunk_to_message(first + others if others else first)
    assert isinstance(whole, AIMessage)
    return whole


def as_chunk(message: AIMessage) -> AIMessageChunk:
    """A whole answer as its one and only piece."""
    if isinstance(message, AIMessageChunk):
        return message
    fields = message.to_fields()
    fields.pop("tool_calls", None), fields.pop("invalid_tool_calls", None)
    extra = fields.pop("extra", None) or {}
    return AIMessageChunk(
        **fields,
        **extra,
        tool_calls=message.tool_calls,
        invalid_tool_calls=message.invalid_tool_calls,
        chunk_position="last",
    )


def _new_id() -> str:
    return f"run-{uuid4()}"


def _named(chunks: Iterator[AIMessageChunk]) -> Iterator[AIMessageChunk]:
    id = _new_id()
    for chunk in chunks:
        yield _with_id(chunk, id)


def _with_id(chunk: AIMessageChunk, id: str) -> AIMessageChunk:
    return chunk if chunk.id is not None else chunk.model_copy(update={"id": id})
