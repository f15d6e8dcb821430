"""What Anthropic's Messages API takes: turns, content blocks, tool uses and their results, tools, thinking, options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .refusal import Refused, a_count, a_dict, a_list, a_match, a_number, a_schema, a_text, need, only

OPTIONS = frozenset(
    [
        "model",
        "max_tokens",
        "messages",
        "system",
        "metadata",
        "stop_sequences",
        "stream",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
        "service_tier",
        "output_config",
        "cache_control",
    ]
)
BLOCKS = {
    "user": ("text", "image", "document", "tool_result"),
    "assistant": ("text", "tool_use", "thinking", "redacted_thinking"),
}
FIELDS = {
    "text": {"type", "text", "cache_control", "citations"},
    "image": {"type", "source", "cache_control"},
    "document": {"type", "source", "title", "context", "citations", "cache_control"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "tool_use": {"type", "id", "name", "input", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
}
IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
ID = re.compile(r"[a-zA-Z0-9_-]+")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def check(body: dict[str, Any]) -> None:
    """Refused when the service would not take it."""
    for field in ("model", "max_tokens", "messages"):
        need(field in body, f"{field}: Field required", field)
    only(body, OPTIONS, "")
    a_text(body["model"], "model")
    a_count(body["max_tokens"], "max_tokens")
    _system(body)
    messages = a_list(body["messages"], "messages")
    for index, message in enumerate(messages):
        _message(a_dict(message, f"messages.{index}"), f"messages.{index}", last=index == len(messages) - 1)
    need(messages[0]["role"] == "user", 'messages: first message must use the "user" role', "messages")
    _results(_turns(messages))
    names = _tools(body)
    _choice(body, names)
    _thinking(body, messages)
    _options(body)
    need(_marks(body) <= 4, "A maximum of 4 blocks with cache_control may be provided.", "cache_control")


def _system(body: dict[str, Any]) -> None:
    system = body.get("system", "")
    if isinstance(system, str):
        return
    for index, block in enumerate(a_list(system, "system")):
        need(a_dict(block, "system").get("type") == "text", f"system.{index}.type: Input should be 'text'", "system")
        _text(block, f"system.{index}")


def _message(message: dict[str, Any], where: str, *, last: bool) -> None:
    only(message, {"role", "content"}, f"{where}.")
    role: Any = message.get("role")
    content: Any = message.get("content")
    need(role in BLOCKS, f"{where}.role: Input should be 'user' or 'assistant'", f"{where}.role")
    if isinstance(content, str):
        optional = last and role == "assistant"
        need(bool(content.strip()) or optional, f"{where}: all messages must have non-empty content", where)
        trailing = last and role == "assistant" and content != content.rstrip()
        need(not trailing, "messages: final assistant content cannot end with trailing whitespace", where)
        return
    need(isinstance(content, list), f"{where}.content: Input should be a string or an array", where)
    need(bool(content), f"{where}: all messages must have non-empty content", where)
    for index, block in enumerate(content):
        at = f"{where}.content.{index}"
        kind: Any = a_dict(block, at).get("type")
        need(kind in BLOCKS[role], f"{at}.type: {kind!r} is not a block of the {role}", at)
        only(block, FIELDS[kind], f"{at}.")
        _CHECKS[kind](block, at)
    kinds = [block["type"] for block in content]
    first_other = next((i for i, kind in enumerate(kinds) if kind != "tool_result"), len(kinds))
    need("tool_result" not in kinds[first_other:], f"{where}: tool_result blocks must come first", where)


def _text(block: dict[str, Any], where: str) -> None:
    only(block, FIELDS["text"], f"{where}.")
    need(isinstance(block.get("text"), str), f"{where}.text: Field required", where)
    need(bool(block["text"].strip()), f"{where}: text content blocks must contain non-whitespace text", where)


def _image(block: dict[str, Any], where: str) -> None:
    source = a_dict(block.get("source"), f"{where}.source")
    need(source.get("type") in ("base64", "url", "file"), f"{where}.source.type: unknown", where)
    if source["type"] == "base64":
        only(source, {"type", "media_type", "data"}, f"{where}.source.")
        need(source.get("media_type") in IMAGES, f"{where}.source.media_type: Input should be one of {IMAGES}", where)
        a_text(source.get("data"), f"{where}.source.data")
    elif source["type"] == "url":
        a_text(source.get("url"), f"{where}.source.url")


def _document(block: dict[str, Any], where: str) -> None:
    a_text(a_dict(block.get("source"), f"{where}.source").get("type"), f"{where}.source.type")


def _tool_result(block: dict[str, Any], where: str) -> None:
    a_text(block.get("tool_use_id"), f"{where}.tool_use_id")
    need(isinstance(block.get("is_error", False), bool), f"{where}.is_error: Input should be a boolean", where)
    content = block.get("content", "")
    if isinstance(content, str):
        return
    need(isinstance(content, list), f"{where}.content: Input should be a string or an array", where)
    for index, inner in enumerate(content):
        at = f"{where}.content.{index}"
        kind: Any = a_dict(inner, at).get("type")
        need(kind in ("text", "image", "document"), f"{at}.type: {kind!r} does not go into a tool_result", at)
        only(inner, FIELDS[kind], f"{at}.")
        _CHECKS[kind](inner, at)


def _tool_use(block: dict[str, Any], where: str) -> None:
    a_match(block.get("id"), ID, f"{where}.id")
    a_match(block.get("name"), NAME, f"{where}.name")
    need(isinstance(block.get("input"), dict), f"{where}.input: Input should be a valid dictionary", where)


def _thinking_block(block: dict[str, Any], where: str) -> None:
    need(isinstance(block.get("thinking"), str), f"{where}.thinking: Field required", where)
    a_text(block.get("signature"), f"{where}.signature")


def _redacted(block: dict[str, Any], where: str) -> None:
    a_text(block.get("data"), f"{where}.data")


_CHECKS = {
    "text": _text,
    "image": _image,
    "document": _document,
    "tool_result": _tool_result,
    "tool_use": _tool_use,
    "thinking": _thinking_block,
    "redacted_thinking": _redacted,
}


def _turns(messages: Sequence[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Neighbours of one role are one turn, as the service merges them."""
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for message in messages:
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], list(blocks)))
    return turns


