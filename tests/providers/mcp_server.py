"""A real MCP server for the tests, over its standard streams."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Image

server = MCPServer("sums")


def add(a: int, b: int = 1) -> int:
    """Adds two numbers."""
    return a + b


def divide(a: int, b: int) -> float:
    """Divides."""
    return a / b


async def slow(number: int) -> int:
    """Answers once the others had their turn."""
    await asyncio.sleep(0)
    return number


def picture() -> Any:
    """Shows something."""
    return ["Look:", Image(data=b"hi", format="png")]


def die() -> str:
    """Ends the process."""
    os._exit(1)


for function in (add, divide, slow, die):
    server.tool()(function)
server.tool(structured_output=False)(picture)

if __name__ == "__main__":
    server.run("stdio")
