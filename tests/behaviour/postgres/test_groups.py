"""What many awaited runs say at once goes to the server as one statement: each has an outcome of its own."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypedDict

import psycopg
import pytest

from pregel import START, StateGraph
from pregel.checkpoint.postgres import PostgresSaver
from pregel.checkpoint.postgres.aio import AsyncPostgresSaver
from pregel.checkpoint.postgres.verbs import LIGHT
from pregel.checkpoint.records import Append, Load, Receipt, Release
from pregel.errors import InternalError, InvalidInputError
from tests.behaviour.journals import Run, next_append, opened, value_of
from tests.proxy import Proxy, standing


class State(TypedDict, total=False):
    a: Annotated[list[int], operator.add]


async def node(state: State) -> State:
    return {"a": [1]}


def claiming(saver: PostgresSaver, thread: str, value: Any = 7) -> Append:
    run = Run(saver, thread)
    append = run.blank(claim=True)
    run.add_save(append, {"a": value})
    return append


def releasing(run: Run, value: Any = 3) -> Append:
    append = next_append(run, value)
    append.release = Release("idle", "over")
    return append


def sent(dsn: str, appends: Sequence[Append]) -> list[Any]:
    """What became of appends that come in one turn of a loop."""

    async def scenario() -> list[Any]:
        async with AsyncPostgresSaver.from_conn_string(dsn) as saver:
            return await asyncio.gather(*map(saver.aappend, appends), return_exceptions=True)

    return asyncio.run(scenario())


def landed(outcomes: Sequence[Any]) -> list[bool]:
    return [one.landed for one in outcomes if isinstance(one, Receipt)]


@pytest.mark.acceptance("S0-8")
def test_a_refused_append_does_not_touch_those_beside_it(saver: PostgresSaver, dsn: str) -> None:
    first, stale, last, over, late, free, _ = opened(saver, "first", "stale", "last", "over", "late", "free", "held")
    assert saver.append(releasing(free, 1)).landed
    appends = [
        *(next_append(first), next_append(stale).but(epoch=stale.epoch - 1), next_append(last)),
        *(releasing(over), releasing(late).but(seq=late.seq + 1)),
        *(
            claiming(saver, "free"),
            claiming(saver, "held"),
            claiming(saver, "new"),
            claiming(saver, "new"),
            claiming(saver, "newer"),
        ),
    ]

    outcomes = sent(dsn, appends)

    assert [True, False, True, True, False, True, False, True, False, True] == landed(outcomes)
    assert [2, 1, 2] == [value_of(saver, thread) for thread in ("first", "stale", "last")]
    assert [3, 1, 7, 1, 7, 7] == [value_of(saver, t) for t in ("over", "late", "free", "held", "new", "newer")]
    rows = {row.thread: row for row in saver.threads()}
    assert (None, "over") == (rows["over"].run, rows["over"].reason)
    for append, receipt in zip(appends, outcomes, strict=True):
        if receipt.landed:
            assert (append.thread, rows[append.thread].epoch) == (receipt.row.thread, receipt.row.epoch)
            assert saver.verify(append.thread) == []


def test_of_two_that_make_one_thread_at_once_only_the_first_is_told_that_it_did(saver: PostgresSaver, dsn: str) -> None:
    """No row of theirs is the same, so nothing but the guard tells them apart."""
    claims = [Run(saver, "new").blank(claim=True), Run(saver, "new").blank(claim=True)]

    assert [True, False] == landed(sent(dsn, claims))


def test_an_append_that_breaks_a_rule_fails_alone(saver: PostgresSaver, dsn: str) -> None:
    first, broken, unsaid, last = opened(saver, "first", "broken", "unsaid", "last")
    wrong, odd = next_append(broken), next_append(unsaid)
    wrong.checkpoints.append(wrong.checkpoints[0])  # the same checkpoint twice
    odd.checkpoints[0] = odd.checkpoints[0]._replace(run_id="half \ud800 a pair")

    outcomes = sent(dsn, [next_append(first), wrong, odd, next_append(last)])

    assert [Receipt, InternalError, InvalidInputError, Receipt] == [type(one) for one in outcomes]
    assert [2, 1, 1, 2] == [value_of(saver, thread) for thread in ("first", "broken", "unsaid", "last")]


def test_what_is_sent_again_after_an_unclear_answer_is_known(saver: PostgresSaver, dsn: str) -> None:
    first, last = opened(saver, "first", "last")
    appends = [next_append(first), next_append(last), claiming(saver, "new"), claiming(saver, "newer")]

    assert [True] * 4 == landed(sent(dsn, appends))
    assert [True] * 4 == landed(sent(dsn, appends))

    assert [2, 2, 1, 1] == [saver.load(append.thread, [Load()]).thread.seq for append in appends]


def test_a_thread_that_somebody_has_locked_holds_up_nobody_else(saver: PostgresSaver, dsn: str) -> None:
    first, locked, last = opened(saver, "first", "locked", "last")

    async def scenario() -> list[Any]:
        async with (
            AsyncPostgresSaver.from_conn_string(dsn) as awaited,
            await psycopg.AsyncConnection.connect(dsn) as other,
        ):
            await other.execute("SELECT 1 FROM pregel_threads WHERE thread = 'locked' FOR UPDATE")
            work = [asyncio.ensure_future(awaited.aappend(next_append(run))) for run in (first, locked, last)]
            while (await asyncio.to_thread(value_of, saver, "last")) != 2:
                await asyncio.sleep(0)
            assert not work[1].done()
            await other.rollback()
            return await asyncio.gather(*work)

    assert [True] * 3 == landed(asyncio.run(scenario()))


def test_a_large_append_is_not_waited_for(saver: PostgresSaver, dsn: str) -> None:
    first, last = opened(saver, "first", "last")

    outcomes = sent(dsn, [next_append(first, "x" * LIGHT), next_append(last)])

    assert [True, True] == landed(outcomes)
    assert "x" * LIGHT == value_of(saver, "first")


def test_runs_that_go_on_at_once_share_statements(dsn: str) -> None:
    async def play(proxy: Proxy, count: int) -> int:
        async with AsyncPostgresSaver.from_conn_string(proxy.dsn, prepare=False) as saver:
            app: Any = StateGraph(State).add_node("n", node).add_edge(START, "n").compile(checkpointer=saver)
            await app.ainvoke({"a": [0]}, {"configurable": {"thread_id": "first"}})
            before = proxy.answers
            configs: list[Any] = [{"configurable": {"thread_id": f"{count} {number}"}} for number in range(count)]
            for _ in range(2):  # threads that are made, and threads that are gone on with
                await asyncio.gather(*(app.ainvoke({"a": [0]}, config) for config in configs))
            assert [[0, 1, 0, 1]] * count == [(await app.aget_state(config)).values["a"] for config in configs]
            return proxy.answers - before - count  # one for each state that is looked at

    with standing(Proxy(dsn)) as proxy:
        alone, many = asyncio.run(play(proxy, 1)), asyncio.run(play(proxy, 20))
    assert many < 5 * alone


def test_what_is_loaded_at_once_is_each_threads_own(saver: PostgresSaver, dsn: str, ask: Callable[..., Any]) -> None:
    opened(saver, "a", "b")
    long = Run(saver, "long")
    long.save({"a": "x" * 100})
    long.save({"b": "y"})

    async def scenario() -> list[Any]:
        async with AsyncPostgresSaver.from_conn_string(dsn) as awaited:
            threads = ["a", "none", "long", "b", "a"]
            return await asyncio.gather(*(awaited.aload(thread, [Load()], ["a", "b"]) for thread in threads))

    found = asyncio.run(scenario())

    assert ["a", "none", "long", "b", "a"] == [one.thread.thread for one in found]
    values = [one.saved[0] and one.saved[0].values for one in found]
    assert [{"a": 1}, None, {"a": "x" * 100, "b": "y"}, {"a": 1}, {"a": 1}] == values
