"""Importing the package is cheap: nothing optional is loaded, and the event loop only when something needs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import pregel

OPTIONAL = (
    "aiosqlite",
    "anthropic",
    "cryptography",
    "langchain_core",
    "numpy",
    "openai",
    "psycopg",
    "pydantic",
    "rich",
)


MODULES = ("pregel.graph", "pregel.func", "pregel.agents", "pregel.checkpoint.memory", "pregel.store.memory")


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    parent = str(Path(pregel.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", code], cwd=parent, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("statement", ["import pregel", "from pregel import StateGraph, Command, interrupt"])
def test_the_face_loads_no_optional_package(statement: str) -> None:
    assert [] == sorted(set(OPTIONAL) & loaded_by(statement))


def test_graphs_tasks_and_agents_load_no_event_loop_before_something_is_awaited() -> None:
    loaded = loaded_by(f"import {', '.join(MODULES)}")

    assert "asyncio" not in loaded
    assert set(MODULES) <= loaded


def test_a_graph_that_stores_nothing_loads_no_serialiser_no_messages_and_nothing_that_reads_a_store() -> None:
    graph = "StateGraph(dict).add_node('n', lambda _: {}).add_edge('__start__', 'n')"

    loaded = loaded_by(f"from pregel.graph import StateGraph\n{graph}.compile().invoke({{}})")

    assert [] == sorted({"msgpack", "orjson", "pregel.messages", "pregel.checkpoint.flows"} & loaded)
