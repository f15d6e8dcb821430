"""What every journal promises, on memory and on SQLite: guarded appends, claims, reads that change nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.base import BaseCheckpointSaver, CheckpointMetadata, CheckpointTuple, empty_checkpoint
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.keys import version_text
from pregel.checkpoint.lease import live_runs, this_owner
from pregel.checkpoint.memory import InMemorySaver, MemorySaver
from pregel.checkpoint.records import Load, Page, Release
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.config import RunnableConfig
from pregel.errors import InternalError, MissingThreadError, SerializationError, ThreadBusy, ThreadDeleted
from pregel.types import Interrupt
from tests.behaviour.journals import Run, everything, fresh_id, newest


@pytest.fixture(params=["memory", "sqlite", "sqlite-memory"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[JournalSaver]:
    if request.param == "memory":
        yield InMemorySaver()
    else:
        path = ":memory:" if request.param == "sqlite-memory" else tmp_path / "threads.db"
        with SqliteSaver.from_conn_string(path, synchronous="NORMAL") as made:
            yield made


def config(thread: str = "t", **coordinates: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, **coordinates}}


# -- appends -----------------------------------------------------------------------------------------------------------


def test_a_run_is_stored_and_loaded(saver: JournalSaver) -> None:
    run = Run(saver)

    first = run.save({"a": [1], "b": None}, source="input", metadata={"user": "u"})
    second = run.save({"a": [1, 2]})
    run.write([("a", "x"), ("b", (1, 2))], task="task-1")

    saved = newest(saver)
    assert saved is not None
    assert (second, first, 0) == (saved.id, saved.parent, saved.step)
    assert {"a": [1, 2], "b": None} == saved.values
    assert {"a": 2, "b": 1} == saved.counters
    assert [("task-1", 0, "a", "x"), ("task-1", 1, "b", (1, 2))] == [
        (write.task, write.idx, write.channel, write.value) for write in saved.writes
    ]
    parent = saver.load("t", [Load("", first)]).saved[0]
    assert parent is not None
    assert {"source": "input", "step": -1, "parents": {}, "user": "u"} == parent.metadata


def test_a_thread_is_claimed_with_its_first_append_and_given_back_with_its_last(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": 1})
    held = saver.load("t", [Load()]).thread

    run.release("interrupted", "asked a question")

    row = saver.load("t", [Load()]).thread
    assert ("running", run.run, this_owner()) == (held.status, held.run, held.owner)
    assert ("interrupted", "asked a question", None) == (row.status, row.reason, row.run)
    assert (2, held.epoch) == (row.seq, row.epoch)


@pytest.mark.parametrize("stale", ["seq", "epoch", "run", "tno"])
def test_an_append_that_expects_something_else_is_refused_and_changes_nothing(saver: JournalSaver, stale: str) -> None:
    run = Run(saver)
    run.save({"a": 1})
    run.save({"a": 2})
    before = everything(saver), saver.load("t", [Load()]).thread
    append = run.blank()
    run.add_save(append, {"a": "stale"})
    run.add_writes(append, [("a", "stale")])
    wrong: dict[str, Any] = {"seq": run.seq - 1, "epoch": run.epoch - 1, "run": b"other", "tno": run.tno + 1}

    receipt = saver.append(replace(append, **{stale: wrong[stale]}))

    assert not receipt.landed
    assert (run.seq, run.epoch) == (receipt.thread.seq, receipt.thread.epoch)
    assert before == (everything(saver), saver.load("t", [Load()]).thread)


def test_an_append_sent_again_is_known_to_have_landed_and_changes_nothing(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": 1})
    append = run.blank()
    run.add_save(append, {"a": 2})
    run.send(append)
    before = everything(saver)

    again = saver.append(append)

    assert again.landed
    assert (run.seq, before) == (again.thread.seq, everything(saver))


def test_a_late_duplicate_is_refused(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": 1})
    append = run.blank()
    run.add_save(append, {"a": 2})
    run.send(append)
    run.save({"a": 3})
    before = everything(saver)

    assert not saver.append(append).landed
    assert before == everything(saver)


def test_a_forked_twin_with_the_same_run_and_seq_is_refused(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": 1})
    mine, twins = run.blank(), run.blank()
    run.add_save(mine, {"a": 2})
    run.add_save(twins, {"a": "twin"})

    assert run.send(mine).landed
    assert not saver.append(twins).landed


def test_the_first_claim_of_a_new_thread_wins(saver: JournalSaver) -> None:
    one, other = Run(saver), Run(saver)

    assert one.claim().landed
    receipt = other.claim()

    assert not receipt.landed
    assert one.run == receipt.thread.run


def test_a_claim_needs_the_thread_as_it_was_loaded(saver: JournalSaver) -> None:
    Run(saver).release()
    late, quick = Run(saver), Run(saver)
    quick.release()

    assert not late.claim().landed
    assert Run(saver).claim().landed


def test_a_held_thread_is_not_claimed(saver: JournalSaver) -> None:
    Run(saver).claim()

    receipt = Run(saver).claim()

    assert not receipt.landed
    assert "running" == receipt.thread.status


def test_a_zombie_is_refused_after_a_takeover(saver: JournalSaver) -> None:
    zombie = Run(saver)
    zombie.save({"a": 1})
    heir = Run(saver)

    assert heir.claim(dead=True).landed
    heir.save({"a": "heir"})

    assert not zombie.write([("a", "late")]).landed
    assert heir.epoch > zombie.epoch
    saved = newest(saver)
    assert saved is not None
    assert ({"a": "heir"}, []) == (saved.values, saved.writes)


def test_a_lapsed_lease_can_be_taken(saver: JournalSaver) -> None:
    Run(saver).claim(ttl=-1.0)
    heir = Run(saver)

    assert heir.opened.thread.lapsed
    assert heir.claim().landed


def test_an_append_renews_the_lease(saver: JournalSaver) -> None:
    run = Run(saver)
    run.claim(ttl=1000.0)
    before = saver.load("t", [Load()]).thread

    run.save({"a": 1})

    after = saver.load("t", [Load()]).thread
    assert not before.lapsed
    assert after.expires >= before.expires > after.updated_at + 900


def test_epochs_rise_over_a_deleted_thread(saver: JournalSaver) -> None:
    first = Run(saver)
    first.save({"a": 1})
    saver.delete_thread("t")

    second = Run(saver)
    second.save({"a": 2})

    assert second.epoch > first.epoch
    assert not first.write([("a", "late")]).landed


def test_claim_records_and_release_fit_one_append(saver: JournalSaver) -> None:
    run = Run(saver)
    append = run.blank(claim=True)
    run.add_save(append, {"a": 1}, source="update")
    append.release = Release("idle")

    receipt = run.send(append)

    assert receipt.landed
    assert (None, "idle", 1) == (receipt.thread.run, receipt.thread.status, receipt.thread.seq)
    assert Run(saver).claim().landed


def test_normal_writes_are_inserted_once_and_control_writes_replaced(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": 1})
    run.write([("a", 1), ("__resume__", ["one"])], task="x")

    run.write([("a", 2), ("__resume__", ["one", "two"])], task="x")

    saved = newest(saver)
    assert saved is not None
    assert [(-4, ["one", "two"]), (0, 1)] == [(write.idx, write.value) for write in saved.writes]


def test_a_checkpoint_stored_twice_is_a_bug_and_stores_nothing(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": 1})
    append = run.blank()
    run.add_writes(append, [("a", 5)])
    run.add_save(append, {"a": 2})
    append.checkpoints.append(append.checkpoints[0])
    append.checkpoints[0] = append.checkpoints[0]._replace(id=fresh_id_bytes(saver))
    before = everything(saver)

    with pytest.raises(InternalError, match="stored"):
        saver.append(append)

    assert before == everything(saver)
    assert run.send(run.blank()).landed


def fresh_id_bytes(saver: JournalSaver) -> bytes:
    """The id of the checkpoint that is stored."""
    from pregel.checkpoint.keys import id_bytes

    saved = newest(saver)
    assert saved is not None
    return id_bytes(saved.id)


def test_stored_values_share_nothing_with_the_callers(saver: JournalSaver) -> None:
    run = Run(saver)
    value = {"list": [1]}
    run.save({"a": value})
    run.write([("a", value)])
    value["list"].append(2)

    first, second = newest(saver), newest(saver)

    assert first is not None
    assert second is not None
    assert [{"list": [1]}] * 2 == [first.values["a"], first.writes[0].value]
    first.values["a"]["list"].append(3)
    assert {"list": [1]} == second.values["a"]


# -- loads -------------------------------------------------------------------------------------------------------------


def test_a_load_gives_the_newest_one_by_id_or_the_newest_before(saver: JournalSaver) -> None:
    run = Run(saver)
    ids = [run.save({"a": i}) for i in range(5)]

    opened = saver.load("t", [Load(), Load("", ids[1]), Load("", None, ids[3]), Load("", fresh_id()), Load("other")])

    assert [ids[4], ids[1], ids[2], None, None] == [saved and saved.id for saved in opened.saved]
    assert {"": ids[4]} == opened.heads


def test_namespaces_are_apart(saver: JournalSaver) -> None:
    root = Run(saver)
    root.save({"a": "root"})
    child = Run(saver, ns="child:1")
    child.epoch, child.run, child.seq = root.epoch, root.run, root.seq
    child.save({"a": "child"})

    opened = saver.load("t", [Load(), Load("child:1")])

    assert ["root", "child"] == [saved.values["a"] for saved in opened.saved if saved]
    assert {"", "child:1"} == opened.heads.keys() == opened.thread.namespaces.keys()


def test_many_channels_at_depth_load_whole(saver: JournalSaver) -> None:
    run = Run(saver)
    names = [f"channel_{i}" for i in range(300)]
    saver.intern(names)
    state: dict[str, Any] = {name: f"{name} {'x' * 80}" for name in names}
    run.save(state)
    states = [dict(state)]
    for step in range(200):
        changed = {names[(step * 7 + i) % 300]: step for i in range(3)}
        state.update(changed)
        run.save(changed)
        states.append(dict(state))

    history = [saved.values for _, saved in saver.page("t", Page())]

    assert states == history[::-1]
    saved = newest(saver)
    assert saved is not None
    assert state == saved.values


def test_another_saver_on_the_same_store_reads_names_it_did_not_intern(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(tmp_path / "x.db") as one, SqliteSaver.from_conn_string(tmp_path / "x.db") as two:
        two.intern(["first"])
        one.intern(["zeta", "eta"])
        Run(one).save({"zeta": 1, "a": 2})

        saved = newest(two)

    assert saved is not None
    assert {"zeta": 1, "a": 2} == saved.values


def test_reads_change_nothing(saver: JournalSaver) -> None:
    Run(saver).save({"a": 1})
    before = everything(saver), saver.threads()

    saver.load("nobody", [Load(), Load("x")])
    saver.get_tuple(config("nobody"))
    saver.get_tuple(config("t", checkpoint_ns="nowhere"))
    list(saver.list(config("nobody")))
    saver.page("nobody", Page())
    saver.delete_thread("nobody")

    assert before == (everything(saver), saver.threads())


def test_threads_are_listed_last_written_first(saver: JournalSaver) -> None:
    for name in ("one", "two", "three"):
        Run(saver, name).save({"a": 1})
    Run(saver, "four").release("interrupted")

    assert ["four", "three", "two", "one"] == [row.thread for row in saver.threads()]
    assert ["four"] == [row.thread for row in saver.threads(status="interrupted")]
    assert ["four", "three"] == [row.thread for row in saver.threads(limit=2)]


@pytest.mark.acceptance("S1-36")
def test_a_new_thread_is_an_empty_history_and_threads_see_nothing_of_each_other(saver: JournalSaver) -> None:
    for name in ("one", "two"):
        run = Run(saver, name)
        run.save({"a": name})
        run.write([("b", name)])

    assert [] == list(saver.list(config("three")))
    for name in ("one", "two"):
        assert [({"a": name}, [name])] == [
            (found.checkpoint["channel_values"], [value for _, _, value in found.pending_writes or ()])
            for found in saver.list(config(name))
        ]


# -- history -----------------------------------------------------------------------------------------------------------


def test_a_page_is_newest_first_and_goes_on_before_an_id(saver: JournalSaver) -> None:
    run = Run(saver)
    ids = [run.save({"a": i}) for i in range(7)]

    first = saver.page("t", Page(limit=3))
    second = saver.page("t", Page(limit=3, before=first[-1][1].id))

    assert ids[:0:-1] == [saved.id for _, saved in first + second]


def test_a_page_may_span_namespaces_and_threads(saver: JournalSaver) -> None:
    root = Run(saver)
    ids = [root.save({"a": 1})]
    child = Run(saver, ns="child")
    child.epoch, child.run, child.seq = root.epoch, root.run, root.seq
    ids.append(child.save({"a": 2}))
    other = Run(saver, "u").save({"a": 3})

    assert ids[::-1] == [saved.id for _, saved in saver.page("t", Page(ns=None))]
    assert [("u", other), ("t", ids[1]), ("t", ids[0])] == [(t, s.id) for t, s in saver.page(None, Page(ns=None))]
    assert [("u", other), ("t", ids[0])] == [(t, s.id) for t, s in saver.page(None, Page(ns=""))]


def test_a_filter_is_applied_before_the_limit(saver: JournalSaver) -> None:
    run = Run(saver)
    ids = [run.save({"a": i}, metadata={"even": i % 2 == 0, "who": None if i else "x"}) for i in range(200)]

    def found(limit: int | None = None, **wanted: Any) -> list[str]:
        return [saved.id for _, saved in saver.page("t", Page(limit=limit, filter=wanted))]

    assert ids[198:100:-2][:3] == found(3, even=True)
    assert 100 == len(found(even=False))
    assert [ids[5]] == found(step=4)
    assert [ids[0]] == found(who="x")
    assert 199 == len(found(who=None))
    assert [] == found(even=True, source="fork")


def test_a_limit_of_zero_is_nothing(saver: JournalSaver) -> None:
    Run(saver).save({"a": 1})

    assert [] == saver.page("t", Page(limit=0))
    assert [] == list(saver.list(config(), limit=0))


# -- delete ------------------------------------------------------------------------------------------------------------


def test_a_deleted_thread_is_gone_and_others_stay(saver: JournalSaver) -> None:
    for name in ("t", "u"):
        run = Run(saver, name)
        run.save({"a": "x" * 200})
        run.write([("a", 1)])

    saver.delete_thread("t")

    assert None is saver.get_tuple(config("t"))
    assert ["u"] == [row.thread for row in saver.threads()]
    assert ["u"] == [thread for thread, *_ in everything(saver)]


def test_a_run_whose_thread_was_deleted_cannot_write_it_back(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": 1})
    saver.delete_thread("t")

    receipt = run.write([("a", 2)])

    assert (False, 0) == (receipt.landed, receipt.thread.tno)
    assert [] == saver.threads()


def test_a_late_put_with_a_checkpoint_of_a_deleted_thread_is_refused(saver: JournalSaver) -> None:
    where = put(saver, {"a": 1})
    saver.delete_thread("t")

    with pytest.raises(ThreadDeleted):
        saver.put_writes(where, [("a", 1)], "task")
    with pytest.raises(ThreadDeleted):
        put(saver, {"a": 2}, where)

    assert [] == saver.threads()
    put(saver, {"a": 3})
    assert ["t"] == [row.thread for row in saver.threads()]


# -- first tier --------------------------------------------------------------------------------------------------------


_METADATA: CheckpointMetadata = {"source": "loop", "step": 1}


def put(
    saver: BaseCheckpointSaver[Any],
    values: dict[str, Any],
    where: RunnableConfig | None = None,
    *,
    versions: dict[str, Any] | None = None,
    new: dict[str, Any] | None = None,
    metadata: Any = None,
    **fields: Any,
) -> RunnableConfig:
    """`put` as a foreign engine does it."""
    versions = versions or {channel: saver.get_next_version(None, None) for channel in values}
    checkpoint: Any = {
        **empty_checkpoint(),
        "id": fresh_id(),
        "channel_values": values,
        "channel_versions": versions,
        **fields,
    }
    where = where or {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    return saver.put(where, checkpoint, _METADATA if metadata is None else metadata, versions if new is None else new)


def test_a_run_is_shown_in_the_shape_of_the_contract(saver: JournalSaver) -> None:
    run = Run(saver)
    first = run.save({"a": 1, "b": 2, "c": None}, source="input", seen={"n": {}}, updated=["b", "a"])
    second = run.save({"a": 2}, seen={"n": {"a": 1, "b": 1}, "__interrupt__": {"": 1}})
    run.write([("a", 1), ("__interrupt__", (Interrupt("q", "f" * 32),))], task="t2", path="~2")
    run.write([("__resume__", {"e" * 32: "yes"})], task="t1", path="~1")

    found = saver.get_tuple(config("t"))

    assert found is not None
    assert config("t", checkpoint_ns="", checkpoint_id=second) == found.config
    assert config("t", checkpoint_ns="", checkpoint_id=first) == found.parent_config
    checkpoint = found.checkpoint
    versions = {"a": version_text(2, 2), "b": version_text(1, 1), "c": version_text(1, 1)}
    assert (4, second, versions) == (checkpoint["v"], checkpoint["id"], checkpoint["channel_versions"])
    assert {"a": 2, "b": 2, "c": None} == checkpoint["channel_values"]
    assert {
        "n": {"a": version_text(1), "b": version_text(1, 1)},
        "__interrupt__": {"a": version_text(1), "b": version_text(1, 1), "c": version_text(1, 1)},
    } == checkpoint["versions_seen"]
    assert [
        ("t1", "__resume__", ["yes"]),
        ("t2", "__interrupt__", (Interrupt("q", "f" * 32),)),
        ("t2", "a", 1),
    ] == found.pending_writes


def test_a_foreign_checkpoint_comes_back_word_for_word(saver: JournalSaver) -> None:
    fields: dict[str, Any] = {"v": 1, "ts": "2020-01-01", "versions_seen": {"n": {"a": 3}}, "updated_channels": ["a"]}
    where = put(saver, {"a": [1], "b": None}, versions={"a": 3, "b": 2.5}, metadata={"step": 7, "x": [1]}, **fields)

    found = saver.get_tuple(where)

    assert found is not None
    assert (where, None, {"step": 7, "x": [1]}) == (found.config, found.parent_config, found.metadata)
    assert {"a": [1], "b": None} == found.checkpoint["channel_values"]
    assert {"a": 3, "b": 2.5} == found.checkpoint["channel_versions"]
    assert fields == {key: found.checkpoint[key] for key in fields}  # type: ignore[literal-required]


def test_values_that_did_not_change_come_from_the_parent(saver: JournalSaver) -> None:
    where = put(saver, {"a": "x" * 100, "b": 1}, versions={"a": 1, "b": 1})

    where = put(saver, {"b": 2}, where, versions={"a": 1, "b": 2}, new={"b": 2})

    found = saver.get_tuple(where)
    assert found is not None
    assert {"a": "x" * 100, "b": 2} == found.checkpoint["channel_values"]


def test_a_removed_channel_is_not_loaded(saver: JournalSaver) -> None:
    where = put(saver, {"a": 1, "b": 1}, versions={"a": 1, "b": 1})

    where = put(saver, {"b": 2}, where, versions={"b": 2})

    found = saver.get_tuple(where)
    assert found is not None
    assert {"b": 2} == found.checkpoint["channel_values"]


def test_put_writes_are_kept_once_and_controls_replaced(saver: JournalSaver) -> None:
    where = put(saver, {"a": 1})

    saver.put_writes(where, [("a", 1), ("b", 2)], "t1", "~2")
    saver.put_writes(where, [("a", "again")], "t1", "~2")
    saver.put_writes(where, [("__error__", "one")], "t0", "~1")
    saver.put_writes(where, [("__error__", ValueError("two"))], "t0", "~1")

    found = saver.get_tuple(where)
    assert found is not None
    assert [("t0", "__error__", "ValueError('two')"), ("t1", "a", 1), ("t1", "b", 2)] == found.pending_writes


def test_writes_may_come_before_their_checkpoint(saver: JournalSaver) -> None:
    checkpoint = fresh_id()
    where = config("t", checkpoint_ns="", checkpoint_id=checkpoint)
    saver.put_writes(where, [("a", 1)], "t1")

    put(saver, {"a": 1}, id=checkpoint)

    found = saver.get_tuple(where)
    assert found is not None
    assert [("t1", "a", 1)] == found.pending_writes


def test_a_put_on_a_thread_that_a_live_run_holds_is_refused(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": 1})

    with pytest.raises(ThreadBusy):
        put(saver, {"a": 2})

    assert run.write([("a", 3)]).landed
    live_runs.discard(run.run)
    put(saver, {"a": 2})


def test_put_writes_beside_a_live_run_do_not_break_it(saver: JournalSaver) -> None:
    run = Run(saver)
    checkpoint = run.save({"a": 1})

    saver.put_writes(config("t", checkpoint_ns="", checkpoint_id=checkpoint), [("a", "foreign")], "t9", "~9")

    assert run.write([("a", "own")], task="t1").landed
    saved = newest(saver)
    assert saved is not None
    assert ["foreign", "own"] == [write.value for write in saved.writes]


def test_our_engine_goes_on_from_a_foreign_checkpoint(saver: JournalSaver) -> None:
    version = saver.get_next_version(saver.get_next_version(None, None), None)
    put(saver, {"a": [1], "b": 0}, versions={"a": version, "b": version}, versions_seen={"n": {"a": version}})

    run = Run(saver)
    run.save({"b": 5})

    assert ({"a": 2, "b": 2}, {"n": {"a": 2}}) == (run.opened.saved[0].counters, run.opened.saved[0].seen)  # type: ignore[union-attr]
    saved = newest(saver)
    assert saved is not None
    assert {"a": [1], "b": 5} == saved.values


def test_a_put_that_cannot_be_stored_leaves_no_thread_behind(saver: JournalSaver) -> None:
    with pytest.raises(SerializationError):
        put(saver, {"a": object()})
    with pytest.raises(SerializationError):
        put(saver, {"a": 1}, metadata={"x": object()})

    assert [] == saver.threads()


def test_a_put_again_replaces_the_checkpoint(saver: JournalSaver) -> None:
    checkpoint = fresh_id()
    put(saver, {"a": 1}, id=checkpoint)

    put(saver, {"a": 2}, id=checkpoint)

    assert [{"a": 2}] == [found.checkpoint["channel_values"] for found in saver.list(config("t"))]


def test_list_filters_and_limits(saver: JournalSaver) -> None:
    wheres = [put(saver, {"a": i}, metadata={"source": "loop", "step": i, "half": i // 2}) for i in range(120)]
    other = put(saver, {"a": 0}, config("u", checkpoint_ns="child"), metadata={"step": 0})

    def found(where: RunnableConfig | None, **options: Any) -> list[RunnableConfig]:
        return [item.config for item in saver.list(where, **options)]

    assert wheres[::-1] == found(config("t"))
    assert wheres[59:57:-1] == found(config("t"), filter={"half": 29}) == found(config("t"), before=wheres[60], limit=2)
    assert [other] == found(config("u")) == found(config("u", checkpoint_ns="child"))
    assert [] == found(config("u", checkpoint_ns=""))
    assert 121 == len(found(None))
    assert [wheres[0]] == found(config("t"), filter={"step": 0, "source": "loop"})
    assert [wheres[7]] == found(wheres[7])


def test_a_config_without_a_thread_is_an_error(saver: JournalSaver) -> None:
    with pytest.raises(MissingThreadError):
        saver.get_tuple({"configurable": {}})


def test_a_walk_collects_the_writes_since_a_value(saver: JournalSaver) -> None:
    where = put(saver, {"d": "seed"}, versions={"d": 1})
    saver.put_writes(where, [("d", 1)], "t1")
    for i in (2, 3):
        where = put(saver, {}, where, versions={"x": i}, new={})
        saver.put_writes(where, [("d", i), ("e", i)], "t1")

    found = saver.get_delta_channel_history(config=where, channels=["d", "e"])

    assert {
        "d": {"writes": [("t1", "d", 1), ("t1", "d", 2)], "seed": "seed"},
        "e": {"writes": [("t1", "e", 2)]},
    } == found


def test_the_async_twins_do_the_same(saver: JournalSaver) -> None:
    async def use() -> list[CheckpointTuple]:
        checkpoint: Any = {**empty_checkpoint(), "channel_values": {"a": 1}, "channel_versions": {"a": "1"}}
        where = await saver.aput(config("t", checkpoint_ns=""), checkpoint, {"step": 1}, {"a": "1"})
        await saver.aput_writes(where, [("a", 2)], "t1")
        found = await saver.aget_tuple(where)
        assert found is not None
        assert found.checkpoint == await saver.aget(where)
        assert [where] == [item.config async for item in saver.alist(config("t"))]
        assert 1 == (await saver.aload("t", [Load()])).thread.seq
        await saver.aintern(["q"])
        assert ["t"] == [row.thread for row in await saver.athreads()]
        assert 1 == len(await saver.apage("t", Page()))
        await saver.adelete_thread("t")
        return [item async for item in saver.alist(config("t"))]

    assert [] == asyncio.run(use())


def test_the_memory_saver_has_both_names_and_is_a_context_manager() -> None:
    assert MemorySaver is InMemorySaver
    with InMemorySaver() as saver:
        assert isinstance(saver, BaseCheckpointSaver)


def test_versions_go_on_from_any_kind(saver: JournalSaver) -> None:
    kinds: list[Any] = [None, 7, version_text(2, 9)]

    assert [version_text(1), version_text(8), version_text(3)] == [saver.get_next_version(kind) for kind in kinds]
