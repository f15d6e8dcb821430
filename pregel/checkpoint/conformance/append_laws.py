"""The laws of appends and claims: what is stale, late or repeated changes nothing, and one run holds a thread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pregel.checkpoint.conformance.laws import Laws
from pregel.checkpoint.conformance.run import Run, values_of
from pregel.checkpoint.conformance.verbs import agree, config, fresh_id, refused
from pregel.checkpoint.ledger import Ledger
from pregel.checkpoint.records import INTERRUPT, Load, Release
from pregel.errors import InternalError, ThreadBusy, ThreadDeleted


class AppendLaws(Laws):
    """An append lands whole, once, and only on the thread as its run last saw it."""

    def _row(self, thread: str = "t") -> Any:
        return self.saver.call("load", thread, [Load()]).thread

    def test_checkpoint_and_writes_of_an_append_are_there(self) -> None:
        run = Run(self.saver)
        append = run.blank()
        checkpoint = run.add_save(append, {"a": [1], "b": None})
        run.add_writes(append, [("a", 2)])

        agree(True, run.send(append).landed)

        found = self.saver.get(config())
        agree(config(checkpoint_ns="", checkpoint_id=checkpoint), found.config)
        agree({"a": [1], "b": None}, found.checkpoint["channel_values"])
        agree([("task", "a", 2)], [tuple(write) for write in found.pending_writes or ()])

    def test_a_look_shows_what_a_load_finds(self) -> None:
        run = Run(self.saver)
        first = run.save({"a": [1], "b": None})
        run.write([("a", 2)])
        last = run.save({"a": "long " * 50})

        for checkpoint in (None, first, last, fresh_id()):
            loaded = self.saver.call("load", "t", [Load("", checkpoint)]).saved[0]
            looked = self.saver.call("look", "t", "", checkpoint)
            agree(loaded and replace(loaded, manifest=None), looked and replace(looked, manifest=None))
        agree(None, self.saver.call("look", "nobody", ""))

    def test_a_claim_shows_in_the_row_and_a_release_takes_it_away(self) -> None:
        run = Run(self.saver)
        run.save({"a": 1})
        held = self._row()
        run.release("interrupted", "asked")
        free = self._row()

        agree(["running", run.token], [held.status, held.run])
        agree(["interrupted", "asked", None, held.epoch], [free.status, free.reason, free.run, free.epoch])

    def test_an_append_that_expects_something_else_changes_nothing(self) -> None:
        run = Run(self.saver)
        run.save({"a": "stands"})
        for wrong in (
            {"seq": run.seq - 1},
            {"epoch": run.epoch - 1},
            {"run": b"somebody else...."},
            {"tno": run.tno + 1},
        ):
            append = run.blank()
            run.add_writes(append, [("a", "stale")])
            agree(False, self.saver.call("append", append.but(**wrong)).landed)

        agree([], self.saver.get(config()).pending_writes)
        agree(True, run.write([("a", "right")]).landed)

    def test_an_append_sent_again_has_landed_once(self) -> None:
        run = Run(self.saver)
        run.save({"a": 1})
        append = run.blank()
        run.add_save(append, {"a": 2})
        run.send(append)

        again = self.saver.call("append", append)

        agree([True, run.seq], [again.landed, again.thread.seq])
        agree([{"a": 2}, {"a": 1}], values_of(self.saver))

    def test_a_late_copy_of_an_append_changes_nothing(self) -> None:
        run = Run(self.saver)
        run.save({"a": 1})
        append = run.blank()
        run.add_save(append, {"a": 2})
        run.send(append)
        run.save({"a": 3})

        agree(False, self.saver.call("append", append).landed)
        agree([{"a": 3}, {"a": 2}, {"a": 1}], values_of(self.saver))

    def test_a_twin_with_the_same_run_and_number_is_told_apart(self) -> None:
        run = Run(self.saver)
        run.save({"a": 1})
        mine, twins = run.blank(), run.blank()

        agree(True, run.send(mine).landed)
        agree(False, self.saver.call("append", twins).landed)

    def test_a_checkpoint_is_stored_once(self) -> None:
        run = Run(self.saver)
        run.ledger = Ledger(self.saver.saver.serde, self.saver.saver.names)  # which makes the rows here
        run.ledger.open(run.opened)
        first = run.blank()
        run.add_save(first, {"a": 1})
        run.send(first)
        again = run.blank().but(checkpoints=first.checkpoints)
        run.add_writes(again, [("a", 2)])

        refused(InternalError, lambda: self.saver.call("append", again))

        agree([{"a": 1}], values_of(self.saver))
        agree([], self.saver.get(config()).pending_writes)
        agree(True, run.write([("a", 3)]).landed)

    def test_writes_are_kept_once_and_questions_replaced(self) -> None:
        run = Run(self.saver)
        run.save({"a": 1})
        run.write([("a", "first")])
        run.write([("a", "second")])
        run.write([(INTERRUPT, "first")])
        run.write([(INTERRUPT, "second")])

        found = {channel: value for _, channel, value in self.saver.get(config()).pending_writes or ()}
        agree({"a": "first", INTERRUPT: "second"}, found)

    def test_the_first_claim_of_a_new_thread_wins(self) -> None:
        one, other = Run(self.saver), Run(self.saver)

        agree([True, False], [one.claim().landed, other.claim().landed])

    def test_a_claim_needs_the_thread_as_it_was_loaded(self) -> None:
        Run(self.saver).release()
        late, quick = Run(self.saver), Run(self.saver)
        quick.release()

        agree([False, True], [late.claim().landed, Run(self.saver).claim().landed])

    def test_a_thread_that_is_held_cannot_be_claimed(self) -> None:
        Run(self.saver).claim()

        agree(False, Run(self.saver).claim().landed)

    def test_a_lease_that_ran_out_can_be_taken(self) -> None:
        zombie = Run(self.saver)
        zombie.claim(ttl=-1.0)
        heir = Run(self.saver)

        agree([True, True], [heir.opened.thread.lapsed, heir.claim().landed])
        agree(False, zombie.write([("a", "late")]).landed)

    def test_a_zombie_is_refused_after_a_takeover(self) -> None:
        zombie = Run(self.saver)
        zombie.save({"a": 1})
        heir = Run(self.saver)
        agree(True, heir.claim(dead=True).landed)
        heir.save({"a": 2})

        agree(False, zombie.write([("a", "late")]).landed)
        agree(True, heir.epoch > zombie.epoch)
        agree([{"a": 2}, {"a": 1}], values_of(self.saver))

    def test_epochs_rise_over_a_deleted_thread(self) -> None:
        run = Run(self.saver)
        run.save({"a": 1})
        self.saver.call("delete_thread", "t")
        heir = Run(self.saver)
        heir.save({"a": 2})

        agree(False, run.write([("a", "late")]).landed)
        agree(True, heir.epoch > run.epoch)
        agree([{"a": 2}], values_of(self.saver))

    def test_claim_records_and_release_fit_one_append(self) -> None:
        run = Run(self.saver)
        append = run.blank()
        run.add_save(append, {"a": 1})

        agree(True, run.send(append.but(release=Release("idle"))).landed)

        agree([None, "idle", 1], [self._row().run, self._row().status, self._row().seq])

    def test_a_put_beside_a_live_run_is_refused_and_writes_are_not(self) -> None:
        run = Run(self.saver)
        checkpoint = run.save({"a": 1})
        where = config(checkpoint_ns="", checkpoint_id=checkpoint)

        refused(ThreadBusy, lambda: self.saver.put({"a": 2}, where))
        self.saver.write(where, [("a", 3)])

        agree(True, run.write([("b", 4)], "other").landed)

    def test_what_refers_to_a_deleted_thread_is_refused(self) -> None:
        where = self.saver.put({"a": 1})
        self.saver.call("delete_thread", "t")

        refused(ThreadDeleted, lambda: self.saver.put({"a": 2}, where))
        refused(ThreadDeleted, lambda: self.saver.write(where, [("a", 2)]))
        agree([], self.saver.listed(None))

    def test_of_writers_that_claim_at_the_same_time_one_gets_the_thread(self) -> None:
        for number in range(10):
            runs = [Run(self.saver) for _ in range(4)]
            appends = [run.blank().but(release=Release("idle")) for run in runs]
            for run, append in zip(runs, appends, strict=True):
                run.add_save(append, {"a": number})

            receipts = self.saver.together([("append", append) for append in appends])

            agree([False, False, False, True], sorted(receipt.landed for receipt in receipts))

        found = self.saver.listed(config(checkpoint_ns=""))
        agree(list(range(10)), [entry.checkpoint["channel_values"]["a"] for entry in found][::-1])
        agree([entry.config for entry in found[1:]], [entry.parent_config for entry in found[:-1]])
