"""OpenAI's chat completions, and every server that speaks them (`base_url`). Needs the extra ``openai``.

1. A tool's result is text there. What else a tool gave back (an image, a file) follows as a message of the user, behind
   the results of that turn.
2. Thoughts of other providers are left out; a call whose arguments could not be read goes back as it was written.
3. Identifiers longer than 40 characters, which other providers have, are shortened the same way each time.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, cast

from pregel.agents.models.base import ChatModel, ChatRequest, ModelProfile, OutputSchema, ToolSpec
from pregel.agents.models.clients import Clients, call_settings, translated
from pregel.agents.models.errors import ModelConnectionError, ModelRefusalError
from pregel.agents.models.schemas import closed, is_complete
from pregel.errors import InvalidInputError
from pregel.extras import extra
from pregel.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage, UsageMetadata
from pregel.messages.calls import parse_openai_calls, tool_call_chunk
from pregel.messages.convert import kind_of
from pregel.messages.openai import openai_block, openai_call

with extra("openai", "ChatOpenAI"):
    from openai import AsyncOpenAI, OpenAI

LONGEST_ID = 40
Body = dict[str, Any]
_PERSON = re.compile(r"[\s<|\\/>]+")


class ChatOpenAI(ChatModel):
    """A model of OpenAI, or of a server that speaks its chat completions.

    `settings` (temperature, max_tokens, ...) go into every call. `max_retries` and `timeout` (seconds) are the
    client's; errors are those of `pregel.agents.models.errors`.
    """

    provider = "openai"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_retries: int = 2,
        timeout: float | None = None,
        profile: ModelProfile | None = None,
        stream_usage: bool = True,
        **settings: Any,
    ) -> None:
        options: Body = {"api_key": api_key, "base_url": base_url, "max_retries": max_retries}
        options |= {} if timeout is None else {"timeout": timeout}
        self.clients = Clients(lambda: OpenAI(**options), lambda: AsyncOpenAI(**options))
        self.model, self.settings, self.stream_usage = model, settings, stream_usage
        self.profile = profile or {"tool_calling": True, "structured_output": True}

    def generate(self, request: ChatRequest) -> AIMessage:
        with translated(self.provider):
            create = self.clients.blocking().chat.completions.create
            return _answer(create(**self._call(create, request)), request)

    async def agenerate(self, request: ChatRequest) -> AIMessage:
        with translated(self.provider):
            create = (await self.clients.awaiting()).chat.completions.create
            return _answer(await create(**self._call(create, request)), request)

    def chunks(self, request: ChatRequest) -> Iterator[AIMessageChunk]:
        pieces = _Pieces(request)
        with translated(self.provider):
            create: Any = self.clients.blocking().chat.completions.create
            with create(**self._call(create, request), **self._streaming()) as events:
                for event in events:
                    yield from pieces.of(event)
        yield pieces.last()

    async def achunks(self, request: ChatRequest) -> AsyncIterator[AIMessageChunk]:
        pieces = _Pieces(request)
        with translated(self.provider):
            create: Any = (await self.clients.awaiting()).chat.completions.create
            async with await create(**self._call(create, request), **self._streaming()) as events:
                async for event in events:
                    for piece in pieces.of(event):
                        yield piece
        yield pieces.last()

    def _streaming(self) -> Body:
        usage = {"stream_options": {"include_usage": True}} if self.stream_usage else {}
        return {"stream": True, **usage}

    def _call(self, create: Any, request: ChatRequest) -> Body:
        body: Body = {"model": self.model, "messages": openai_messages(request.messages)}
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
            if request.tool_choice is not None:
                body["tool_choice"] = _choice(request.tool_choice)
        if request.output is not None:
            body["response_format"] = _format(request.output)
        settings = {**self.settings, **request.settings}
        if not request.tools:
            settings.pop("parallel_tool_calls", None)
        return {**body, **call_settings(create, settings)}


# -- the request -------------------------------------------------------------------------------------------------------


def openai_messages(messages: Sequence[BaseMessage]) -> list[Body]:
    """The messages as the service takes them."""
    found: list[Body] = []
    left: list[Body] = []  # parts of tool results that are no text
    for message in messages:
        kind = kind_of(message)
        if kind != "tool" and left:
            found.append({"role": "user", "content": left})
            left = []
        blocks = _parts(message)
        if kind == "tool":
            found.append(_result(cast(ToolMessage, message), blocks))
            left += _beside(cast(ToolMessage, message), blocks)
        elif kind == "ai":
            found.append(_assistant(cast(AIMessage, message), blocks))
        elif kind == "system":
            found += [{"role": "system", "content": _text(blocks)}] if _text(blocks) else []
        elif kind == "human":
            found.append(_user(message, blocks))
        else:
            raise InvalidInputError(f"A message of type {message.type!r} has no role.", fix="Leave it out.")
    return [*found, {"role": "user", "content": left}] if left else found


def _parts(message: BaseMessage) -> list[Body]:
    """The content as parts; what belongs elsewhere, or to another provider alone, is left out."""
    kept = (b for b in message.content_blocks if b["type"] not in ("reasoning", "tool_call", "non_standard"))
    return [openai_block(block) for block in kept]


def _text(parts: Sequence[Body]) -> str:
    return "\n".join(part["text"] for part in parts if part["type"] == "text")


def _result(message: ToolMessage, parts: Sequence[Body]) -> Body:
    return {"role": "tool", "tool_call_id": _id(message.tool_call_id), "content": _text(parts)}


def _beside(message: ToolMessage, parts: Sequence[Body]) -> list[Body]:
    others = [part for part in parts if part["type"] != "text"]
    named = f"What {message.name or 'the tool'} gave back beside its text (call {_id(message.tool_call_id)}):"
    return [{"type": "text", "text": named}, *others] if others else []


def _user(message: BaseMessage, parts: list[Body]) -> Body:
    only_text = all(part["type"] == "text" for part in parts)
    found: Body = {"role": "user", "content": _text(parts) if only_text else parts}
    if message.name:
        found["name"] = _PERSON.sub("_", message.name)[:64]
    return found


def _assistant(message: AIMessage, parts: Sequence[Body]) -> Body:
    calls = [openai_call(call) for call in message.tool_calls]
    for bad in message.invalid_tool_calls:
        function = {"name": bad["name"] or "unknown", "arguments": bad["args"] or ""}
        calls.append({"type": "function", "id": bad["id"], "function": function})
    found: Body = {"role": "assistant", "content": _text(parts) or ("" if not calls else None)}
    if calls:
        found["tool_calls"] = [{**call, "id": _id(call["id"])} for call in calls]
    return found


def _id(id: str | None) -> str:
    if id is None or len(id) <= LONGEST_ID:
        return id or "call"
    return "call_" + blake2b(id.encode(), digest_size=16).hexdigest()


def _tool(tool: ToolSpec | Mapping[str, Any]) -> Body:
    if not isinstance(tool, ToolSpec):
        return dict(tool)
    spec = tool.as_openai()
    if tool.extras.get("strict") is not None:
        spec["function"]["strict"] = tool.extras["strict"]
        spec["function"]["parameters"] = closed(tool.parameters) if tool.extras["strict"] else tool.parameters
    return spec


def _choice(choice: str) -> str | Body:
    if choice in ("auto", "none"):
        return choice
    return "required" if choice == "any" else {"type": "function", "function": {"name": choice}}


def _format(output: OutputSchema) -> Body:
    """A schema in which nothing is optional can be guaranteed, and is, unless that was ruled out."""
    strict = is_complete(output.schema) if output.strict is None else output.strict
    schema: Body = {"name": output.name, "schema": closed(output.schema) if strict else dict(output.schema)}
    schema |= {"description": output.description} if output.description else {}
    return {"type": "json_schema", "json_schema": {**schema, "strict": strict}}


# -- the answer --------------------------------------------------------------------------------------------------------


def _answer(completion: Any, request: ChatRequest) -> AIMessage:
    choice = completion.choices[0]
    said = choice.message
    calls, invalid = parse_openai_calls([call.model_dump() for call in said.tool_calls or ()])
    return AIMessage(
        _spoken(said.content, said.refusal, request),
        id=completion.id,
        tool_calls=calls,
        invalid_tool_calls=invalid,
        additional_kwargs=_kept(said),
        usage_metadata=_usage(completion.usage),
        response_metadata=_metadata(completion.model, choice.finish_reason),
    )


def _spoken(text: str | None, refusal: str | None, request: ChatRequest) -> str:
    """What was said. A refusal is text as well, but no answer where an output of a schema was asked for."""
    if refusal and request.output is not None:
        raise ModelRefusalError(f"The model declined: {refusal}", provider="openai")
    return text or refusal or ""


def _kept(said: Any) -> Body:
    """What some servers add to a message."""
    refusal, thoughts = getattr(said, "refusal", None), getattr(said, "reasoning_content", None)
    found = {"refusal": refusal, "reasoning_content": thoughts}
    return {key: value for key, value in found.items() if value}


def _metadata(model: str, finish: str | None) -> Body:
    return {"model_provider": "openai", "model_name": model, "finish_reason": finish}


def _usage(usage: Any) -> UsageMetadata | None:
    if usage is None:
        return None
    found = UsageMetadata(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        total_tokens=usage.total_tokens,
    )
    cached = getattr(usage.prompt_tokens_details, "cached_tokens", None)
    thought = getattr(usage.completion_tokens_details, "reasoning_tokens", None)
    if cached:
        found["input_token_details"] = {"cache_read": cached}
    if thought:
        found["output_token_details"] = {"reasoning": thought}
    return found


class _Pieces:
    """A stream of chunks on its way to pieces of one message."""

    def __init__(self, request: ChatRequest) -> None:
        self.request = request
        self.id: str | None = None
        self.model, self.finish = "", None
        self.usage: UsageMetadata | None = None
        self.refusal = ""

    def of(self, event: Any) -> Iterator[AIMessageChunk]:
        """The pieces that one chunk holds."""
        self.id, self.model = event.id or self.id, event.model or self.model
        self.usage = _usage(event.usage) or self.usage
        for choice in event.choices[:1]:
            self.finish = choice.finish_reason or self.finish
            delta = choice.delta
            self.refusal += delta.refusal or ""
            calls = [
                tool_call_chunk(
                    name=call.function.name if call.function else None,
                    args=call.function.arguments if call.function else None,
                    id=call.id,
                    index=call.index,
                )
                for call in delta.tool_calls or ()
            ]
            text = delta.content or delta.refusal or ""
            thoughts = getattr(delta, "reasoning_content", None)
            kept = {"reasoning_content": thoughts} if thoughts else {}
            if text or calls or kept:
                yield AIMessageChunk(text, id=self.id, tool_call_chunks=calls, additional_kwargs=kept)

    def last(self) -> AIMessageChunk:
        """The piece that ends the message; ModelConnectionError when the stream broke off before its end."""
        if self.finish is None:
            raise ModelConnectionError("The stream ended before the answer did.", provider="openai")
        _spoken("", self.refusal, self.request)
        return AIMessageChunk(
            "",
            id=self.id,
            additional_kwargs={"refusal": self.refusal} if self.refusal else {},
            usage_metadata=self.usage,
            response_metadata=_metadata(self.model, self.finish),
            chunk_position="last",
        )
