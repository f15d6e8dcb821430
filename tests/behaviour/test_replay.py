"""Going on from an addressed checkpoint: forks, replays, and what becomes of questions and failures there."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pregel.engine.call import clock
from pregel.engine.ids import Ids
from pregel.errors import CheckpointNotFoundError, UnknownInterruptError
from pregel.types import Command, Send, interrupt

from .conftest import Runner
from .marks import Saver, Thread, chain, failing_once, mark, parallel


def at(run: Runner, app: Any, config: Any, step: int) -> Any:
    """The oldest entry of a step."""
    return next(entry for entry in reversed(run.history(app, config)) if entry.metadata["step"] == step)


def sources(run: Runner, app: Any, config: Any) -> list[str]:
    return [f"{entry.metadata['source']} {entry.metadata['step']}" for entry in reversed(run.history(app, config))]


def counting(name: str, ran: list[str]) -> Any:
    """A node that marks, and notes each run."""

    def node(state: Any) -> dict[str, Any]:
        ran.append(name)
        return {"a": [name]}

    return node


def test_a_replay_runs_what_came_after_again_as_a_fork(run: Runner, saver: Saver, thread: Thread) -> None:
    ran: list[str] = []
    app = chain("x", "y", "z", **{name: counting(name, ran) for name in "xyz"}).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    result = run.invoke(app, None, at(run, app, thread("1"), 1).config)

    assert (result, ran) == ({"a": ["x", "y", "z"]}, ["x", "y", "z", "y", "z"])
    assert sources(run, app, thread("1")) == [
        *["input -1", "loop 0", "loop 1", "loop 2", "loop 3"],
        *["fork 2", "loop 3", "loop 4"],
    ]


@pytest.mark.parametrize("ns", ["", "sub:1"], ids=["a fork", "another namespace"])
def test_ids_grow_over_every_id_of_the_thread_also_those_of_a_clock_that_is_ahead(
    run: Runner, saver: Saver, thread: Thread, ns: str
) -> None:
    if ns and not hasattr(saver, "append"):
        pytest.skip("such a saver is not asked for the newest id of all namespaces")
    app = chain("x", "y").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    older = at(run, app, thread("1"), 1)
    ahead = put_by_a_clock_that_is_ahead(saver, older.config, ns)

    result = run.invoke(app, None, older.config)

    assert result == {"a": ["x", "y"]}
    grown = [entry for entry in run.history(app, thread("1")) if entry.config["configurable"]["checkpoint_id"] > ahead]
    assert [entry.metadata["source"] for entry in grown] == ["loop", "fork"]
    assert run.state(app, thread("1")).config == grown[0].config


def put_by_a_clock_that_is_ahead(saver: Saver, config: Any, ns: str) -> str:
    """A child of a checkpoint, or the first one of another namespace, as another machine wrote it; its id."""
    saved = saver.get_tuple(config)
    assert saved is not None
    id = Ids(lambda: clock() + 3600 * 10_000_000, 1).next(2)
    under: Any = config if not ns else {"configurable": {"thread_id": "1", "checkpoint_ns": ns}}
    metadata: Any = {"source": "update", "step": 2, "parents": {}}
    saver.put(under, {**saved.checkpoint, "id": id}, metadata, saved.checkpoint["channel_versions"])
    return id


@pytest.mark.acceptance("S1-49")
def test_the_newest_branch_is_the_threads_state(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    old = run.state(app, thread("1"))

    config = run.update(app, at(run, app, thread("1"), 1).config, {"a": ["other"]})
    run.invoke(app, None, config)

    assert run.state(app, thread("1")).values == {"a": ["x", "other", "y"]}
    assert run.state(app, old.config).values == {"a": ["x", "y"]}
    assert run.invoke(app, {"a": ["2"]}, thread("1")) == {"a": ["x", "other", "y", "2", "x", "y"]}


def test_a_replay_of_the_end_only_adds_a_fork(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    end = run.state(app, thread("1"))

    assert run.stream(app, None, end.config, stream_mode=["updates", "values"]) == [("values", {"a": ["x"]})]

    fork = run.state(app, thread("1"))
    assert (fork.metadata["source"], fork.metadata["step"], fork.parent_config) == ("fork", 2, end.config)
    assert (fork.values, fork.next) == (end.values, ())


def test_a_replay_of_a_fork_that_is_the_head_adds_none(run: Runner, saver: Saver, thread: Thread) -> None:
    trouble: list[Exception] = []

    def flaky(state: Any) -> dict[str, Any]:
        if trouble:
            raise trouble.pop()
        return {"a": ["y"]}

    app = chain("x", "y", y=flaky).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    trouble.append(RuntimeError("once"))
    with pytest.raises(RuntimeError, match="once"):
        run.invoke(app, None, at(run, app, thread("1"), 1).config)

    run.invoke(app, None, run.state(app, thread("1")).config)

    assert sources(run, app, thread("1"))[-3:] == ["loop 2", "fork 2", "loop 3"]


def test_a_fork_that_is_no_longer_the_head_is_forked_again(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    update = run.update(app, at(run, app, thread("1"), 1).config, {"a": ["u"]})
    run.invoke(app, None, update)

    assert run.invoke(app, None, update) == {"a": ["x", "u", "y"]}
    assert sources(run, app, thread("1"))[-4:] == ["update 2", "loop 3", "fork 3", "loop 4"]


def test_a_fork_whose_question_was_answered_is_forked_again_and_asks_anew(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = chain("x", x=lambda state: {"a": [interrupt("one?"), interrupt("two?")]}).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    run.invoke(app, None, run.state(app, thread("1")).config)
    run.invoke(app, Command(resume="old"), thread("1"))

    (asked,) = run.invoke(app, None, run.state(app, thread("1")).config)["__interrupt__"]

    assert (asked,) == run.state(app, thread("1")).interrupts
    run.invoke(app, Command(resume={asked.id: "new"}), thread("1"))
    assert {"a": ["new", "2"]} == run.invoke(app, Command(resume="2"), thread("1"))
    assert ["fork 1", "fork 2"] == sources(run, app, thread("1"))[2:4]


def test_an_update_whose_step_is_half_done_is_forked_and_what_runs_again_counts(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    runs = iter(range(9))
    trouble = [RuntimeError("first"), RuntimeError("second")]
    x_runs = threading.Semaphore(0)  # what runs when a sibling fails is waited for and kept

    def x(state: Any) -> dict[str, Any]:
        x_runs.release()
        return {"a": [f"run {next(runs)}"]}

    def y(state: Any) -> dict[str, Any]:
        if trouble:
            assert x_runs.acquire(timeout=60)
            raise trouble.pop(0)
        return {"a": ["y"]}

    app = parallel("x", "y", x=x, y=y).compile(checkpointer=saver)
    update = run.update(app, thread("1"), {"a": ["u"]})
    for error in ("first", "second"):
        with pytest.raises(RuntimeError, match=error):
            run.invoke(app, None, update)

    assert {"a": ["u", "run 1", "y"]} == run.invoke(app, None, thread("1"))
    assert ["update 0", "fork 1", "loop 2"] == sources(run, app, thread("1"))


def test_new_input_at_an_old_checkpoint_is_its_child(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver)
    run.invoke(app, {"a": ["1"]}, thread("1"))
    old = at(run, app, thread("1"), 1)

    result = run.invoke(app, {"a": ["2"]}, old.config)

    assert result == {"a": ["1", "x", "2", "x", "y"]}
    branch = run.history(app, thread("1"))[:4]
    assert [entry.metadata["source"] for entry in branch] == ["loop", "loop", "loop", "input"]
    assert (branch[-1].parent_config, branch[-1].metadata["step"]) == (old.config, 2)


def test_a_command_at_an_old_checkpoint_goes_on_in_a_fork(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", "z").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    result = run.invoke(app, Command(update={"a": ["c"]}), at(run, app, thread("1"), 2).config)

    assert result == {"a": ["x", "y", "c", "z"]}
    assert run.state(app, thread("1")).values == {"a": ["x", "y", "c", "z"]}
    assert sources(run, app, thread("1"))[-2:] == ["fork 3", "loop 4"]


def test_a_replay_does_not_reuse_what_had_finished(run: Runner, saver: Saver, thread: Thread) -> None:
    ran: list[str] = []
    graph = parallel("x", "y", x=counting("x", ran), y=lambda state: {"a": [interrupt("?")]})
    app = graph.compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    chunks = run.stream(app, None, run.state(app, thread("1")).config, stream_mode="updates")

    assert ran == ["x", "x"]
    assert not any("__metadata__" in chunk for chunk in chunks)


def test_sends_of_an_old_checkpoint_run_again(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = chain("x", x=lambda state: Command(goto=[Send("w", "1"), Send("w", "2")]))
    app = graph.add_node("w", lambda arg: {"a": [arg]}).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    old = at(run, app, thread("1"), 1)

    assert old.next == ("w", "w")
    assert run.invoke(app, None, old.config) == {"a": ["1", "2"]}


def test_a_replay_before_an_answered_question_asks_again_under_a_new_id(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = chain("x", "y", y=lambda state: {"a": [interrupt("?")]}).compile(checkpointer=saver)
    (first,) = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]
    run.invoke(app, Command(resume="one"), thread("1"))

    (second,) = run.invoke(app, None, at(run, app, thread("1"), 1).config)["__interrupt__"]

    assert (second.value, second.id == first.id) == ("?", False)
    assert run.invoke(app, Command(resume={second.id: "two"}), thread("1")) == {"a": ["x", "two"]}
    assert [entry.values for entry in run.history(app, thread("1")) if entry.next == ()] == [
        {"a": ["x", "two"]},
        {"a": ["x", "one"]},
    ]


def test_an_answer_to_an_old_checkpoint_whose_question_is_answered_is_refused(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = chain("x", x=lambda state: {"a": [interrupt("?")]}).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    asked = run.state(app, thread("1")).config
    run.invoke(app, Command(resume="one"), thread("1"))
    before = run.history(app, thread("1"))

    with pytest.raises(UnknownInterruptError):
        run.invoke(app, Command(resume="two"), asked)

    assert run.history(app, thread("1")) == before


def test_a_failed_step_replays_like_any_other(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", y=failing_once("y", RuntimeError("once"))).compile(checkpointer=saver)
    with pytest.raises(RuntimeError, match="once"):
        run.invoke(app, {"a": []}, thread("1"))

    assert run.invoke(app, None, run.state(app, thread("1")).config) == {"a": ["x", "y"]}
    assert sources(run, app, thread("1")) == ["input -1", "loop 0", "loop 1", "fork 2", "loop 3"]


def test_a_branch_grows_apart_in_every_channel(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = parallel("x", "y").add_node("z", mark("z")).add_edge(["x", "y"], "z")
    app = graph.compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    old = at(run, app, thread("1"), 0)

    for text in ("left", "right"):
        run.invoke(app, None, run.update(app, old.config, {"b": text}, as_node="__start__"))

    tips = [entry.values for entry in run.history(app, thread("1")) if entry.next == ()]
    assert tips == [{"a": ["x", "y", "z"], "b": "right"}, {"a": ["x", "y", "z"], "b": "left"}, {"a": ["x", "y", "z"]}]


def test_a_checkpoint_that_does_not_exist_cannot_be_gone_on_from(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    other = {"configurable": {"thread_id": "2", **run.state(app, thread("1")).config["configurable"]}}
    other["configurable"]["thread_id"] = "2"

    for given in (None, {"a": ["2"]}, Command(goto="x")):
        with pytest.raises(CheckpointNotFoundError, match="does not exist"):
            run.invoke(app, given, other)

    assert run.history(app, thread("2")) == []
