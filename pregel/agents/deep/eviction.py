"""What is too long for a model's context goes to a file; a preview that names the file stays.

A preview shows both ends, so that a model knows what it would read. Names of files are made from ids that anybody may
have written: they are cleaned first. A name also says what its file holds, so that one id, seen by an agent and its
subagent or by two threads with one store, never stands for two texts; a task that runs again writes the same file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import blake2b, sha256
from typing import Any

from pregel.agents.deep.backends.base import Backend
from pregel.agents.deep.backends.composite import CompositeBackend
from pregel.agents.deep.permissions import GuardedBackend
from pregel.agents.flow import AgentFlow, either
from pregel.messages import HumanMessage, ToolMessage, is_message
from pregel.messages.convert import kind_of
from pregel.types import Command

CHARACTERS = 4
"""Characters that are taken for a token."""
LINES, WIDTH = 5, 1000
"""Lines that a preview shows of each end, and characters of each line."""
EVICTED = "lc_evicted_to"
"""Where a message's `additional_kwargs` say which file has its text."""
HOW = "Read it in parts, or search it."
_BAD = re.compile(r"[./\\]")


def artifacts_root(backend: Backend) -> str:
    """The directory for what an agent moves out of its context."""
    inner = backend.backend if isinstance(backend, GuardedBackend) else backend
    root = inner.artifacts_root if isinstance(inner, CompositeBackend) else "/"
    return root.rstrip("/")


def file_name(id: str, text: str) -> str:
    """A name for a file from an id and the text that it is to hold: no other text gets the same."""
    whole = f"{id}\0{text}".encode("utf-8", "surrogatepass")
    mark = blake2b(whole, digest_size=8).hexdigest()
    name = _BAD.sub("_", id.replace("\0", "_"))
    if len(name.encode("utf-8", "replace")) > 128 or not name or name.startswith("~"):
        name = f"call-{sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return f"{name.encode('utf-8', 'replace').decode('utf-8')}-{mark}"


def over_results(result: Any, change: Callable[[ToolMessage], AgentFlow[Any]]) -> AgentFlow[Any]:
    """A tool's result with every message of a tool in it changed."""
    if isinstance(result, list):
        found = []
        for one in result:
            found.append((yield from over_results(one, change)))
        return found
    if isinstance(result, Command):
        update = result.update
        if not isinstance(update, dict) or not isinstance(update.get("messages"), list):
            return result
        messages = yield from over_results(update["messages"], change)
        return Command(graph=result.graph, update={**update, "messages": messages}, goto=result.goto)
    if not is_message(result) or kind_of(result) != "tool":
        return result
    return (yield from change(result))


def evicted(backend: Backend, message: ToolMessage, most: int) -> AgentFlow[ToolMessage]:
    """A tool's message with a long text in a file, `most` being the characters that may stay."""
    return message if len(message.text) <= most else (yield from _evicted(backend, message))


def _evicted(backend: Backend, message: ToolMessage) -> AgentFlow[ToolMessage]:
    """The message with a preview for its text; the message as it is when no file could be written."""
    path = f"{artifacts_root(backend)}/large_tool_results/{file_name(message.tool_call_id, message.text)}"
    written = yield either(backend.write, backend.awrite, path, message.text)
    if written.error is not None:
        return message
    told = (
        f"The result was too long and is in the file {path}. Read it in parts, or search it.\n\n{preview(message.text)}"
    )
    others = [block for block in _blocks(message) if block.get("type") != "text"]
    content: Any = [{"type": "text", "text": told}, *others] if others else told
    return message.model_copy(update={"content": content})


def _blocks(message: ToolMessage) -> Sequence[dict[str, Any]]:
    content = message.content
    return [] if isinstance(content, str) else [block for block in content if isinstance(block, dict)]


def preview(text: str) -> str:
    """Both ends of a text, with numbers before the lines."""
    lines = text.split("\n")
    numbered = [f"{number:>6}  {line[:WIDTH]}" for number, line in enumerate(lines, 1)]
    if len(lines) <= 2 * LINES:
        return "\n".join(numbered)
    left = len(lines) - 2 * LINES
    return "\n".join([*numbered[:LINES], f"... {left} lines are left out ...", *numbered[-LINES:]])


def marked(message: HumanMessage, path: str) -> HumanMessage:
    """The message, which says that a file has its text."""
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, EVICTED: path}})


def as_the_model_sees(message: Any) -> Any:
    """A preview in the place of a message whose text is in a file."""
    path = message.additional_kwargs.get(EVICTED)
    if path is None or kind_of(message) != "human":
        return message
    told = f"This message was too long and is in the file {path}. {HOW}\n\n{preview(message.text)}"
    return message.model_copy(update={"content": told})
