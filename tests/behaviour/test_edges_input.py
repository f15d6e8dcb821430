"""What an input means: on a fresh thread, on one with state, over pending work, and as a Command."""

from __future__ import annotations

import operator
from contextlib import nullcontext
from typing import Annotated, Any, TypedDict

import pytest

from pregel.errors import EmptyInputError, GraphRecursionError, InvalidUpdateError
from pregel.graph import END, START, StateGraph
from pregel.types import Command, Send, interrupt

from .conftest import Runner
from .marks import Saver, State, Thread, chain, failing_once, mark, parallel

# -- inputs ------------------------------------------------------------------------------------------------------------


def test_an_input_without_a_known_key_runs_the_graph(run: Runner) -> None:
    assert run.invoke(chain("x").compile(), {}) == {"a": ["x"]}


def test_no_input_and_nothing_kept_is_an_error(run: Runner) -> None:
    with pytest.raises(EmptyInputError, match="no checkpointer"):
        run.invoke(chain("x").compile(), None)


def test_a_reducer_key_that_nobody_wrote_reads_as_its_empty_value(run: Runner) -> None:
    class Counted(TypedDict, total=False):
        n: Annotated[int, operator.add]
        text: str
        missing: str

    graph = StateGraph(Counted).add_node("x", lambda state: {"text": str(state["n"])}).add_edge(START, "x")

    assert run.invoke(graph.compile(), {}) == {"n": 0, "text": "0"}


# -- numbering ---------------------------------------------------------------------------------------------------------


def steps(run: Runner, app: Any, config: Any) -> list[tuple[str, int]]:
    return [(entry.metadata["source"], entry.metadata["step"]) for entry in reversed(run.history(app, config))]


