"""Hypothesis strategies that draw whole programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tests.differential.program import END, START, Answer, Go, Mend, Node, Op, Program, Route, Run, Steer, Update

NAMES = ("a", "b", "c", "d", "e", "f")
KINDS = ("last", "tail", "folded", "sum", "list", "topic", "pile", "ephemeral", "any", "untracked")
ALIASED = {"topic", "pile"}  # as are joins: see differences.py on durability async
REDUCED = {"list", "sum", "tail", "folded"}
ORDERS = ("all", "first", "last")
BACK = st.integers(0, 6)


@st.composite
def routes(draw: st.DrawFn, names: tuple[str, ...], by: tuple[str, ...], *, labels: bool = True) -> Route:
    """A router over some nodes, END and Sends."""
    targets = [*names, *(f"*{name}" for name in names), END]
    picks = draw(st.lists(st.lists(st.sampled_from(targets), max_size=3).map(tuple), min_size=1, max_size=3))
    return Route(
        picks=tuple(picks),
        by=draw(st.sampled_from(by)),
        until=draw(st.sampled_from((10, 3, 6))),
        labels=draw(st.sampled_from(("", "dict", "list"))) if labels else "",
        bare=draw(st.booleans()),
    )


@st.composite
def nodes(draw: st.DrawFn, name: str, names: tuple[str, ...], channels: tuple[tuple[str, str], ...]) -> Node:
    """A node that does not ask, and does not fail for good."""
    kinds = {"log": "list", **dict(channels)}
    counted = ("ticks", "log")
    writes: list[tuple[str, str]] = []
    for key in ["log", *draw(st.lists(st.sampled_from(sorted(kinds)), unique=True, max_size=2))]:
        hows = ("size", "name", "over") if kinds[key] in REDUCED and key != "log" else ("size", "name")
        if key not in dict(writes):
            writes.append((key, draw(st.sampled_from(hows))))
    returns = draw(st.sampled_from(("dict", "dict", "command", "pieces", "nothing")))
    goes = returns in ("command", "pieces") and draw(st.booleans())
    return Node(
        name=name,
        writes=tuple(writes),
        returns=returns,
        goto=draw(routes(names, counted, labels=False)) if goes else None,
        branches=tuple(draw(st.lists(routes(names, counted), max_size=2)) if draw(st.integers(0, 2)) == 0 else ()),
        defer=draw(st.integers(0, 7)) == 0,
        tries=draw(st.sampled_from((1, 1, 1, 1, 2, 3))),
    )


@st.composite
def graphs(draw: st.DrawFn) -> Program:
    """A graph of two to six nodes, all of which something leads to, called once."""
    names = NAMES[: draw(st.integers(2, 6))]
    channels = tuple((f"x{n}", k) for n, k in enumerate(draw(st.lists(st.sampled_from(KINDS), max_size=3))))
    drawn = tuple(draw(nodes(name, names, channels)) for name in names)
    ends = st.sampled_from(names)
    edges = draw(st.lists(st.tuples(ends, st.one_of(ends, st.just(END))), unique=True, max_size=len(names)))
    joins = draw(
        st.lists(
            st.tuples(st.lists(ends, unique=True, min_size=2, max_size=3).map(tuple), ends), unique=True, max_size=2
        )
    )
    entry = draw(st.none() | st.none() | routes(names, ("log",)))
    starts = draw(st.lists(ends, unique=True, min_size=0 if entry else 1, max_size=2))
    kinds = {kind for _, kind in channels}
    durabilities = ["sync"]
    if not joins and not kinds & ALIASED:
        durabilities += ["async", "async"]
    if "untracked" not in kinds:
        durabilities.append("exit")
    program = Program(
        nodes=drawn,
        edges=(*((START, start) for start in starts), *edges),
        joins=tuple(joins),
        entry=entry,
        channels=channels,
        limit=draw(st.sampled_from((12, 12, 4, 7))),
        durability=draw(st.sampled_from(durabilities)),
    )
    return reached(program)


def reached(program: Program) -> Program:
    """The program with an edge from START to each node that nothing leads to."""
    edges = list(program.edges)
    leads: dict[str, set[str]] = {START: chosen(program.entry)}
    for node in program.nodes:
        leads[node.name] = chosen(node.goto).union(*(chosen(route) for route in node.branches))
    for start, end in edges:
        leads[start].add(end)
    for starts, end in program.joins:
        for start in starts:
            leads[start].add(end)
    for node in program.nodes:
        if node.name not in closure(leads):
            leads[START].add(node.name)
            edges.append((START, node.name))
    return replace(program, edges=tuple(edges))


def chosen(route: Route | None) -> set[str]:
    """The nodes that a route may choose."""
    return set() if route is None else {target.lstrip("*") for pick in route.picks for target in pick}


def closure(leads: dict[str, set[str]]) -> set[str]:
    """All that START leads to."""
    found, open_ = {START}, [START]
    while open_:
        fresh = leads.get(open_.pop(), set()) - found
        found |= fresh
        open_ += fresh
    return found


# -- with calls -------------------------------------------------------------------------------------------------------


def ops(names: tuple[str, ...]) -> st.SearchStrategy[Op]:
    """A call on a thread that has state, without questions."""
    node = st.sampled_from(names)
    return st.one_of(
        st.builds(Run, text=st.just("again"), back=st.none() | BACK),
        st.builds(Go, back=st.none() | BACK),
        st.builds(Go, back=BACK),
        st.builds(Update, node=st.none() | node | st.just(START), back=st.none() | BACK),
        st.builds(Update, text=st.none(), node=node | st.just(END)),
        st.builds(Steer, goto=node),
    )


@st.composite
def threads(draw: st.DrawFn) -> Program:
    """A graph on which several calls are made: new input, travel, forks, updates, commands, breakpoints."""
    program = draw(graphs())
    names = tuple(node.name for node in program.nodes)
    stops = st.lists(st.sampled_from(names), unique=True, max_size=1).map(tuple)
    return replace(
        program,
        before=draw(stops),
        after=draw(stops),
        ops=(Run(), *draw(st.lists(ops(names), min_size=1, max_size=3))),
    )


@st.composite
def failing(draw: st.DrawFn) -> Program:
    """A graph with one node that fails until it is mended, and is continued before and after, or is handled."""
    program = draw(graphs())
    victim = draw(st.sampled_from([node.name for node in program.nodes]))
    error = draw(st.sampled_from(("ValueError", "KeyError", "RuntimeError", "ZeroDivisionError")))
    middles: list[tuple[Op, ...]] = [(), (Go(),), (Run("again"),)]
    middle = draw(st.sampled_from(middles))
    handled = draw(st.integers(0, 2)) == 0
    return replace(marked(program, {victim}, fails=error, handled=handled), ops=(Run(), *middle, Mend(), Go(), Go()))


@st.composite
def asking(draw: st.DrawFn) -> Program:
    """A graph in which some nodes ask, and the answers come in several ways."""
    program = draw(graphs())
    names = [node.name for node in program.nodes]
    asks = set(draw(st.lists(st.sampled_from(names), unique=True, min_size=1, max_size=2)))
    calls = st.one_of(*[st.builds(Answer, how=st.sampled_from(ORDERS))] * 3, st.builds(Go, back=BACK))
    answers = draw(st.lists(calls, min_size=2, max_size=5))
    return replace(marked(program, asks, asks=draw(st.integers(1, 2)), tries=1), ops=(Run(), *answers))


@st.composite
def children(draw: st.DrawFn, outside: tuple[str, ...]) -> Program:
    """A small graph without cycles or conflicts: an error in a child meets its siblings by luck of threads.

    Its last node may send a Command to the graph around it, whose nodes are `outside`, where no other task is in its
    step: the reference takes the first Command to arrive, and forgets the rest.
    """
    names = ("k", "l", "m")[: draw(st.integers(1, 3))]
    asks = draw(st.sampled_from((*names, *[None] * 3)))
    rules = st.sampled_from(("size", "name"))
    entry = Route(picks=(("*k", "*k"),)) if draw(st.integers(0, 3)) == 0 else None
    follow = [(names[draw(st.integers(0, place - 1))], name) for place, name in enumerate(names) if place]
    sources = [source for source, _ in follow]
    crowded = sources.count(sources[-1]) > 1 if sources else entry is not None
    up = draw(st.none() if crowded else st.none() | st.none() | routes(outside, ("ticks", "log"), labels=False))
    inner = tuple(
        Node(
            name,
            writes=(("log", draw(rules)),),
            asks=int(name == asks),
            returns="parent" if up is not None and name == names[-1] else "dict",
            goto=up if name == names[-1] else None,
            tries=1 if name == asks else draw(st.sampled_from((1, 1, 1, 2))),
        )
        for name in names
    )
    # A child gives its whole log back to be folded again: one that keeps only its tail does not double it each time.
    return Program(nodes=inner, edges=((START, "k"), *follow), entry=entry, channels=(("log", "tail"),))


@st.composite
def nesting(draw: st.DrawFn) -> Program:
    """A graph in which some node is a graph, called several times."""
    program = draw(graphs())
    names = tuple(node.name for node in program.nodes)
    host, child = draw(st.sampled_from(names)), draw(children(names))
    keeps = draw(st.sampled_from(("run", "run", "thread")))
    asks = any(node.asks for node in child.nodes)
    # Sends within the child ask in the same words, and the reference lists them as their threads end: answer all.
    hows = ("all",) if child.entry else ORDERS
    answers: st.SearchStrategy[Op] = st.builds(Answer, how=st.sampled_from(hows))
    # Travel and Commands to a child that remembers are told apart in differences.py.
    calls: st.SearchStrategy[Op] = st.just(Run("more")) if keeps == "thread" else ops(names)
    if asks:
        calls = answers if keeps == "thread" else st.one_of(answers, answers, st.builds(Go, back=BACK))
    later = draw(st.lists(calls, min_size=1, max_size=3))
    nested = marked(program, {host}, child=child, goto=None, returns="dict", keeps=keeps, tries=1)
    if keeps == "thread":
        nested = unsent(nested, host)
    return replace(nested, ops=(Run(), *later), limit=7)


def unsent(program: Program, host: str) -> Program:
    """The program without Sends to a node: its graph, which remembers, may not run twice at once."""

    def tamed(route: Route | None) -> Route | None:
        return route and replace(route, picks=tuple(tuple(led(target) for target in pick) for pick in route.picks))

    def led(target: str) -> str:
        return host if target == f"*{host}" else target

    def over(node: Node) -> Node:
        branches = tuple(route for branch in node.branches if (route := tamed(branch)))
        child = node.child and replace(
            node.child, nodes=tuple(replace(one, goto=tamed(one.goto)) for one in node.child.nodes)
        )
        return replace(node, goto=tamed(node.goto), branches=branches, child=child)

    return replace(program, entry=tamed(program.entry), nodes=tuple(over(node) for node in program.nodes))


def marked(program: Program, names: set[str], **changed: Any) -> Program:
    """The program with something changed about some of its nodes."""
    return replace(
        program, nodes=tuple(replace(node, **changed) if node.name in names else node for node in program.nodes)
    )
