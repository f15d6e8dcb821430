"""What the random programs hold: each kind of thing is in at least a tenth of the programs that are to show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.differential.draw import asking, failing, graphs, nesting, threads
from tests.differential.program import Answer, Node, Op, Program

ROUTES = {"branch", "goto", "Send", "join", "deferred", "entry", "several attempts"}
WANTED: dict[str, tuple[st.SearchStrategy[Program], int, set[str]]] = {
    "graphs": (graphs(), 150, {*ROUTES, "overwrite", "async", "exit"}),
    "threads": (threads(), 100, {*ROUTES, "Run back", "Go back", "Update", "Steer", "breakpoint", "exit"}),
    "failing": (failing(), 70, {*ROUTES, "failure", "handled failure", "exit"}),
    "asking": (asking(), 70, {"question", "two questions", "Answer all", "Answer first", "Answer last", "Go back"}),
    "nesting": (
        nesting(),
        60,
        {
            *("subgraph", "inner question", "inner Send", "inner several attempts", "Command to the parent"),
            *("keeps run", "keeps thread", "Answer all", "Go back", "several attempts"),
        },
    ),
}


@pytest.mark.slow  # it draws them all, and plays none
@pytest.mark.parametrize("name", WANTED)
def test_each_kind_of_thing_is_in_a_tenth_of_the_programs(name: str) -> None:
    programs, count, wanted = WANTED[name]
    found = Counter[str]()

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs)
    def draw(program: Program) -> None:
        found.update(set(things(program)))

    draw()

    assert {} == {thing: found[thing] for thing in wanted if found[thing] < count / 10}


def things(program: Program) -> Iterator[str]:
    """What a program holds."""
    for node in program.nodes:
        yield from of_node(node)
    for op in program.ops:
        yield from of_call(op)
    yield program.durability
    if program.entry:
        yield "entry"
    if program.joins:
        yield "join"
    if program.before or program.after:
        yield "breakpoint"


def of_node(node: Node) -> Iterator[str]:
    held = {
        "branch": node.branches,
        "goto": node.goto,
        "deferred": node.defer,
        "overwrite": "over" in dict(node.writes).values(),
        "several attempts": node.tries > 1,
        "failure": node.fails and not node.handled,
        "handled failure": node.handled,
        "question": node.asks,
        "two questions": node.asks > 1,
        "subgraph": node.child,
    }
    yield from (thing for thing, there in held.items() if there)
    if any(target.startswith("*") for route in (node.goto, *node.branches) if route for target in sum(route.picks, ())):
        yield "Send"
    if node.child is not None:
        yield f"keeps {node.keeps}"
        yield from (f"inner {thing}" for thing in things(node.child))
        if node.child.entry is not None:
            yield "inner Send"
        if any(inner.returns == "parent" for inner in node.child.nodes):
            yield "Command to the parent"


def of_call(op: Op) -> Iterator[str]:
    yield type(op).__name__
    if isinstance(op, Answer):
        yield f"Answer {op.how}"
    if getattr(op, "back", None) is not None:
        yield f"{type(op).__name__} back"
