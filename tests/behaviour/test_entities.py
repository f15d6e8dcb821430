"""`pregel.durable.Entities`: one line of operations a key, on workers, over drivers and savers."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pregel.durable import Entities, Operation, Worker
from pregel.errors import InvalidInputError

from .conftest import Runner
from .marks import Saver
from .test_authority import has_authority
from .test_starts import work


@pytest.fixture(autouse=True)
def needs_events(saver: Saver) -> None:
    if not has_authority(saver):
        pytest.skip("no waits are kept there")


class Api:
    """Entities through the verbs of one driver."""

    def __init__(self, run: Runner, entities: Any) -> None:
        self.run, self.entities = run, entities

    def __call__(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        if self.run.name == "sync":
            return getattr(self.entities, verb)(*args, **kwargs)
        return asyncio.run(getattr(self.entities, f"a{verb}")(*args, **kwargs))

    def work(self) -> None:
        """Until nothing is left to do."""
        while work(self.run, self.entities.graph):
            pass


class Observed:
    """Entities that keep the greatest revision that was observed, and the last that was confirmed."""

    def __init__(self, run: Runner, saver: Saver) -> None:
        self.done: list[tuple[str, str, Any, str]] = []

        def handle(state: dict[str, int], operation: Operation) -> dict[str, int]:
            self.done.append((operation.key, operation.name, operation.value, operation.id))
            last = {"Observe": "observed", "Confirm": "confirmed"}[operation.name]
            return {**state, last: max(state.get(last, 0), operation.value)}

        async def ahandle(state: dict[str, int], operation: Operation) -> dict[str, int]:
            await asyncio.sleep(0)
            return handle(state, operation)

        handler: Any = handle if run.name == "sync" else ahandle
        self.api = Api(run, Entities(handler, name="documents", checkpointer=saver, initial={}))


@pytest.mark.acceptance("S2-27")
def test_operations_of_a_key_are_done_in_their_order_and_each_once(run: Runner, saver: Saver) -> None:
    observed = Observed(run, saver)
    api = observed.api
    assert {} == api("state", "a")

    for number, revision in enumerate((12, 11, 12, 13)):
        api("signal", "a", "Observe", revision, id=f"w{number}")
    api("signal", "b", "Observe", 7)
    assert api("signal", "a", "Observe", 99, id="w0").repeated
    assert [] == observed.done  # nothing is done here
    api.work()
    api("signal", "a", "Confirm", 13, id="c")
    api.work()

    assert {"observed": 13, "confirmed": 13} == api("state", "a")
    assert {"observed": 7} == api("state", "b")
    expected = [("Observe", 12, "w0"), ("Observe", 11, "w1"), ("Observe", 12, "w2"), ("Observe", 13, "w3")]
    assert [*expected, ("Confirm", 13, "c")] == [(*rest,) for key, *rest in observed.done if key == "a"]


@pytest.mark.acceptance("S2-27")
def test_keys_run_in_parallel_and_a_key_does_not(run: Runner, saver: Saver) -> None:
    """The first operations of two keys meet; the second of one of them comes while its first is done."""
    inside: dict[str, int] = {"a": 0, "b": 0}
    crowds: list[int] = []
    keys = threading.Barrier(2, timeout=60)
    meeting = asyncio.Barrier(2)

    def enter(operation: Operation) -> None:
        inside[operation.key] += 1
        crowds.append(inside[operation.key])

    def leave(state: int, operation: Operation) -> int:
        inside[operation.key] -= 1
        return state + 1

    def handle(state: int, operation: Operation) -> int:
        enter(operation)
        if operation.value == "first":
            keys.wait()
        return leave(state, operation)

    async def ahandle(state: int, operation: Operation) -> int:
        enter(operation)
        if operation.value == "first":
            await meeting.wait()
        return leave(state, operation)

    handler: Any = handle if run.name == "sync" else ahandle
    entities = Entities(handler, name="counted", checkpointer=saver, initial=0)
    api = Api(run, entities)
    for key in "ab":
        for value in ("first", "second"):
            api("signal", key, "add", value)

    until_done(run, entities, lambda: all(entities.state(key) == 2 for key in "ab"), lambda: aall(entities))

    assert [2, 2] == [api("state", key) for key in "ab"]
    assert {1} == set(crowds)


async def aall(entities: Entities[int]) -> bool:
    return all([await entities.astate(key) == 2 for key in "ab"])


def until_done(run: Runner, entities: Entities[Any], done: Any, adone: Any) -> None:
    """Two workers at once, until it is done."""
    workers = [Worker(entities.graph, poll_interval=0.01) for _ in range(2)]

    async def awaited() -> None:
        running = [asyncio.create_task(worker.arun()) for worker in workers]
        while not await adone():
            assert not any(task.done() for task in running)
            await asyncio.sleep(0)  # a store in memory lets nobody else run
        for worker in workers:
            worker.stop()
        await asyncio.gather(*running)

    if run.name == "async":
        asyncio.run(awaited())
        return
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(worker.run) for worker in workers]
        while not done():
            assert not any(future.done() for future in running)
        for worker in workers:
            worker.stop()
        for future in running:
            future.result()


def test_an_operation_that_failed_is_done_once_it_can_be_and_the_others_wait(run: Runner, saver: Saver) -> None:
    broken = [True]

    def handle(state: list[str], operation: Operation) -> list[str]:
        if broken:
            raise ValueError("the destination is away")
        return [*state, operation.value]

    entities = Entities[list[str]](handle, name="lists", checkpointer=saver, initial=[])
    api = Api(run, entities)
    for value in "xy":
        api("signal", "a", "append", value)
    api.work()

    status = entities.graph.threads.status if run.name == "sync" else None
    assert status is None or "failed" == status(entities.thread_id("a")).status
    assert [] == api("state", "a")
    broken.clear()
    threads = Api(run, entities.graph.threads)
    threads("rewind", "lists/a", reason="it is back")
    threads("resume", "lists/a")
    api.work()
    assert ["x", "y"] == api("state", "a")


def test_the_history_of_an_entity_can_be_let_go_of(run: Runner, saver: Saver) -> None:
    observed = Observed(run, saver)
    api = observed.api
    for revision in range(5):
        api("signal", "a", "Observe", revision, id=str(revision))
    api.work()
    config = {"configurable": {"thread_id": "documents/a"}}
    before = len(run.history(api.entities.graph, config))

    assert api("compact", "a")

    assert 1 == len(run.history(api.entities.graph, config)) < before
    assert api("signal", "a", "Observe", 99, id="4").repeated  # what came is remembered
    api("signal", "a", "Observe", 5)
    api.work()
    assert {"observed": 5} == api("state", "a")


@pytest.mark.parametrize("key", ["", 7])
def test_a_key_is_a_text(run: Runner, saver: Saver, key: Any) -> None:
    api = Observed(run, saver).api
    with pytest.raises(InvalidInputError, match="key of an entity"):
        api("signal", key, "Observe", 1)
    with pytest.raises(InvalidInputError, match="operation has a name"):
        api("signal", "a", "", 1)
