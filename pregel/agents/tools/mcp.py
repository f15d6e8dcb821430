"""Tools of a server that speaks the Model Context Protocol. Needs the extra ``mcp``.

::

    with McpServer("python", "-m", "my_server") as server:
        agent = create_agent(model, server.tools)

One connection serves blocking and awaiting agents alike: it lives on an event loop of its own, on a thread that ends
with the ``with`` block (or ``async with``).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, Self, TypeVar

from pregel.agents.tools.base import Tool, ToolException
from pregel.errors import UsageError
from pregel.extras import extra
from pregel.messages.content import Content

with extra("mcp", "McpServer"):
    from mcp import Client, StdioServerParameters

T = TypeVar("T")


class McpServer:
    """A server and its tools: a command that talks over its standard streams, or one ``http(s)://`` address.

    `tools` are there once it is entered. `prefix` goes before their names. `timeout` limits each call, in seconds.
    A tool that reports an error raises `ToolException`, as does a server that is gone.
    """

    def __init__(
        self,
        command: str,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        prefix: str = "",
        timeout: float | None = None,
    ) -> None:
        is_address = command.startswith(("http://", "https://"))
        self.place: Any = (
            command
            if is_address
            else StdioServerParameters(command=command, args=list(arguments), env=dict(env) if env else None, cwd=cwd)
        )
        self.prefix, self.timeout = prefix, timeout
        self.tools: list[Tool] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Client | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), name="mcp", daemon=True)
        self._thread.start()
        try:
            ready.result()
        except BaseException:
            self._thread.join()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        assert self._loop is not None
        assert self._stop is not None
        assert self._thread is not None
        with contextlib.suppress(RuntimeError):  # the loop may have ended by itself
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self.__exit__)

    async def _serve(self, ready: Future[None]) -> None:
        """Holds the connection until it is told to stop."""
        try:
            async with Client(self.place, read_timeout_seconds=self.timeout) as client:
                self._loop, self._client, self._stop = asyncio.get_running_loop(), client, asyncio.Event()
                self.tools = [_as_tool(self, described) for described in await _all_tools(client)]
                ready.set_result(None)
                await self._stop.wait()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)
        finally:
            self._client = None

    async def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[Content, Any]:
        """Content and structured content that a tool gives back, on the loop of the connection."""
        client = self._client
        if client is None:
            raise UsageError(
                f"The MCP server of the tool {name!r} is closed.", fix="Run the agent inside of its `with` block."
            )
        try:
            result = await client.call_tool(name, dict(arguments))
        except Exception as error:
            raise ToolException(f"The MCP server failed at {name!r}: {error}") from error
        content = [_block(block) for block in result.content]
        if result.is_error:
            raise ToolException("\n".join(block.get("text", "") for block in content) or f"{name} failed.")
        texts = [block["text"] for block in content if block["type"] == "text"]
        return ("\n".join(texts) if len(texts) == len(content) else list(content)), result.structured_content

    def submit(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Starts work on the loop of the connection."""
        if self._loop is None or self._loop.is_closed():
            raise UsageError("The MCP server is not connected.", fix="Run the agent inside of its `with` block.")
        return asyncio.run_coroutine_threadsafe(work(), self._loop)


async def _all_tools(client: Client) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if not cursor:
            return found


class McpTool(Tool):
    """A tool of a server."""

    is_own_schema = False


def _as_tool(server: McpServer, described: Any) -> Tool:
    def blocking(**arguments: Any) -> Any:
        return server.submit(lambda: server.call(described.name, arguments)).result()

    async def awaiting(**arguments: Any) -> Any:
        return await asyncio.wrap_future(server.submit(lambda: server.call(described.name, arguments)))

    return McpTool(
        blocking,
        awaiting,
        name=f"{server.prefix}{described.name}",
        description=described.description or described.title or described.name,
        args_schema=described.input_schema,
        response_format="content_and_artifact",
        metadata={"mcp": described.annotations.model_dump(exclude_none=True)} if described.annotations else None,
    )


def _block(block: Any) -> dict[str, Any]:
    """A content block of the protocol as a standard one."""
    match block.type:
        case "text":
            return {"type": "text", "text": block.text}
        case "image" | "audio":
            return {"type": block.type, "base64": block.data, "mime_type": block.mime_type}
        case "resource" if hasattr(block.resource, "text"):
            return {"type": "text", "text": block.resource.text}
        case "resource":
            mime = block.resource.mime_type or "application/octet-stream"
            return {"type": "file", "base64": block.resource.blob, "mime_type": mime}
        case "resource_link":
            return {"type": "text", "text": f"{block.name}: {block.uri}"}
    return {"type": "non_standard", "value": block.model_dump(mode="json", exclude_none=True)}
