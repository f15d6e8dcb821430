"""A program: a graph and what is done with it, as plain data whose repr can be pasted into a regression test.

1. Every node writes by rules that read only its own input, so a program has one right outcome.
2. `ticks` counts node runs; routes choose nothing once it reaches `until`, and `limit` ends what still circles.
3. At most one node fails for good per program, and none fails in a program that asks: which of two ends a step has
   first depends on threads in the reference.
4. A node with `tries` fails at all its attempts but the last, and one that fails for good at all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

START, END = "__start__", "__end__"


class Compact:
    """A repr that leaves out what has its default."""

    def __repr__(self) -> str:
        shown = [f for f in fields(self) if getattr(self, f.name) != f.default]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in shown)})"


# -- the graph --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Route(Compact):
    """A deterministic router: `picks[state[by] % len(picks)]`; a target is a node, END, or ``*node`` for a Send."""

    picks: tuple[tuple[str, ...], ...]
    by: str = "ticks"  # a number, or a list whose length counts
    until: int = 10
    labels: str = ""  # the path map: none, "dict" or "list"
    bare: bool = False  # a single target is returned without a list around it


@dataclass(frozen=True, repr=False)
class Node(Compact):
    """A node: what it writes (channel, how), how it returns it, where it goes, how it misbehaves.

    How: "name", "size" (the name and how much of the log it sees), "over" (an Overwrite).
    Returns: "dict", "command", "pieces" (a list of a dict and a Command), "nothing", "parent" (a Command for the graph
    around it). A node with a `child` is that program's graph; `keeps` says what a child remembers: "run" (fresh each
    time), "thread" (over calls), "nothing" (is never stored).
    """

    name: str
    writes: tuple[tuple[str, str], ...] = (("log", "size"),)
    returns: str = "dict"
    goto: Route | None = None
    branches: tuple[Route, ...] = ()
    defer: bool = False
    fails: str = ""  # a builtin error's name, raised until Mend
    handled: bool = False  # by an error handler, which notes it
    tries: int = 1  # attempts that it is given; one that asks needs no second one
    asks: int = 0
    child: Program | None = None
    keeps: str = "run"


# -- what is done with it ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Run(Compact):
    """Call with new input."""

    text: str = "i"
    back: int | None = None  # address the checkpoint that many places down the history


@dataclass(frozen=True, repr=False)
class Go(Compact):
    """Call with None: continue, or travel back to an older checkpoint."""

    back: int | None = None


@dataclass(frozen=True, repr=False)
class Update(Compact):
    """`update_state` with one log entry (None: no values) as a node, END, or whoever is inferred."""

    text: str | None = "u"
    node: str | None = None
    back: int | None = None


@dataclass(frozen=True, repr=False)
class Bulk(Compact):
    """`bulk_update_state`: supersteps of (log entry, node)."""

    steps: tuple[tuple[tuple[str | None, str], ...], ...]


@dataclass(frozen=True, repr=False)
class Answer(Compact):
    """Answer pending questions: "all" by id, the "first" or "last" by id, or one with a "plain" value; else Go."""

    how: str = "all"


@dataclass(frozen=True, repr=False)
class Steer(Compact):
    """Call with a Command that updates and routes."""

    goto: str
    text: str = "c"


@dataclass(frozen=True, repr=False)
class Mend(Compact):
    """From here on the failing node works."""


Op = Run | Go | Update | Bulk | Answer | Steer | Mend


@dataclass(frozen=True, repr=False)
class Program(Compact):
    """Nodes, edges and the calls that are made on one thread, in order."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...] = ()
    joins: tuple[tuple[tuple[str, ...], str], ...] = ()
    entry: Route | None = None
    channels: tuple[tuple[str, str], ...] = ()  # beside log (list) and ticks (int): name, kind
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    limit: int = 12
    durability: str = "sync"
    ops: tuple[Op, ...] = (Run(),)
