"""The graphs that several rows run, for any implementation, and the bare loop beside them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any, TypedDict

from benchmarks.timing import Repetition, timed

THREADS = count()


class Counter(TypedDict):
    n: int
    until: int


def step(state: Counter) -> dict[str, int]:
    return {"n": state["n"] + 1}


async def astep(state: Counter) -> dict[str, int]:
    return {"n": state["n"] + 1}


def chain(side: SimpleNamespace, length: int, saver: Any = None) -> Any:
    """A compiled chain of trivial nodes."""
    graph = side.StateGraph(Counter)
    names = [f"n{place}" for place in range(length)]
    for name in names:
        graph.add_node(name, step)
    for start, end in zip([side.START, *names], [*names, side.END], strict=True):
        graph.add_edge(start, end)
    return graph.compile(saver)


def loop(side: SimpleNamespace, saver: Any = None, node: Callable[[Counter], Any] = step, idle: int = 0) -> Any:
    """A compiled loop of one trivial node, in a graph of so many more that could run and don't."""
    graph = side.StateGraph(Counter)
    others = [f"idle{place}" for place in range(idle)]
    graph.add_node("n", node)
    for name in others:
        graph.add_node(name, step)
    graph.add_edge(side.START, "n")
    ends = ["n", *others, side.END]
    graph.add_conditional_edges("n", lambda state: "n" if state["n"] < state["until"] else side.END, ends)
    return graph.compile(saver)


def new_thread(steps: int = 25) -> dict[str, Any]:
    """The config of a thread that is new, for so many steps."""
    return {"recursion_limit": steps + 10, "configurable": {"thread_id": f"t{next(THREADS)}"}}


def invoke(graph: Any, steps: int, **arguments: Any) -> Callable[[], Any]:
    """A run of so many steps on a new thread."""
    config = new_thread(steps)
    return lambda: graph.invoke({"n": 0, "until": steps}, config, **arguments)


def bare(steps: int) -> Callable[[], Any]:
    """The same in a bare loop."""

    def run() -> Counter:
        state = Counter(n=0, until=steps)
        while state["n"] < state["until"]:
            state = {**state, **step(state)}  # type: ignore[typeddict-item]
        return state

    return run


def python(steps: int = 5_000) -> Repetition:
    """The floor of everything that only computes: a step of the bare loop."""
    return timed(lambda: bare(steps), steps)
