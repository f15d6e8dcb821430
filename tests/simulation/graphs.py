"""The programs that are explored. Every node is a function of what it reads, so that a run can be repeated."""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from pregel.constants import START
from pregel.engine.pregel import Pregel
from pregel.errors import NodeError, NodeTimeoutError
from pregel.func import task
from pregel.graph.state import StateGraph
from pregel.runtime import Runtime
from pregel.types import Command, RetryPolicy, Send, TimeoutPolicy, interrupt

Node = Callable[..., Any]
IN = {"log": ["in"]}
THRICE = RetryPolicy(initial_interval=1.0, jitter=False, max_attempts=3, retry_on=ValueError)


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    last: str
    item: int


class Log(TypedDict):
    log: Annotated[list[str], operator.add]


def note(name: str) -> Node:
    """A node that notes its name and how much was noted before it."""
    return lambda state: {"log": [f"{name}/{len(state['log'])}"]}


def flat(width: int = 4) -> Pregel:
    """Three steps: one node, a fan-out to `width`, one of which leads nowhere, and a join of the others."""
    builder = StateGraph(State)
    builder.add_node("first", lambda state: {"log": ["first"], "last": "first"})
    builder.add_node("join", lambda state: {"log": [f"join of {len(state['log'])}"], "last": state["last"] + "!"})
    builder.add_edge(START, "first")
    names = [f"n{number}" for number in range(width)]
    for name in names:
        builder.add_node(name, silent if name == "n1" else note(name))
        builder.add_edge("first", name)
    builder.add_edge([name for name in names if name != "n1"], "join")
    return builder.compile()


def silent(state: dict[str, Any]) -> None:
    """A node that writes nothing; that it ran must be known all the same."""


def deep() -> Pregel:
    """Two Sends to a node with a subgraph in it, in which a node runs beside a subgraph of two steps.

    Where the outer one leads is asked of user code, so its output is written in a task body; the inner one's is not.
    """
    inner = StateGraph(State)
    inner.add_node("x", note("x"))
    inner.add_node("y", silent)
    inner.add_edge(START, "x")
    inner.add_edge("x", "y")
    middle = StateGraph(State, output_schema=Log)
    middle.add_node("p", lambda state: {"last": f"p{state['item']}"})
    middle.add_node("inner", inner.compile())
    middle.add_node("q", lambda state: {"log": [f"q{state['item']} after {state['last']}"]})
    middle.add_edge(START, "p")
    middle.add_edge(START, "inner")
    middle.add_edge(["p", "inner"], "q")
    outer = StateGraph(State)
    outer.add_node("route", lambda state: {"log": ["route"]})
    outer.add_node("sub", middle.compile())
    outer.add_node("after", note("after"))
    outer.add_edge(START, "route")
    outer.add_conditional_edges("route", lambda state: [Send("sub", {"log": [], "item": n}) for n in (1, 2)], ["sub"])
    outer.add_conditional_edges("sub", lambda state: "after", ["after"])
    return outer.compile()


@dataclass
class Typed:
    """A state whose making is code of the user's: it runs as a task of its own, before the subgraph begins."""

    log: Annotated[list[str], operator.add] = field(default_factory=list)
    item: int = 0


def typed() -> Pregel:
    """Two subgraphs side by side whose input is made by the user's own class."""
    inner = StateGraph(Typed, output_schema=Log)
    inner.add_node("x", lambda state: {"log": [f"x{state.item}"]})
    inner.add_node("y", lambda state: {"log": [f"y{len(state.log)}"]})
    inner.add_edge(START, "x")
    inner.add_edge("x", "y")
    outer = StateGraph(State)
    for name in ("left", "right"):
        outer.add_node(name, inner.compile(), input_schema=Typed)
        outer.add_edge(START, name)
    outer.add_node("after", note("after"))
    outer.add_edge(["left", "right"], "after")
    return outer.compile()


def asking() -> Pregel:
    """A step of three: one node asks, one asks inside a subgraph, one only works; what was answered is joined."""
    inner = StateGraph(State, output_schema=Log)
    inner.add_node("before", lambda state: {"log": ["before"]})
    inner.add_node("question", lambda state: {"log": [f"inner {interrupt('inner?')}"]})
    inner.add_edge(START, "before")
    inner.add_edge("before", "question")
    builder = StateGraph(State)
    builder.add_node("ask", lambda state: {"log": [f"ask {interrupt('one?')} {interrupt('two?')}"]})
    builder.add_node("sub", inner.compile())
    builder.add_node("work", silent)
    builder.add_node("join", note("join"))
    for name in ("ask", "sub", "work"):
        builder.add_edge(START, name)
    builder.add_edge(["ask", "sub", "work"], "join")
    return builder.compile()


def answering() -> Pregel:
    """One question after some work, beside work that goes on, then a last step."""
    builder = StateGraph(State)
    builder.add_node("first", note("first"))
    builder.add_node("ask", lambda state: {"log": [f"answer {interrupt('go on?')}"]})
    builder.add_node("work", note("work"))
    builder.add_node("last", note("last"))
    builder.add_edge(START, "first")
    builder.add_edge("first", "ask")
    builder.add_edge("first", "work")
    builder.add_edge(["ask", "work"], "last")
    return builder.compile()


