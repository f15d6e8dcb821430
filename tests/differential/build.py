"""A program's graph on one side."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from time import monotonic
from typing import Annotated, Any, TypedDict, cast

from tests.differential.program import START, Node, Program, Route
from tests.differential.side import Side


@dataclass(slots=True)
class World:
    """What nodes share beside the state: who ran (node, entries of the log it saw), and whether faults are mended.

    `unfinished` tells a node that is about to fail which tasks of its step are not stored yet.
    """

    ran: list[tuple[str, int]] = field(default_factory=list)
    mended: bool = False
    unfinished: Callable[[], tuple[str, ...]] | None = None

    def outwait(self, node: str) -> None:
        """Return when all other tasks of the step are stored: which ones a failure cuts off is luck there."""
        deadline = monotonic() + 60
        while self.unfinished and set(self.unfinished()) != {node}:
            assert monotonic() < deadline, f"{self.unfinished()} are not stored"
            Event().wait(0.0005)  # neither side tells of what it stored


def tail(left: list[str], right: list[str]) -> list[str]:
    """A named reducer whose result depends on the order of its calls."""
    return (left + right)[-3:]


def folded(left: int, right: int) -> int:
    """A named reducer on a number that depends on the order of its calls."""
    return (left * 7 + right) % 10_007


def channel(kind: str, side: Side) -> Any:
    """The annotation of a state key."""
    own = {"topic": "Topic", "ephemeral": "EphemeralValue", "any": "AnyValue", "untracked": "UntrackedValue"}
    match kind:
        case "list":
            return Annotated[list, operator.add]
        case "sum":
            return Annotated[int, operator.add]
        case "tail":
            return Annotated[list, tail]
        case "folded":
            return Annotated[int, folded]
        case "last":
            return str
        case "pile":
            return Annotated[list, side.channels.Topic(str, accumulate=True)]
        case _:
            return Annotated[str, getattr(side.channels, own[kind])(str)]


KEEPS = {"run": None, "thread": True, "nothing": False}


def build(program: Program, side: Side, world: World, saver: Any = None, root: str | None = None) -> Any:
    """The program's compiled graph; `root` is the node of the outermost graph that it runs in."""
    kinds = {"log": "list", "ticks": "sum", **dict(program.channels)}
    schema = cast(Any, TypedDict)("State", {name: channel(kind, side) for name, kind in kinds.items()})
    graph = side.StateGraph(schema)
    for node in program.nodes:
        if node.child is None:
            action: Any = body(node, kinds, side, world, root or node.name)
        else:
            action = build(node.child, side, world, KEEPS[node.keeps], root or node.name)
        graph.add_node(node.name, action, defer=node.defer, **policies(node, side))
        for number, route in enumerate(node.branches):
            branch(graph, node.name, route, number, side)
    for start, end in program.edges:
        graph.add_edge(start, end)
    for starts, end in program.joins:
        graph.add_edge(list(starts), end)
    if program.entry is not None:
        branch(graph, START, program.entry, 0, side)
    before, after = ("*" if stops == ("*",) else list(stops) for stops in (program.before, program.after))
    return graph.compile(saver, interrupt_before=before, interrupt_after=after)


def policies(node: Node, side: Side) -> dict[str, Any]:
    """The attempts of a node and its error handler, as `add_node` takes them."""
    named: dict[str, Any] = {}
    if node.tries > 1:
        named["retry_policy"] = side.RetryPolicy(
            initial_interval=0.0, jitter=False, max_attempts=node.tries, retry_on=Exception
        )
    if node.handled:
        named["error_handler"] = lambda state: {"log": [f"{node.name} handled at {len(state['log'])}"], "ticks": 1}
    return named


def branch(graph: Any, source: str, route: Route, number: int, side: Side) -> None:
    """Add a conditional edge; the path map calls the target x ``to_x``, or lists the targets."""
    named = sorted({target for pick in route.picks for target in pick if not target.startswith("*")})
    to = {f"to_{target}": target for target in named} if route.labels == "dict" else None

    def path(state: Any) -> Any:
        chosen = choose(route, state, side, {target: label for label, target in (to or {}).items()})
        return chosen[0] if route.bare and len(chosen) == 1 else chosen

    path.__name__ = f"route_{source}_{number}"
    graph.add_conditional_edges(source, path, named if route.labels == "list" else to)


def choose(route: Route, state: Any, side: Side, labels: dict[str, str]) -> list[Any]:
    """The targets for this state: names (or their labels) and Sends."""
    seen = state.get(route.by, 0)
    count = seen if isinstance(seen, int) else len(seen)
    if state.get("ticks", 0) >= route.until or state.get("hop", 0) >= 2 or not route.picks:
        return []
    pick = route.picks[count % len(route.picks)]
    return [packet(target[1:], state, side) if target[0] == "*" else labels.get(target, target) for target in pick]


def packet(node: str, state: Any, side: Side) -> Any:
    """A Send whose argument looks like a state that nobody else sees."""
    log = [*state.get("log", ())[-2:], f"for {node}"]
    return side.Send(node, {"log": log, "ticks": state.get("ticks", 0) + 1, "hop": state.get("hop", 0) + 1})


def body(node: Node, kinds: dict[str, str], side: Side, world: World, root: str) -> Callable[[Any], Any]:
    """The node's function."""

    def run(state: Any, runtime: Any = None) -> Any:
        world.ran.append((node.name, len(state.get("log", ()))))
        if runtime is not None and not node.fails and runtime.execution_info.node_attempt < node.tries:
            raise ValueError(f"{node.name} is not there yet")
        answers = [side.interrupt(f"{node.name}?{number}") for number in range(node.asks)]
        if node.fails and not world.mended:
            world.outwait(root)
            raise getattr(builtins, node.fails)(f"{node.name} fails")
        return returned(node, update(node, state, answers, kinds, side), state, side)

    run.__name__ = node.name
    return run if node.tries > 1 else lambda state: run(state)


def update(node: Node, state: Any, answers: list[str], kinds: dict[str, str], side: Side) -> dict[str, Any]:
    """What the node writes; each value is made of its own input only."""
    size = len(state.get("log", ()))
    values: dict[str, Any] = {"ticks": 1}
    for name, how in node.writes:
        text = node.name if how == "name" else f"{node.name}{size}"
        number = size if how == "size" else 1
        value = {"list": [text], "tail": [text], "sum": number, "folded": number}.get(kinds[name], text)
        values[name] = side.Overwrite(value) if how == "over" else value
    if answers:
        values["log"] = [*answers, node.name]
    return values


def returned(node: Node, values: dict[str, Any], state: Any, side: Side) -> Any:
    """The same writes in the form that the node returns."""
    goto = [] if node.goto is None else choose(node.goto, state, side, {})
    match node.returns:
        case "nothing":
            return None
        case "parent":
            return side.Command(graph=side.Command.PARENT, update=values, goto=goto)
        case "command":
            return side.Command(update=values, goto=goto)
        case "pieces":
            return [values, side.Command(update={"log": [f"{node.name}!"]}, goto=goto)]
        case _:
            return values
