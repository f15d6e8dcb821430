"""What a Send task costs, sync and async, from 10 to 10,000; and whether cost stays flat in nodes and in steps."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from functools import partial
from time import process_time
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

from benchmarks._harness import OURS, Budget, Contender, Report, measure, options, sides
from benchmarks.superstep import THREADS, Counter, chain, cpu, invoke, loop, step


class Items(TypedDict):
    items: list[int]
    out: Annotated[list[int], operator.add]


def work(item: int) -> dict[str, list[int]]:
    return {"out": [item * 2]}


async def awork(item: int) -> dict[str, list[int]]:
    return {"out": [item * 2]}


def fan(side: SimpleNamespace, node: Callable[[int], Any]) -> Any:
    """A compiled graph that sends each item to a node."""
    graph = side.StateGraph(Items)
    graph.add_node("work", node)
    graph.add_conditional_edges(
        side.START, lambda state: [side.Send("work", item) for item in state["items"]], ["work"]
    )
    return graph.compile()


def sync_run(graph: Any, tasks: int) -> Callable[[], Any]:
    """A run with so many Sends on threads."""
    return lambda: graph.invoke({"items": list(range(tasks))})


def async_run(graph: Any, tasks: int) -> Callable[[], Any]:
    """A run with so many Sends on an event loop."""
    return lambda: asyncio.run(graph.ainvoke({"items": list(range(tasks))}))


def sends(report: Report, sizes: list[int], reference_up_to: int, rounds: int) -> None:
    """The cost of a Send task by the number of them."""
    for title, node, run, budget in (
        ("sync threaded", work, sync_run, Budget(50, 30, 10)),
        ("async", awork, async_run, Budget(30, 15, 15)),
    ):
        figures: dict[int, dict[str, float]] = {}
        for size in sizes:
            rivals = [
                Contender(name, partial(run, fan(side, node), size), size)
                for name, side in sides().items()
                if name == OURS or size <= reference_up_to
            ]
            figures[size] = cpu(measure(rivals, rounds))
            report.add(f"Send task, {title}, {size:,} of them, µs", figures[size], budget if size >= 100 else None)
        ratio = {
            name: figures[sizes[-1]][name] / figures[100][name] for name in figures[sizes[-1]] if name in figures[100]
        }
        report.add(f"Send task, {title}: {sizes[-1]:,} against 100, ratio", ratio, Budget(1.3, 1.1), digits=2)


# -- flatness ---------------------------------------------------------------------------------------------------------


def crowd(side: SimpleNamespace, nodes: int) -> Any:
    """A compiled loop of one node in a graph of many that could run and don't."""
    graph = side.StateGraph(Counter)
    idle = [f"idle{place}" for place in range(nodes - 1)]
    for name in ("n", *idle):
        graph.add_node(name, step)
    graph.add_edge(side.START, "n")
    graph.add_conditional_edges(
        "n", lambda state: "n" if state["n"] < state["until"] else side.END, ["n", *idle, side.END]
    )
    return graph.compile()


def flat_in_nodes(report: Report, sizes: tuple[int, int], steps: int, rounds: int) -> None:
    """The cost of a superstep in a small and in a large graph."""
    graphs = {(name, size): crowd(side, size) for name, side in sides().items() for size in sizes}
    rivals = [
        Contender(f"{name} {size}", partial(invoke, graph, steps), steps) for (name, size), graph in graphs.items()
    ]
    figures = cpu(measure(rivals, rounds))
    small, large = sizes
    ratio = {name: figures[f"{name} {large}"] / figures[f"{name} {small}"] for name in sides()}
    report.add(f"superstep in a graph of {large:,} nodes against {small}, ratio", ratio, Budget(1.3, 1.1), digits=2)
    chains = [Contender(name, partial(invoke, chain(side, large), large), large) for name, side in sides().items()]
    report.add(f"superstep in a chain of {large:,} nodes, µs", cpu(measure(chains, rounds)), Budget(20, 12, 25))


def flat_in_steps(report: Report, steps: int, rounds: int) -> None:
    """The cost of a superstep in the last tenth of a long run against the first; a short run for the reference."""
    for title, saved in (("no saver", False), ("in-memory saver", True)):
        ratio: dict[str, float] = {}
        for name, side in sides().items():
            length = steps if name == OURS else min(steps, 1_000)
            timings = [
                tenths(loop(side, side.InMemorySaver() if saved else None), length) for _ in range(max(rounds, 1))
            ]
            ratio[name] = min(last for _, last in timings) / min(first for first, _ in timings)
        what = f"superstep, {title}: the last tenth of {steps:,} (reference: 1,000) against the first, ratio"
        report.add(what, ratio, Budget(1.1, 1.0), digits=2)


def tenths(graph: Any, steps: int) -> tuple[float, float]:
    """CPU seconds of the first and the last tenth of one run."""
    config = {"recursion_limit": steps + 10, "configurable": {"thread_id": f"t{next(THREADS)}"}}
    marks = [process_time() for _ in graph.stream({"n": 0, "until": steps}, config, stream_mode="updates")]
    width = steps // 10
    return marks[width] - marks[0], marks[-1] - marks[-1 - width]


def main() -> None:
    """Measure and print."""
    given = options(__doc__ or "")
    report = Report("Fan-out and flatness: CPU time")
    sizes = [10, 100, 1_000] if given.quick else [10, 100, 1_000, 10_000]
    sends(report, sizes, 100 if given.quick else 1_000, given.rounds)
    flat_in_nodes(report, (10, 1_000), 50 if given.quick else 200, given.rounds)
    flat_in_steps(report, 2_000 if given.quick else 10_000, given.rounds)
    report.show()


if __name__ == "__main__":
    main()