def failing() -> Pregel:
    """One node fails until its third attempt, beside one that only works."""
    builder = StateGraph(State)
    builder.add_node("flaky", flaky, retry_policy=THRICE)
    builder.add_node("work", note("work"))
    builder.add_node("join", note("join"))
    builder.add_edge(START, "flaky")
    builder.add_edge(START, "work")
    builder.add_edge(["flaky", "work"], "join")
    return builder.compile()


def flaky(state: dict[str, Any], runtime: Runtime[Any]) -> dict[str, Any]:
    """Fails at its first two attempts."""
    info = runtime.execution_info
    assert info is not None
    if info.node_attempt < 3:
        raise ValueError(f"attempt {info.node_attempt}")
    return {"log": ["flaky"]}


def conflicting() -> Pregel:
    """Two nodes write one key that takes one value a step: all of them run, nothing of it is applied."""
    builder = StateGraph(State)
    for name in ("a", "b"):
        builder.add_node(name, lambda state, name=name: {"last": name})
        builder.add_edge(START, name)
    builder.add_node("after", note("after"))
    builder.add_edge(["a", "b"], "after")
    return builder.compile()


def sending() -> Pregel:
    """Three Sends to one node, the outer two of which ask."""
    builder = StateGraph(State)
    builder.add_node("route", lambda state: {"log": ["route"]})
    builder.add_node(
        "work", lambda state: {"log": [f"{state['item']} {interrupt(state['item']) if ask(state) else ''}"]}
    )
    builder.add_node("end", note("end"))
    builder.add_edge(START, "route")
    builder.add_conditional_edges("route", lambda state: [Send("work", {"item": n}) for n in range(3)], ["work"])
    builder.add_edge("work", "end")
    return builder.compile()


def ask(state: dict[str, Any]) -> bool:
    return bool(state["item"] != 1)


def nested(checkpointer: bool | None, *, last: Node | None = None) -> Pregel:
    """A subgraph of two steps, the second of which asks or does what `last` does, beside another node."""
    inner = StateGraph(State)
    inner.add_node("x", note("x"))
    inner.add_node("last", last or (lambda state: {"log": [f"answer {interrupt('q?')}"]}), retry_policy=THRICE)
    inner.add_edge(START, "x")
    inner.add_edge("x", "last")
    builder = StateGraph(State)
    builder.add_node("sub", inner.compile(checkpointer=checkpointer), destinations=("end",))
    builder.add_node("beside", note("beside"))
    builder.add_node("end", note("end"))
    builder.add_edge(START, "sub")
    builder.add_edge(START, "beside")
    builder.add_edge(["sub", "beside"], "end")
    return builder.compile()


def calling() -> Pregel:
    """A node beside another: its tasks run side by side, one asks, one calls a task; then it does it all once more."""

    @task
    def work(name: str) -> str:
        return name

    @task
    def ask(question: str) -> str:
        return work(f"{question} {interrupt(question)}").result()

    def node(state: State, runtime: Runtime[None]) -> dict[str, Any]:
        calls = [work("a"), ask("q?"), work("b")]
        made = runtime.step("made", lambda: f"made at {len(state['log'])}")
        return {"log": [made, *[call.result() for call in calls]]}

    builder = StateGraph(State)
    builder.add_node("call", node)
    builder.add_node("beside", note("beside"))
    builder.add_node("again", lambda state: {"log": [work(f"again/{len(state['log'])}").result()]})
    builder.add_edge(START, "call")
    builder.add_edge(START, "beside")
    builder.add_edge(["call", "beside"], "again")
    return builder.compile()


def invoking(*names: str, checkpointer: bool | None = None) -> Pregel:
    """A node that calls a graph of two steps for each name; the second step asks. A task calls the graph again."""
    inner = StateGraph(State, output_schema=Log)
    inner.add_node("x", note("x"))
    inner.add_node("question", lambda state: {"log": [f"answer {interrupt(state['log'][0])}"]})
    inner.add_edge(START, "x")
    inner.add_edge("x", "question")
    app = inner.compile(checkpointer=checkpointer)

    @task
    def deeper() -> list[str]:
        found: list[str] = app.invoke({"log": ["last"]})["log"]
        return found

    def node(state: State) -> dict[str, Any]:
        found = [app.invoke({"log": [name]})["log"] for name in names]
        return {"log": [*(text for log in found for text in log), *deeper().result()]}

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_node("beside", note("beside"))
    builder.add_node("end", note("end"))
    for name in ("node", "beside"):
        builder.add_edge(START, name)
    builder.add_edge(["node", "beside"], "end")
    return builder.compile()