def test_a_second_input_goes_on_counting(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x").compile(checkpointer=saver)

    run.invoke(app, {"a": ["1"]}, thread("1"))
    result = run.invoke(app, {"a": ["2"]}, thread("1"))

    assert result["a"] == ["1", "x", "2", "x"]
    assert steps(run, app, thread("1")) == [
        ("input", -1),
        ("loop", 0),
        ("loop", 1),
        ("input", 2),
        ("loop", 3),
        ("loop", 4),
    ]


def test_a_resume_stores_no_checkpoint_before_it_runs(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", y=failing_once("y", RuntimeError("once"))).compile(checkpointer=saver)
    with pytest.raises(RuntimeError, match="once"):
        run.invoke(app, {"a": []}, thread("1"))

    run.invoke(app, None, thread("1"))

    assert steps(run, app, thread("1")) == [("input", -1), ("loop", 0), ("loop", 1), ("loop", 2)]


def test_the_first_checkpoint_says_what_the_input_is_about_to_start(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x").compile(checkpointer=saver)
    run.invoke(app, {"a": ["i"]}, thread("1"))

    first = run.history(app, thread("1"))[-1]

    assert (first.next, first.values) == (("__start__",), {"a": []})
    assert [task.result for task in first.tasks] == [{"a": ["i"]}]


def test_the_recursion_limit_keeps_the_progress_and_a_resume_gets_a_new_one(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = chain("s", "t", "u", "v", "w", "x", "y", "z").compile(checkpointer=saver)
    limited = {**thread("1"), "recursion_limit": 2}

    with pytest.raises(GraphRecursionError):
        run.invoke(app, {"a": []}, limited)
    assert run.state(app, thread("1")).values["a"] == ["s", "t"]
    with pytest.raises(GraphRecursionError):
        run.invoke(app, None, limited)

    assert run.state(app, thread("1")).values["a"] == ["s", "t", "u", "v", "w", "x"]
    assert run.invoke(app, None, thread("1"))["a"] == ["s", "t", "u", "v", "w", "x", "y", "z"]


def test_a_finished_thread_resumes_to_its_values_and_runs_nothing(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x").compile(checkpointer=saver)
    run.invoke(app, {"a": ["i"]}, thread("1"))

    chunks = run.stream(app, None, thread("1"), stream_mode=["updates", "values"])

    assert chunks == [("values", {"a": ["i", "x"]})]
    assert len(run.history(app, thread("1"))) == 3


# -- new input over pending work ---------------------------------------------------------------------------------------


def test_new_input_over_a_question_gives_the_question_up(run: Runner, saver: Saver, thread: Thread) -> None:
    asked: list[str] = []

    def ask(state: State) -> dict[str, Any]:
        asked.append("ask")
        return {"a": [interrupt("?")]} if len(asked) == 1 else {"a": ["no question"]}

    app = parallel("x", "y", y=ask).compile(checkpointer=saver)
    assert "__interrupt__" in run.invoke(app, {"a": ["1"]}, thread("1"))

    result = run.invoke(app, {"a": ["2"]}, thread("1"))

    assert result == {"a": ["1", "2", "x", "no question"]}
    assert run.state(app, thread("1")).interrupts == ()


def test_new_input_over_pending_sends_gives_them_up(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = StateGraph(State).add_node("w", lambda arg: {"a": [arg]}).add_node("x", mark("x"))
    graph.add_conditional_edges(START, lambda state: [Send("w", "sent")] if "go" in state["a"] else "x", ["w", "x"])
    app = graph.compile(checkpointer=saver, interrupt_before=["w"])
    run.invoke(app, {"a": ["go"]}, thread("1"))
    assert run.state(app, thread("1")).next == ("w",)

    graph = StateGraph(State).add_node("w", lambda arg: {"a": [arg]}).add_node("x", mark("x")).add_edge(START, "x")
    with pytest.warns(UserWarning, match="'w'"):
        app = graph.compile(checkpointer=saver)

    assert run.invoke(app, {"a": ["2"]}, thread("1")) == {"a": ["go", "2", "x"]}


@pytest.mark.parametrize("value", [["no", "state"], "text", 5])
def test_an_input_that_is_refused_leaves_the_thread_as_it_was(
    run: Runner, saver: Saver, thread: Thread, value: Any
) -> None:
    app = chain("x", x=lambda state: {"a": [interrupt("?")]}).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    before = run.history(app, thread("1"))

    for config in (thread("1"), thread("2")):
        with pytest.raises(InvalidUpdateError):
            run.invoke(app, value, config)

    assert (run.history(app, thread("1")), run.history(app, thread("2"))) == (before, [])
    assert run.invoke(app, Command(resume="yes"), thread("1")) == {"a": ["yes"]}


# -- commands as input -------------------------------------------------------------------------------------------------


def test_a_command_on_a_fresh_thread_is_applied_once(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x").compile(checkpointer=saver)

    assert run.invoke(app, Command(update={"a": ["q"]}), thread("1")) == {"a": ["q", "x"]}


def test_a_command_on_a_finished_thread_updates_and_runs_only_where_it_goes(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = chain("x", "y", "z").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    chunks = run.stream(app, Command(update={"a": ["q"], "b": "new"}, goto="z"), thread("1"), stream_mode="updates")

    assert chunks == [{"z": {"a": ["z"]}}]
    state = run.state(app, thread("1"))
    assert state.values == {"a": ["x", "y", "z", "q", "z"], "b": "new"}
    assert (state.metadata["source"], state.metadata["step"]) == ("loop", 4)


def test_a_commands_update_survives_the_failure_of_what_it_started(run: Runner, saver: Saver, thread: Thread) -> None:
    trouble: list[BaseException] = []

    def flaky(state: State) -> dict[str, Any]:
        if trouble:
            raise trouble.pop()
        return {"a": ["x"]}

    app = chain("x", x=flaky).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    trouble.append(RuntimeError("once"))

    with pytest.raises(RuntimeError, match="once"):
        run.invoke(app, Command(update={"a": ["q"]}, goto="x"), thread("1"))
    failed = run.state(app, thread("1"))

    assert (failed.values, failed.next) == ({"a": ["x", "q"]}, ("x",))
    assert run.invoke(app, None, thread("1")) == {"a": ["x", "q", "x"]}


@pytest.mark.parametrize("deferred", [False, True], ids=["to-a-node-that-fails", "to-a-node-that-is-deferred"])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_what_a_command_wrote_stays_when_the_next_input_comes(
    run: Runner, saver: Saver, thread: Thread, deferred: bool, durability: str
) -> None:
    """No checkpoint carries it yet, since no step came to its end after it: the input's does.

    A node that is deferred waits for a run that comes to its end, which this one does not begin.
    """
    node = mark("y") if deferred else failing_once("y", ValueError("y"))
    graph = chain("x").add_node("y", node, defer=deferred)
    app = graph.add_conditional_edges("x", lambda state: END, ["y", END]).compile(checkpointer=saver)
    run.invoke(app, {"a": ["1"]}, thread("1"), durability=durability)

    with nullcontext() if deferred else pytest.raises(ValueError, match="y"):
        run.invoke(app, Command(update={"a": ["c"]}, goto="y"), thread("1"), durability=durability)
    assert {"a": ["1", "x", "c"]} == run.state(app, thread("1")).values

    after = ["1", "x", "c", "2", "x", *(["y"] if deferred else [])]
    assert {"a": after} == run.invoke(app, {"a": ["2"]}, thread("1"), durability=durability)
    assert {"a": after} == run.state(app, thread("1")).values
    assert {"a": [*after, "3", "x"]} == run.invoke(app, {"a": ["3"]}, thread("1"))


def test_a_command_beside_pending_work_runs_both(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver, interrupt_before=["y"])
    run.invoke(app, {"a": []}, thread("1"))

    result = run.invoke(app, Command(update={"a": ["q"]}, goto="x"), thread("1"), interrupt_before=[])

    assert result == {"a": ["x", "q", "x", "y", "y"]}


def test_a_command_sends_on_a_thread_with_state(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "w", w=lambda state: {"a": [str(state)]} if isinstance(state, int) else {"a": ["w"]})
    compiled = app.compile(checkpointer=saver)
    run.invoke(compiled, {"a": []}, thread("1"))

    result = run.invoke(compiled, Command(goto=[Send("w", 1), Send("w", 2)]), thread("1"))

    assert result == {"a": ["x", "w", "1", "2"]}


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (Command(graph=Command.PARENT, update={"a": ["q"]}), InvalidUpdateError),
        (Command(goto="nobody"), InvalidUpdateError),
        (Command(goto=Send("nobody", 1)), InvalidUpdateError),
        (Command(goto=[5]), TypeError),
    ],
)
@pytest.mark.parametrize("started", [False, True])
def test_a_command_that_leads_nowhere_is_refused_and_changes_nothing(
    run: Runner, saver: Saver, thread: Thread, command: Command[Any], error: type[Exception], started: bool
) -> None:
    app = chain("x").compile(checkpointer=saver)
    if started:
        run.invoke(app, {"a": []}, thread("1"))
    before = run.history(app, thread("1"))

    with pytest.raises(error):
        run.invoke(app, command, thread("1"))

    assert run.history(app, thread("1")) == before
