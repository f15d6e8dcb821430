"""Two owners on one thread, whose leases lapse as soon as they are made: every order of what they ask of the store.

Each is another host to the other, so only expiry decides who may take over, and only the guards decide who may write.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, TypeVar

import pytest

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.records import Append, Load, Opened, Owner, Page, Receipt
from pregel.errors import AuthorityLost
from pregel.types import Durability
from tests.behaviour.marks import chain

T = TypeVar("T")
OPERATIONS = 4  # of each owner that are put in order; what comes after them goes as it comes
CONFIG: Any = {"configurable": {"thread_id": "t"}}


class Order:
    """Whose operation is next. One is performed at a time, in the order of the schedule."""

    def __init__(self, schedule: Sequence[int]) -> None:
        self.schedule = list(schedule)
        self.over: set[int] = set()
        self.landed: list[Append] = []
        self._turn = threading.Condition()

    def perform(self, who: int, operation: Callable[[], T]) -> T:
        with self._turn:
            self._turn.wait_for(lambda: self._is_next(who), 60)
            if self.schedule:
                self.schedule.pop(0)
            result = operation()
            self._turn.notify_all()
            return result

    def end(self, who: int) -> None:
        with self._turn:
            self.over.add(who)
            self._turn.notify_all()

    def _is_next(self, who: int) -> bool:
        while self.schedule and self.schedule[0] in self.over:
            self.schedule.pop(0)
        return not self.schedule or self.schedule[0] == who


class Host(JournalSaver):
    """One host's way to the store: its claims are of another machine, and lapse at once."""

    blocking = False

    def __init__(self, store: InMemorySaver, order: Order, who: int) -> None:
        super().__init__(serde=store.serde)
        self.names, self.store, self.order, self.who = store.names, store, order, who

    def read(self, flow: Any) -> Any:
        return self.store.read(flow)

    def write(self, flow: Any) -> Any:
        return self.store.write(flow)

    def load(self, thread: str, loads: Sequence[Load], names: Iterable[str] = ()) -> Opened:
        return self.order.perform(self.who, lambda: self.store.load(thread, loads, names))

    def append(self, append: Append) -> Receipt:
        if append.claim is not None:
            append.claim = replace(append.claim, owner=Owner("boot", 1, self.who, 1, f"host{self.who}"), ttl=-1.0)

        def send() -> Receipt:
            receipt = self.store.append(append)
            if receipt.landed:
                self.order.landed.append(append)
            return receipt

        return self.order.perform(self.who, send)


def play(schedule: Sequence[int], durability: Durability) -> tuple[InMemorySaver, Order, list[Any]]:
    """Two calls whose operations come in this order; what each of them came to."""
    store, order = InMemorySaver(), Order(schedule)
    outcomes: list[Any] = [None, None]

    def run(who: int) -> None:
        app = chain("x", "y").compile(checkpointer=Host(store, order, who))
        try:
            outcomes[who] = app.invoke({"a": [f"in{who}"]}, CONFIG, durability=durability)["a"]
        except AuthorityLost as error:
            outcomes[who] = error
        finally:
            order.end(who)

    owners = [threading.Thread(target=run, args=(who,)) for who in (0, 1)]
    for owner in owners:
        owner.start()
    for owner in owners:
        owner.join(60)
        assert not owner.is_alive()
    return store, order, outcomes


SCHEDULES = [
    [int(place in first) for place in range(2 * OPERATIONS)]
    for first in map(set, combinations(range(2 * OPERATIONS), OPERATIONS))
]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_in_every_order_no_two_appends_land_under_one_expectation(durability: Durability) -> None:
    losers = 0
    for schedule in SCHEDULES:
        store, order, outcomes = play(schedule, durability)

        expected = [append.seq for append in order.landed]
        ends = [append.seq + append.k for append in order.landed]
        assert expected == [0, *ends[:-1]], schedule  # each stands on what the one before it left
        assert store.verify("t") == []
        history = [saved for _, saved in store.page("t", Page())]
        ids = {saved.id for saved in history}
        assert all(saved.parent is None or saved.parent in ids for saved in history), schedule
        final = chain("x", "y").compile(checkpointer=store).get_state(CONFIG).values.get("a", [])
        for who, outcome in enumerate(outcomes):
            if isinstance(outcome, list):
                assert final.count(f"in{who}") == 1, (schedule, outcomes, final)
            else:
                losers += isinstance(outcome, AuthorityLost)
        assert any(isinstance(outcome, list) for outcome in outcomes), (schedule, outcomes)
    assert losers > 0
