"""AsyncSqliteSaver: whatever it is given and from wherever it is called, it works or says why not; it never hangs."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from pregel.checkpoint.records import Load
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.checkpoint.sqlite.aio import AsyncSqliteSaver
from pregel.errors import AsyncOnlyError, InvalidInputError, StoreError
from pregel.types import Command, interrupt
from tests.behaviour.journals import Run
from tests.behaviour.marks import chain

CONFIG: Any = {"configurable": {"thread_id": "t"}}
Opening = Callable[[Path], Any]


@asynccontextmanager
async def connection_in_memory(path: Path) -> AsyncIterator[AsyncSqliteSaver]:
    async with aiosqlite.connect(":memory:") as connection:
        yield AsyncSqliteSaver(connection)


@asynccontextmanager
async def connection_to_file(path: Path) -> AsyncIterator[AsyncSqliteSaver]:
    async with aiosqlite.connect(path) as connection:
        yield AsyncSqliteSaver(connection)


def from_path(path: Path) -> Any:
    return AsyncSqliteSaver.from_conn_string(path, synchronous="NORMAL", busy_timeout=5)


def from_memory(path: Path) -> Any:
    return AsyncSqliteSaver.from_conn_string(":memory:")


EVERY = [connection_in_memory, connection_to_file, from_path, from_memory]
FILES = [connection_to_file, from_path]


def inside(opening: Opening, path: Path, use: Callable[[AsyncSqliteSaver], Awaitable[Any]]) -> Any:
    """What `use` gives, with a saver in a loop of its own."""

    async def main() -> Any:
        async with opening(path / "threads.db") as saver:
            return await use(saver)

    return asyncio.run(main())


@pytest.mark.acceptance("S1-35")
@pytest.mark.parametrize("opening", EVERY)
def test_a_graph_runs_asks_and_is_answered(opening: Opening, tmp_path: Path) -> None:
    async def use(saver: AsyncSqliteSaver) -> Any:
        app = chain("one", "ask", ask=lambda state: {"b": interrupt("?")}).compile(checkpointer=saver)
        asked = await app.ainvoke({"a": []}, CONFIG)
        answered = await app.ainvoke(Command(resume="yes"), CONFIG)
        history = [found.metadata["step"] async for found in saver.alist(CONFIG)]
        return asked["__interrupt__"][0].value, answered, history

    assert ("?", {"a": ["one"], "b": "yes"}, [2, 1, 0, -1]) == inside(opening, tmp_path, use)


@pytest.mark.parametrize("opening", EVERY)
def test_a_blocking_call_from_another_thread_works(opening: Opening, tmp_path: Path) -> None:
    async def use(saver: AsyncSqliteSaver) -> Any:
        app = chain("one").compile(checkpointer=saver)
        result = await asyncio.to_thread(app.invoke, {"a": []}, CONFIG)
        return result, (await app.aget_state(CONFIG)).values

    assert ({"a": ["one"]}, {"a": ["one"]}) == inside(opening, tmp_path, use)


@pytest.mark.parametrize("opening", FILES)
def test_a_blocking_call_on_the_loop_works_on_a_file(opening: Opening, tmp_path: Path) -> None:
    async def use(saver: AsyncSqliteSaver) -> Any:
        await saver.setup()
        return chain("one").compile(checkpointer=saver).invoke({"a": []}, CONFIG)

    assert {"a": ["one"]} == inside(opening, tmp_path, use)


def test_a_blocking_call_on_the_loop_is_a_named_error_where_it_would_hang(tmp_path: Path) -> None:
    async def use(saver: AsyncSqliteSaver) -> None:
        app = chain("one").compile(checkpointer=saver)
        for call in (lambda: app.invoke({"a": []}, CONFIG), lambda: saver.get_tuple(CONFIG)):
            with pytest.raises(AsyncOnlyError, match="without await"):
                call()

    inside(connection_in_memory, tmp_path, use)


def test_a_blocking_call_after_the_loop_is_a_named_error(tmp_path: Path) -> None:
    async def use(saver: AsyncSqliteSaver) -> AsyncSqliteSaver:
        return saver

    saver = inside(connection_in_memory, tmp_path, use)

    with pytest.raises(AsyncOnlyError, match="does not run"):
        saver.get_tuple(CONFIG)


def test_it_is_made_in_a_loop_and_of_an_aiosqlite_connection() -> None:
    async def main() -> aiosqlite.Connection:
        async with aiosqlite.connect(":memory:") as connection:
            with pytest.raises(TypeError, match="from_conn_string"):
                AsyncSqliteSaver("threads.db")  # type: ignore[arg-type]
            return connection

    connection = asyncio.run(main())

    with pytest.raises(AsyncOnlyError, match="inside a running event loop"):
        AsyncSqliteSaver(connection)


def test_a_connection_inside_a_transaction_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with aiosqlite.connect(":memory:") as connection:
            await connection.execute("BEGIN")
            with pytest.raises(InvalidInputError, match="transaction"):
                await AsyncSqliteSaver(connection).setup()

    asyncio.run(main())


@pytest.mark.parametrize("opening", FILES)
def test_a_file_is_shared_with_the_blocking_saver(opening: Opening, tmp_path: Path) -> None:
    async def use(saver: AsyncSqliteSaver) -> Any:
        return await chain("one").compile(checkpointer=saver).ainvoke({"a": []}, CONFIG)

    inside(opening, tmp_path, use)

    with SqliteSaver.from_conn_string(tmp_path / "threads.db") as saver:
        assert {"a": ["one"]} == chain("one").compile(checkpointer=saver).get_state(CONFIG).values


@pytest.mark.parametrize("opening", EVERY)
def test_verbs_at_the_same_time_do_not_mix(opening: Opening, tmp_path: Path) -> None:
    async def use(saver: AsyncSqliteSaver) -> Any:
        app = chain("one", "two").compile(checkpointer=saver)
        configs: list[Any] = [{"configurable": {"thread_id": f"t{i}"}} for i in range(20)]
        results = await asyncio.gather(*(app.ainvoke({"a": [str(i)]}, each) for i, each in enumerate(configs)))
        states = await asyncio.gather(*(app.aget_state(each) for each in configs))
        return results, [state.values for state in states]

    results, states = inside(opening, tmp_path, use)

    assert [{"a": [str(i), "one", "two"]} for i in range(20)] == results == states


@pytest.mark.parametrize("opening", EVERY)
def test_a_cancelled_verb_leaves_no_transaction_open(opening: Opening, tmp_path: Path) -> None:
    async def use(saver: AsyncSqliteSaver) -> Any:
        await saver.setup()
        for turns in range(12):
            verb = asyncio.ensure_future(saver.aintern([f"name-{turns}-{i}" for i in range(50)]))
            for _ in range(turns):
                await asyncio.sleep(0)
            verb.cancel()
            await asyncio.gather(verb, return_exceptions=True)
        return await chain("one").compile(checkpointer=saver).ainvoke({"a": []}, CONFIG)

    assert {"a": ["one"]} == inside(opening, tmp_path, use)


def test_options_reach_the_file(tmp_path: Path) -> None:
    serde = JsonPlusSerializer()

    async def main() -> None:
        path = tmp_path / "threads.db"
        holder = AsyncSqliteSaver.from_conn_string(path, serde=serde, busy_timeout=0.05, synchronous="NORMAL")
        with SqliteSaver.from_conn_string(path) as other:
            Run(other).save({"a": 1})
            async with holder as saver:
                assert saver.serde is serde
                with other.database.writing(), pytest.raises(StoreError, match="busy_timeout"):
                    await saver.aintern(["new"])
                assert 1 == (await saver.aload("t", [Load()])).thread.seq

    asyncio.run(main())


def test_nothing_of_a_file_stays_open(tmp_path: Path) -> None:
    async def use(saver: AsyncSqliteSaver) -> None:
        await saver.setup()

    inside(connection_to_file, tmp_path, use)
    gc.collect()

    open_files = {str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()}
    assert not any(name.startswith(str(tmp_path)) for name in open_files)
