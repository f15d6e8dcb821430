"""Anthropic's Messages API. Needs the extra ``anthropic``.

1. System messages, wherever they stand, are the system prompt. Neighbours of one role are one turn, results first.
2. Blank texts, which the service refuses, are left out. A call whose arguments could not be read goes back with what
   was written as its one argument.
3. Thoughts come back as ``reasoning`` blocks whose ``extras`` hold the signature, and go out again with it; thoughts
   without one, of other providers, are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, cast

from pregel.agents.models.base import ChatModel, ChatRequest, ModelProfile, ToolSpec
from pregel.agents.models.clients import Clients, call_settings, translated
from pregel.agents.models.errors import ModelConnectionError, ModelInvalidRequestError
from pregel.agents.models.schemas import closed
from pregel.extras import extra
from pregel.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage, UsageMetadata
from pregel.messages.calls import invalid_tool_call, tool_call, tool_call_chunk
from pregel.messages.convert import kind_of

with extra("anthropic", "ChatAnthropic"):
    from anthropic import Anthropic, AsyncAnthropic

MAX_TOKENS = 4096
Body = dict[str, Any]
_BAD = re.compile(r"[^a-zA-Z0-9_-]")


class ChatAnthropic(ChatModel):
    """A model of Anthropic.

    `max_tokens` is the longest answer, which the service wants to be told. `settings` (temperature, thinking, ...) go
    into every call. `max_retries` and `timeout` (seconds) are the client's; errors are those of
    `pregel.agents.models.errors`.
    """

    provider = "anthropic"

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_tokens: int = MAX_TOKENS,
        max_retries: int = 2,
        timeout: float | None = None,
        profile: ModelProfile | None = None,
        **settings: Any,
    ) -> None:
        options: Body = {"api_key": api_key, "base_url": base_url, "max_retries": max_retries}
        options |= {} if timeout is None else {"timeout": timeout}
        self.clients = Clients(lambda: Anthropic(**options), lambda: AsyncAnthropic(**options))
        self.model, self.settings = model, {"max_tokens": max_tokens, **settings}
        self.profile = profile or {"tool_calling": True}

    def generate(self, request: ChatRequest) -> AIMessage:
        with translated(self.provider):
            create = self.clients.blocking().messages.create
            return _answer(create(**self._call(create, request)))

    async def agenerate(self, request: ChatRequest) -> AIMessage:
        with translated(self.provider):
            create = (await self.clients.awaiting()).messages.create
            return _answer(await create(**self._call(create, request)))

    def chunks(self, request: ChatRequest) -> Iterator[AIMessageChunk]:
        pieces = _Pieces()
        with translated(self.provider):
            create = self.clients.blocking().messages.create
            with create(**self._call(create, request), stream=True) as events:
                for event in events:
                    yield from pieces.of(event)
        yield pieces.last()

    async def achunks(self, request: ChatRequest) -> AsyncIterator[AIMessageChunk]:
        pieces = _Pieces()
        with translated(self.provider):
            create = (await self.clients.awaiting()).messages.create
            async with await create(**self._call(create, request), stream=True) as events:
                async for event in events:
                    for piece in pieces.of(event):
                        yield piece
        yield pieces.last()

    def _call(self, create: Any, request: ChatRequest) -> Body:
        system, turns = anthropic_messages(request.messages)
        body: Body = {"model": self.model, "messages": turns}
        settings = {**self.settings, **request.settings}
        alone = settings.pop("parallel_tool_calls", True) is False
        if system:
            body["system"] = system
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
            if request.tool_choice is not None or alone:
                body["tool_choice"] = _choice(request.tool_choice or "auto", alone)
        if request.output is not None:
            form = {"type": "json_schema", "schema": closed(request.output.schema)}
            settings["output_config"] = {**settings.get("output_config", {}), "format": form}
        if isinstance(settings.get("stop"), str | list):
            stop = settings.pop("stop")
            settings["stop_sequences"] = [stop] if isinstance(stop, str) else stop
        return {**body, **call_settings(create, settings)}


# -- the request -------------------------------------------------------------------------------------------------------


def anthropic_messages(messages: Sequence[BaseMessage]) -> tuple[list[Body], list[Body]]:
    """The system prompt as blocks, and the turns, as the service takes them."""
    system: list[Body] = []
    turns: list[Body] = []
    for message in messages:
        kind = kind_of(message)
        if kind == "system":
            system += _blocks(message)
            continue
        role = "assistant" if kind == "ai" else "user"
        blocks = _result(cast(ToolMessage, message)) if kind == "tool" else _blocks(message)
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    for turn in turns:
        turn["content"].sort(key=lambda block: _ORDER.get(block["type"], 1))  # stable: only what must lead moves
    if turns and turns[-1]["role"] == "assistant":
        _end_without_space(turns[-1]["content"])
    return system, turns


_ORDER = {"tool_result": 0, "thinking": 0, "redacted_thinking": 0, "tool_use": 2}


def _end_without_space(blocks: list[Body]) -> None:
    if blocks[-1]["type"] == "text":
        blocks[-1] = {**blocks[-1], "text": blocks[-1]["text"].rstrip()}


def _blocks(message: BaseMessage) -> list[Body]:
    found = [block for standard in message.content_blocks for block in _block(standard)]
    if kind_of(message) == "ai":
        found += [_unread(bad) for bad in cast(AIMessage, message).invalid_tool_calls]
    return found


def _block(block: Body) -> list[Body]:
    """The block in the service's form; nothing for what is blank, or belongs to another provider alone."""
    extras = block.get("extras") or {}
    mark = extras.get("cache_control") or block.get("cache_control")
    marked: Body = {"cache_control": mark} if mark else {}
    match block:
        case {"type": "text" | "text-plain", "text": text}:
            return [{"type": "text", "text": text, **marked}] if text.strip() else []
        case {"type": "tool_call", "name": name, "args": args}:
            return [{"type": "tool_use", "id": _id(block.get("id")), "name": name, "input": args}]
        case {"type": "reasoning"}:
            signed = extras.get("signature")
            thought = {"type": "thinking", "thinking": block.get("reasoning", ""), "signature": signed}
            return [thought] if signed else []
        case {"type": "non_standard", "value": {"type": "redacted_thinking"} as value}:
            return [{"type": "redacted_thinking", "data": value["data"]}]
        case {"type": "non_standard"}:
            return []
        case {"type": "image" | "file" as kind}:
            return [{"type": "image" if kind == "image" else "document", "source": _source(block), **marked}]
    raise ModelInvalidRequestError(
        f"Anthropic has no form for this content block: {block!r}.", fix="Leave the block out.", provider="anthropic"
    )


