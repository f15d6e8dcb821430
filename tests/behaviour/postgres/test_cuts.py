"""Round trips, connections that are cut, statements that are cancelled, transaction poolers, locks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from pregel.checkpoint.flows import Sql
from pregel.checkpoint.news import LONGEST
from pregel.checkpoint.postgres import PostgresSaver
from pregel.checkpoint.postgres.aio import AsyncPostgresSaver
from pregel.checkpoint.records import Load, Page
from pregel.config import RunnableConfig
from pregel.errors import JournalDamaged, StoreError
from pregel.flow import Flow
from tests.behaviour.journals import Run, newest
from tests.behaviour.marks import chain
from tests.postgres import WAITING
from tests.proxy import Pooler, Proxy, standing


@pytest.fixture
def counted(dsn: str) -> Iterator[tuple[PostgresSaver, Proxy]]:
    """A saver, and what counts its round trips; preparing a statement would be one more, once a connection."""
    with standing(Proxy(dsn)) as proxy:
        saver = PostgresSaver.at(proxy.dsn, prepare=False)
        yield saver, proxy
        saver.close()


def test_a_superstep_is_one_round_trip(counted: tuple[PostgresSaver, Proxy]) -> None:
    saver, proxy = counted
    app = chain("n1", "n2", "n3", "n4", "n5").compile(checkpointer=saver)
    app.invoke({"a": []}, {"configurable": {"thread_id": "warm"}})
    before = proxy.answers

    app.invoke({"a": []}, {"configurable": {"thread_id": "1"}})

    assert 1 + 6 == proxy.answers - before  # the load, the input's superstep with the claim, five more


def test_a_state_is_read_in_two_round_trips(counted: tuple[PostgresSaver, Proxy]) -> None:
    saver, proxy = counted
    Run(saver).save({"a": "x" * 100, "b": "y" * 100})
    before = proxy.answers

    saved = newest(saver)

    assert saved is not None
    assert "y" * 100 == saved.values["b"]
    assert 2 == proxy.answers - before


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("verb", ["create", "claim", "append", "release"])
def test_an_append_whose_answer_is_cut_off_lands_once(dsn: str, verb: str, when: Any) -> None:
    with standing(Proxy(dsn)) as proxy, PostgresSaver.from_conn_string(proxy.dsn) as saver:
        run = Run(saver)
        if verb == "claim":
            run.release()
            run = Run(saver)
        elif verb != "create":
            run.save({"a": 0})
        seq = run.seq

        proxy.cut(1, when)
        if verb == "release":
            assert run.release("interrupted", "why").landed
        else:
            run.save({"a": 1})

        assert 1 == proxy.cuts
        row = saver.load("t", [Load()]).thread
        assert seq + 1 == row.seq
        assert (None if verb == "release" else run.run) == row.run
        history = [saved.values["a"] for _, saved in saver.page("t", Page())]
        assert {"create": [1], "claim": [1], "append": [1, 0], "release": [0]}[verb] == history
        assert verb == "release" or run.send(run.blank()).landed


@pytest.mark.parametrize("awaits", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_survives_a_cut_at_each_of_its_round_trips(dsn: str, when: Any, awaits: bool) -> None:
    ran: list[str] = []

    def node(name: str) -> Callable[[Any], dict[str, Any]]:
        def body(state: Any) -> dict[str, Any]:
            ran.append(name)
            return {"a": [name]}

        return body

    graph = chain("x", "y", "z", x=node("x"), y=node("y"), z=node("z"))

    def histories(saver: Any, thread: str, invoke: Callable[..., Any]) -> list[Any]:
        app = graph.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": thread}}
        assert {"a": ["x", "y", "z"]} == invoke(app, {"a": []}, config)
        return [(saved.step, saved.values) for _, saved in saver.page(thread, Page())]

    def blocking(app: Any, *args: Any) -> Any:
        return app.invoke(*args)

    def awaiting(app: Any, *args: Any) -> Any:
        return asyncio.run(app.ainvoke(*args))

    with standing(Proxy(dsn)) as proxy:
        there = proxy.dsn

        async def make() -> AsyncPostgresSaver:
            return AsyncPostgresSaver.at(there)

        saver: Any = asyncio.run(make()) if awaits else PostgresSaver.at(there)
        invoke = awaiting if awaits else blocking
        usual = histories(saver, "usual", invoke)
        for nth in range(1, 8):
            del ran[:]
            cuts = proxy.cuts
            proxy.cut(nth, when)

            assert usual == histories(saver, f"cut-{nth}", invoke)

            assert (["x", "y", "z"], cuts + 1) == (ran, proxy.cuts)
        asyncio.run(saver.aclose()) if awaits else saver.close()


def test_a_server_that_stays_away_is_a_named_error(dsn: str) -> None:
    proxy = Proxy(dsn)
    with PostgresSaver.from_conn_string(proxy.dsn, patience=0.2) as saver:
        run = Run(saver)
        run.save({"a": 1})
        proxy.close()

        with pytest.raises(StoreError, match="cannot be reached"):
            run.save({"a": 2})


def test_a_cancelled_statement_is_sent_again(dsn: str, ask: Callable[..., list[Any]]) -> None:
    with PostgresSaver.from_conn_string(dsn) as saver, psycopg.connect(dsn) as holder:
        run = Run(saver)
        run.save({"a": 1})
        holder.execute("SELECT * FROM pregel_threads FOR UPDATE")
        waiting = f"SELECT pid, query_start {WAITING}"
        with ThreadPoolExecutor(1) as pool:
            landing = pool.submit(run.save, {"a": 2})
            while not (found := ask(waiting)):
                pass
            ask("SELECT pg_cancel_backend(%s)", found[0][0])
            while [found[0]] == ask(waiting):
                pass
            holder.rollback()
            landing.result()

        assert [2, 1] == [saved.values["a"] for _, saved in saver.page("t", Page())]


@pytest.mark.parametrize("prepare", [True, False])
@pytest.mark.parametrize("awaits", [False, True], ids=["sync", "async"])
def test_it_works_through_a_transaction_pooler(dsn: str, prepare: bool, awaits: bool) -> None:
    with standing(Pooler(dsn)) as pooler:
        there = pooler.dsn

        async def scenario() -> list[Any]:
            async with AsyncPostgresSaver.from_conn_string(there, prepare=prepare) as saver:
                app = chain("x", "y", "z").compile(checkpointer=saver)
                for n in range(12):
                    await app.ainvoke({"a": []}, {"configurable": {"thread_id": f"t{n % 3}"}})
                await saver.adelete_thread("t2")
                return [row.seq for row in await saver.athreads()]

        if awaits:
            assert [20, 20] == asyncio.run(scenario())
            return
        with PostgresSaver.from_conn_string(there, prepare=prepare) as saver:
            app = chain("x", "y", "z").compile(checkpointer=saver)
            for n in range(12):
                app.invoke({"a": []}, {"configurable": {"thread_id": f"t{n % 3}"}})
            saver.delete_thread("t2")
            assert [20, 20] == [row.seq for row in saver.threads()]
            assert saver.connections.prepare is False  # found out, or told


@pytest.mark.parametrize("prepare", [True, False])
@pytest.mark.parametrize("awaits", [False, True], ids=["sync", "async"])
def test_a_follower_behind_a_transaction_pooler_looks_instead_of_listening(
    dsn: str, prepare: bool, awaits: bool
) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    with standing(Pooler(dsn)) as pooler:
        there = pooler.dsn

        async def awaited() -> tuple[float, list[str]]:
            async with AsyncPostgresSaver.from_conn_string(there, prepare=prepare) as saver:
                app = chain("x").compile(checkpointer=saver, journal_stream=True)
                await app.ainvoke({"a": []}, config)
                async with saver.alisten() as news:
                    return news.longest, [chunk.mode async for chunk in app.afollow(config)]

        def blocking() -> tuple[float, list[str]]:
            with PostgresSaver.from_conn_string(there, prepare=prepare) as saver:
                app = chain("x").compile(checkpointer=saver, journal_stream=True)
                app.invoke({"a": []}, config)
                with saver.listen() as news:
                    return news.longest, [chunk.mode for chunk in app.follow(config)]

        pause, modes = asyncio.run(awaited()) if awaits else blocking()

    assert LONGEST == pause
    assert ["attempt", "updates", "status"] == modes


def test_a_flow_that_is_interrupted_is_rolled_back(saver: PostgresSaver) -> None:
    def flow() -> Flow[None]:
        yield Sql("make_thread", ("t", b"digest", 0.0))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        saver.write(flow())

    assert [] == saver.threads()


def test_an_append_that_waits_for_a_deletion_writes_nothing(saver: PostgresSaver, dsn: str, ask: Any) -> None:
    run = Run(saver)
    run.save({"a": 1})
    with PostgresSaver.from_conn_string(dsn) as other, psycopg.connect(dsn) as holder, ThreadPoolExecutor(2) as pool:
        holder.execute("SELECT * FROM pregel_checkpoints FOR UPDATE")  # the deletion gets as far as here
        waiting = f"SELECT count(*) {WAITING}"
        deletion = pool.submit(other.delete_thread, "t")
        while ask(waiting) != [(1,)]:
            pass
        append = run.blank()
        run.add_save(append, {"a": 2})
        late = pool.submit(saver.append, append)
        while ask(waiting) != [(2,)]:
            pass
        holder.rollback()
        deletion.result()

        assert not late.result().landed

    assert ([], []) == (saver.threads(), ask("SELECT * FROM pregel_checkpoints"))


def test_a_lost_value_is_named_and_other_checkpoints_still_load(saver: PostgresSaver, ask: Any) -> None:
    run = Run(saver)
    first = run.save({"a": "x" * 100})
    run.save({"a": "y" * 100})
    ask("DELETE FROM pregel_channel_values WHERE at = 2")

    with pytest.raises(JournalDamaged, match="The value of 'a' at 2 is gone"):
        newest(saver)

    assert saver.load("t", [Load("", first)]).saved[0] is not None
