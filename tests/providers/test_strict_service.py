"""The strict service takes what the real services take, and refuses each of these requests as they do."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from .service import Conversation

Body = dict[str, Any]
Spoil = Callable[[Body], object]

ADD = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def openai_body() -> Body:
    call = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    return {
        "model": "gpt",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "1 + 1?"}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "2"},
        ],
        "tools": [{"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": ADD}}],
    }


def anthropic_body() -> Body:
    use = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}}
    return {
        "model": "claude",
        "max_tokens": 100,
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "1 + 1?"},
            {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, use]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "2"}]},
        ],
        "tools": [{"name": "add", "description": "Adds.", "input_schema": ADD}],
    }


def put(*path: Any, to: Any) -> Spoil:
    """Sets what stands at a path."""

    def spoil(body: Body) -> None:
        at: Any = body
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = to

    return spoil


def drop(*path: Any) -> Spoil:
    """Takes away what stands at a path."""

    def spoil(body: Body) -> None:
        at: Any = body
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]

    return spoil


def say(*messages: Body) -> Spoil:
    """Adds messages at the end."""
    return lambda body: body["messages"].extend(messages)


M, CALL = "messages", ("messages", 2, "tool_calls", 0)
FUNCTION = ("tools", 0, "function")
OPENAI: dict[str, Spoil] = {
    "no model": drop("model"),
    "an empty model": put("model", to=""),
    "no messages": drop(M),
    "empty messages": put(M, to=[]),
    "messages that are no list": put(M, to={"role": "user"}),
    "an unknown option": put("best_off", to=1),
    "no role": drop(M, 1, "role"),
    "a role of others": put(M, 1, "role", to="human"),
    "an unknown field": put(M, 1, "id", to="m1"),
    "no content": drop(M, 1, "content"),
    "null content of a user": put(M, 1, "content", to=None),
    "content that is a number": put(M, 1, "content", to=5),
    "an empty list of parts": put(M, 1, "content", to=[]),
    "an unknown part": put(M, 1, "content", 0, to={"type": "tool_use"}),
    "a text part without text": drop(M, 1, "content", 0, "text"),
    "a part with a foreign field": put(M, 1, "content", 0, "index", to=0),
    "an image without an address": put(M, 1, "content", 0, to={"type": "image_url", "image_url": {}}),
    "an image that is a bare text": put(M, 1, "content", 0, to={"type": "image_url", "image_url": "x"}),
    "an image in a system message": put(
        M, 0, "content", to=[{"type": "image_url", "image_url": {"url": "https://x.y/z.png"}}]
    ),
    "a name with a space": put(M, 1, "name", to="Ada L"),
    "an assistant that says nothing": drop(M, 2, "tool_calls"),
    "empty tool calls": put(M, 2, "tool_calls", to=[]),
    "a call without an id": drop(*CALL, "id"),
    "a call with an empty id": put(*CALL, "id", to=""),
    "a call with an id that is too long": put(*CALL, "id", to="c" * 41),
    "a call without a type": drop(*CALL, "type"),
    "arguments that are an object": put(*CALL, "function", "arguments", to={"a": 1}),
    "a call to a name with a dot": put(*CALL, "function", "name", to="math.add"),
    "two calls with one id": lambda body: body[M][2]["tool_calls"].append(body[M][2]["tool_calls"][0]),
    "a call that nobody answers": drop(M, 3),
    "a call that is answered too late": lambda body: body[M].insert(3, {"role": "user", "content": "And?"}),
    "an answer to another call": put(M, 3, "tool_call_id", to="call_2"),
    "an answer without an id": drop(M, 3, "tool_call_id"),
    "an answer given twice": lambda body: body[M].append(body[M][3]),
    "an orphan answer": lambda body: body[M].pop(2),
    "an answer with null content": put(M, 3, "content", to=None),
    "empty tools": put("tools", to=[]),
    "a tool that is not wrapped": put("tools", 0, to={"name": "add"}),
    "a tool without a name": drop(*FUNCTION, "name"),
    "a tool with a bad name": put(*FUNCTION, "name", to="add it"),
    "two tools with one name": lambda body: body["tools"].append(body["tools"][0]),
    "a schema of an array": put(*FUNCTION, "parameters", to={"type": "array"}),
    "a required key that is no property": put(*FUNCTION, "parameters", "required", to=["b"]),
    "a strict schema that is open": put(*FUNCTION, "strict", to=True),
    "a choice without tools": lambda body: (body.pop("tools"), body.update(tool_choice="auto")),
    "an unknown choice": put("tool_choice", to="any"),
    "a choice of a tool that is not there": put(
        "tool_choice", to={"type": "function", "function": {"name": "subtract"}}
    ),
    "stream options without a stream": put("stream_options", to={"include_usage": True}),
    "a temperature above two": put("temperature", to=2.5),
    "a limit of no tokens": put("max_tokens", to=0),
    "both limits": lambda body: body.update(max_tokens=5, max_completion_tokens=5),
    "five stops": put("stop", to=list("abcde")),
    "a JSON answer that nobody asked for": put("response_format", to={"type": "json_object"}),
    "an answer schema without a name": put(
        "response_format", to={"type": "json_schema", "json_schema": {"schema": ADD}}
    ),
}
USE, RESULT, TOOL = (M, 1, "content", 1), (M, 2, "content", 0), ("tools", 0)
ANTHROPIC: dict[str, Spoil] = {
    "no model": drop("model"),
    "no limit": drop("max_tokens"),
    "a limit of no tokens": put("max_tokens", to=0),
    "no messages": drop(M),
    "empty messages": put(M, to=[]),
    "an unknown option": put("presence_penalty", to=1),
    "a system message among the others": put(M, 0, to={"role": "system", "content": "Be brief."}),
    "a tool message": put(M, 2, to={"role": "tool", "content": "2"}),
    "an assistant that begins": drop(M, 0),
    "an unknown field": put(M, 0, "id", to="m1"),
    "no content": drop(M, 0, "content"),
    "null content": put(M, 0, "content", to=None),
    "an empty text": put(M, 0, "content", to=""),
    "an empty list of blocks": put(M, 0, "content", to=[]),
    "a blank text block": put(M, 1, "content", 0, "text", to=" "),
    "an unknown block": put(M, 1, "content", 0, to={"type": "tool_call"}),
    "a tool use of the user": put(M, 0, "content", to=[{"type": "tool_use", "id": "x", "name": "add", "input": {}}]),
    "a result of the assistant": put(M, 1, "content", 0, to={"type": "tool_result", "tool_use_id": "toolu_1"}),
    "a block with a foreign field": put(M, 1, "content", 0, "index", to=0),
    "a use without an id": drop(*USE, "id"),
    "a use with a bad id": put(*USE, "id", to="toolu 1"),
    "a use with a bad name": put(*USE, "name", to="add.it"),
    "an input that is a text": put(*USE, "input", to='{"a": 1}'),
    "a use that nobody answers": drop(M, 2),
    "a use that is answered too late": lambda body: (
        body[M].insert(2, {"role": "user", "content": "And?"})
        or body[M].insert(3, {"role": "assistant", "content": "Wait."})
    ),
    "a result for another use": put(*RESULT, "tool_use_id", to="toolu_2"),
    "a result without an id": drop(*RESULT, "tool_use_id"),
    "two results for one use": lambda body: body[M][2]["content"].append(body[M][2]["content"][0]),
    "an orphan result": lambda body: body[M].pop(1),
    "a result behind a text": lambda body: body[M][2]["content"].insert(0, {"type": "text", "text": "Here:"}),
    "a result that holds a tool use": put(*RESULT, "content", to=[{"type": "tool_use"}]),
    "two uses with one id": lambda body: body[M][1]["content"].append(body[M][1]["content"][1]),
    "a last word that ends in a space": say({"role": "assistant", "content": "It is "}),
    "a blank system block": put("system", to=[{"type": "text", "text": ""}]),
    "an image in the system text": put("system", to=[{"type": "image"}]),
    "an image of an unknown kind": put(
        M,
        0,
        "content",
        to=[{"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "aa"}}],
    ),
    "a tool without a schema": drop(*TOOL, "input_schema"),
    "a schema of an array": put(*TOOL, "input_schema", to={"type": "array"}),
    "a tool with a bad name": put(*TOOL, "name", to="add it"),
    "two tools with one name": lambda body: body["tools"].append(body["tools"][0]),
    "a tool in OpenAI's form": put(*TOOL, to={"type": "function", "function": {"name": "add"}}),
    "a choice that is a text": put("tool_choice", to="auto"),
    "an unknown choice": put("tool_choice", to={"type": "required"}),
    "a choice of a tool that is not there": put("tool_choice", to={"type": "tool", "name": "subtract"}),
    "a choice without tools": lambda body: (body.pop("tools"), body.update(tool_choice={"type": "auto"})),
    "a temperature above one": put("temperature", to=1.5),
    "a blank stop": put("stop_sequences", to=[" "]),
    "thinking on too small a budget": put("thinking", to={"type": "enabled", "budget_tokens": 10}),
    "thinking beyond the limit": put("thinking", to={"type": "enabled", "budget_tokens": 2000}),
    "thinking where a tool is forced": lambda body: body.update(
        max_tokens=4000, thinking={"type": "enabled", "budget_tokens": 2000}, tool_choice={"type": "any"}
    ),
    "a tool use without the thoughts before it": lambda body: body.update(
        max_tokens=4000, thinking={"type": "enabled", "budget_tokens": 2000}
    ),
    "thoughts without a signature": put(M, 1, "content", 0, to={"type": "thinking", "thinking": "Hm."}),
    "five cache marks": put("system", to=[{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}] * 5),
    "an unknown cache mark": put(*TOOL, "cache_control", to={"type": "forever"}),
}
BODIES = {"/v1/chat/completions": openai_body, "/v1/messages": anthropic_body}
CASES = [("/v1/chat/completions", name, spoil) for name, spoil in OPENAI.items()]
CASES += [("/v1/messages", name, spoil) for name, spoil in ANTHROPIC.items()]


@pytest.mark.parametrize("path", BODIES)
def test_a_sound_request_is_answered(conversation: Conversation, path: str) -> None:
    status, answer = conversation.will_say({"text": "2"}).post(path, BODIES[path]())
    assert status == 200, answer
    assert conversation.refused == []


@pytest.mark.parametrize(("path", "name", "spoil"), CASES, ids=[f"{path}: {name}" for path, name, _ in CASES])
def test_it_refuses(conversation: Conversation, path: str, name: str, spoil: Spoil) -> None:
    body = copy.deepcopy(BODIES[path]())
    spoil(body)

    status, answer = conversation.will_say({"text": "2"}).post(path, body)

    assert status == 400, name
    assert answer["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("path", BODIES)
def test_it_refuses_what_is_no_json_and_what_has_no_key(conversation: Conversation, path: str) -> None:
    assert conversation.post(path, b"{")[0] == 400
    assert conversation.post(path, BODIES[path](), headers={"anthropic-version": "x"})[0] == 401


def test_there_are_at_least_forty_invalid_requests_for_each_service() -> None:
    assert len(OPENAI) >= 40
    assert len(ANTHROPIC) >= 40
