"""Tools of a real MCP server process, blocking and awaited."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pregel.agents.tools.base import Tool, ToolException
from pregel.agents.tools.mcp import McpServer
from pregel.errors import UsageError

SERVER = (sys.executable, str(Path(__file__).with_name("mcp_server.py")))
Invoke = Callable[[Tool, Any], Any]


@pytest.fixture(scope="module")
def server() -> Iterator[McpServer]:
    with McpServer(*SERVER, prefix="sums_") as server:
        yield server


@pytest.fixture(params=["sync", "async"])
def invoke(request: pytest.FixtureRequest) -> Invoke:
    if request.param == "sync":
        return lambda tool, given: tool.invoke(given)
    return lambda tool, given: asyncio.run(tool.ainvoke(given))


def named(server: McpServer, name: str) -> Tool:
    return next(tool for tool in server.tools if tool.name == f"sums_{name}")


def test_a_tool_is_described_and_called(server: McpServer, invoke: Invoke) -> None:
    add = named(server, "add")
    call = {"type": "tool_call", "id": "c1", "name": "sums_add", "args": {"a": 2}}

    assert add.description == "Adds two numbers."
    assert set(add.parameters["properties"]) == {"a", "b"}
    message = invoke(add, call)
    assert (message.content, message.artifact, message.tool_call_id) == ("3", {"result": 3}, "c1")


def test_pictures_come_as_blocks(server: McpServer, invoke: Invoke) -> None:
    blocks = invoke(named(server, "picture"), {})

    assert [block["type"] for block in blocks] == ["text", "image"]
    assert (blocks[1]["base64"], blocks[1]["mime_type"]) == ("aGk=", "image/png")


def test_an_error_of_the_tool_is_for_the_model(server: McpServer, invoke: Invoke) -> None:
    with pytest.raises(ToolException, match="divide"):
        invoke(named(server, "divide"), {"a": 1, "b": 0})


def test_wrong_arguments_are_told_to_the_model(server: McpServer, invoke: Invoke) -> None:
    with pytest.raises(ToolException, match="Field required"):
        invoke(named(server, "add"), {"b": 1})


def test_one_connection_serves_many_calls_at_once(server: McpServer) -> None:
    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(named(server, "slow").ainvoke({"number": n}) for n in range(20)))

    assert asyncio.run(all_of_them()) == [str(n) for n in range(20)]


def test_a_server_that_dies_is_a_tool_error_and_outside_of_its_block_it_says_what_is_wrong() -> None:
    with McpServer(*SERVER, prefix="sums_") as server, pytest.raises(ToolException):
        named(server, "die").invoke({})

    with pytest.raises(UsageError, match="with"):
        named(server, "add").invoke({"a": 1})
    with pytest.raises(UsageError, match="with"):
        asyncio.run(named(server, "add").ainvoke({"a": 1}))


def test_a_command_that_does_not_exist_fails_at_once() -> None:
    with pytest.raises(FileNotFoundError), McpServer("/does/not/exist"):
        pass


def test_it_can_be_entered_by_awaiting() -> None:
    async def body() -> Any:
        async with McpServer(*SERVER) as server:
            return await next(tool for tool in server.tools if tool.name == "add").ainvoke({"a": 1, "b": 1})

    assert asyncio.run(body()) == "2"
