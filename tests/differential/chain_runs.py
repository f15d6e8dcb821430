"""A callback handler of LangChain's that keeps the tree of the runs it hears of, and how such trees are compared."""

from __future__ import annotations

import asyncio
import operator
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from typing_extensions import TypedDict

from .side import Side


class Tree:
    """The runs that were heard of, by id, in the order in which they began."""

    def __init__(self) -> None:
        self.runs: dict[UUID, dict[str, Any]] = {}

    def begin(
        self, kind: str, inputs: Any, run_id: UUID, parent_run_id: UUID | None, told: dict[str, Any], name: str | None
    ) -> None:
        assert run_id not in self.runs, "it begins twice"
        assert parent_run_id is None or parent_run_id in self.runs, "it begins before the run around it"
        self.runs[run_id] = {
            "kind": kind,
            "name": name,
            "inputs": inputs,
            "parent": parent_run_id,
            "tags": sorted(told.get("tags") or ()),
            "metadata": {**(told.get("metadata") or {})},
        }

    def end(self, run_id: UUID, **how: Any) -> None:
        assert "end" not in self.runs[run_id], "it ends twice"
        inside = [run for run in self.runs.values() if run["parent"] == run_id]
        assert all("end" in run for run in inside), "it ends before what is inside of it"
        self.runs[run_id]["end"] = how

    def named(self, name: str) -> list[dict[str, Any]]:
        """All runs of a name."""
        return [run for run in self.runs.values() if run["name"] == name]

    def shape(self, parent: UUID | None = None) -> list[Any]:
        """The tree as plain data: name, kind, tags, inputs, how it ended, what stands in its metadata, children."""
        found = [(id, run) for id, run in self.runs.items() if run["parent"] == parent]
        return sorted([(*_seen(run), self.shape(id)) for id, run in found], key=repr)


def _seen(run: dict[str, Any]) -> tuple[Any, ...]:
    error = run.get("end", {}).get("error")
    end = type(error).__name__ if error is not None else _plain(run.get("end", {}).get("output"))
    compared = _COMPARED if "handler" not in str(run["name"]) else _COMPARED[:2]
    metadata = {key: value for key, value in run["metadata"].items() if key in compared}
    return run["name"], run["kind"], run["tags"], _plain(run["inputs"]), "end" in run, end, sorted(metadata.items())


# The path of an error handler's task is another one, as in other places that show it.
_COMPARED = ("langgraph_step", "langgraph_node", "langgraph_triggers", "langgraph_path", "thread_id", "mine", "asked")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((key, _plain(one)) for key, one in value.items())
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, int | str | float) else type(value).__name__


class Listening:
    """What a handler of either kind does when it hears of something."""

    raise_error = True  # else nobody would hear of what is out of order

    def __init__(self) -> None:
        self.tree = Tree()

    def heard(self, event: str, value: Any, kwargs: dict[str, Any]) -> None:
        """Of a start, an end or an error: ``chain_start``, ``tool_end``, ..."""
        kind, _, what = event.rpartition("_")
        if what == "start":
            self.tree.begin(kind, value, kwargs["run_id"], kwargs.get("parent_run_id"), kwargs, kwargs.get("name"))
        elif what == "end":
            self.tree.end(kwargs["run_id"], output=value)
        else:
            self.tree.end(kwargs["run_id"], error=value)


class Keeping(Listening, BaseCallbackHandler):  # type: ignore[misc]  # untyped where it is not installed
    """A blocking handler that keeps the tree."""

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.heard("chain_start", inputs, kwargs)

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        self.heard("chain_end", outputs, kwargs)

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        self.heard("chain_error", error, kwargs)

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self.heard("chat_start", len(messages), kwargs)

    def on_llm_end(self, response: Any, **kwargs: Any) -> None:
        self.heard("chat_end", None, kwargs)

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        self.heard("chat_error", error, kwargs)

    def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
        self.heard("tool_start", input_str, {**kwargs, "name": (serialized or {}).get("name")})

    def on_tool_end(self, output: Any, **kwargs: Any) -> None:
        self.heard("tool_end", None, kwargs)

    def on_tool_error(self, error: BaseException, **kwargs: Any) -> None:
        self.heard("tool_error", error, kwargs)


class AsyncKeeping(Listening, AsyncCallbackHandler):  # type: ignore[misc]  # untyped where it is not installed
    """One whose methods are awaited."""

    async def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.heard("chain_start", inputs, kwargs)

    async def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        self.heard("chain_end", outputs, kwargs)

    async def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        self.heard("chain_error", error, kwargs)


# -- programs of either side

THREAD: dict[str, Any] = {"configurable": {"thread_id": "1"}}
PACKAGES = ("langgraph", "pregel")


class State(TypedDict, total=False):
    x: int
    log: Annotated[list[Any], operator.add]


inner = RunnableLambda(lambda x: x, name="inner")


@tool  # type: ignore[untyped-decorator]  # untyped where it is not installed
def double(n: int) -> int:
    """Twice n."""
    return 2 * n


def chain(lib: Side, **nodes: Any) -> Any:
    """A builder whose nodes follow one another."""
    graph = lib.StateGraph(State)
    before = lib.START
    for name, node in nodes.items():
        graph.add_node(name, node).add_edge(before, name)
        before = name
    return graph


def run(app: Any, way: str, value: Any, config: Any) -> None:
    """Run it to whatever end it comes to."""

    async def awaited() -> None:
        if way == "ainvoke":
            await app.ainvoke(value, config)
        else:
            _ = [chunk async for chunk in app.astream(value, config)]

    with suppress(ValueError, *(import_module(f"{package}.errors").GraphRecursionError for package in PACKAGES)):
        if way.startswith("a"):
            asyncio.run(awaited())
        else:
            _ = app.invoke(value, config) if way == "invoke" else list(app.stream(value, config))
