"""`run` and `saver`: every behaviour test runs on both drivers and on every saver."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.base import BaseCheckpointSaver
from pregel.checkpoint.first_tier import FirstTier
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.warnings import PregelWarning
from tests.postgres import Emptied

from .awaited import awaiting
from .kept import Kept, Prepared
from .savers.third_party import FiveVerbs


class Blocking:
    """A graph's methods, driven by the blocking driver."""

    name = "sync"

    def invoke(self, app: Any, *args: Any, **kwargs: Any) -> Any:
        return app.invoke(*args, **kwargs)

    def stream(self, app: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return list(app.stream(*args, **kwargs))

    def follow(self, heard: Callable[[Any], object], app: Any, *args: Any, **kwargs: Any) -> None:
        """Give each chunk to `heard` as it comes."""
        for chunk in app.stream(*args, **kwargs):
            heard(chunk)

    def batch(self, app: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return list(app.batch(*args, **kwargs))

    def state(self, app: Any, *args: Any, **kwargs: Any) -> Any:
        return app.get_state(*args, **kwargs)

    def history(self, app: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return list(app.get_state_history(*args, **kwargs))

    def listed(self, saver: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return list(saver.list(*args, **kwargs))

    def update(self, app: Any, *args: Any, **kwargs: Any) -> Any:
        return app.update_state(*args, **kwargs)

    def bulk_update(self, app: Any, *args: Any, **kwargs: Any) -> Any:
        return app.bulk_update_state(*args, **kwargs)


class Awaiting(Blocking):
    """The same, driven by the awaiting driver, each call in an event loop of its own."""

    name = "async"

    def invoke(self, app: Any, *args: Any, **kwargs: Any) -> Any:
        return asyncio.run(app.ainvoke(*args, **kwargs))

    def stream(self, app: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return asyncio.run(_collect(app.astream(*args, **kwargs)))

    def follow(self, heard: Callable[[Any], object], app: Any, *args: Any, **kwargs: Any) -> None:
        asyncio.run(_follow(heard, app.astream(*args, **kwargs)))

    def batch(self, app: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return list(asyncio.run(app.abatch(*args, **kwargs)))

    def state(self, app: Any, *args: Any, **kwargs: Any) -> Any:
        return asyncio.run(app.aget_state(*args, **kwargs))

    def history(self, app: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return asyncio.run(_collect(app.aget_state_history(*args, **kwargs)))

    def listed(self, saver: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return asyncio.run(_collect(saver.alist(*args, **kwargs)))

    def update(self, app: Any, *args: Any, **kwargs: Any) -> Any:
        return asyncio.run(app.aupdate_state(*args, **kwargs))

    def bulk_update(self, app: Any, *args: Any, **kwargs: Any) -> Any:
        return asyncio.run(app.abulk_update_state(*args, **kwargs))


async def _follow(heard: Callable[[Any], object], chunks: Any) -> None:
    async for chunk in chunks:
        heard(chunk)


async def _collect(chunks: Any) -> list[Any]:
    return [chunk async for chunk in chunks]


Runner = Blocking


@pytest.fixture(params=[Blocking, Awaiting], ids=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Runner:
    """The driver."""
    kind: type[Runner] = request.param
    return kind()


@pytest.fixture(params=["memory", "sqlite", "postgres", pytest.param("five-verbs", marks=pytest.mark.slow)])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseCheckpointSaver[Any]]:
    """The saver; on PostgreSQL the awaiting driver has the awaiting one."""
    awaits = "run" in request.fixturenames and isinstance(request.getfixturevalue("run"), Awaiting)
    if request.param == "memory":
        yield InMemorySaver()
    elif request.param == "five-verbs":
        if request.path.stem == "test_traces":
            pytest.skip("it compares rows as our savers show them")
        third_party = FiveVerbs()
        with pytest.warns(PregelWarning, match="no guarded append"):
            FirstTier(third_party, {})
        yield third_party
    elif request.param == "postgres" and awaits:
        with awaiting(request.getfixturevalue("dsn")) as awaited:
            request.getfixturevalue("kept").alend(awaited)
            yield awaited
    elif request.param == "postgres":
        request.getfixturevalue("dsn")
        with request.getfixturevalue("kept").saver() as made:
            yield made
    else:
        path = request.getfixturevalue("prepared").copied(tmp_path)
        with SqliteSaver.from_conn_string(path, synchronous="NORMAL") as saver:
            yield saver


@pytest.fixture(scope="session")
def kept(worker_database: Emptied) -> Iterator[Kept]:
    """The connections of this worker to its database on PostgreSQL."""
    connections = Kept(worker_database.dsn)
    yield connections
    connections.close()


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """The SQLite file that this worker makes copies of."""
    return Prepared(tmp_path_factory.mktemp("prepared") / "threads.db")


@pytest.fixture
def thread() -> Callable[[str], Any]:
    """A config for a thread."""

    def config(thread_id: str) -> dict[str, Any]:
        return {"configurable": {"thread_id": thread_id}}

    return config
