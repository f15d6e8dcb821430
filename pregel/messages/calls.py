"""Tool calls as a model writes them: their shapes, how they are checked, and how cut-off JSON is read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from pregel.errors import InvalidInputError


class ToolCall(TypedDict):
    """A call the model asks for. `id` is None when the provider gave none."""

    name: str
    args: dict[str, Any]
    id: str | None
    type: NotRequired[Literal["tool_call"]]


class InvalidToolCall(TypedDict):
    """A call whose arguments could not be read. `args` is the raw text."""

    name: str | None
    args: str | None
    id: str | None
    error: str | None
    type: NotRequired[Literal["invalid_tool_call"]]


class ToolCallChunk(TypedDict):
    """A piece of a call that is being streamed. `args` is a piece of JSON text; pieces of one call share `index`."""

    name: str | None
    args: str | None
    id: str | None
    index: int | None
    type: NotRequired[Literal["tool_call_chunk"]]


def tool_call(*, name: str, args: dict[str, Any], id: str | None) -> ToolCall:
    """A tool call with its type key."""
    return {"name": name, "args": args, "id": id, "type": "tool_call"}


def invalid_tool_call(
    *, name: str | None = None, args: str | None = None, id: str | None = None, error: str | None = None
) -> InvalidToolCall:
    """An invalid tool call with its type key."""
    return {"name": name, "args": args, "id": id, "error": error, "type": "invalid_tool_call"}


def tool_call_chunk(
    *, name: str | None = None, args: str | None = None, id: str | None = None, index: int | None = None
) -> ToolCallChunk:
    """A piece of a tool call with its type key."""
    return {"name": name, "args": args, "id": id, "index": index, "type": "tool_call_chunk"}


# -- checking what a caller passes -----------------------------------------------------------------------------------


def checked_calls(calls: Iterable[Mapping[str, Any]]) -> list[ToolCall]:
    """Our own copies of the calls, without unknown keys; InvalidInputError where one is not a tool call."""
    if not isinstance(calls, (list, tuple)):
        raise InvalidInputError(f"tool_calls is a {type(calls).__name__}.", fix="Give a list of tool calls.")
    return [_checked(call) for call in calls]


def _checked(call: Mapping[str, Any]) -> ToolCall:
    try:
        name, args, id = call["name"], call["args"], call["id"]
    except (TypeError, KeyError) as missing:
        raise InvalidInputError(
            f"A tool call needs name, args and id, got {call!r}.", fix="Give id=None when there is no id."
        ) from missing
    if isinstance(name, str) and isinstance(args, dict) and (id is None or isinstance(id, str)):
        return {"name": name, "args": args, "id": id, "type": "tool_call"}
    raise InvalidInputError(
        f"In a tool call name is a str, args a dict and id a str or None, got {call!r}.",
        fix="Parse arguments that are JSON text first, e.g. with json.loads.",
    )


def checked_invalid_calls(calls: Iterable[Mapping[str, Any]]) -> list[InvalidToolCall]:
    """Our own copies of invalid calls; missing keys are None."""
    return [invalid_tool_call(**{key: call.get(key) for key in ("name", "args", "id", "error")}) for call in calls]


def checked_chunks(chunks: Iterable[Mapping[str, Any]]) -> list[ToolCallChunk]:
    """Our own copies of streamed pieces; missing keys are None."""
    return [tool_call_chunk(**{key: chunk.get(key) for key in ("name", "args", "id", "index")}) for chunk in chunks]


# -- reading what a model wrote --------------------------------------------------------------------------------------


def parse_openai_call(raw: Mapping[str, Any]) -> ToolCall:
    """A call from OpenAI's nested form; JSONDecodeError when its arguments are no JSON, ValueError when no object."""
    function = raw["function"]
    args = json.loads(function.get("arguments") or "{}", strict=False)
    if not isinstance(args, dict | None):
        raise ValueError("The arguments are not a JSON object.")
    return tool_call(name=function.get("name") or "", args=args or {}, id=raw.get("id"))


def parse_openai_calls(raw_calls: Iterable[Any]) -> tuple[list[ToolCall], list[InvalidToolCall]]:
    """The calls that can be read, and those that cannot. What has no "function" is skipped."""
    calls: list[ToolCall] = []
    invalid: list[InvalidToolCall] = []
    for raw in raw_calls:
        if not isinstance(raw, Mapping) or "function" not in raw:
            continue
        try:
            calls.append(parse_openai_call(raw))
        except ValueError as error:
            name, args = raw["function"].get("name"), raw["function"].get("arguments")
            invalid.append(invalid_tool_call(name=name, args=args, id=raw.get("id"), error=str(error)))
    return calls, invalid


def calls_of_chunks(chunks: Iterable[ToolCallChunk]) -> tuple[list[ToolCall], list[InvalidToolCall]]:
    """What the streamed pieces say so far: their arguments may be cut off anywhere."""
    calls: list[ToolCall] = []
    invalid: list[InvalidToolCall] = []
    for chunk in chunks:
        text = chunk["args"]
        try:
            args = parse_partial_json(text) if text else {}
        except ValueError:
            args = None
        if isinstance(args, dict):
            calls.append(tool_call(name=chunk["name"] or "", args=args, id=chunk["id"]))
        else:
            invalid.append(invalid_tool_call(name=chunk["name"], args=text, id=chunk["id"]))
    return calls, invalid


# One whole string, or one character that opens, closes or separates; a lone quote opens a string that never ends.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKEN = re.compile(_STRING + r'|[{}\[\],"]', re.DOTALL)
_CUT_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?)$")
_CLOSER = {"{": "}", "[": "]"}
# What an element that is still being written may look like, when closing all that is open did not make it whole.
_BEGUN = r"\s*(?:t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|-?(?:\d+(?:\.\d*)?(?:[eE][+-]?)?)?)"
_UNFINISHED = {
    "}": re.compile(rf"\s*(?:{_STRING}\s*(?::{_BEGUN})?)?", re.DOTALL),
    "]": re.compile(_BEGUN),
}


def parse_partial_json(text: str) -> Any:
    """The value of JSON text that may end anywhere: what is open is closed, what is half written is left out.

    ValueError when the text is not the beginning of any JSON object or array: a call with wrong arguments must not
    pass for one with fewer.
    """
    try:
        return json.loads(text, strict=False)
    except ValueError:
        closed, last_whole = _closed(text)
    try:
        return json.loads(closed, strict=False)
    except ValueError:
        if last_whole is None:
            raise
        return json.loads(last_whole, strict=False)


def _closed(text: str) -> tuple[str, str | None]:
    """The text with everything open closed; and that without the last element, if it may be an unfinished one."""
    closers: list[str] = []
    start, open_there = 0, ""
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark in _CLOSER:
            closers.append(_CLOSER[mark])
            start, open_there = token.end(), "".join(reversed(closers))
        elif mark == "," and closers:
            start, open_there = token.start(), "".join(reversed(closers))
        elif mark in ("}", "]") and (not closers or closers.pop() != mark):
            raise ValueError(f"JSON text has a {mark!r} that closes nothing, at character {token.start()}.")
        elif mark == '"':
            cut = _CUT_ESCAPE.search(text)
            text = (text[: cut.start(1)] if cut else text) + '"'
            break
    closed = text + "".join(reversed(closers))
    if not closers or not _UNFINISHED[open_there[0]].fullmatch(text[start:].removeprefix(",")):
        return closed, None
    return closed, text[:start] + open_there
