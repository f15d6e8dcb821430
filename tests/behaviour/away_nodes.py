"""What the nodes of test_executors do: it stands where another process finds it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from typing import Any, NoReturn

from pydantic import BaseModel

from pregel.config import RunnableConfig, get_config, get_store, get_stream_writer
from pregel.durable import Work
from pregel.errors import InternalError, NodeError
from pregel.func import task
from pregel.runtime import Runtime, get_runtime
from pregel.types import Command, interrupt
from pregel.waits import wait_for_event

from .marks import State


def where(state: State) -> State:
    return {"a": [str(os.getpid())]}


async def where_awaited(state: State) -> State:
    return {"a": [str(os.getpid())]}


def generated(state: State) -> Iterator[State]:
    yield {"a": [str(os.getpid())]}


async def generated_awaited(state: State) -> AsyncIterator[State]:
    yield {"a": [str(os.getpid())]}


def doubled(state: State) -> State:
    return {"a": [one * 2 for one in state["a"]]}


def routed(state: State) -> Command[str]:
    return Command(update={"a": ["routed"]}, goto="last")


def last(state: State) -> State:
    return {"a": ["last"]}


def asks(state: State) -> State:
    return {"a": [interrupt("name?"), interrupt("town?")]}


class Age(BaseModel):
    years: int


def asks_typed(state: State) -> State:
    return {"a": [str(interrupt("age?", response_schema=Age).years)]}


def waits(state: State) -> State:
    found = wait_for_event("paid", timeout=60)
    return {"a": ["late" if found is None else found.value]}


class Picky(Exception):
    """It does not come back from its pickle."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")
        self.held = threading.Lock()


def fails(state: State) -> State:
    raise KeyError("not there")


def fails_at_first(state: State, runtime: Runtime[Any]) -> State:
    assert runtime.execution_info is not None
    if runtime.execution_info.node_attempt < 3:
        raise ConnectionError("busy")
    return {"a": [f"attempt {runtime.execution_info.node_attempt}"]}


def is_picky(state: State) -> State:
    raise Picky("one", "two")


def handles(state: State, error: NodeError) -> State:
    return {"a": [f"handled {type(error.error).__name__}"]}


def dies(state: State) -> State:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def tells(state: State, config: RunnableConfig, runtime: Runtime[Any]) -> State:
    info = runtime.execution_info
    assert info is not None
    assert config["configurable"]["thread_id"] == info.thread_id == get_config()["configurable"]["thread_id"]
    write = get_stream_writer()
    write("one")
    runtime.stream_writer("two")
    keys = [runtime.idempotency_key, get_runtime().idempotency_key]
    return {"a": [str(runtime.context), str(runtime.fence), str(config["metadata"]["langgraph_node"]), *keys]}


@task
def called(n: int) -> int:
    return n


def wants(name: str) -> Callable[[State], Any]:
    """A node that asks its run for something that it has not."""
    return getattr(Wants, name)  # type: ignore[no-any-return]


class Wants:
    @staticmethod
    def store(state: State) -> Any:
        return get_store().get(("a",), "b")

    @staticmethod
    def step(state: State) -> Any:
        return get_runtime().step("key", dict)

    @staticmethod
    def effect(state: State) -> Any:
        return get_runtime().effect("key", str)

    @staticmethod
    def call(state: State) -> Any:
        return called(1).result()


def squared(n: int) -> int:
    return n * n


def placed(n: int) -> tuple[int, int]:
    return n, os.getpid()


square, place = task(squared), task(placed)


class Keeping:
    """An engine that keeps what came of each work by its key, in this process."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self.seen: list[Work] = []

    def submit(self, work: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.seen.append(work)
        if work.key not in self.kept:
            outcome = work()
            if outcome.error is not None:
                future.set_result(outcome)
                return future
            self.kept[work.key] = outcome
        future.set_result(self.kept[work.key])
        return future


class Full:
    """An executor that takes nothing."""

    def submit(self, work: Any) -> NoReturn:
        raise InternalError("the queue is full")
