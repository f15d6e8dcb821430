"""Static breakpoints: where a run stops by itself, and how it goes on."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import GraphValidationError, InvalidInputError
from pregel.graph import START, StateGraph
from pregel.types import Command, Send, interrupt

from .conftest import Runner
from .marks import Saver, State, Thread, chain, mark, parallel
from .test_authority import has_authority


def test_a_breakpoint_before_a_node_stops_and_the_next_call_passes_it_once(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = chain("x", "y", "z").compile(checkpointer=saver, interrupt_before=["y", "z"])

    first = run.invoke(app, {"a": []}, thread("1"))
    after_first = run.state(app, thread("1"))
    second = run.invoke(app, None, thread("1"))
    third = run.invoke(app, None, thread("1"))

    assert (first, second, third) == ({"a": ["x"]}, {"a": ["x", "y"]}, {"a": ["x", "y", "z"]})
    assert (after_first.next, after_first.interrupts, after_first.tasks[0].interrupts) == (("y",), (), ())
    assert run.state(app, thread("1")).next == ()


def test_a_breakpoint_after_a_node_stops_once_its_step_is_stored(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver, interrupt_after=["x"])

    assert run.invoke(app, {"a": []}, thread("1")) == {"a": ["x"]}
    stopped = run.state(app, thread("1"))
    assert (stopped.next, stopped.metadata["step"]) == (("y",), 1)
    assert run.invoke(app, None, thread("1")) == {"a": ["x", "y"]}


def test_a_breakpoint_after_the_last_node_leaves_a_finished_thread(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x").compile(checkpointer=saver, interrupt_after=["x"])

    chunks = run.stream(app, {"a": []}, thread("1"), stream_mode="updates")

    assert chunks == [{"x": {"a": ["x"]}}, {"__interrupt__": ()}]
    assert run.state(app, thread("1")).next == ()
    assert run.invoke(app, None, thread("1")) == {"a": ["x"]}


def test_a_stop_shows_as_an_empty_interrupt(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver, interrupt_before=["y"])

    chunks = run.stream(app, {"a": []}, thread("1"), stream_mode=["updates", "values"])

    assert chunks == [
        ("values", {"a": []}),
        ("updates", {"x": {"a": ["x"]}}),
        ("values", {"a": ["x"]}),
        ("updates", {"__interrupt__": ()}),
    ]


@pytest.mark.parametrize("subgraphs", [False, True])
def test_a_stop_inside_of_subgraphs_shows_once_at_the_root(
    run: Runner, saver: Saver, thread: Thread, subgraphs: bool
) -> None:
    def stopping(name: str) -> Any:
        inner = chain(name, "end").compile(interrupt_before=["end"])
        return StateGraph(State).add_node(name, inner).add_edge(START, name).compile()

    app = StateGraph(State)
    for name in ("left", "right"):
        app.add_node(name, stopping(name)).add_edge(START, name)

    chunks = run.stream(
        app.compile(checkpointer=saver), {"a": []}, thread("1"), stream_mode="updates", subgraphs=subgraphs
    )

    stops = [chunk for chunk in chunks if "__interrupt__" in str(chunk)]
    assert stops == ([((), {"__interrupt__": ()})] if subgraphs else [{"__interrupt__": ()}])
    assert chunks[-1] == stops[-1]


@pytest.mark.parametrize("place", ["interrupt_before", "interrupt_after"])
def test_a_star_stops_at_every_node_but_not_at_the_start(run: Runner, saver: Saver, thread: Thread, place: str) -> None:
    stop: Any = {place: "*"}
    app = chain("x", "y").compile(checkpointer=saver, **stop)

    stops = [run.invoke(app, {"a": []}, thread("1"))]
    while run.state(app, thread("1")).next:
        stops.append(run.invoke(app, None, thread("1")))

    expected = [{"a": []}, {"a": ["x"]}, {"a": ["x", "y"]}]
    assert stops == (expected if place == "interrupt_before" else expected[1:])


def test_breakpoints_of_a_call_stand_in_for_the_graphs(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", "z").compile(checkpointer=saver, interrupt_before=["y"])

    assert run.invoke(app, {"a": []}, thread("1"), interrupt_before=["z"]) == {"a": ["x", "y"]}
    assert run.invoke(app, {"a": []}, thread("2"), interrupt_before=[]) == {"a": ["x", "y", "z"]}
    assert run.invoke(app, {"a": []}, thread("3"), interrupt_after=["x"]) == {"a": ["x"]}
    assert run.invoke(app, None, thread("3"), interrupt_before="*") == {"a": ["x", "y"]}


def test_an_unknown_node_is_refused_by_the_compiler(saver: Saver) -> None:
    with pytest.raises(GraphValidationError, match="nobody"):
        chain("x").compile(checkpointer=saver, interrupt_before=["nobody"])


def test_a_breakpoint_stops_the_whole_step(run: Runner, saver: Saver, thread: Thread) -> None:
    app = parallel("x", "y").compile(checkpointer=saver, interrupt_before=["y"])

    run.invoke(app, {"a": []}, thread("1"))

    stopped = run.state(app, thread("1"))
    assert (stopped.values, set(stopped.next)) == ({"a": []}, {"x", "y"})
    assert run.invoke(app, None, thread("1")) == {"a": ["x", "y"]}


def test_a_breakpoint_stops_sends_once_for_all(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = StateGraph(State).add_node("w", lambda arg: {"a": [arg]})
    graph.add_conditional_edges(START, lambda state: [Send("w", "1"), Send("w", "2")], ["w"])
    app = graph.compile(checkpointer=saver, interrupt_before=["w"])

    run.invoke(app, {"a": []}, thread("1"))

    assert run.state(app, thread("1")).next == ("w", "w")
    assert run.invoke(app, None, thread("1")) == {"a": ["1", "2"]}


def test_a_loop_stops_at_its_breakpoint_every_time_around(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = chain("x")
    graph.add_conditional_edges("x", lambda state: "x" if len(state["a"]) < 3 else "__end__", ["x", "__end__"])
    app = graph.compile(checkpointer=saver, interrupt_before=["x"])

    run.invoke(app, {"a": []}, thread("1"))
    counts = [len(run.invoke(app, None, thread("1"))["a"]) for _ in range(3)]

    assert counts == [1, 2, 3]
    assert run.state(app, thread("1")).next == ()


def test_new_input_at_a_breakpoint_starts_over_and_stops_again(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver, interrupt_before=["y"])

    run.invoke(app, {"a": ["1"]}, thread("1"))
    again = run.invoke(app, {"a": ["2"]}, thread("1"))

    assert again == {"a": ["1", "x", "2", "x"]}
    assert run.state(app, thread("1")).next == ("y",)


def test_an_update_at_a_breakpoint_is_seen_by_the_node_behind_it(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", y=lambda state: {"a": [f"y saw {state['b']}"]}).compile(
        checkpointer=saver, interrupt_before=["y"]
    )
    run.invoke(app, {"a": [], "b": "old"}, thread("1"))

    run.update(app, thread("1"), {"b": "new"})

    assert run.invoke(app, None, thread("1"))["a"] == ["x", "y saw new"]


def test_a_question_behind_a_breakpoint_is_asked_when_it_is_passed(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = chain("x", "y", y=lambda state: {"a": [interrupt("?")]})
    app = graph.compile(checkpointer=saver, interrupt_before=["y"])

    run.invoke(app, {"a": []}, thread("1"))
    asked = run.invoke(app, None, thread("1"))
    answered = run.invoke(app, Command(resume="yes"), thread("1"))

    assert [question.value for question in asked["__interrupt__"]] == ["?"]
    assert answered == {"a": ["x", "yes"]}


def test_a_breakpoint_without_a_saver_ends_the_run_where_it_stands(run: Runner) -> None:
    app = chain("x", "y").compile(interrupt_before=["y"])

    assert run.invoke(app, {"a": []}) == {"a": ["x"]}


def test_a_breakpoint_after_one_of_two_in_a_step_lets_both_finish(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = parallel("x", "y").add_node("z", mark("z")).add_edge(["x", "y"], "z")
    app = graph.compile(checkpointer=saver, interrupt_after=["x"])

    assert run.invoke(app, {"a": []}, thread("1")) == {"a": ["x", "y"]}
    assert run.invoke(app, None, thread("1"), interrupt_after=[]) == {"a": ["x", "y", "z"]}


def values(chunks: list[Any]) -> list[Any]:
    return [payload for mode, payload in chunks if mode == "values"]


def test_a_resume_from_a_breakpoint_shows_the_values_first(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver, interrupt_before=["y"])
    run.invoke(app, {"a": []}, thread("1"))

    chunks = run.stream(app, None, thread("1"), stream_mode=["values"])

    assert values(chunks) == [{"a": ["x"]}, {"a": ["x", "y"]}]


@pytest.mark.parametrize("verb", ["invoke", "stream", "batch"])
@pytest.mark.parametrize("when", ["interrupt_before", "interrupt_after"])
@pytest.mark.parametrize("nodes", ["pey", ["pay", "pey"], ["*"]])
def test_a_misspelt_breakpoint_of_a_call_is_refused_and_nothing_runs(
    run: Runner, saver: Saver, thread: Thread, verb: str, when: str, nodes: Any
) -> None:
    ran: list[str] = []
    app = chain("pay", pay=mark("pay", ran)).compile(checkpointer=saver)
    given, config = ([{"a": []}], [thread("1")]) if verb == "batch" else ({"a": []}, thread("1"))

    with pytest.raises(InvalidInputError, match="is not a node of the graph") as caught:
        getattr(run, verb)(app, given, config, **{when: nodes})

    assert "Known: pay." in str(caught.value)
    assert ([], []) == (ran, list(saver.list(None)))


@pytest.mark.parametrize("when", ["interrupt_before", "interrupt_after"])
def test_a_breakpoint_of_a_call_names_a_node_or_a_star(run: Runner, saver: Saver, thread: Thread, when: str) -> None:
    app = chain("x", "y").compile(checkpointer=saver)

    for number, nodes in enumerate(["x", ["x"], "*", ("x", "y")]):
        run.invoke(app, {"a": []}, thread(str(number)), **{when: nodes})
        assert run.state(app, thread(str(number))).next == (("x",) if when == "interrupt_before" else ("y",))


@pytest.mark.parametrize("nested", [False, True])
def test_a_limit_that_is_reached_before_a_breakpoint_does_not_pass_it(
    run: Runner, saver: Saver, thread: Thread, nested: bool
) -> None:
    """What goes on would: the breakpoint comes first, and whoever looks is told that the run waits there."""
    calls: list[str] = []
    graph = chain("x", "y", x=mark("x", calls), y=mark("y", calls))
    app = graph.compile(checkpointer=None if nested else saver, interrupt_before=["y"])
    if nested:
        app = StateGraph(State).add_node("sub", app).add_edge(START, "sub").compile(checkpointer=saver)

    run.invoke(app, {"a": []}, {**thread("1"), "recursion_limit": 1})

    assert ["x"] == calls
    assert not has_authority(saver) or "interrupted" == app.threads.status("1").status
    assert {"a": ["x", "y"]} == run.invoke(app, None, thread("1"))


@pytest.mark.parametrize(
    "breakpoint_", [{"interrupt_before": ["y"]}, {"interrupt_after": ["x"]}], ids=["before", "after"]
)
def test_a_run_that_is_cancelled_at_a_breakpoint_does_not_pass_it(thread: Thread, breakpoint_: Any) -> None:
    """Its node ends all the same: the step is whole when the run hears of it."""
    calls: list[str] = []

    async def scenario() -> Any:
        started = asyncio.Event()

        async def beside(state: Any) -> dict[str, Any]:
            return {"a": ["beside"]}

        async def stubborn(state: Any) -> dict[str, Any]:
            for _ in range(10):  # turns of the loop, in which the other one ends
                await asyncio.sleep(0)
            started.set()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            return {"a": ["x"]}

        graph = parallel("beside", "x", beside=beside, x=stubborn).add_node("y", mark("y", calls))
        graph.add_edge(["beside", "x"], "y")
        app = graph.compile(checkpointer=InMemorySaver(), **breakpoint_)
        first = asyncio.ensure_future(app.ainvoke({"a": []}, thread("1")))
        await started.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert ([], "interrupted") == (calls, (await app.threads.astatus("1")).status)
        return await app.ainvoke(None, thread("1"))

    assert {"a": ["beside", "x", "y"]} == asyncio.run(scenario())