def broken_calls() -> Pregel:
    """A node whose calls fail: one is tried again, one is handled, and the node itself fails once after them."""

    @task(retry_policy=THRICE)
    def shaky(*, runtime: Runtime[None]) -> str:
        assert runtime.execution_info is not None
        if runtime.execution_info.node_attempt < 2:
            raise ValueError("not yet")
        return "shaky"

    @task
    def bad() -> str:
        raise KeyError("bad")

    def node(state: State, runtime: Runtime[None]) -> dict[str, Any]:
        assert runtime.execution_info is not None
        wanted = [shaky(), bad()]  # type: ignore[call-arg]  # the runtime is filled in
        with suppress(KeyError):
            wanted[1].result()
        if runtime.execution_info.node_attempt < 2:
            raise ValueError("once more")  # while a call is out
        return {"log": [wanted[0].result()]}

    builder = StateGraph(State)
    builder.add_node("node", node, retry_policy=THRICE)
    builder.add_node("beside", note("beside"))
    builder.add_edge(START, "node")
    builder.add_edge(START, "beside")
    return builder.compile()


def caught_calls() -> Pregel:
    """A node that catches a failure of each second call, asks, and keeps a value, beside another node."""

    @task(retry_policy=TWICE)
    def bad(name: str) -> str:
        raise ValueError(name)

    @task
    def good(name: str) -> str:
        return name

    def node(state: State, runtime: Runtime[None]) -> dict[str, Any]:
        log = list[str]()
        for name in "ab":
            try:
                bad(name).result()
            except ValueError as error:
                log.append(f"no {error}")
            log.append(good(name).result())
        return {"log": [*log, interrupt("go on?"), runtime.step("made", lambda: "made")]}

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_node("beside", note("beside"))
    builder.add_edge(START, "node")
    builder.add_edge(START, "beside")
    return builder.compile()


def handling() -> Pregel:
    """A node fails for good and its handler routes on, beside one that fails once and one that only works."""
    builder = StateGraph(State)
    builder.add_node("pay", broken, error_handler=refund, retry_policy=TWICE)
    builder.add_node("flaky", flaky, retry_policy=THRICE)
    builder.add_node("work", silent)
    builder.add_node("end", note("end"))
    for name in ("pay", "flaky", "work"):
        builder.add_edge(START, name)
    builder.add_edge("pay", "never").add_node("never", note("never"))
    return builder.compile()


TWICE = RetryPolicy(initial_interval=1.0, jitter=False, max_attempts=2, retry_on=ValueError)


def broken(state: dict[str, Any]) -> None:
    """Fails at every attempt."""
    raise ValueError("declined")


def refund(state: dict[str, Any], error: NodeError) -> Command[str]:
    """Handles it, and goes on."""
    return Command(update={"log": [f"refund after {error.node}"]}, goto="end")


def asking_handler() -> Pregel:
    """The handler of a failed node asks, beside a node that works."""
    builder = StateGraph(State)
    builder.add_node("pay", broken, error_handler=ask_refund)
    builder.add_node("work", note("work"))
    builder.add_node("end", note("end"))
    builder.add_edge(START, "pay")
    builder.add_edge(START, "work")
    builder.add_edge("work", "end")
    return builder.compile()


def ask_refund(state: dict[str, Any], error: NodeError) -> dict[str, Any]:
    """Asks what to do about it."""
    return {"log": [f"refund {interrupt('refund?')}"]}


def handled_sends() -> Pregel:
    """The handlers of two Sends ask, and send on, beside a Send that works."""
    builder = StateGraph(State)
    builder.add_node("pay", broken, error_handler=ask_and_send)
    builder.add_node("work", lambda state: {"log": [f"work {state['item']}"]})
    builder.add_node("end", note("end"))
    packets = [Send("pay", {"item": 1}), Send("work", {"item": 2}), Send("pay", {"item": 3})]
    builder.add_conditional_edges(START, lambda state: packets, ["pay", "work"])
    builder.add_edge("work", "end")
    return builder.compile()


def ask_and_send(state: dict[str, Any], error: NodeError) -> Command[str]:
    """Asks what to do about it, and has it done by another node."""
    number = state["item"]
    return Command(update={"log": [f"{number} {interrupt(f'{number}?')}"]}, goto=[Send("work", {"item": 10 * number})])


def timed() -> Pregel:
    """A node and a subgraph, and a node in that, have limits that may be passed at any time; each is tried again."""
    inner = StateGraph(State)
    inner.add_node("x", note("x"))
    inner.add_node("y", silent, timeout=5.0, retry_policy=OFTEN)
    inner.add_edge(START, "x")
    inner.add_edge("x", "y")
    builder = StateGraph(State)
    builder.add_node("slow", silent, timeout=TimeoutPolicy(run_timeout=9.0, idle_timeout=3.0), retry_policy=OFTEN)
    builder.add_node("sub", inner.compile(), timeout=60.0, retry_policy=OFTEN)
    builder.add_node("end", note("end"))
    builder.add_edge(START, "slow")
    builder.add_edge(START, "sub")
    builder.add_edge(["slow", "sub"], "end")
    return builder.compile()


OFTEN = RetryPolicy(initial_interval=1.0, jitter=False, max_attempts=100, retry_on=NodeTimeoutError)
