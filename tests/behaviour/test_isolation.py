"""Only returned updates change state: containers are handed out as copies, one level deep."""

from __future__ import annotations

import asyncio
import operator
import threading
from collections import deque
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

from pregel.channels import AnyValue, UntrackedValue
from pregel.checkpoint.memory import InMemorySaver
from pregel.graph import START, StateGraph
from pregel.types import Command, RetryPolicy, Send, StreamMode, interrupt

from .conftest import Runner
from .marks import Saver, State, Thread, chain, mark, parallel

NOW = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=3, retry_on=ValueError)


def test_siblings_of_a_step_do_not_share_a_container(run: Runner) -> None:
    both = threading.Barrier(2, timeout=60)
    seen: dict[str, list[str]] = {}

    def node(name: str) -> Callable[[State], None]:
        def body(state: State) -> None:
            state["a"].append(name)
            both.wait()
            seen[name] = state["a"]

        return body

    result = run.invoke(parallel("x", "y", x=node("x"), y=node("y")).compile(), {"a": ["i"]})

    assert seen == {"x": ["i", "x"], "y": ["i", "y"]}
    assert result == {"a": ["i"]}


def test_each_attempt_of_a_node_gets_the_state_as_it_was(run: Runner) -> None:
    seen: list[list[str]] = []

    def node(state: State) -> dict[str, Any]:
        seen.append(list(state["a"]))
        state["a"].append("attempt")
        if len(seen) < 3:
            raise ValueError("again")
        return {"b": "done"}

    graph = StateGraph(State).add_node("x", node, retry_policy=NOW).add_edge(START, "x")

    assert run.invoke(graph.compile(), {"a": ["i"]}) == {"a": ["i"], "b": "done"}
    assert seen == [["i"]] * 3


def test_each_attempt_of_a_sent_task_gets_the_packet_as_it_was(run: Runner) -> None:
    seen: list[list[int]] = []

    def work(arg: list[int]) -> dict[str, Any]:
        seen.append(list(arg))
        arg.append(99)
        if len(seen) < 3:
            raise ValueError("again")
        return {"a": ["w"]}

    graph = chain("x", x=lambda state: Command(goto=Send("w", [1])))
    graph.add_node("w", work, retry_policy=NOW)

    assert run.invoke(graph.compile(), {"a": []}) == {"a": ["w"]}
    assert seen == [[1]] * 3


def test_two_packets_with_one_argument_do_not_share_it(run: Runner) -> None:
    shared = {"n": 0}
    both = threading.Barrier(2, timeout=60)

    def work(arg: dict[str, int]) -> dict[str, Any]:
        arg["n"] += 1
        both.wait()
        return {"a": [str(arg["n"])]}

    graph = chain("x", x=lambda state: Command(goto=[Send("w", shared), Send("w", shared)])).add_node("w", work)

    assert run.invoke(graph.compile(), {"a": []}) == {"a": ["1", "1"]}
    assert shared == {"n": 0}


