"""Journaled chunks as rows: fenced like every record, in order, and known to every upkeep."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.checkpoint.chunks import LANDED, PENDING, ChunkedAppend, ChunkRow, pack_chunks, unpack_chunks
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.records import Receipt
from tests.behaviour.journals import Run


def shown(run: Run, *data: Any, state: int = LANDED, run_id: str | None = None, **claims: Any) -> Receipt:
    """Append chunks with this data, behind those that are there."""
    saver = run.saver
    append = ChunkedAppend.of(run.blank(claim=not run.epoch, **claims))
    last = saver.chunk_tail(run.thread).next + len(data) - 1
    blob = pack_chunks([("", "custom", *saver.serde.dumps_typed(one)) for one in data])
    append.chunks = [ChunkRow(last, len(data), 1, state, "n", run_id, 0.0, blob)]
    return run.send(append)


def data_of(saver: JournalSaver, thread: str = "t", offset: int = 0) -> list[tuple[int, Any]]:
    """Offset and data of what a reader is given; whole rows, so it may begin before the offset."""
    rows = saver.chunks(thread, offset).rows
    return [(at, data) for row in rows for at, _, _, data in unpack_chunks(saver.serde.loads_typed, row)]


def test_chunks_come_back_in_order_from_an_offset_on(saver: JournalSaver) -> None:
    run = Run(saver)
    shown(run, "a", "b")
    shown(run, "c")

    assert [(0, "a"), (1, "b"), (2, "c")] == data_of(saver)
    assert [(2, "c")] == data_of(saver, offset=2)
    page = saver.chunks("t", 0)
    assert ([], page.thread.seq) == (saver.chunks("t", 0, page.thread.seq).rows, saver.chunks("t", 9).thread.seq)


def test_chunks_of_a_worker_that_lost_the_thread_are_refused(saver: JournalSaver) -> None:
    zombie = Run(saver)
    shown(zombie, "seen")
    heir = Run(saver)
    shown(heir, "of the heir", dead=True)

    assert not shown(zombie, "too late").landed
    assert [(0, "seen"), (1, "of the heir")] == data_of(saver)


def test_a_mark_says_that_the_work_of_a_chunk_is_stored(saver: JournalSaver) -> None:
    run = Run(saver)
    shown(run, "one", state=PENDING)
    shown(run, "two", state=PENDING)
    assert [(0, 1), (1, 1)] == saver.chunk_tail("t").pending

    append = ChunkedAppend.of(run.blank())
    append.marks = [(0, LANDED)]
    run.send(append)

    assert [(1, 1)] == saver.chunk_tail("t").pending
    assert [LANDED, PENDING] == [row.state for row in saver.chunks("t", 0).rows]


def test_an_append_that_takes_another_along_marks_its_chunks(saver: JournalSaver) -> None:
    run = Run(saver)
    run.claim()
    first, second = ChunkedAppend.of(run.blank()), ChunkedAppend.of(run.blank())
    blob = pack_chunks([("", "custom", *saver.serde.dumps_typed("x"))])
    first.chunks = [ChunkRow(0, 1, 1, PENDING, "n", None, 0.0, blob)]
    second.marks = [(0, LANDED)]

    assert run.send(first.followed_by(second)).landed
    assert [LANDED] == [row.state for row in saver.chunks("t", 0).rows]


def test_a_deleted_thread_leaves_no_chunk(saver: JournalSaver) -> None:
    shown(Run(saver), "old")
    saver.delete_thread("t")
    assert 0 == saver.chunk_tail("t").next

    shown(Run(saver), "new")
    assert [(0, "new")] == data_of(saver)


def test_a_copy_has_the_chunks(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": 1})
    shown(run, "x", "y")
    run.release()
    saver.copy_thread("t", "u")

    assert [(0, "x"), (1, "y")] == data_of(saver, "u") == data_of(saver)


def test_a_prune_forgets_chunks_and_offsets_go_on(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": 1})
    shown(run, "x", "y")
    shown(run, "z")
    run.release()
    saver.prune(["t"])

    assert [] == data_of(saver)
    shown(Run(saver), "later")
    assert [(3, "later")] == data_of(saver)


def test_the_deletion_of_a_run_takes_its_chunks(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": 1}, metadata={"run_id": "one"})
    shown(run, "of one", run_id="one")
    run.save({"a": 2}, metadata={"run_id": "two"})
    shown(run, "of two", run_id="two")
    run.release()
    saver.delete_for_runs(["one"])

    assert [(1, "of two")] == data_of(saver)


@pytest.mark.parametrize("n", [1, 2])
def test_verify_reads_chunks(saver: JournalSaver, n: int) -> None:
    run = Run(saver)
    shown(run, "sound")
    append = ChunkedAppend.of(run.blank())
    blob = pack_chunks([("", "custom", "json", b"\xff")] * n)
    append.chunks = [ChunkRow(1, n, 1, LANDED, "n", None, 0.0, blob)]
    run.send(append)

    findings = [finding.what for finding in saver.verify("t")]
    assert n == len(findings)
    assert all("its chunks up to 1" in what for what in findings)
