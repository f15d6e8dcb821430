"""Savers that were written for the reference run under the engine: their verbs are called, and nothing is lost."""

from __future__ import annotations

import contextlib
import gc
import operator
import os
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from pregel.checkpoint.base import BaseCheckpointSaver, is_journal
from pregel.checkpoint.first_tier import FirstTier
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import AsyncOnlyError, InvalidInputError, NotBuiltError, ThreadBusy
from pregel.graph import START, StateGraph
from pregel.runtime import Runtime
from pregel.types import Command, RetryPolicy, Send, interrupt
from pregel.warnings import PregelWarning
from tests.behaviour.conftest import Awaiting, Blocking, Runner
from tests.behaviour.marks import State, Thread, chain, failing_once, parallel
from tests.behaviour.savers.third_party import Aliasing, AsyncOnly, ByVersion, FiveVerbs, OnlyTheirs, TextVersions

Saver = BaseCheckpointSaver[Any]


class Overridden(InMemorySaver):
    """A saver of ours with a `put` that notes what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[int] = []

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        self.steps.append(metadata["step"])
        return super().put(config, checkpoint, metadata, new_versions)


class OverriddenFile(SqliteSaver):
    """The same for the other verbs, on a file."""

    def put_writes(self, *args: Any, **options: Any) -> None:
        super().put_writes(*args, **options)

    def get_tuple(self, config: Any) -> Any:
        return super().get_tuple(config)


class WithoutPath(FiveVerbs):
    """From before writes had a task path."""

    def put_writes(self, config: Any, writes: Any, task_id: str) -> None:  # type: ignore[override]
        super().put_writes(config, writes, task_id)


KINDS = [FiveVerbs, TextVersions, ByVersion, Aliasing, WithoutPath, Overridden]


def quiet(saver: Any) -> Any:
    """The saver, its warning given."""
    with pytest.warns(PregelWarning, match="two processes"):
        FirstTier(saver, {})
    return saver


@pytest.fixture(params=[*KINDS, OverriddenFile])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Saver]:
    if request.param is OverriddenFile:
        with OverriddenFile.from_conn_string(tmp_path / "threads.db", synchronous="NORMAL") as made:
            yield quiet(made)
    else:
        yield quiet(request.param())


# -- it runs -----------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("S1-35")
def test_questions_failures_and_history_work(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []

    def one(state: State) -> dict[str, Any]:
        calls.append("one")
        return {"a": ["one"]}

    nodes: Any = {"one": one, "bad": failing_once("bad", ValueError("no")), "ask": lambda s: {"b": interrupt("?")}}
    app = parallel("one", "bad", "ask", **nodes).compile(checkpointer=saver)

    with pytest.raises(ValueError, match="no"):
        run.invoke(app, {"a": ["in"]}, thread("1"))
    asked = run.invoke(app, None, thread("1"))
    done = run.invoke(app, Command(resume="yes"), thread("1"))

    assert "?" == asked["__interrupt__"][0].value
    assert {"a": ["in", "bad", "one"], "b": "yes"} == done == run.state(app, thread("1")).values
    assert ["one"] == calls
    assert [1, 0, -1] == [found.metadata["step"] for found in run.history(app, thread("1"))]


def test_time_travel_and_updates_work(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("one", "two").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    (before_two,) = [found for found in run.history(app, thread("1")) if found.next == ("two",)]

    run.update(app, before_two.config, {"a": ["update"], "b": "x"}, "one")
    forked = run.invoke(app, None, thread("1"))

    assert {"a": ["one", "update", "two"], "b": "x"} == forked
    assert {"a": ["one", "two"]} == run.invoke(app, None, before_two.config)
    assert {"a": ["one"]} == run.state(app, before_two.config).values
    assert run.state(app, before_two.config).tasks[0].result == {"a": ["two"]}


def test_subgraphs_and_sends_work(run: Runner, saver: Saver, thread: Thread) -> None:
    class Total(TypedDict, total=False):
        a: Annotated[list[str], operator.add]

    child = chain("inner", "ask", ask=lambda state: {"a": [interrupt("?")]}).compile()
    graph = StateGraph(Total).add_node("child", child).add_node("sent", lambda state: {"a": state["a"]})
    graph.add_conditional_edges(START, lambda state: [Send("sent", {"a": [str(i)]}) for i in range(3)])
    app = graph.add_edge("sent", "child").compile(checkpointer=saver)

    run.invoke(app, {"a": []}, thread("1"))
    state = run.state(app, thread("1"), subgraphs=True)
    done = run.invoke(app, Command(resume="yes"), thread("1"))

    sent = ["0", "1", "2"]
    assert [*sent, "inner"] == state.tasks[0].state.values["a"]
    assert {"a": [*sent, *sent, "inner", "yes"]} == done


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_every_durability_works(run: Runner, saver: Saver, thread: Thread, durability: str) -> None:
    app = chain("one", "two", "three").compile(checkpointer=saver)

    for _ in range(2):
        done = run.invoke(app, {"a": ["in"]}, thread("1"), durability=durability)

    assert {"a": ["in", "one", "two", "three"] * 2} == done == run.state(app, thread("1")).values
    checkpoints = run.history(app, thread("1"))
    assert (2 if durability == "exit" else 10) == len(checkpoints)
    assert [found.config for found in checkpoints[1:]] == [found.parent_config for found in checkpoints[:-1]]


def test_a_stored_checkpoint_never_changes(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("one", "two", "three").compile(checkpointer=saver)

    run.invoke(app, {"a": []}, thread("1"))

    states = [found.values["a"] for found in run.history(app, thread("1"))]
    assert [["one", "two", "three"], ["one", "two"], ["one"], [], []] == states


def test_what_a_node_does_to_its_result_later_is_not_in_the_record(run: Runner, saver: Saver, thread: Thread) -> None:
    mine: list[str] = []

    def ask(state: State) -> dict[str, Any]:
        answer = interrupt("?")
        mine.append("late")
        return {"b": answer}

    app = parallel("one", "ask", one=lambda state: {"a": mine}, ask=ask).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    mine.append("later")

    assert {"a": [], "b": "yes"} == run.invoke(app, Command(resume="yes"), thread("1"))


# -- order, crashes ----------------------------------------------------------------------------------------------------


class Power(Exception):
    """The process dies here."""


class Dying(FiveVerbs):
    """Notes each call that stores something, and dies before the nth of one kind."""

    def __init__(self, verb: str = "", nth: int = 0) -> None:
        super().__init__()
        self.verb, self.nth = verb, nth
        self.log: list[tuple[str, Any]] = []

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        self._note("put", metadata["step"])
        return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self._note("put_writes", dict(writes).get("a"))
        super().put_writes(config, writes, task_id, task_path)

    def _note(self, verb: str, what: Any) -> None:
        if verb == self.verb:
            self.nth -= 1
            if self.nth == 0:
                raise Power
        self.log.append((verb, what))


@pytest.mark.acceptance("S1-43")
def test_a_tasks_writes_are_stored_before_the_checkpoint_that_holds_them(run: Runner, thread: Thread) -> None:
    saver = quiet(Dying())

    run.invoke(parallel("x", "y").compile(checkpointer=saver), {"a": []}, thread("1"))

    *_, barrier = saver.log
    assert ("put", 1) == barrier
    assert [("put_writes", ["x"]), ("put_writes", ["y"])] == sorted(saver.log[-3:-1])


@pytest.mark.acceptance("S1-43")
@pytest.mark.parametrize("verb", ["put", "put_writes"])
@pytest.mark.parametrize("nth", range(1, 5))
def test_a_crash_between_two_calls_repeats_no_task_whose_writes_are_stored(
    run: Runner, thread: Thread, verb: str, nth: int
) -> None:
    ran: list[str] = []

    def work(name: str) -> Any:
        def node(state: State) -> dict[str, Any]:
            ran.append(name)
            return {"a": [name]}

        return node

    saver = quiet(Dying(verb, nth))
    graph = parallel("x", "y", x=work("x"), y=work("y"))
    app = graph.add_node("z", work("z")).add_edge(["x", "y"], "z").compile(checkpointer=saver)
    with contextlib.suppress(Power):
        run.invoke(app, {"a": []}, thread("1"))
    finished = {name for verb, found in saver.log if verb == "put_writes" and found for name in found}
    ran.clear()

    started = run.state(app, thread("1")).created_at is not None
    done = run.invoke(app, None if started else {"a": []}, thread("1"))

    assert {"a": ["x", "y", "z"]} == done
    assert not finished & set(ran)


# -- which verbs are called --------------------------------------------------------------------------------------------


def test_an_override_of_ours_is_called(run: Runner, thread: Thread) -> None:
    saver = quiet(Overridden())

    run.invoke(chain("one").compile(checkpointer=saver), {"a": []}, thread("1"))

    assert [-1, 0, 1] == saver.steps


def test_our_savers_take_appends_also_when_an_append_is_overridden() -> None:
    class Counting(InMemorySaver):
        def append(self, append: Any) -> Any:
            return super().append(append)

    class Both(Overridden):
        def append(self, append: Any) -> Any:
            return super().append(append)

    assert [True, True, True, True] == [is_journal(kind) for kind in (InMemorySaver, SqliteSaver, Counting, Both)]
    assert [False, False, False] == [is_journal(kind) for kind in (FiveVerbs, Overridden, OverriddenFile)]


def test_a_saver_that_only_awaits_serves_ainvoke_and_says_so_under_invoke(thread: Thread) -> None:
    saver = quiet(AsyncOnly())
    app = chain("one", "ask", ask=lambda state: {"b": interrupt("?")}).compile(checkpointer=saver)

    Awaiting().invoke(app, {"a": []}, thread("1"))
    done = Awaiting().invoke(app, Command(resume="yes"), thread("1"))

    assert {"a": ["one"], "b": "yes"} == done
    assert 4 == len(Awaiting().history(app, thread("1")))
    with pytest.raises(AsyncOnlyError, match="ainvoke"):
        app.invoke({"a": []}, thread("2"))


def test_rows_that_only_this_engine_has_take_no_write_of_their_task(run: Runner, thread: Thread) -> None:
    calls: list[str] = []
    left, worked = [KeyError(number) for number in range(3)], threading.Event()

    def work(state: State) -> dict[str, Any]:
        calls.append("work")
        if left:
            raise left.pop()
        worked.set()
        return {"a": ["work"], "b": "worked"}

    def ends(state: State) -> dict[str, Any]:
        calls.append("ends")
        assert worked.wait(30)
        raise RuntimeError("ends")

    policy = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=4, retry_on=KeyError)
    graph = StateGraph(State).add_node("work", work, retry_policy=policy).add_edge(START, "work")
    saver = quiet(OnlyTheirs())
    broken = graph.add_node("ends", ends).add_edge(START, "ends").compile(checkpointer=saver)
    with pytest.raises(RuntimeError, match="ends"):
        run.invoke(broken, {"a": []}, thread("1"))
    calls.clear()

    with pytest.raises(RuntimeError, match="ends"):
        run.invoke(broken, None, thread("1"))

    assert ["ends"] == calls  # what the other one wrote was not lost to a count of its attempts
    (task,) = [task for task in run.state(broken, thread("1")).tasks if task.name == "work"]
    assert {"a": ["work"], "b": "worked"} == task.result


def test_attempts_are_counted_on_over_a_crash_there(run: Runner, thread: Thread) -> None:
    seen: list[int] = []

    class Away(OnlyTheirs):
        away = False

        def put_writes(self, *args: Any, **options: Any) -> None:
            if self.away:
                raise OSError("away")
            super().put_writes(*args, **options)

    def node(state: State, runtime: Runtime[Any]) -> None:
        assert runtime.execution_info is not None
        seen.append(runtime.execution_info.node_attempt)
        kept.away = len(seen) == 3
        raise KeyError(len(seen))

    kept = quiet(Away())
    policy = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=4, retry_on=KeyError)
    app = StateGraph(State).add_node("n", node, retry_policy=policy).add_edge(START, "n").compile(checkpointer=kept)
    with pytest.raises(OSError, match="away"):
        run.invoke(app, {"a": []}, thread("1"))
    kept.away = False
    gc.collect()  # as in another process, nothing knows of the run that was lost

    with pytest.raises(KeyError):
        run.invoke(app, None, thread("1"))

    assert [1, 2, 3, 3, 4] == seen  # two failures were recorded


def test_a_verb_that_is_not_there_is_named(run: Runner, thread: Thread) -> None:
    class ReadOnly(BaseCheckpointSaver[int]):
        def get_tuple(self, config: Any) -> None:
            return None

    app = chain("one").compile(checkpointer=quiet(ReadOnly()))

    with pytest.raises(NotBuiltError, match="ReadOnly has no put"):
        run.invoke(app, {"a": []}, thread("1"))


def test_versions_that_do_not_count_are_refused(run: Runner, thread: Thread) -> None:
    class Standing(FiveVerbs):
        def get_next_version(self, current: Any, channel: Any = None) -> Any:
            return 1

    app = chain("one").compile(checkpointer=quiet(Standing()))

    with pytest.raises(InvalidInputError, match="does not count"):
        run.invoke(app, {"a": []}, thread("1"))


def test_versions_are_the_savers_own(run: Runner, thread: Thread) -> None:
    saver = quiet(TextVersions())

    run.invoke(chain("one").compile(checkpointer=saver), {"a": []}, thread("1"))

    found = saver.get_tuple(thread("1"))
    versions = found.checkpoint["channel_versions"]
    assert all(len(version) > 40 for version in versions.values())
    seen = found.checkpoint["versions_seen"]["one"]
    older = next(saver.list(thread("1"), limit=1, before=found.config)).checkpoint["channel_versions"]
    assert {channel: older[channel] for channel in seen} == seen


def test_what_the_caller_configures_reaches_the_saver(run: Runner) -> None:
    configs: list[Any] = []

    class PerUser(FiveVerbs):
        def put(self, config: Any, *args: Any) -> Any:
            configs.append(config["configurable"])
            return super().put(config, *args)

    place = {"thread_id": "t", "user": "u", "__private": 1, "langgraph_x": 2}

    run.invoke(chain("one").compile(checkpointer=quiet(PerUser())), {"a": []}, {"configurable": place})

    first, *others = configs
    assert {"thread_id": "t", "checkpoint_ns": "", "user": "u"} == first
    assert all("checkpoint_id" in config for config in others)


# -- two runs ----------------------------------------------------------------------------------------------------------


def test_a_second_run_of_this_process_is_refused_while_one_lives(saver: Saver, thread: Thread) -> None:
    app = chain("one", "two").compile(checkpointer=saver)
    stream: Any = app.stream({"a": []}, thread("1"), stream_mode="values")
    next(stream)

    with ThreadPoolExecutor(1) as elsewhere, pytest.raises(ThreadBusy):
        elsewhere.submit(app.invoke, {"a": []}, thread("1")).result()

    stream.close()
    assert {"a": ["one", "two"]} == app.invoke({"a": []}, thread("other"))


def test_a_run_that_loaded_before_another_one_loads_again(thread: Thread) -> None:
    class Overtaken(FiveVerbs):
        """Between this load and the claim another run goes through."""

        waiting = True

        def get_tuple(self, config: Any) -> Any:
            found = super().get_tuple(config)
            if self.waiting and found is not None:
                self.waiting = False
                app.invoke({"a": ["other"]}, thread("1"))
            return found

    app = chain("one").compile(checkpointer=quiet(Overtaken()))
    app.invoke({"a": ["first"]}, thread("1"))

    done = app.invoke({"a": ["late"]}, thread("1"))

    assert {"a": ["first", "one", "other", "one", "late", "one"]} == done


def test_a_run_that_broke_off_does_not_hold_its_thread(run: Runner, thread: Thread) -> None:
    app = chain("one", "two").compile(checkpointer=quiet(Dying("put", 2)))
    with pytest.raises(Power):
        run.invoke(app, {"a": []}, thread("1"))

    assert {"a": ["one", "two"]} == run.invoke(app, None, thread("1"))


def test_it_is_warned_about_once(thread: Thread) -> None:
    saver = FiveVerbs()
    app = chain("one").compile(checkpointer=saver)

    with pytest.warns(PregelWarning, match="FiveVerbs has no guarded append") as caught:
        app.invoke({"a": []}, thread("1"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        app.invoke({"a": []}, thread("2"))

    assert [os.path.basename(__file__)] == [os.path.basename(one.filename) for one in caught]


# -- keys --------------------------------------------------------------------------------------------------------------


def test_an_idempotency_key_is_the_same_after_a_crash(run: Runner, thread: Thread) -> None:
    keys: list[str] = []
    trouble: list[BaseException] = [ValueError()]

    def pay(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        keys.append(runtime.idempotency_key)
        if trouble:
            raise trouble.pop()
        return {"a": ["paid"]}

    app = chain("one", "pay", pay=pay).compile(checkpointer=quiet(FiveVerbs()))

    with pytest.raises(ValueError):
        run.invoke(app, {"a": []}, thread("1"))
    run.invoke(app, None, thread("1"))

    assert 2 == len(keys)
    assert 1 == len(set(keys))


def test_both_drivers_see_one_thread(thread: Thread) -> None:
    app = chain("one", "ask", ask=lambda state: {"b": interrupt("?")}).compile(checkpointer=quiet(FiveVerbs()))

    Blocking().invoke(app, {"a": []}, thread("1"))

    assert {"a": ["one"], "b": "yes"} == Awaiting().invoke(app, Command(resume="yes"), thread("1"))
