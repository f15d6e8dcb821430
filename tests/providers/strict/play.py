"""What the service says: a scripted turn in the wire format that was asked for, whole or as server-sent events."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

Turn = dict[str, Any]
"""A scripted answer.

``id``, ``text``, ``thinking``, ``tool_calls`` ([{id, name, args}]; `args` may be a str to be malformed), ``usage``
((in, out)), ``finish`` (the provider's own word), ``error`` ({status, type, message, retry_after}), ``split`` (seed of
the cuts of a stream), ``cut`` (events after which the connection breaks).
"""


def openai_whole(turn: Turn, model: str) -> dict[str, Any]:
    """A chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": turn.get("text"), "refusal": turn.get("refusal")}
    if turn.get("tool_calls"):
        message["tool_calls"] = [_openai_call(call) for call in turn["tool_calls"]]
    return {
        "id": turn.get("id", "chatcmpl-1"),
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _openai_finish(turn)}],
        "usage": _openai_usage(turn),
    }


def openai_events(turn: Turn, model: str, *, usage: bool) -> Iterator[str]:
    """The chunks of a chat completion."""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
        return _data(_openai_chunk(turn, model, choices, usage))

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    for part in _parts(turn.get("text") or "", turn):
        yield chunk({"content": part})
    for index, call in enumerate(turn.get("tool_calls") or ()):
        whole = _openai_call(call)
        arguments = whole["function"].pop("arguments")
        yield chunk({"tool_calls": [{"index": index, **whole, "function": {**whole["function"], "arguments": ""}}]})
        for part in _parts(arguments, turn):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield chunk({}, _openai_finish(turn))
    if usage:
        yield _data({**_openai_chunk(turn, model, [], False), "usage": _openai_usage(turn)})
    yield "data: [DONE]\n\n"


def anthropic_whole(turn: Turn, model: str) -> dict[str, Any]:
    """A message."""
    used_in, used_out = turn.get("usage", (10, 5))
    return {
        "id": turn.get("id", "msg_1"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": _anthropic_blocks(turn),
        "stop_reason": _anthropic_stop(turn),
        "stop_sequence": None,
        "usage": {"input_tokens": used_in, "output_tokens": used_out},
    }


def anthropic_events(turn: Turn, model: str) -> Iterator[str]:
    """The events of a message."""
    used_in, used_out = turn.get("usage", (10, 5))
    start = {**anthropic_whole(turn, model), "content": [], "stop_reason": None}
    start["usage"] = {"input_tokens": used_in, "output_tokens": 1}
    yield _event("message_start", {"message": start})
    yield _event("ping", {})
    for index, block in enumerate(_anthropic_blocks(turn)):
        empty, deltas = _anthropic_deltas(block, turn)
        yield _event("content_block_start", {"index": index, "content_block": empty})
        for delta in deltas:
            yield _event("content_block_delta", {"index": index, "delta": delta})
        yield _event("content_block_stop", {"index": index})
    done = {"stop_reason": _anthropic_stop(turn), "stop_sequence": None}
    yield _event("message_delta", {"delta": done, "usage": {"output_tokens": used_out}})
    yield _event("message_stop", {})


def splits(events: Iterator[str], turn: Turn) -> Iterator[bytes]:
    """The bytes of a stream, cut where it hurts: inside of lines, of JSON and of characters."""
    chance = random.Random(turn.get("split", 0))
    for number, event in enumerate(events):
        if number == turn.get("cut"):
            return
        rest = event.encode()
        while rest:
            size = chance.choice((1, 2, 3, 7, 40, 400))
            yield rest[:size]
            rest = rest[size:]


def _parts(text: str, turn: Turn) -> list[str]:
    chance, parts = random.Random(turn.get("split", 0)), []
    while text:
        size = chance.randint(1, 5)
        parts.append(text[:size])
        text = text[size:]
    return parts


def _data(value: Any) -> str:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def _event(name: str, value: dict[str, Any]) -> str:
    return f"event: {name}\n{_data({'type': name, **value})}"


def _openai_chunk(turn: Turn, model: str, choices: list[Any], usage: bool) -> dict[str, Any]:
    chunk = {"id": turn.get("id", "chatcmpl-1"), "object": "chat.completion.chunk", "created": 1}
    chunk |= {"model": model, "choices": choices}
    return {**chunk, "usage": None} if usage else chunk


def _openai_call(call: dict[str, Any]) -> dict[str, Any]:
    args = call["args"]
    arguments = args if isinstance(args, str) else json.dumps(args, ensure_ascii=False)
    return {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": arguments}}


def _openai_finish(turn: Turn) -> str:
    return str(turn.get("finish") or ("tool_calls" if turn.get("tool_calls") else "stop"))


def _openai_usage(turn: Turn) -> dict[str, Any]:
    used_in, used_out = turn.get("usage", (10, 5))
    return {"prompt_tokens": used_in, "completion_tokens": used_out, "total_tokens": used_in + used_out}


def _anthropic_stop(turn: Turn) -> str:
    return str(turn.get("finish") or ("tool_use" if turn.get("tool_calls") else "end_turn"))


def _anthropic_blocks(turn: Turn) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if turn.get("thinking"):
        blocks.append({"type": "thinking", "thinking": turn["thinking"], "signature": "sig-1"})
    if turn.get("text"):
        blocks.append({"type": "text", "text": turn["text"], "citations": None})
    for call in turn.get("tool_calls") or ():
        blocks.append({"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]})
    return blocks


def _anthropic_deltas(block: dict[str, Any], turn: Turn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if block["type"] == "text":
        texts = [{"type": "text_delta", "text": part} for part in _parts(block["text"], turn)]
        return {**block, "text": ""}, texts
    if block["type"] == "thinking":
        thoughts = [{"type": "thinking_delta", "thinking": part} for part in _parts(block["thinking"], turn)]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*thoughts, signed]
    args = block["input"]
    text = args if isinstance(args, str) else json.dumps(args, ensure_ascii=False) if args else ""
    inputs = [{"type": "input_json_delta", "partial_json": part} for part in _parts(text, turn)]
    return {**block, "input": {}}, inputs
