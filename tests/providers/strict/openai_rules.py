"""What OpenAI's chat completions take: roles, content parts, tool calls and their answers, tools, options."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from .refusal import Refused, a_count, a_dict, a_list, a_match, a_number, a_schema, a_text, need, only

OPTIONS = frozenset(
    [
        "messages",
        "model",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "metadata",
        "n",
        "parallel_tool_calls",
        "presence_penalty",
        "prompt_cache_key",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
    ]
)
FIELDS = {
    "system": frozenset({"role", "content", "name"}),
    "developer": frozenset({"role", "content", "name"}),
    "user": frozenset({"role", "content", "name"}),
    "assistant": frozenset({"role", "content", "name", "tool_calls", "refusal", "audio"}),
    "tool": frozenset({"role", "content", "tool_call_id"}),
}
PARTS = {
    "system": ("text",),
    "developer": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "tool": ("text",),
}
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PERSON = re.compile(r"[^\s<|\\/>]{1,64}")


def check(body: dict[str, Any]) -> None:
    """Refused when the service would not take it."""
    need("model" in body, "you must provide a model parameter", "model")
    a_text(body["model"], "model")
    need("messages" in body, "Missing required parameter: 'messages'.", "messages")
    only(body, OPTIONS, "")
    messages = a_list(body["messages"], "messages")
    for index, message in enumerate(messages):
        _message(a_dict(message, f"messages[{index}]"), f"messages[{index}]")
    _answers(messages)
    names = _tools(body)
    _choice(body, names)
    _format(body, messages)
    _options(body)


def _message(message: dict[str, Any], where: str) -> None:
    role: Any = message.get("role")
    need(role in FIELDS, f"Invalid value: {role!r}. Supported values are: {', '.join(FIELDS)}.", f"{where}.role")
    only(message, FIELDS[role], f"{where}.")
    if "name" in message:
        a_match(message["name"], PERSON, f"{where}.name")
    content = message.get("content")
    if role == "assistant" and content is None:
        spoken = message.get("tool_calls") or message.get("refusal")
        need(bool(spoken), f"Invalid value for 'content': expected a string, got null. {where}", f"{where}.content")
    elif isinstance(content, list):
        for index, part in enumerate(a_list(content, f"{where}.content")):
            _part(a_dict(part, where), PARTS[role], f"{where}.content[{index}]")
    else:
        need(isinstance(content, str), f"{where}.content: expected a string or an array of parts", f"{where}.content")
    if "tool_calls" in message:
        _calls(a_list(message["tool_calls"], f"{where}.tool_calls"), f"{where}.tool_calls")
    if role == "tool":
        need("tool_call_id" in message, f"Missing required parameter: '{where}.tool_call_id'.", where)
        a_text(message["tool_call_id"], f"{where}.tool_call_id")


def _part(part: dict[str, Any], known: Sequence[str], where: str) -> None:
    kind: Any = part.get("type")
    need(kind in known, f"Invalid value: {kind!r}. Supported values are: {', '.join(known)}.", f"{where}.type")
    only(part, {"type", kind}, f"{where}.")
    if kind in ("text", "refusal"):
        need(isinstance(part.get(kind), str), f"{where}.{kind}: expected a string", where)
    elif kind == "image_url":
        image = a_dict(part.get("image_url"), f"{where}.image_url")
        only(image, {"url", "detail"}, f"{where}.image_url.")
        url = a_text(image.get("url"), f"{where}.image_url.url")
        need(url.startswith(("https://", "http://", "data:image/")), f"{where}: Invalid image URL", where)
    elif kind == "input_audio":
        audio = a_dict(part.get("input_audio"), where)
        a_text(audio.get("data"), f"{where}.input_audio.data")
        need(audio.get("format") in ("wav", "mp3"), f"{where}.input_audio.format", where)
    else:
        file = a_dict(part.get("file"), where)
        only(file, {"file_id", "file_data", "filename"}, f"{where}.file.")
        need(bool(file.get("file_id") or (file.get("file_data") and file.get("filename"))), f"{where}.file", where)


def _calls(calls: list[Any], where: str) -> None:
    seen: set[str] = set()
    for index, call in enumerate(calls):
        at = f"{where}[{index}]"
        only(a_dict(call, at), {"id", "type", "function"}, f"{at}.")
        name = a_text(call.get("id"), f"{at}.id")
        need(len(name) <= 40, f"Invalid '{at}.id': string too long. Expected maximum length 40.", f"{at}.id")
        need(name not in seen, f"Duplicate value for 'tool_call_id' of {name!r}", f"{at}.id")
        seen.add(name)
        need(call.get("type") == "function", f"{at}.type: Supported values are: 'function'.", f"{at}.type")
        function = a_dict(call.get("function"), f"{at}.function")
        only(function, {"name", "arguments"}, f"{at}.function.")
        a_match(function.get("name"), NAME, f"{at}.function.name")
        need(isinstance(function.get("arguments"), str), f"{at}.function.arguments: expected a string", at)


def _answers(messages: Sequence[dict[str, Any]]) -> None:
    """Each tool call is answered once, right behind it; nothing else is answered."""
    owed: dict[str, None] = {}
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            answered = message["tool_call_id"]
            need(
                answered in owed,
                "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
                f"messages[{index}].role",
            )
            del owed[answered]
            continue
        _nothing_owed(owed, index)
        owed = dict.fromkeys(call["id"] for call in message.get("tool_calls") or ())
    _nothing_owed(owed, len(messages))


def _nothing_owed(owed: dict[str, None], index: int) -> None:
    if owed:
        raise Refused(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(owed)}",
            f"messages[{index - 1}].role",
        )


def _tools(body: dict[str, Any]) -> set[str]:
    names: set[str] = set()
    for index, tool in enumerate(a_list(body["tools"], "tools") if "tools" in body else ()):
        at = f"tools[{index}]"
        only(a_dict(tool, at), {"type", "function"}, f"{at}.")
        need(tool.get("type") == "function", f"{at}.type: Supported values are: 'function'.", f"{at}.type")
        function = a_dict(tool.get("function"), f"{at}.function")
        only(function, {"name", "description", "parameters", "strict"}, f"{at}.function.")
        name = a_match(function.get("name"), NAME, f"{at}.function.name")
        need(name not in names, f"{at}.function.name: {name!r} is there twice", at)
        names.add(name)
        if "description" in function:
            need(isinstance(function["description"], str), f"{at}.function.description: expected a string", at)
        if "parameters" in function:
            schema = a_schema(function["parameters"], f"Invalid schema for function {name!r}")
            if function.get("strict"):
                _strict(schema, f"{at}.function.parameters")
    return names


def _strict(schema: Any, where: str) -> None:
    """Strict schemas name every property as required and allow no others, at every level."""
    if isinstance(schema, list):
        for one in schema:
            _strict(one, where)
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object":
        need(schema.get("additionalProperties") is False, f"{where}: 'additionalProperties' must be false", where)
        missing = set(schema.get("properties", {})) - set(schema.get("required", ()))
        need(not missing, f"{where}: 'required' must include every key in properties: missing {missing}", where)
    need("default" not in schema, f"{where}: 'default' is not permitted", where)
    for value in schema.values():
        _strict(value, where)


def _choice(body: dict[str, Any], names: set[str]) -> None:
    for option in ("tool_choice", "parallel_tool_calls"):
        need(option not in body or bool(names), f"'{option}' is only allowed when 'tools' are specified.", option)
    choice = body.get("tool_choice", "auto")
    if isinstance(choice, dict):
        need(choice.get("type") == "function", "tool_choice.type: Supported values are: 'function'.", "tool_choice")
        name = a_dict(choice.get("function"), "tool_choice.function").get("name")
        need(name in names, f"Tool choice {name!r} not found in 'tools' parameter.", "tool_choice")
    else:
        need(choice in ("none", "auto", "required"), f"Invalid value: {choice!r}.", "tool_choice")


def _format(body: dict[str, Any], messages: Sequence[dict[str, Any]]) -> None:
    if "response_format" not in body:
        return
    form = a_dict(body["response_format"], "response_format")
    kind = form.get("type")
    need(kind in ("text", "json_object", "json_schema"), f"Invalid value: {kind!r}.", "response_format.type")
    if kind == "json_object":
        spoken = json.dumps(messages).lower()
        need("json" in spoken, "'messages' must contain the word 'json' in some form", "messages")
    if kind == "json_schema":
        named = a_dict(form.get("json_schema"), "response_format.json_schema")
        only(named, {"name", "description", "schema", "strict"}, "response_format.json_schema.")
        a_match(named.get("name"), NAME, "response_format.json_schema.name")
        schema = a_schema(named.get("schema"), "response_format.json_schema.schema")
        if named.get("strict"):
            _strict(schema, "response_format.json_schema.schema")


def _options(body: dict[str, Any]) -> None:
    for option, low, high in (
        ("temperature", 0, 2),
        ("top_p", 0, 1),
        ("presence_penalty", -2, 2),
        ("frequency_penalty", -2, 2),
    ):
        if body.get(option) is not None:
            a_number(body[option], option, low, high)
    for option in ("max_tokens", "max_completion_tokens", "n"):
        if body.get(option) is not None:
            a_count(body[option], option)
    both = body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None
    need(not both, "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.", "max_tokens")
    need(isinstance(body.get("stream", False), bool), "stream: expected a boolean", "stream")
    if body.get("stream_options") is not None:
        need(body.get("stream") is True, "'stream_options' is only allowed when 'stream' is enabled.", "stream_options")
        only(a_dict(body["stream_options"], "stream_options"), {"include_usage"}, "stream_options.")
    stop = body.get("stop")
    if stop is not None:
        stops = [stop] if isinstance(stop, str) else a_list(stop, "stop")
        need(len(stops) <= 4, "Invalid 'stop': array too long. Expected at most 4.", "stop")
        for one in stops:
            a_text(one, "stop")
