"""Prune, the deletion of runs, copies and sweeps: what goes, what stays, and that live runs are left alone."""

from __future__ import annotations

import operator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Annotated, Any, TypedDict

import pytest

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.records import Load, Page
from pregel.errors import CheckpointNotFoundError, ThreadBusy, ThreadDeleted
from pregel.graph import START, StateGraph
from pregel.types import Command, interrupt
from tests.behaviour.journals import Run, everything, newest
from tests.behaviour.savers.foreign import config, put

LONG = "x" * 100  # a value that has a row of its own


def history(saver: JournalSaver, thread: str = "t", ns: str | None = "") -> list[tuple[str, str | None, Any]]:
    return [(saved.id, saved.parent, saved.values) for _, saved in saver.page(thread, Page(ns=ns))]


# -- prune -------------------------------------------------------------------------------------------------------------


def test_prune_leaves_the_newest_checkpoint_whole_with_its_writes(saver: JournalSaver) -> None:
    run = Run(saver)
    for i in range(5):
        run.save({"a": [LONG, i], "b": i} if i != 3 else {"b": i}, metadata={"i": i})
        run.write([("a", [i])], task=f"task-{i}")
    run.release()
    before = newest(saver)
    Run(saver, "other").save({"a": 1})

    saver.prune(["t", "unknown"])

    after = newest(saver)
    assert before is not None
    assert after is not None
    assert [(before.id, None, before.values)] == history(saver)
    assert (before.metadata, before.counters, before.seen, before.updated, before.writes) == (
        after.metadata,
        after.counters,
        after.seen,
        after.updated,
        after.writes,
    )
    assert 1 == len(history(saver, "other"))


@pytest.mark.acceptance("S1-55")
def test_a_run_goes_on_after_a_prune(saver: JournalSaver) -> None:
    class State(TypedDict, total=False):
        a: Annotated[list[str], operator.add]

    graph = StateGraph(State).add_node("n", lambda state: {"a": [LONG]}).add_edge(START, "n")
    app = graph.compile(checkpointer=saver)
    for _ in range(3):
        app.invoke({"a": ["in"]}, config())
    saver.prune(["t"])

    assert {"a": ["in", LONG] * 4} == app.invoke({"a": ["in"]}, config())
    assert {"a": ["in", LONG] * 4} == app.get_state(config()).values
    assert 4 == len(list(app.get_state_history(config())))  # what was kept, and three of the last run


def test_a_large_graph_is_pruned_to_one_whole_manifest(saver: JournalSaver) -> None:
    run = Run(saver)
    names = [f"channel_{i}" for i in range(200)]
    saver.intern(names)
    state: dict[str, Any] = dict.fromkeys(names, LONG)
    run.save(state)
    for i in range(9):
        state |= {names[i]: f"{LONG}{i}"}
        run.save({names[i]: f"{LONG}{i}"})
    run.release()

    saver.prune(["t"])

    assert [state] == [values for _, _, values in history(saver)]
    again = Run(saver)
    again.save({"a": 1})
    again.release()
    assert [state | {"a": 1}, state] == [values for _, _, values in history(saver)]


def test_prune_keeps_a_pending_question_also_in_a_subgraph(saver: JournalSaver) -> None:
    class State(TypedDict, total=False):
        a: Annotated[list[str], operator.add]

    child = StateGraph(State).add_node("ask", lambda state: {"a": [interrupt("?")]}).add_edge(START, "ask").compile()
    graph = StateGraph(State).add_node("one", lambda state: {"a": ["one"]}).add_node("child", child)
    app = graph.add_edge(START, "one").add_edge("one", "child").compile(checkpointer=saver)
    app.invoke({"a": ["in"]}, config())

    saver.prune(["t"])

    assert "?" == app.get_state(config()).interrupts[0].value
    assert {"a": ["in", "one", "in", "one", "yes"]} == app.invoke(Command(resume="yes"), config())


def test_prune_drops_the_namespaces_of_calls_that_are_over_and_keeps_lasting_ones(saver: JournalSaver) -> None:
    class State(TypedDict, total=False):
        a: Annotated[list[str], operator.add]

    def child(name: str, **options: Any) -> Any:
        return StateGraph(State).add_node(name, lambda state: {"a": [name]}).add_edge(START, name).compile(**options)

    graph = StateGraph(State).add_node("one", child("once")).add_node("two", child("lasting", checkpointer=True))
    graph.add_node("end", lambda state: None).add_edge(START, "one").add_edge("one", "two").add_edge("two", "end")
    app = graph.compile(checkpointer=saver)
    app.invoke({"a": []}, config())
    before = {found.config["configurable"]["checkpoint_ns"].split(":")[0] for found in saver.list(config())}

    saver.prune(["t"])

    left = [found.config["configurable"]["checkpoint_ns"] for found in saver.list(config())]
    assert {"", "one", "two"} == before
    assert ["", "two"] == sorted(left)
    app.invoke({"a": []}, config("unpruned"))
    assert app.invoke({"a": []}, config("unpruned")) == app.invoke({"a": []}, config())


