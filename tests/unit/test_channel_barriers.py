"""Channels that wait: for all of some names, or for the end of the run."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.channels import MISSING, LastValueAfterFinish, NamedBarrierValue, NamedBarrierValueAfterFinish
from pregel.errors import InvalidUpdateError
from tests.unit.few_channels import barrier, value_of


def test_a_barrier_closes_when_it_was_consumed_open() -> None:
    channel = barrier()
    channel.update(["a"])

    half = channel.consume(), channel.seen
    channel.update(["b"])
    opened = value_of(channel), channel.consume(), value_of(channel), channel.seen

    assert half == (False, frozenset("a"))
    assert opened == (None, True, MISSING, frozenset())


@pytest.mark.parametrize("make", [NamedBarrierValue, NamedBarrierValueAfterFinish])
def test_a_barrier_refuses_a_name_it_does_not_wait_for(make: type[NamedBarrierValue[str]]) -> None:
    channel = make(str, {"a", "b"})
    channel.key = "join:a+b:c"

    with pytest.raises(InvalidUpdateError, match=r"At key 'join:a\+b:c': 'z' is not one of 'a', 'b'") as caught:
        channel.update(["a", "z"])

    assert caught.value.channel == "join:a+b:c"
    assert channel.seen == set()


def test_a_barrier_that_waits_for_the_end_opens_there() -> None:
    channel = NamedBarrierValueAfterFinish(str, {"a", "b"})

    early = channel.finish()
    channel.update(["a", "b"])
    full = value_of(channel), channel.consume(), channel.checkpoint()
    opened = channel.finish(), channel.finish(), value_of(channel), channel.checkpoint()
    closed = channel.consume(), channel.consume(), value_of(channel), channel.checkpoint()

    assert early is False
    assert full == (MISSING, False, ({"a", "b"}, False))
    assert opened == (True, False, None, ({"a", "b"}, True))
    assert closed == (True, False, MISSING, (set(), False))


def test_a_last_value_that_waits_for_the_end_is_readable_there() -> None:
    channel = LastValueAfterFinish[int](int)

    early = channel.finish(), channel.checkpoint()
    channel.update([1, 2])
    written = value_of(channel), channel.consume(), channel.checkpoint()
    opened = channel.finish(), channel.finish(), value_of(channel), channel.checkpoint()
    rewritten = channel.update([3]), value_of(channel), channel.checkpoint()
    consumed = channel.finish(), channel.consume(), channel.consume(), value_of(channel), channel.checkpoint()

    assert early == (False, MISSING)
    assert written == (MISSING, False, (2, False))
    assert opened == (True, False, 2, (2, True))
    assert rewritten == (True, MISSING, (3, False))
    assert consumed == (True, True, False, MISSING, MISSING)


def test_a_barrier_forgets_an_arrival_that_the_graph_no_longer_waits_for() -> None:
    stored = {"a", "gone"}

    plain = barrier().from_checkpoint(stored)
    deferred = NamedBarrierValueAfterFinish(str, {"a", "b"}).from_checkpoint((stored, True))

    assert plain.seen == deferred.seen == {"a"}
    assert deferred.is_available() is False


def test_a_node_that_became_deferred_finds_what_was_stored_before() -> None:
    value = LastValueAfterFinish[Any](Any).from_checkpoint("__start__")  # type: ignore[arg-type]
    seen = NamedBarrierValueAfterFinish(str, {"a", "b"}).from_checkpoint({"a", "b"})  # type: ignore[arg-type]

    assert (value.finish(), value.get()) == (True, "__start__")
    assert (seen.finish(), value_of(seen)) == (True, None)


def test_stored_pairs_may_come_back_as_lists() -> None:
    value = LastValueAfterFinish[int](int).from_checkpoint([7, True])  # type: ignore[arg-type]
    seen = NamedBarrierValueAfterFinish(str, {"a"}).from_checkpoint([["a"], True])  # type: ignore[arg-type]

    assert value.get() == 7
    assert seen.is_available()
