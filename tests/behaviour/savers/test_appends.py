"""What every journal promises of appends: guarded by a claim, whole or not at all, known again when sent twice."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.keys import id_bytes
from pregel.checkpoint.lease import this_owner
from pregel.checkpoint.ledger import Ledger
from pregel.checkpoint.records import Hold, Load, Release
from pregel.errors import InternalError
from tests.behaviour.journals import Run, everything, newest


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

    receipt = saver.append(append.but(**{stale: wrong[stale]}))

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


def test_of_several_words_for_the_holder_the_one_that_sorts_first_stands(saver: JournalSaver) -> None:
    holder = Run(saver)
    holder.claim()
    hold = Hold(holder.tno, holder.epoch, holder.run)
    seen = []
    for word in ("~200 young", "~100 old", "~150 younger", "interrupt", "~050 oldest"):
        assert saver.ask(hold, word)
        seen.append(saver.load("t", [Load()]).thread.asked)
    holder.release()
    left = saver.load("t", [Load()]).thread.asked
    Run(saver).claim()

    assert ["~200 young", "~100 old", "~100 old", "interrupt", "interrupt"] == seen
    assert ("interrupt", "") == (left, saver.load("t", [Load()]).thread.asked)
    assert not saver.ask(hold, "interrupt")  # another one holds it


@pytest.mark.parametrize("words", [("rollback", "interrupt"), ("interrupt", "rollback"), ("~100 old", "rollback")])
def test_of_several_words_for_the_holder_rollback_stands(saver: JournalSaver, words: tuple[str, str]) -> None:
    holder = Run(saver)
    holder.claim()
    for word in words:
        assert saver.ask(Hold(holder.tno, holder.epoch, holder.run), word)

    assert "rollback" == saver.load("t", [Load()]).thread.asked


def test_a_ticket_is_left_whoever_holds_the_thread_and_kept_until_a_claim_has_seen_it(saver: JournalSaver) -> None:
    Run(saver).release()
    row = saver.load("t", [Load()]).thread
    saver.ask(Hold(row.tno, row.epoch, b""), "~100 old")
    unaware = Run(saver)
    assert unaware.claim().landed  # as if it had been loaded before the ticket was left
    kept = saver.load("t", [Load()]).thread.asked
    unaware.release()
    aware = Run(saver)
    claim = aware.blank(claim=True)
    assert claim.claim is not None
    claim.claim.heard = kept
    assert aware.send(claim).landed

    assert ("~100 old", "") == (kept, saver.load("t", [Load()]).thread.asked)


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
    run.ledger = Ledger(saver.serde, saver.names)  # which makes the rows here
    run.ledger.open(run.opened)
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
