"""What a store keeps of the work that threads rest for, as flows.

1. An item comes with the append that lets its thread rest. Another append that names it leaves it as it is; one that
   gives the thread back without it takes it back, with what anybody does of it.
2. A worker takes it with a token of its own, by a statement that compares the token that it saw. Whoever holds another
   token renews, gives back and ends nothing: what comes late changes nothing.
3. It ends in the transaction that sends its thread the result, an event under the id of the item. The row stays until
   the thread is given back again, so that a run that had not read the result does not ask for the work anew.
4. Leases are told by the clock of whoever asks, as waits are: two clocks that differ may have an item done twice, under
   one key; they never have two results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pregel.checkpoint.flows import Sql, owner_of, owner_text
from pregel.checkpoint.lease import is_dead
from pregel.checkpoint.records import Backlog, EventRow, ItemHold, OpenItem, Owner
from pregel.flow import Flow

PAGE = 16  # items that are looked at, at a time


@dataclass(frozen=True, slots=True)
class Asked:
    """Which item a worker takes, and with what.

    - `kinds`: the (name, version) that it takes; None for those of the backlog that it `accepts`.
    - `passes`: (thread's number, id) -> whether it leaves this one alone for now.
    - `may`: whether it has the right to an item, asked in the transaction of the claim; what it raises undoes that.
    """

    token: bytes
    owner: Owner
    now: float
    expires: float
    kinds: Sequence[tuple[str, str]] | None = None
    accepts: Callable[[str, str], bool] = lambda name, version: True
    passes: Callable[[int, str], bool] = lambda tno, id: False
    may: Callable[[OpenItem], None] = lambda item: None


class Back(NamedTuple):
    """How an item is given back: nobody takes it before `at`, and so many are added to its counts."""

    at: float = 0.0
    attempts: int = 0
    failures: int = 0
    rejected: int = 0


def backlog_flow(now: float) -> Flow[list[Backlog]]:
    """What waits, by name and version."""
    return [Backlog(*row) for row in (yield Sql("backlog", (now,)))]


def take_flow(asked: Asked) -> Flow[OpenItem | None]:
    """Take the oldest item that is asked for, or one of a worker that is known to be dead."""
    kinds = asked.kinds
    if kinds is None:
        kinds = [row[:2] for row in (yield Sql("backlog", (asked.now,))) if asked.accepts(*row[:2])]
    for kind in kinds:
        found = yield from _take_of(kind, asked)
        if found is not None:
            return found
    return None


def _take_of(kind: tuple[str, str], asked: Asked) -> Flow[OpenItem | None]:
    size = PAGE
    while True:
        rows = yield Sql("open_items", (*kind, asked.now, size))
        seen = [OpenItem(*row) for row in rows]
        dead: list[OpenItem] = []
        if len(rows) < size:
            held = yield Sql("held_items", (*kind, asked.now))
            dead = [item for item in map(OpenItem._make, held) if _died(item)]
        for item in _wanted([*seen, *dead], asked):
            found = yield from _take(item, asked)
            if found is not None:
                return found
        if len(rows) < size:
            return None
        size *= 4  # those that were seen are left alone, by this worker


def _wanted(items: Iterable[OpenItem], asked: Asked) -> list[OpenItem]:
    return [item for item in items if not asked.passes(item.tno, item.id)]


def _died(item: OpenItem) -> bool:
    return item.token is not None and is_dead(owner_of(item.owner), item.token)


def _take(item: OpenItem, asked: Asked) -> Flow[OpenItem | None]:
    asked.may(item)
    holder = (asked.token, owner_text(asked.owner), asked.expires)
    yield Sql("take_item", (item.tno, item.id, item.token, *holder))
    rows = yield Sql("item", (item.tno, item.id, asked.token))
    return OpenItem(*rows[0]) if rows else None


def renew_flow(holds: Sequence[ItemHold], expires: float) -> Flow[list[bytes]]:
    """Hold these until then; the tokens that hold still."""
    held = []
    for hold in sorted(holds):
        yield Sql("renew_item", (*hold[1:], expires))
        if (yield Sql("item", hold[1:])):
            held.append(hold.token)
    return held


def hand_back_flow(hold: ItemHold, back: Back) -> Flow[bool]:
    """Give an item back, if it is held still."""
    if not (yield Sql("item", hold[1:])):
        return False
    yield Sql("hand_back_item", (*hold[1:], *back))
    return True


def end_flow(hold: ItemHold, event: EventRow) -> Flow[bool]:
    """End an item and send its thread the result, if it is held still."""
    rows = yield Sql("lock_thread", (hold.thread,))
    if not rows or rows[0][0] != hold.tno or not (yield Sql("item", hold[1:])):
        return False
    yield Sql("end_item", hold[1:])
    if not (yield Sql("event", (hold.tno, event.id))):
        yield Sql("send_event", (hold.tno, *event))
        yield Sql("count_event", (hold.tno,))
    return True
