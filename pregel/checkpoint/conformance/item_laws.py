"""The laws of items: the work that threads rest for is kept once, taken by one at a time, and ended by who holds it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from pregel.checkpoint.conformance.laws import Laws
from pregel.checkpoint.conformance.run import Run
from pregel.checkpoint.conformance.verbs import agree, refused
from pregel.checkpoint.items import Asked, Back
from pregel.checkpoint.lease import live_runs, this_owner
from pregel.checkpoint.records import Backlog, EventRow, ItemHold, ItemRow, OpenItem, Release, WaitRow
from pregel.errors import NotAuthorisedError

NAME = "pregel.item"


class ItemLaws(Laws):
    """Items come and go with appends, and are held with tokens. Times are what the laws say."""

    def test_an_item_comes_with_the_append_that_rests_for_it_and_stays_as_it_is(self) -> None:
        self._rest("a", "b")
        agree([Backlog("Ship", "1", 2, 0, 5.0)], self._backlog(10.0))
        held = self._taken(self._asked(now=10.0))

        self._rest("a", "b", at=50.0)

        agree([Backlog("Ship", "1", 1, 1, 5.0)], self._backlog(10.0))
        agree(True, self.saver.call("hand_back", _hold(held), Back()))

    def test_a_release_takes_back_what_it_does_not_name(self) -> None:
        self._rest("a", "b", "c")
        held = self._taken(self._asked(now=10.0))

        self._rest("b")
        agree([Backlog("Ship", "1", 1, 0, 5.0)], self._backlog(10.0))
        agree([False, []], [self._ends(held), self.saver.call("events", "t")])
        self._rest()
        agree([], self._backlog(10.0))

    def test_an_item_is_one_worker_s_until_its_lease_is_over(self) -> None:
        self._rest("a")
        first = self._taken(self._asked(now=10.0, expires=40.0))
        agree(("a", 1, "null", b"x", "t"), (first.id, first.attempt, first.type, first.blob, first.thread))
        agree(None, self.saver.call("take_item", self._asked(now=39.0)))
        agree([first.token], self.saver.call("renew_items", [_hold(first)], 60.0))
        agree(None, self.saver.call("take_item", self._asked(now=59.0)))

        second = self._taken(self._asked(now=61.0))
        agree(("a", 2), (second.id, second.attempt))
        agree(
            [[], False, False],
            [
                self.saver.call("renew_items", [_hold(first)], 999.0),
                self.saver.call("hand_back", _hold(first), Back()),
                self._ends(first),
            ],
        )
        agree(True, self._ends(second))

    def test_an_item_of_a_dead_worker_is_taken_at_once(self) -> None:
        self._rest("a")
        first = self._taken(self._asked(now=10.0))
        live_runs.discard(first.token or b"")

        agree("a", self._taken(self._asked(now=10.0)).id)

    def test_of_several_that_ask_at_once_each_has_another_item(self) -> None:
        self._rest("a", "b", "c")
        found = self.saver.together([("take_item", self._asked(now=10.0)) for _ in range(4)])
        taken = [item for item in found if item is not None]
        agree(len(taken), len({item.id for item in taken}))
        while (item := self.saver.call("take_item", self._asked(now=10.0))) is not None:
            taken.append(item)
        agree(["a", "b", "c"], sorted(item.id for item in taken))

    def test_an_end_sends_the_thread_what_came_of_it_once(self) -> None:
        self._rest("a")
        held = self._taken(self._asked(now=10.0))
        agree([], self.saver.call("due", 10.0))

        agree([True, False], [self._ends(held), self._ends(held)])

        agree([("t", "")], [tuple(row) for row in self.saver.call("due", 10.0)])
        agree(["a"], [event.id for event in self.saver.call("events", "t")])
        agree([], self._backlog(10.0))
        self._rest("a")  # a run that had not read it
        agree([], self._backlog(10.0))

    def test_what_is_given_back_waits_for_its_time_and_counts(self) -> None:
        self._rest("a")
        held = self._taken(self._asked(now=10.0))
        agree(True, self.saver.call("hand_back", _hold(held), Back(20.0, -1, 2, 1)))

        agree(None, self.saver.call("take_item", self._asked(now=19.0)))
        again = self._taken(self._asked(now=21.0))
        agree((1, 2, 1), (again.attempt, again.failures, again.rejected))

    def test_what_is_not_asked_for_and_what_may_not_be_had_stays(self) -> None:
        self._rest("a", "b")

        def refuses(item: OpenItem) -> None:
            raise NotAuthorisedError(item.id)

        agree(None, self.saver.call("take_item", self._asked(now=10.0, accepts=lambda name, version: version == "2")))
        agree(None, self.saver.call("take_item", self._asked(now=10.0, kinds=[("Ship", "2"), ("ship", "1")])))
        refused(NotAuthorisedError, lambda: self.saver.call("take_item", self._asked(now=10.0, may=refuses)))
        agree([Backlog("Ship", "1", 2, 0, 5.0)], self._backlog(10.0))
        taken = self._taken(self._asked(now=10.0, kinds=[("Ship", "1")], passes=lambda tno, id: id == "a"))
        agree(("b", 1), (taken.id, taken.attempt))

    def test_many_that_are_left_alone_hide_none(self) -> None:
        ids = [f"{n:03}" for n in range(70)]
        self._rest(*ids)
        agree("069", self._taken(self._asked(now=10.0, passes=lambda tno, id: id != "069")).id)

    def test_a_deleted_thread_has_none_and_a_late_end_changes_nothing(self) -> None:
        self._rest("a")
        held = self._taken(self._asked(now=10.0))
        self.saver.call("delete_thread", "t")

        agree([], self._backlog(10.0))
        Run(self.saver).save({"a": "new"})
        agree([False, []], [self._ends(held), self.saver.call("events", "t")])

    # -- below -------------------------------------------------------------------------------------------------------

    def _rest(self, *ids: str, at: float = 5.0) -> None:
        """Have the thread rest for these."""
        run = Run(self.saver)
        append = run.blank()
        if append.claim is not None:
            append.claim.rouses = True
        waits = [WaitRow(f"w{id}", NAME, id, None) for id in ids]
        items = [ItemRow(id, "Ship", "1", at, "null", b"x") for id in ids]
        agree(True, run.send(append.but(release=Release("waiting", "", waits, items, True))).landed)

    def _asked(self, *, now: float, expires: float | None = None, **options: Any) -> Asked:
        token = os.urandom(16)
        live_runs.add(token)
        until = now + 30 if expires is None else expires
        return Asked(token, this_owner(), now, until, **options)

    def _taken(self, asked: Asked) -> OpenItem:
        item: OpenItem | None = self.saver.call("take_item", asked)
        if item is None:
            raise AssertionError("There was no item to take.")
        return item

    def _ends(self, item: OpenItem) -> bool:
        event = EventRow(item.id, NAME, item.id, 12.0, "null", b"")
        return bool(self.saver.call("end_item", _hold(item), event))

    def _backlog(self, now: float) -> Sequence[Backlog]:
        return [Backlog(*row) for row in self.saver.call("backlog", now)]


def _hold(item: OpenItem) -> ItemHold:
    return ItemHold(item.thread, item.tno, item.id, item.token or b"")