def test_prune_leaves_a_live_thread_alone_and_says_so(saver: JournalSaver) -> None:
    live = Run(saver, "live")
    live.save({"a": 1})
    live.save({"a": 2})
    for thread in ("one", "two"):
        run = Run(saver, thread)
        run.save({"a": 1})
        run.save({"a": 2})
        run.release()

    with pytest.raises(ThreadBusy, match="live"):
        saver.prune(["one", "live", "two"])

    assert [1, 2, 1] == [len(history(saver, thread)) for thread in ("one", "live", "two")]
    live.save({"a": 3})
    live.release()
    saver.prune(["live"])
    assert [{"a": 3}] == [values for _, _, values in history(saver, "live")]


def test_a_thread_whose_owner_died_is_pruned(saver: JournalSaver) -> None:
    run = Run(saver)
    run.claim(ttl=-1.0)
    run.save({"a": 1})
    lapsed = run.blank()
    run.add_save(lapsed, {"a": 2})
    run.send(lapsed)
    assert saver.load("t", [Load()]).thread.lapsed

    saver.prune(["t"])

    assert 1 == len(history(saver))


def test_a_prune_between_load_and_claim_makes_the_claim_miss(saver: JournalSaver) -> None:
    first = Run(saver)
    old = first.save({"a": 1})
    first.save({"a": 2})
    first.release()
    late = Run(saver)

    saver.prune(["t"])

    assert not late.claim().landed
    assert Run(saver).claim().landed
    assert saver.load("t", [Load("", old)]).saved == [None]


def test_a_fork_of_a_pruned_checkpoint_is_a_named_error(saver: JournalSaver) -> None:
    class State(TypedDict, total=False):
        a: str

    graph = StateGraph(State).add_node("n", lambda state: {"a": "n"}).add_edge(START, "n").compile(checkpointer=saver)
    graph.invoke({"a": "in"}, config())
    *_, oldest = graph.get_state_history(config())

    saver.prune(["t"])

    with pytest.raises(CheckpointNotFoundError):
        graph.invoke(None, oldest.config)


def test_prune_delete_removes_everything(saver: JournalSaver) -> None:
    for thread in ("t", "u"):
        run = Run(saver, thread)
        run.save({"a": 1})
        run.release()
    where = saver.get_tuple(config())
    assert where is not None

    saver.prune(["t"], strategy="delete")

    assert ["u"] == [row.thread for row in saver.threads()]
    with pytest.raises(ThreadDeleted):
        put(saver, {"a": 1}, where.config)


def test_what_prune_is_given_is_checked(saver: JournalSaver) -> None:
    saver.prune([])
    with pytest.raises(TypeError, match="sequence"):
        saver.prune("t")
    with pytest.raises(ValueError, match="keep_latest"):
        saver.prune(["t"], strategy="everything")


def test_prunes_beside_runs_lose_nothing(saver: JournalSaver) -> None:
    class State(TypedDict, total=False):
        a: Annotated[list[int], operator.add]

    graph = StateGraph(State).add_node("n", lambda state: {"a": [-1]}).add_edge(START, "n").compile(checkpointer=saver)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: [graph.invoke({"a": [number]}, config()) for number in range(15)])
        for _ in range(15):
            with suppress(ThreadBusy):
                saver.prune(["t"])
        running.result()

    assert [value for number in range(15) for value in (number, -1)] == graph.get_state(config()).values["a"]
    assert [] == saver.verify("t")
    saver.prune(["t"])
    assert [] == saver.verify("t")
    assert 1 == len(history(saver))


# -- runs --------------------------------------------------------------------------------------------------------------


def test_the_checkpoints_of_runs_go_and_their_children_hang_on_what_is_left(saver: JournalSaver) -> None:
    run = Run(saver)
    ids = [run.save({"a": [LONG, i]}, metadata={"run_id": f"run-{i % 3}"}) for i in range(6)]
    run.write([("a", 1)], task="task")
    run.release()

    saver.delete_for_runs(["run-1", "run-2", "unknown"])
    saver.delete_for_runs([])

    assert [(ids[3], ids[0], {"a": [LONG, 3]}), (ids[0], None, {"a": [LONG, 0]})] == history(saver)
    assert [] == next(iter(saver.list(config()))).pending_writes