def _results(turns: Sequence[tuple[str, list[dict[str, Any]]]]) -> None:
    """Each tool use has one result in the next turn; every result has its use in the turn before."""
    owed: list[str] = []
    ever: set[str] = set()
    for index, (_role, blocks) in enumerate(turns):
        given = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        need(
            len(set(given)) == len(given), "each tool_use must have a single result. Found multiple tool_result blocks"
        )
        for one in given:
            need(one in owed, f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {one}")
        _answered(owed, given, index)
        owed = [block["id"] for block in blocks if block["type"] == "tool_use"]
        need(len(set(owed)) == len(owed) and ever.isdisjoint(owed), "`tool_use` ids must be unique", "messages")
        ever.update(owed)
    _answered(owed, [], len(turns))


def _answered(owed: Sequence[str], given: Sequence[str], index: int) -> None:
    missing = [one for one in owed if one not in given]
    if missing:
        raise Refused(
            f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
            "message.",
            "messages",
        )


def _tools(body: dict[str, Any]) -> set[str]:
    names: set[str] = set()
    tools = body.get("tools", [])
    need(isinstance(tools, list), "tools: Input should be an array", "tools")
    for index, tool in enumerate(tools):
        at = f"tools.{index}"
        known = {"name", "description", "input_schema", "cache_control", "type", "strict"}
        only(a_dict(tool, at), known, f"{at}.")
        name = a_match(tool.get("name"), NAME, f"{at}.name")
        need(name not in names, "tools: Tool names must be unique.", at)
        names.add(name)
        need("input_schema" in tool, f"{at}.input_schema: Field required", at)
        a_schema(tool["input_schema"], f"{at}.input_schema")
        if "description" in tool:
            need(isinstance(tool["description"], str), f"{at}.description: Input should be a string", at)
    return names


def _choice(body: dict[str, Any], names: set[str]) -> None:
    if "tool_choice" not in body:
        return
    choice = a_dict(body["tool_choice"], "tool_choice")
    need(bool(names), "tool_choice may only be specified while providing tools", "tool_choice")
    only(choice, {"type", "name", "disable_parallel_tool_use"}, "tool_choice.")
    kind = choice.get("type")
    need(kind in ("auto", "any", "tool", "none"), f"tool_choice.type: {kind!r} is unknown", "tool_choice")
    if kind == "tool":
        need(choice.get("name") in names, f"Tool {choice.get('name')!r} not found in provided tools", "tool_choice")


def _thinking(body: dict[str, Any], messages: Sequence[dict[str, Any]]) -> None:
    thinking = body.get("thinking")
    if thinking is None:
        return
    kind = a_dict(thinking, "thinking").get("type")
    need(kind in ("enabled", "disabled", "adaptive"), f"thinking.type: {kind!r} is unknown", "thinking")
    if kind != "enabled":
        return
    budget = thinking.get("budget_tokens")
    a_count(budget, "thinking.budget_tokens")
    need(budget >= 1024, "thinking.budget_tokens: Input should be greater than or equal to 1024", "thinking")
    need(budget < body["max_tokens"], "`max_tokens` must be greater than `thinking.budget_tokens`", "thinking")
    need(body.get("temperature", 1) == 1, "`temperature` may only be set to 1 when thinking is enabled", "thinking")
    forced = body.get("tool_choice", {}).get("type") in ("any", "tool")
    need(not forced, "Thinking may not be enabled when tool_choice forces tool use.", "thinking")
    spoken = [m["content"] for m in messages if m["role"] == "assistant" and isinstance(m["content"], list)]
    if spoken and any(block["type"] == "tool_use" for block in spoken[-1]):
        first = spoken[-1][0]["type"]
        need(
            first in ("thinking", "redacted_thinking"),
            f"Expected `thinking` or `redacted_thinking`, but found `{first}`: a final assistant message must start "
            "with a thinking block when thinking is enabled",
            "messages",
        )


def _options(body: dict[str, Any]) -> None:
    for option in ("temperature", "top_p"):
        if option in body:
            a_number(body[option], option, 0, 1)
    if "top_k" in body:
        a_count(body["top_k"], "top_k")
    need(isinstance(body.get("stream", False), bool), "stream: Input should be a boolean", "stream")
    if "stop_sequences" in body:
        need(isinstance(body["stop_sequences"], list), "stop_sequences: Input should be an array", "stop_sequences")
        for one in body["stop_sequences"]:
            sound = isinstance(one, str) and bool(one.strip())
            need(sound, "stop_sequences: each stop sequence must contain non-whitespace", "stop_sequences")
    if "metadata" in body:
        only(a_dict(body["metadata"], "metadata"), {"user_id"}, "metadata.")
    if "output_config" in body:
        form = a_dict(body["output_config"], "output_config").get("format")
        if form is not None:
            need(a_dict(form, "output_config.format").get("type") == "json_schema", "output_config.format.type")
            a_schema(form.get("schema"), "output_config.format.schema")


def _marks(value: Any) -> int:
    """How many blocks carry a cache mark; a mark of an unknown kind is refused."""
    if isinstance(value, list):
        return sum(map(_marks, value))
    if not isinstance(value, dict):
        return 0
    mark = value.get("cache_control")
    if mark is not None:
        kind = a_dict(mark, "cache_control").get("type")
        need(kind == "ephemeral", f"cache_control.type: {kind!r} is unknown", "cache_control")
    inner = (one for key, one in value.items() if key not in ("cache_control", "input", "input_schema"))
    return (mark is not None) + sum(map(_marks, inner))
