"""A real MCP server for the tests, over its standard streams."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Image

server = MCPServer("sums")


@server.tool()
def add(a: int, b: int = 1) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def divide(a: int, b: int) -> float:
    """Divides."""
    return a / b


@server.tool()
async def slow(number: int) -> int:
    """Answers once the others had their turn."""
    await asyncio.sleep(0)
    return number


@server.tool(structured_output=False)
def picture() -> Any:
    """Shows something."""
    return ["Look:", Image(data=b"hi", format="png")]


@server.tool()
def die() -> str:
    """Ends the process."""
    os._exit(1)


if __name__ == "__main__":
    server.run("stdio")