def test_a_value_that_a_survivor_shares_with_a_deleted_run_stays(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": [LONG]}, metadata={"run_id": "gone"})
    run.save({"b": 1})
    run.save({"b": 2}, metadata={"run_id": "gone"})
    run.release()

    saver.delete_for_runs(["gone"])

    assert [{"a": [LONG], "b": 1}] == [values for _, _, values in history(saver)]


def test_a_checkpoint_whose_base_goes_with_a_run_is_whole_again(saver: JournalSaver) -> None:
    run = Run(saver)
    names = [f"channel_{i}" for i in range(100)]
    saver.intern(names)
    state: dict[str, Any] = dict.fromkeys(names, 1)
    run.save(state, metadata={"run_id": "gone"})
    run.save({names[0]: 2})
    run.save({names[1]: LONG})
    run.release()

    saver.delete_for_runs(["gone"])

    assert [state | {names[0]: 2, names[1]: LONG}, state | {names[0]: 2}] == [v for _, _, v in history(saver)]


def test_runs_are_deleted_in_every_thread_and_namespace_but_not_under_a_live_run(saver: JournalSaver) -> None:
    for thread in ("one", "live", "two"):
        run = Run(saver, thread)
        run.save({"a": thread}, metadata={"run_id": "gone"})
        child = Run(saver, thread, ns="child")
        child.epoch, child.run, child.seq = run.epoch, run.run, run.seq
        child.save({"a": thread}, metadata={"run_id": "gone"})
        run.seq = child.seq
        if thread != "live":
            run.release()

    with pytest.raises(ThreadBusy, match="live"):
        saver.delete_for_runs(["gone"])

    assert [0, 2, 0] == [len(history(saver, thread, ns=None)) for thread in ("one", "live", "two")]


# -- copies ------------------------------------------------------------------------------------------------------------


def test_a_copy_has_everything_and_shares_nothing(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": [LONG]})
    run.save({"b": 2})
    run.write([("a", 1)], task="task")
    child = Run(saver, ns="child")
    child.epoch, child.run, child.seq = run.epoch, run.run, run.seq
    child.save({"a": "child"})
    run.seq = child.seq
    run.release("interrupted", "asked")
    before = everything(saver)

    saver.copy_thread("t", "copy")

    assert sorted(before) == sorted(("t", *rest) for thread, *rest in everything(saver) if thread == "copy")
    assert before == [entry for entry in everything(saver) if entry[0] == "t"]
    row = saver.load("copy", [Load()]).thread
    assert ("interrupted", "asked", None) == (row.status, row.reason, row.run)
    again = Run(saver, "copy")
    again.save({"a": "new"})
    again.release()
    saver.delete_thread("t")
    assert ["new", [LONG], [LONG]] == [values["a"] for _, _, values in history(saver, "copy")]


@pytest.mark.acceptance("S1-35")
def test_a_copied_question_is_answered_in_the_copy_and_finished_work_is_not_repeated(saver: JournalSaver) -> None:
    class State(TypedDict, total=False):
        a: Annotated[list[str], operator.add]

    calls: list[str] = []

    def work(state: State) -> State:
        calls.append("work")
        return {"a": ["worked"]}

    graph = StateGraph(State).add_node("work", work).add_node("ask", lambda state: {"a": [interrupt("?")]})
    app = graph.add_edge(START, "work").add_edge(START, "ask").compile(checkpointer=saver)
    app.invoke({"a": []}, config())

    saver.copy_thread("t", "copy")

    assert {"a": ["no", "worked"]} == app.invoke(Command(resume="no"), config("copy"))
    assert {"a": ["yes", "worked"]} == app.invoke(Command(resume="yes"), config("t"))
    assert ["work"] == calls


def test_a_copy_of_a_running_thread_is_free_and_stands_at_its_last_record(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": 1})

    saver.copy_thread("t", "copy")

    row = saver.load("copy", [Load()]).thread
    assert ("idle", None) == (row.status, row.run)
    run.save({"a": 2})
    assert [{"a": 1}] == [values for _, _, values in history(saver, "copy")]


def test_a_copy_never_overwrites_and_nothing_is_copied_of_nothing(saver: JournalSaver) -> None:
    for thread in ("t", "u"):
        Run(saver, thread).save({"a": thread})
    before = everything(saver)

    saver.copy_thread("unknown", "new")
    with pytest.raises(ValueError, match="exists"):
        saver.copy_thread("t", "u")

    assert before == everything(saver)
    assert {"t", "u"} == {row.thread for row in saver.threads()}


def test_a_namespace_of_a_copy_gets_a_number_of_its_own_after_a_prune(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": 1})
    run.release()
    saver.prune(["t"])
    saver.copy_thread("t", "copy")

    for ns in ("child", "other"):
        child = Run(saver, "copy", ns=ns)
        child.save({"a": ns})
        child.release()

    opened = saver.load("copy", [Load(), Load("child"), Load("other")])
    assert [1, "child", "other"] == [saved.values["a"] for saved in opened.saved if saved]


# -- sweeps ------------------------------------------------------------------------------------------------------------


def test_a_sweep_takes_what_is_old_and_free(saver: JournalSaver) -> None:
    for thread in ("old", "older"):
        Run(saver, thread).release()
    Run(saver, "live").save({"a": 1})

    assert [] == saver.sweep(3600)
    assert ["old", "older"] == saver.sweep(-3600)
    assert ["live"] == [row.thread for row in saver.threads()]


def test_a_sweep_may_keep_the_newest(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": 1})
    run.save({"a": 2})
    run.release()

    assert ["t"] == saver.sweep(-3600, strategy="keep_latest")
    assert [{"a": 2}] == [values for _, _, values in history(saver)]
