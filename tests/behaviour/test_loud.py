"""What is an error instead of a silence: unknown keys and targets, joins that cannot fill, warnings made strict."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import DefinitionError, InvalidUpdateError, JoinStarvedError, PathMapError, UnknownTargetError
from pregel.graph import END, START, StateGraph
from pregel.types import Command, Send
from pregel.warnings import PregelWarning

from .conftest import Runner
from .marks import Saver, State, Thread, chain, mark, parallel

# -- targets -----------------------------------------------------------------------------------------------------------


def routed(kind: str, target: Any) -> StateGraph[Any]:
    """A node x that routes to a target that is not there, beside a sibling s that finishes."""
    graph = parallel("s", "x", x=lambda state: Command(goto=target) if kind == "goto" else {"a": ["x"]})
    if kind == "branch":
        graph.add_conditional_edges("x", lambda state: target)
    return graph


@pytest.mark.parametrize("kind", ["goto", "branch"])
@pytest.mark.parametrize("target", ["nobody", Send("nobody", 1), ["s", "nobody"]])
def test_a_route_to_nowhere_fails_its_node_and_keeps_its_siblings(
    run: Runner, saver: Saver, thread: Thread, kind: str, target: Any
) -> None:
    app = routed(kind, target).compile(checkpointer=saver)

    with pytest.raises(UnknownTargetError, match="nobody") as caught:
        run.invoke(app, {"a": []}, thread("1"))

    assert "Known" in str(caught.value)
    state = run.state(app, thread("1"))
    assert "x" in state.next
    (failed,) = [task for task in state.tasks if task.name == "x"]
    assert failed.error.startswith("UnknownTargetError")


def test_a_send_from_outside_to_nowhere_stores_nothing(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x").compile(checkpointer=saver)

    with pytest.raises(UnknownTargetError, match="nobody"):
        run.invoke(app, Command(goto=Send("nobody", 1)), thread("1"))

    assert list(saver.list(None)) == []


def test_packets_that_wait_for_a_node_that_is_gone_are_an_error(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = chain("x", x=lambda state: Command(goto=Send("w", 1))).add_node("w", mark("w"))
    run.invoke(graph.compile(checkpointer=saver, interrupt_before=["w"]), {"a": []}, thread("1"))

    with pytest.raises(UnknownTargetError, match="'w'"):
        run.invoke(chain("x").compile(checkpointer=saver), None, thread("1"))


def test_an_answer_outside_of_a_path_map_fails_its_node(run: Runner) -> None:
    graph = chain("x").add_node("y", mark("y"))
    graph.add_conditional_edges("x", lambda state: "neither", {"left": "y", "right": END})

    with pytest.raises(PathMapError, match="neither"):
        run.invoke(graph.compile(), {"a": []})


# -- keys --------------------------------------------------------------------------------------------------------------


def test_an_unknown_update_key_is_an_error_with_the_nodes_name(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", x=lambda state: {"a": ["x"], "nope": 1}).compile(checkpointer=saver)

    with pytest.raises(InvalidUpdateError, match="nope") as caught:
        run.invoke(app, {"a": ["i"]}, thread("1"))

    assert caught.value.node == "x"
    assert run.state(app, thread("1")).values == {"a": ["i"]}


def test_unknown_update_keys_can_be_ignored(run: Runner) -> None:
    app = chain("x", x=lambda state: {"a": ["x"], "nope": 1}).compile(unknown_keys="ignore")

    assert run.invoke(app, {"a": []}) == {"a": ["x"]}


def test_unknown_update_keys_can_be_warned_of_once(run: Runner) -> None:
    app = chain("x", x=lambda state: {"a": ["x"], "nope": 1}).compile(unknown_keys="warn")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run.invoke(app, {"a": []})
        assert run.invoke(app, {"a": []}) == {"a": ["x"]}

    assert ["nope" in str(warning.message) for warning in caught] == [True]


@pytest.mark.parametrize("how", ["command", "update"])
def test_the_rule_for_unknown_keys_holds_for_commands_and_updates_from_outside(
    run: Runner, saver: Saver, thread: Thread, how: str
) -> None:
    def give(app: Any) -> None:
        if how == "command":
            run.invoke(app, Command(update={"a": ["u"], "nope": 1}), thread("1"))
        else:
            run.update(app, thread("1"), {"a": ["u"], "nope": 1}, as_node="x")

    strict = chain("x").compile(checkpointer=saver)
    run.invoke(strict, {"a": []}, thread("1"))
    with pytest.raises(InvalidUpdateError, match="nope"):
        give(strict)
    assert run.state(strict, thread("1")).values == {"a": ["x"]}

    give(chain("x").compile(checkpointer=saver, unknown_keys="ignore"))

    assert run.state(strict, thread("1")).values == {"a": ["x", "u"]}


# -- joins -------------------------------------------------------------------------------------------------------------


def half_full_join() -> StateGraph[Any]:
    """x runs, y only when the branch says so; z waits for both."""
    graph = chain("x").add_node("y", mark("y")).add_node("z", mark("z"))
    graph.add_conditional_edges("x", lambda state: "y" if "go" in state["a"] else END, ["y", END])
    return graph.add_edge(["x", "y"], "z")


@pytest.mark.acceptance("S1-64")
def test_a_join_that_cannot_fill_is_an_error_and_the_state_is_saved(run: Runner, saver: Saver, thread: Thread) -> None:
    app = half_full_join().compile(checkpointer=saver)

    with pytest.raises(JoinStarvedError, match="'z' waits for y") as caught:
        run.invoke(app, {"a": []}, thread("1"))

    assert (caught.value.node, caught.value.thread) == ("z", "1")
    assert run.state(app, thread("1")).values == {"a": ["x"]}
    assert run.state(app, thread("1")).next == ()


def test_a_starved_thread_is_failed_and_says_why(run: Runner, thread: Thread) -> None:
    saver = InMemorySaver()
    app = half_full_join().compile(checkpointer=saver)
    with pytest.raises(JoinStarvedError):
        run.invoke(app, {"a": []}, thread("1"))

    (row,) = saver.threads()

    assert (row.status, row.reason.partition(":")[0]) == ("failed", "JoinStarvedError")


def test_a_starved_thread_can_be_helped(run: Runner, saver: Saver, thread: Thread) -> None:
    app = half_full_join().compile(checkpointer=saver)
    with pytest.raises(JoinStarvedError):
        run.invoke(app, {"a": []}, thread("1"))

    run.update(app, thread("1"), {"a": ["y by hand"]}, as_node="y")

    assert run.invoke(app, None, thread("1")) == {"a": ["x", "y by hand", "z"]}


def test_a_join_that_fired_before_may_end_half_full(run: Runner, saver: Saver, thread: Thread) -> None:
    app = half_full_join().compile(checkpointer=saver)
    run.invoke(app, {"a": ["go"]}, thread("1"))

    graph = half_full_join()
    graph.branches["x"].clear()
    graph.add_conditional_edges("x", lambda state: END, ["y", END])

    assert run.invoke(graph.compile(checkpointer=saver), {"a": []}, thread("1")) == {"a": ["go", "x", "y", "z", "x"]}


def test_a_join_whose_nodes_never_ran_is_no_error(run: Runner) -> None:
    graph = chain("x").add_node("p", mark("p")).add_node("q", mark("q")).add_node("z", mark("z"))
    graph.add_conditional_edges("x", lambda state: END, ["p", "q", END]).add_edge(["p", "q"], "z")

    assert run.invoke(graph.compile(), {"a": []}) == {"a": ["x"]}


# -- strict ------------------------------------------------------------------------------------------------------------


def test_strict_makes_an_unknown_input_key_an_error(run: Runner, saver: Saver, thread: Thread) -> None:
    with pytest.raises(InvalidUpdateError, match="nope"):
        run.invoke(chain("x").compile(checkpointer=saver, strict=True), {"a": [], "nope": 1}, thread("1"))

    assert list(saver.list(None)) == []


def test_an_unknown_input_key_is_warned_of_once(run: Runner) -> None:
    app = chain("x").compile()

    with pytest.warns(UserWarning, match="nope"):
        run.invoke(app, {"a": [], "nope": 1})

    assert run.invoke(app, {"a": [], "nope": 1}) == {"a": ["x"]}


def test_strict_refuses_a_node_that_nothing_leads_to() -> None:
    graph = StateGraph(State).add_node("x", mark("x")).add_node("lost", mark("lost")).add_edge(START, "x")

    with pytest.raises(DefinitionError, match="lost"):
        graph.compile(strict=True)


def test_a_durability_without_a_saver_is_warned_about(run: Runner) -> None:
    with pytest.warns(PregelWarning, match="no checkpointer"):
        assert {"a": ["x"]} == run.invoke(chain("x").compile(), {"a": []}, durability="sync")
