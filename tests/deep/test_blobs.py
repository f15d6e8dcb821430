"""Bytes of messages as files: what the state holds, what the model is given, and when nothing is moved."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pregel.agents import create_agent, tool
from pregel.agents.deep import FilesystemMiddleware, FilesystemPermission
from pregel.agents.deep.backends import Backend, CompositeBackend, FilesystemBackend, StateBackend
from pregel.agents.models import ScriptedModel, call_tool
from pregel.messages import HumanMessage, ToolMessage
from pregel.types import Command
from pregel.warnings import PregelWarning

RAW = b"\x89PNG" + bytes(range(256))
TEXT = base64.b64encode(RAW).decode()
PATH = f"/blobs/{sha256(RAW).hexdigest()}"
PICTURE = {"type": "image", "base64": TEXT, "mime_type": "image/png"}
MOVED = {"type": "image", "mime_type": "image/png", "blob": PATH}


@tool
def look() -> Any:
    """Looks."""
    return [{"type": "text", "text": "seen"}, PICTURE]


@tool
def command() -> Any:
    """Looks, and says so by a command."""
    return Command(update={"messages": [ToolMessage([PICTURE], tool_call_id="call")]})


@pytest.fixture(params=["sync", "async"])
def play(request: pytest.FixtureRequest) -> Callable[..., tuple[Any, ScriptedModel]]:
    """The state after some answers, and the model that gave them."""

    def play(backend: Backend, *answers: Any, said: Any = "go", **options: Any) -> tuple[Any, ScriptedModel]:
        model = ScriptedModel([*answers, "done"])
        files = FilesystemMiddleware(backend=backend, offload_binary_content=True, **options)
        agent = create_agent(model, [look, command], middleware=[files])
        given = {"messages": [HumanMessage(said)]}
        blocking = request.param == "sync"
        return agent.invoke(given) if blocking else asyncio.run(agent.ainvoke(given)), model

    return play


Play = Callable[..., tuple[Any, ScriptedModel]]


def contents(messages: Any, kind: str = "tool") -> list[Any]:
    return [message.content for message in messages if message.type == kind]


def test_bytes_of_tools_are_in_files_and_the_model_is_given_them(play: Play, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(RAW)
    read = call_tool("read_file", {"file_path": "/a.png"})

    state, model = play(FilesystemBackend(tmp_path), call_tool("look"), call_tool("command", id="call"), read)

    seen = {"type": "text", "text": "seen"}
    assert [[seen, MOVED], [MOVED], [MOVED]] == contents(state["messages"])
    assert [[seen, PICTURE], [PICTURE], [PICTURE]] == contents(model.requests[-1].messages)
    assert [RAW] == [one.read_bytes() for one in (tmp_path / "blobs").iterdir()]


@pytest.mark.parametrize(
    "block",
    [
        PICTURE,
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{TEXT}"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": TEXT}},
    ],
    ids=["standard", "openai", "anthropic"],
)
def test_bytes_of_people_are_moved_whatever_they_are_written_in(play: Play, tmp_path: Path, block: Any) -> None:
    state, model = play(FilesystemBackend(tmp_path), said=["look", block])

    assert [["look", MOVED]] == contents(state["messages"], "human")
    assert [["look", PICTURE]] == contents(model.requests[0].messages, "human")


def test_bytes_that_cannot_be_moved_stay(play: Play, tmp_path: Path) -> None:
    rule = FilesystemPermission(["write"], ["/blobs/**"], "deny")
    no_bytes = {"type": "image", "base64": "!", "mime_type": "image/png"}

    state, _ = play(FilesystemBackend(tmp_path), said=[PICTURE, no_bytes], permissions=[rule])

    assert [[PICTURE, no_bytes]] == contents(state["messages"], "human")


def test_bytes_that_are_gone_are_said_to_be(play: Play, tmp_path: Path) -> None:
    _, model = play(FilesystemBackend(tmp_path), said=[MOVED])

    ((block,),) = contents(model.requests[0].messages, "human")
    assert block == {"type": "text", "text": f"(What was here is in the file {PATH}, which cannot be read.)"}


def test_a_message_cannot_name_another_file(play: Play, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    blocks = [{**MOVED, "blob": path} for path in ("/secret", "/blobs/../secret")]

    _, model = play(FilesystemBackend(tmp_path), said=blocks)

    assert [blocks] == contents(model.requests[0].messages, "human")


def test_files_in_the_state_would_move_nothing_and_that_is_said(tmp_path: Path) -> None:
    with pytest.warns(PregelWarning, match="offload_binary_content"):
        FilesystemMiddleware(offload_binary_content=True)
    routed = CompositeBackend(StateBackend(), {"/big/": FilesystemBackend(tmp_path)}, artifacts_root="/big")

    assert FilesystemMiddleware(backend=routed, offload_binary_content=True).offload
