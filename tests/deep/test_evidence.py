"""Large evidence is in files; what a thread stores of it are their names."""

from __future__ import annotations

import asyncio
import base64
import random
from pathlib import Path
from typing import Any

import pytest

from pregel.agents import create_agent, tool
from pregel.agents.deep import FilesystemMiddleware
from pregel.agents.deep.backends import FilesystemBackend
from pregel.agents.models import ScriptedModel, call_tools
from pregel.agents.models import call_tool as call
from pregel.checkpoint.sqlite import SqliteSaver

MEGABYTE = 1_000_000
chance = random.Random(7)
TEXT = f"{chance.getrandbits(8 * MEGABYTE):x}"  # nothing makes it shorter by more than a half
PICTURE = chance.randbytes(MEGABYTE)


@tool
def logs() -> str:
    """Read the logs."""
    return TEXT


@tool
def screenshot() -> Any:
    """Take a picture."""
    return [{"type": "image", "base64": base64.b64encode(PICTURE).decode(), "mime_type": "image/png"}]


@pytest.mark.acceptance("S2-35")
@pytest.mark.parametrize("driver", ["sync", "async"])
def test_a_thread_stores_where_large_evidence_is(tmp_path: Path, driver: str) -> None:
    (tmp_path / "evidence").mkdir()
    files = FilesystemMiddleware(backend=FilesystemBackend(tmp_path / "evidence"), offload_binary_content=True)
    model = ScriptedModel([call_tools(call("logs"), call("screenshot")), "The disk was full."])
    config: Any = {"configurable": {"thread_id": "incident"}}
    with SqliteSaver.from_conn_string(tmp_path / "threads.db", synchronous="NORMAL") as saver:
        agent = create_agent(model, [logs, screenshot], middleware=[files], checkpointer=saver)
        given = {"messages": "why is it slow?"}
        state = agent.invoke(given, config) if driver == "sync" else asyncio.run(agent.ainvoke(given, config))
        found = agent.get_state(config).values["messages"]

    stored = sum(path.stat().st_size for path in tmp_path.glob("threads.db*"))
    kept = {path.read_bytes() for path in (tmp_path / "evidence").rglob("*") if path.is_file()}
    text, picture = [message for message in found if message.type == "tool"]
    assert {TEXT.encode(), PICTURE} == kept
    assert stored < MEGABYTE // 2
    assert found == state["messages"]
    assert len(text.text) < 10_000
    assert "base64" not in picture.content[0]
    assert (tmp_path / "evidence" / picture.content[0]["blob"].lstrip("/")).read_bytes() == PICTURE
