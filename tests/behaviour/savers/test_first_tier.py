"""The first-tier verbs, on every journal: what a foreign engine puts, and how a run of ours looks to it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pregel.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, empty_checkpoint
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.keys import version_text
from pregel.checkpoint.lease import live_runs
from pregel.checkpoint.memory import InMemorySaver, MemorySaver
from pregel.checkpoint.records import Load, Page
from pregel.config import RunnableConfig
from pregel.errors import MissingThreadError, SerializationError, ThreadBusy, ThreadDeleted
from pregel.types import Interrupt
from tests.behaviour.journals import Run, fresh_id, newest
from tests.behaviour.savers.foreign import config, put


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


def test_a_walk_ends_where_ancestors_that_were_put_by_hand_come_round_again(saver: JournalSaver) -> None:
    first = put(saver, {"b": 1}, id="a")
    second = put(saver, {"b": 2}, first, id="b")
    put(saver, {"b": 1}, second, id="a")

    found = saver.get_delta_channel_history(config=second, channels=["log"])
    awaited = asyncio.run(saver.aget_delta_channel_history(config=second, channels=["log"]))

    assert {"log": {"writes": []}} == found == awaited


def test_an_empty_checkpoint_id_names_the_newest(saver: JournalSaver) -> None:
    put(saver, {"a": 1}, id="x")
    newest = put(saver, {"a": 2}, id="y")

    found = saver.get_tuple(config("t", checkpoint_id=""))

    assert found is not None
    assert newest == found.config


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


class Unspeakable(Exception):
    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_an_error_that_cannot_tell_itself_is_stored_by_its_name(saver: JournalSaver) -> None:
    where = put(saver, {"a": 1})

    saver.put_writes(where, [("__error__", Unspeakable())], "t1")

    found = saver.get_tuple(where)
    assert found is not None
    assert [("t1", "__error__", "Unspeakable")] == found.pending_writes
