"""Who comes first of those that wait for a thread: the one that has waited longest, for a moment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.records import Hold, Owner, ThreadRow
from pregel.engine.authority import Authority, ClaimMissed
from pregel.engine.contend import LONG, Ask, Contender, Look
from pregel.errors import ThreadBusy

FAR = Owner("another boot", 1, 1, 1, "far")
HELD = ThreadRow("t", tno=1, epoch=7, run=b"r" * 16, seq=3, updated_at=100.0, owner=FAR)


def freed(asked: str, seq: int = 4) -> ThreadRow:
    return ThreadRow("t", tno=1, epoch=7, seq=seq, asked=asked)


def waiting(*, since: float = 100.0) -> Contender:
    """A call that has met a held thread."""
    contender = Contender("t", "enqueue", None)
    journal = Authority(InMemorySaver(), "t", b"x" * 16, None)
    journal.row = replace(HELD, updated_at=since)
    flow = contender.meet(ThreadBusy(), journal)  # type: ignore[arg-type]  # of a journal it needs no more
    assert isinstance(next(flow), Look)
    flow.close()
    return contender


def test_tickets_sort_by_the_time_at_which_their_calls_began_to_wait() -> None:
    old, young = waiting(since=99.0), waiting(since=100.5)

    assert old.ticket < young.ticket
    assert not old.stands_back(freed(young.ticket))
    assert young.stands_back(freed(old.ticket))
    assert not young.stands_back(freed(young.ticket))


def test_a_newcomer_stands_back_and_not_for_ever() -> None:
    newcomer, ticket = Contender("t", "enqueue", None), waiting().ticket

    assert newcomer.stands_back(freed(ticket))
    newcomer.free = (*newcomer.free[:2], newcomer.free[2] - 1.0)  # a second has passed, and nobody came
    assert not newcomer.stands_back(freed(ticket))
    assert newcomer.stands_back(freed(ticket, seq=9))  # it was taken, and is free once more


@pytest.mark.parametrize("asked", ["", "interrupt", "rollback"])
def test_nobody_stands_back_where_nobody_waits(asked: str) -> None:
    assert not Contender("t", "enqueue", None).stands_back(freed(asked))


def test_a_call_that_waits_asks_for_its_turn_only_after_a_while() -> None:
    contender = Contender("t", "enqueue", None)
    journal = Authority(InMemorySaver(), "t", b"x" * 16, None)
    journal.row = HELD
    flow: Any = contender.meet(ThreadBusy(), journal)  # type: ignore[arg-type]
    requests = [next(flow), flow.send(HELD)]
    assert contender.began is not None
    contender.began -= LONG
    requests += [flow.send(HELD), flow.send(True)]
    requests.append(flow.send(replace(HELD, asked=contender.ticket)))
    with pytest.raises(StopIteration):  # it is its turn
        flow.send(freed(contender.ticket))

    assert [Look, Look, Ask, Look, Look] == [type(request) for request in requests]
    assert (Hold(1, 7, b"r" * 16), contender.ticket) == requests[2]


def test_a_call_that_is_beaten_to_a_free_thread_again_and_again_asks_for_its_turn() -> None:
    contender = Contender("t", "enqueue", None)
    journal = Authority(InMemorySaver(), "t", b"x" * 16, None)
    journal.row = freed("")
    assert list(contender.meet(ClaimMissed(), journal)) == []  # type: ignore[arg-type]  # of a journal it needs no more
    assert contender.began is not None
    contender.began -= LONG
    assert list(contender.meet(ClaimMissed(), journal)) == [Ask(Hold(1, 7, b""), contender.ticket)]  # type: ignore[arg-type]
    journal.row = freed(contender.ticket)
    assert list(contender.meet(ClaimMissed(), journal)) == []  # type: ignore[arg-type]


def test_patience_ends_for_a_call_that_is_beaten_again_and_again() -> None:
    contender = Contender("t", "enqueue", 0.0)
    journal = Authority(InMemorySaver(), "t", b"x" * 16, None)
    journal.row = freed("")
    with pytest.raises(ThreadBusy, match="1 claims in a row"):
        list(contender.meet(ClaimMissed(), journal))  # type: ignore[arg-type]


def test_a_ticket_asks_nothing_of_the_run() -> None:
    holder = Authority(InMemorySaver(), "t", b"x" * 16, None)

    holder.heed(waiting().ticket)

    assert holder.asked == ""


def test_only_those_that_wait_leave_a_free_thread_to_others() -> None:
    journal = Authority(InMemorySaver(), "t", b"x" * 16, None)
    journal.row = freed(waiting().ticket)
    assert not journal.may_begin()

    journal.stands_back = Contender("t", "enqueue", None).stands_back
    with pytest.raises(ThreadBusy) as busy:
        journal.may_begin()

    assert busy.value.reason == "queued"
    flow = Contender("t", "enqueue", None).meet(ClaimMissed(), journal)  # type: ignore[arg-type]
    assert list(flow) == []