def test_a_node_that_runs_again_after_its_answer_gets_the_state_as_it_was(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    def node(state: State) -> dict[str, Any]:
        state["a"].append("LEAK")
        return {"b": f"{interrupt('?')} {state['a']}"}

    app = chain("x", x=node).compile(checkpointer=saver)
    run.invoke(app, {"a": ["i"]}, thread("1"))

    assert run.invoke(app, Command(resume="yes"), thread("1")) == {"a": ["i"], "b": "yes ['i', 'LEAK']"}


@pytest.mark.parametrize("channel", [None, AnyValue, UntrackedValue])
def test_what_a_node_keeps_of_its_update_is_its_own(run: Runner, saver: Saver, thread: Thread, channel: Any) -> None:
    kept: Any = {"a": ["x"], "items": [1]}
    seen: list[Any] = []
    items: Any = list[int] if channel is None else Annotated[list[int], channel]
    schema: Any = TypedDict("schema", {"a": Annotated[list[str], operator.add], "items": items})

    def change(state: Any) -> dict[str, Any]:
        kept["a"].append("LEAK")
        kept["items"].append(9)
        return {"a": ["y"], "items": state["items"]}

    graph = StateGraph(schema).add_node("x", lambda state: kept).add_node("y", change).add_node("z", seen.append)
    app = graph.add_edge(START, "x").add_edge("x", "y").add_edge("y", "z").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    assert seen == [{"a": ["x", "y"], "items": [1]}]
    assert run.state(app, thread("1")).values["a"] == ["x", "y"]


def test_the_callers_input_stays_as_it_was(run: Runner, saver: Saver, thread: Thread) -> None:
    def node(state: State) -> None:
        state["a"].append("LEAK")

    given = {"a": ["i"]}
    app = chain("x", x=node).compile(checkpointer=saver)

    run.invoke(app, given, thread("1"))
    given["a"].append("later")

    assert given == {"a": ["i", "later"]}
    assert run.state(app, thread("1")).values == {"a": ["i"]}


def test_what_invoke_returns_is_the_callers(run: Runner) -> None:
    saver = InMemorySaver()
    app = chain("x").compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "1"}}

    run.invoke(app, {"a": []}, config)["a"].append("LEAK")

    assert run.invoke(app, {"a": []}, config) == {"a": ["x", "x"]}


@pytest.mark.parametrize("mode", ["updates", "values"])
def test_what_a_stream_shows_is_the_consumers(run: Runner, mode: StreamMode) -> None:
    seen: list[Any] = []
    app = chain("x", "y", "z", z=lambda state: seen.append(dict(state))).compile()

    def change(chunk: Any) -> None:
        for shown in [chunk] if mode == "values" else chunk.values():
            if shown is not None:
                shown["a"].append("LEAK")
                shown["b"] = "LEAK"

    async def follow() -> None:
        async for chunk in app.astream({"a": ["i"]}, stream_mode=mode):
            change(chunk)

    if run.name == "async":
        asyncio.run(follow())
    else:
        for chunk in app.stream({"a": ["i"]}, stream_mode=mode):
            change(chunk)

    assert seen == [{"a": ["i", "x", "y"]}]


def test_the_values_of_an_update_stay_the_callers(run: Runner) -> None:
    saver = InMemorySaver()
    app = chain("x").compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "1"}}
    given = {"a": ["u"]}

    run.update(app, config, given)
    given["a"].append("LEAK")

    assert run.state(app, config).values == {"a": ["u"]}
    assert run.invoke(app, None, config) == {"a": ["u", "x"]}


def test_every_kind_of_container_is_copied(run: Runner) -> None:
    class Kinds(TypedDict, total=False):
        items: list[int]
        table: dict[str, int]
        names: set[str]
        line: deque[int]
        raw: bytearray
        text: str

    def leak(state: Kinds) -> None:
        state["items"].append(9)
        state["table"]["LEAK"] = 9
        state["names"].add("LEAK")
        state["line"].append(9)
        state["raw"].append(9)
        state["text"] = "LEAK"

    def given() -> Any:
        return {
            "items": [1],
            "table": {"k": 1},
            "names": {"n"},
            "line": deque([1]),
            "raw": bytearray(b"r"),
            "text": "t",
        }

    graph = (
        StateGraph(Kinds).add_node("x", leak).add_node("y", lambda state: None).add_edge(START, "x").add_edge("x", "y")
    )

    assert run.invoke(graph.compile(), given()) == given()


def test_a_branch_that_changes_what_it_reads_changes_nothing(run: Runner) -> None:
    def path(state: State) -> str:
        state["a"].append("LEAK")
        state["b"] = "LEAK"
        return "y"

    graph = chain("x").add_node("y", mark("y")).add_conditional_edges("x", path, ["y"])

    assert run.invoke(graph.compile(), {"a": []}) == {"a": ["x", "y"]}
