"""Appends that are too large for one statement, and values that are too large for a field."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from pregel.checkpoint.ledger import Ledger
from pregel.checkpoint.postgres import PostgresSaver, verbs
from pregel.checkpoint.records import Append, Page, Receipt
from pregel.errors import StoreError
from tests.behaviour.journals import Run, everything, newest
from tests.proxy import Proxy, standing


class Small(PostgresSaver):
    """Takes an append of 1,000 bytes for a large one."""

    def append(self, append: Append) -> Receipt:
        return self.do(verbs.appending(append, self.names, 1000), append.thread)


def save(run: Run) -> str:
    """A step with what two tasks wrote, and a long value."""
    append = run.blank()
    for name in "ab":
        run.add_writes(append, [(name, name * 600), ("c", 1)])
    checkpoint = run.add_save(append, {"a": "a" * 600, "b": 2})
    assert run.send(append).landed
    return checkpoint


def test_a_large_append_is_one_transaction_of_several_statements(dsn: str) -> None:
    with Small.from_conn_string(dsn) as saver:
        run = Run(saver)
        run.save({"a": 0})
        before = save(run)
        last = save(run)
        run.release()

        history = [saved for _, saved in saver.page("t", Page())]
    assert [last, before] == [saved.id for saved in history[:2]]
    assert ["a" * 600] * 2 == [saved.values["a"] for saved in history[:2]]
    assert [4, 4] == [len(saved.writes) for saved in history[1:]]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_large_append_that_is_cut_anywhere_lands_once(dsn: str, when: Any) -> None:
    with standing(Proxy(dsn)) as proxy, Small.from_conn_string(proxy.dsn, prepare=False) as saver:
        run = Run(saver)
        run.save({"a": 0})
        expected = 1
        for nth in range(1, 9):
            cuts = proxy.cuts
            proxy.cut(nth, when)
            save(run)
            expected += 1
            assert expected == len(saver.page("t", Page()))
            if proxy.cuts == cuts:
                break  # it has no more statements than that
            assert [] == saver.verify("t")
    assert nth >= 5


def test_a_large_append_of_a_stale_owner_leaves_nothing(dsn: str) -> None:
    with Small.from_conn_string(dsn) as saver:
        stale = Run(saver)
        stale.save({"a": 0})
        heir = Run(saver)
        assert heir.claim(dead=True).landed
        before = everything(saver)

        append = stale.blank()
        stale.add_save(append, {"a": "a" * 5000})
        assert not saver.append(append).landed

        assert before == everything(saver)


def test_a_value_that_no_field_holds_is_refused_before_anything_is_written(saver: PostgresSaver) -> None:
    run = Run(saver)
    run.save({"a": 0})
    append = run.blank()
    run.add_writes(append, [("a", 1), ("b", "b" * 5000)])

    with pytest.raises(StoreError, match="The value of 'b' takes 5,003 bytes") as caught:
        verbs.check_fields(append, saver.names, 5000)

    assert ("t", "b") == (caught.value.thread, caught.value.channel)
    verbs.check_fields(append, saver.names, 5003)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_an_append_above_a_gigabyte_lands(saver: PostgresSaver, ask: Callable[..., list[Any]]) -> None:
    run = Run(saver)
    run.save({"a": 0})
    append = run.blank()
    assert isinstance(run.ledger, Ledger)
    task, value = str(uuid.uuid4()), bytes(14 << 20)  # the server compresses it
    run.add_writes(append, [("b", value)] * 80, task=task)  # "a" would name what is saved below
    run.add_save(append, {"a": value})
    assert verbs.weight(append) > 1 << 30

    assert run.send(append).landed

    assert [(80, 80 * len(value))] == ask("SELECT count(*), sum(length(blob)) FROM pregel_writes")
    found = newest(saver)
    assert found is not None
    assert value == found.values["a"]