def _source(block: Body) -> Body:
    match block:
        case {"base64": data}:
            return {"type": "base64", "media_type": block.get("mime_type", "application/pdf"), "data": data}
        case {"url": url}:
            return {"type": "url", "url": url}
        case {"file_id": file_id}:
            return {"type": "file", "file_id": file_id}
    raise ModelInvalidRequestError(
        f"This block says nowhere where its data is: {block!r}.",
        fix="Give it base64, url or file_id.",
        provider="anthropic",
    )


def _result(message: ToolMessage) -> list[Body]:
    blocks = _blocks(message)
    only = blocks[0] if len(blocks) == 1 else None
    content: Any = only["text"] if only is not None and set(only) == {"type", "text"} else blocks
    found: Body = {"type": "tool_result", "tool_use_id": _id(message.tool_call_id), "content": content or ""}
    return [{**found, "is_error": True} if message.status == "error" else found]


def _unread(bad: Mapping[str, Any]) -> Body:
    written = {"unreadable_arguments": bad.get("args") or ""}
    return {"type": "tool_use", "id": _id(bad.get("id")), "name": bad.get("name") or "unknown", "input": written}


def _id(id: str | None) -> str:
    """An id that the service takes: the same one, unless it has characters that are not allowed."""
    if not id or not _BAD.search(id):
        return id or "call"
    return f"{_BAD.sub('_', id)}_{blake2b(id.encode(), digest_size=6).hexdigest()}"


def _tool(tool: ToolSpec | Mapping[str, Any]) -> Body:
    if not isinstance(tool, ToolSpec):
        return dict(tool)
    schema = {"type": "object", "properties": {}, **tool.parameters}
    if tool.extras.get("strict"):
        schema = closed(schema)
    return {"name": tool.name, "description": tool.description, "input_schema": schema, **tool.extras}


def _choice(choice: str, alone: bool) -> Body:
    found: Body = {"type": choice} if choice in ("auto", "any", "none") else {"type": "tool", "name": choice}
    return {**found, "disable_parallel_tool_use": True} if alone and choice != "none" else found


