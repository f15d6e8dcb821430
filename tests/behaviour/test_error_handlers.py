"""Error handlers: they run in the failed node's place, once, and what they do is kept like any node's work."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from pregel.channels import EphemeralValue, LastValue
from pregel.engine.node import ChannelWrite, ChannelWriteEntry, NodeBuilder, PregelNode
from pregel.engine.pregel import Pregel
from pregel.errors import DefinitionError, GraphValidationError, NodeError, NodeTimeoutError, StoredError
from pregel.graph import START, StateGraph
from pregel.runnable import coerce_to_runnable
from pregel.types import Command, RetryPolicy, Send, interrupt

from .conftest import Runner
from .marks import Saver, State, Thread, mark
from .virtual_time import played

OUT = ChannelWrite([ChannelWriteEntry("out")])
NOW = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=3, retry_on=ValueError)


def failing(error: BaseException, calls: list[str] | None = None, name: str = "x") -> Callable[[Any], Any]:
    def node(state: Any) -> None:
        if calls is not None:
            calls.append(name)
        raise error

    return node


def note(state: Any, error: NodeError) -> dict[str, Any]:
    """A handler that notes what it was given."""
    return {"a": [f"{error.node}: {error.error} after {len(state['a'])}"]}


def handled(node: Any, handler: Any, **options: Any) -> StateGraph[Any]:
    """A graph of one node with a handler, a node behind it and one beside it."""
    graph = StateGraph(State).add_node("x", node, error_handler=handler, **options)
    graph.add_node("behind", mark("behind")).add_node("beside", mark("beside"))
    return graph.add_edge(START, "x").add_edge("x", "behind").add_edge(START, "beside")


def test_a_handler_runs_in_the_failed_nodes_place_and_its_edges_do_not_fire(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = handled(failing(ValueError("broken")), note).compile(checkpointer=saver)

    updates = run.stream(app, {"a": ["in"]}, thread("1"), stream_mode="updates")

    assert {"__error_handler__x": {"a": ["x: broken after 1"]}} in updates
    assert {"a": ["in", "beside", "x: broken after 1"]} == run.state(app, thread("1")).values
    assert () == run.state(app, thread("1")).next
    assert 3 == len(run.history(app, thread("1")))  # input, START, and the one step in which all of this happened


def test_a_handler_gets_the_very_error_once_no_attempt_is_left(run: Runner) -> None:
    calls: list[str] = []
    error = ValueError("broken")
    given: list[NodeError] = []

    def handler(state: Any, error: NodeError) -> None:
        given.append(error)

    run.invoke(handled(failing(error, calls), handler, retry_policy=NOW).compile(), {"a": []})

    assert (["x"] * 3, "x") == (calls, given[0].node)
    assert given[0].error is error


def test_a_handler_routes_by_command(run: Runner, saver: Saver, thread: Thread) -> None:
    def handler(state: Any, error: NodeError) -> Command[Any]:
        return Command(update={"a": ["handled"]}, goto="other")

    graph = handled(failing(ValueError()), handler).add_node("other", mark("other"))
    app = graph.compile(checkpointer=saver)

    assert {"a": ["beside", "handled", "other"]} == run.invoke(app, {"a": []}, thread("1"))


def test_a_handler_of_a_sent_task_gets_the_packet(run: Runner) -> None:
    def handler(state: Any, error: NodeError) -> dict[str, Any]:
        return {"a": [f"handled {state}"]}

    graph = StateGraph(State).add_node("x", failing(ValueError()), error_handler=handler)
    graph.add_conditional_edges(START, lambda state: [Send("x", n) for n in range(12)], ["x"])

    assert {"a": [f"handled {n}" for n in range(12)]} == run.invoke(graph.compile(), {"a": []})


@pytest.mark.acceptance("S1-23")
def test_a_handler_that_fails_fails_the_run_and_runs_again_on_resume_but_its_node_does_not(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    calls: list[str] = []
    trouble = [KeyError("handler")]

    def handler(state: Any, error: NodeError) -> dict[str, Any]:
        calls.append("handler")
        if trouble:
            raise trouble.pop()
        return {"a": [f"{type(error.error).__name__} {error.error}"]}

    app = handled(failing(ValueError("broken"), calls), handler).compile(checkpointer=saver)
    with pytest.raises(KeyError, match="handler"):
        run.invoke(app, {"a": []}, thread("1"))

    result = run.invoke(app, None, thread("1"))

    assert (["x", "handler", "handler"], ["beside"]) == (calls, result["a"][:1])
    assert result["a"][1].startswith(f"{StoredError.__name__} ValueError('broken')")


def raising(trouble: BaseException) -> Callable[..., Any]:
    """A handler that fails."""

    def handler(state: Any, error: NodeError) -> None:
        raise trouble

    return handler


def test_the_failure_of_a_handler_shows_what_it_was_to_handle(run: Runner) -> None:
    broken = ValueError("broken")

    with pytest.raises(KeyError, match="handler") as failure:
        run.invoke(handled(failing(broken), raising(KeyError("handler"))).compile(), {"a": []})

    assert failure.value.__context__ is broken
    assert "ValueError: broken" in "".join(traceback.format_exception(failure.value))


def test_the_failure_of_a_resumed_handler_shows_the_text_of_what_it_was_to_handle(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = handled(failing(ValueError("broken")), raising(KeyError("handler"))).compile(checkpointer=saver)
    with pytest.raises(KeyError, match="handler"):
        run.invoke(app, {"a": []}, thread("1"))
    again = handled(failing(ValueError("other")), raising(KeyError("again"))).compile(checkpointer=saver)

    with pytest.raises(KeyError, match="again") as failure:
        run.invoke(again, None, thread("1"))

    assert isinstance(failure.value.__context__, StoredError)
    assert str(failure.value.__context__).startswith("ValueError('broken')")


def test_what_a_handler_met_itself_stays_in_its_failure_before_what_it_was_to_handle(run: Runner) -> None:
    broken = ValueError("broken")

    def handler(state: Any, error: NodeError) -> None:
        try:
            raise LookupError("no refund")
        except LookupError:
            raise KeyError("handler")  # noqa: B904  # the context is what is tested

    with pytest.raises(KeyError, match="handler") as failure:
        run.invoke(handled(failing(broken), handler).compile(), {"a": []})

    refund = failure.value.__context__
    assert isinstance(refund, LookupError)
    assert refund.__context__ is broken


@pytest.mark.parametrize("wrapped", [False, True], ids=["the same", "as its cause"])
def test_a_handler_that_raises_its_nodes_error_again_makes_no_circle(run: Runner, wrapped: bool) -> None:
    broken = ValueError("broken")

    def handler(state: Any, error: NodeError) -> None:
        if wrapped:
            raise KeyError("handler") from error.error
        raise error.error

    with pytest.raises((KeyError, ValueError)) as failure:
        run.invoke(handled(failing(broken), handler).compile(), {"a": []})

    assert broken is (failure.value.__cause__ if wrapped else failure.value)
    assert None is failure.value.__context__


def test_a_handler_whose_work_is_stored_does_not_run_again(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []
    refunded = threading.Event()

    def refund(state: Any, error: NodeError) -> dict[str, Any]:
        calls.append("refund")
        refunded.set()
        return {"a": ["refunded"]}

    def ship(state: Any) -> dict[str, Any]:
        assert refunded.wait(30)
        calls.append("ship")
        if calls.count("ship") == 1:
            raise OSError("down")
        return {"a": ["shipped"]}

    graph = StateGraph(State).add_node("pay", failing(ValueError(), calls, "pay"), error_handler=refund)
    app = graph.add_node("ship", ship).add_edge(START, "pay").add_edge(START, "ship").compile(checkpointer=saver)
    with pytest.raises(OSError, match="down"):
        run.invoke(app, {"a": []}, thread("1"))

    assert {"a": ["refunded", "shipped"]} == run.invoke(app, None, thread("1"))
    assert ["pay", "refund", "ship", "ship"] == calls


def test_what_handlers_write_stands_where_their_nodes_would_have_written(run: Runner) -> None:
    graph = StateGraph(State).add_node("m", failing(ValueError("m")), error_handler=note)
    graph.add_node("a", mark("a")).add_node("z", mark("z")).add_node("sent", lambda name: {"a": [name]})
    for name in ("z", "m", "a"):
        graph.add_edge(START, name)
    packets = [Send("sent", "0"), Send("m", {"a": ["its own"]}), Send("sent", "2")]
    graph.add_conditional_edges(START, lambda state: packets, ["sent", "m"])

    assert ["a", "m: m after 0", "z", "0", "m: m after 1", "2"] == run.invoke(graph.compile(), {"a": []})["a"]


@pytest.mark.parametrize("annotation", ["NodeError", None])
def test_a_handler_is_given_its_error_under_a_text_annotation_and_without_one(
    run: Runner, annotation: str | None
) -> None:
    def handler(state: Any, error: Any) -> dict[str, Any]:
        return {"a": [str(error.error)]}

    handler.__annotations__ = {"error": annotation} if annotation else {}
    app = handled(failing(ValueError("broken")), handler).compile()

    assert ["beside", "broken"] == run.invoke(app, {"a": []})["a"]


def test_a_handler_asks_and_its_question_shows_and_is_answered(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []

    def handler(state: Any, error: NodeError) -> dict[str, Any]:
        return {"a": [interrupt("refund?")]}

    app = handled(failing(ValueError("broken"), calls), handler).compile(checkpointer=saver)
    asked = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]

    state = run.state(app, thread("1"))
    assert (["refund?"], ["refund?"], ("x",)) == (
        [question.value for question in asked],
        [question.value for question in state.interrupts],
        state.next,
    )
    assert "__error_handler__x" in [task.name for task in state.tasks]
    assert {"a": ["beside", "yes"]} == run.invoke(app, Command(resume="yes"), thread("1"))
    assert ["x"] == calls


def test_one_default_handler_serves_all_nodes_that_have_none_and_compiles_twice(run: Runner) -> None:
    graph = StateGraph(State).set_node_defaults(error_handler=note)
    graph.add_node("x", failing(ValueError("one"))).add_node("y", failing(ValueError("two"))).add_node("z", mark("z"))
    for name in ("x", "y", "z"):
        graph.add_edge(START, name)
    graph.compile()
    app = graph.compile()

    assert ["x: one after 0", "y: two after 0", "z"] == run.invoke(app, {"a": []})["a"]
    assert ["__start__", "x", "y", "z", "__default_error_handler__"] == list(app.nodes)


def test_a_handler_is_bounded_by_the_limit_and_the_attempts_of_the_defaults(run: Runner) -> None:
    calls: list[str] = []

    async def node(state: Any) -> None:
        raise ValueError

    async def handler(state: Any, error: NodeError) -> None:
        calls.append("handler")
        await asyncio.Event().wait()

    again = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=2)
    graph = StateGraph(State).set_node_defaults(timeout=0.02, retry_policy=again)
    graph.add_node("x", node, error_handler=handler).add_edge(START, "x")

    with pytest.raises(NodeTimeoutError) as caught:
        played(graph.compile().ainvoke({"a": []}))

    assert (["handler"] * 2, "__error_handler__x") == (calls, caught.value.node)


def test_a_pause_is_no_error_and_no_handler_hears_of_it(run: Runner, saver: Saver, thread: Thread) -> None:
    handled_errors: list[NodeError] = []

    def node(state: Any) -> dict[str, Any]:
        return {"a": [interrupt("ok?")]}

    def handler(state: Any, error: NodeError) -> None:
        handled_errors.append(error)

    app = handled(node, handler).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    assert {"a": ["beside", "yes", "behind"]} == run.invoke(app, Command(resume="yes"), thread("1"))
    assert [] == handled_errors


def test_a_handler_of_a_subgraph_node_handles_what_fails_inside(run: Runner, saver: Saver, thread: Thread) -> None:
    inner = StateGraph(State).add_node("i", failing(ValueError("inside"))).add_edge(START, "i").compile()
    app = handled(inner, note).compile(checkpointer=saver)

    assert ["beside", "x: inside after 0"] == run.invoke(app, {"a": []}, thread("1"))["a"]


def test_edges_to_a_handler_and_doubled_names_are_refused() -> None:
    graph = StateGraph(State).add_node("__error_handler__x", mark("x"))
    with pytest.raises(DefinitionError, match="already present"):
        graph.add_node("x", mark("x"), error_handler=note)

    graph = StateGraph(State).add_node("x", mark("x"), error_handler=note).add_edge(START, "x")
    with pytest.raises(GraphValidationError, match="is an error handler"):
        graph.add_edge("x", "__error_handler__x").compile()


def test_a_raw_graph_maps_nodes_to_their_handlers(run: Runner, saver: Saver, thread: Thread) -> None:
    def handler(value: Any, error: NodeError) -> str:
        return f"{error.node} failed on {value}"

    app = Pregel(
        nodes={
            "n": NodeBuilder().subscribe_only("in").do(failing(ValueError())).write_to("out"),
            "h": PregelNode(channels="in", triggers=[], bound=coerce_to_runnable(handler), writers=[OUT]),
        },
        channels={"in": EphemeralValue(str), "out": LastValue(str)},
        input_channels="in",
        output_channels="out",
        checkpointer=saver,
        node_error_handler_map={"n": "h"},
    )

    assert "n failed on x" == run.invoke(app, "x", thread("1"))
    with pytest.raises(GraphValidationError, match="unknown node 'typo'"):
        app.copy({"node_error_handler_map": {"n": "typo"}}).validate()