# -- the answer --------------------------------------------------------------------------------------------------------


def _answer(message: Any) -> AIMessage:
    content: list[Body] = []
    calls, invalid = [], []
    for block in message.content:
        if block.type != "tool_use":
            content.append(_standard(block))
        elif isinstance(block.input, dict):
            calls.append(tool_call(name=block.name, args=block.input, id=block.id))
        else:
            text = block.input if isinstance(block.input, str) else json.dumps(block.input)
            invalid.append(invalid_tool_call(name=block.name, args=text, id=block.id, error="not a JSON object"))
    only_text = all(block["type"] == "text" and "extras" not in block for block in content)
    return AIMessage(
        "".join(block["text"] for block in content) if only_text else cast("Any", content),
        id=message.id,
        tool_calls=calls,
        invalid_tool_calls=invalid,
        usage_metadata=_usage(message.usage, message.usage.output_tokens),
        response_metadata=_metadata(message.model, message.stop_reason),
    )


def _standard(block: Any) -> Body:
    if block.type == "text":
        return {"type": "text", "text": block.text}
    if block.type == "thinking":
        return {"type": "reasoning", "reasoning": block.thinking, "extras": {"signature": block.signature}}
    return {"type": "non_standard", "value": block.model_dump(exclude_none=True)}


def _metadata(model: str, finish: str | None) -> Body:
    return {"model_provider": "anthropic", "model_name": model, "finish_reason": finish}


def _usage(usage: Any, output: int) -> UsageMetadata:
    read, made = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    total = usage.input_tokens + read + made
    found = UsageMetadata(input_tokens=total, output_tokens=output, total_tokens=total + output)
    if read or made:
        found["input_token_details"] = {"cache_read": read, "cache_creation": made}
    return found


class _Pieces:
    """A stream of events on its way to pieces of one message.

    Texts are plain unless something other than a text or a call came before them.
    """

    def __init__(self) -> None:
        self.id, self.model, self.finish = "", "", None
        self.usage: Any = None
        self.output = 0
        self.ended = False
        self.blocks = False

    def of(self, event: Any) -> Iterator[AIMessageChunk]:
        """The pieces that one event holds."""
        if event.type == "message_start":
            self.id, self.model, self.usage = event.message.id, event.message.model, event.message.usage
        elif event.type == "content_block_start":
            yield from self._start(event.index, event.content_block)
        elif event.type == "content_block_delta":
            yield from self._delta(event.index, event.delta)
        elif event.type == "message_delta":
            self.finish, self.output = event.delta.stop_reason, event.usage.output_tokens
        elif event.type == "message_stop":
            self.ended = True

    def _start(self, index: int, block: Any) -> Iterator[AIMessageChunk]:
        if block.type == "tool_use":
            head = tool_call_chunk(name=block.name, args="", id=block.id, index=index)
            yield AIMessageChunk("", id=self.id, tool_call_chunks=[head])
        elif block.type != "text":
            self.blocks = True
            if block.type != "thinking":
                yield self._piece(index, {"type": "non_standard", "value": block.model_dump(exclude_none=True)})

    def _delta(self, index: int, delta: Any) -> Iterator[AIMessageChunk]:
        if delta.type == "text_delta" and not self.blocks:
            yield AIMessageChunk(delta.text, id=self.id)
        elif delta.type == "text_delta":
            yield self._piece(index, {"type": "text", "text": delta.text})
        elif delta.type == "thinking_delta":
            yield self._piece(index, {"type": "reasoning", "reasoning": delta.thinking})
        elif delta.type == "signature_delta":
            yield self._piece(index, {"type": "reasoning", "extras": {"signature": delta.signature}})
        elif delta.type == "input_json_delta":
            part = tool_call_chunk(args=delta.partial_json, index=index)
            yield AIMessageChunk("", id=self.id, tool_call_chunks=[part])

    def _piece(self, index: int, block: Body) -> AIMessageChunk:
        return AIMessageChunk([{**block, "index": index}], id=self.id)

    def last(self) -> AIMessageChunk:
        """The piece that ends the message; ModelConnectionError when the stream broke off before its end."""
        if not self.ended:
            raise ModelConnectionError("The stream ended before the answer did.", provider="anthropic")
        return AIMessageChunk(
            "",
            id=self.id,
            usage_metadata=_usage(self.usage, self.output),
            response_metadata=_metadata(self.model, self.finish),
            chunk_position="last",
        )
