"""One way to call a saver's verbs, whether it blocks or is awaited, and what the laws give to them."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack
from typing import Any

from pregel.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, new_id
from pregel.config import RunnableConfig

Opening = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]

_ticks = itertools.count(time.time_ns() // 100)


class Verbs:
    """A saver that is open for one test. Every verb here blocks and gives what the saver's gives, lists as lists."""

    def __init__(self, opening: Opening, *, awaited: bool) -> None:
        self.awaited = awaited
        self._stack = ExitStack()
        self._loop = self._stack.enter_context(asyncio.Runner())
        try:
            self.saver: Any = self._enter(opening)
        except BaseException:
            self._stack.close()
            raise

    def _enter(self, opening: Opening) -> Any:
        if isinstance(opening, AbstractContextManager):
            return self._stack.enter_context(opening)
        saver = self._loop.run(_coroutine(opening.__aenter__()))
        self._stack.callback(lambda: self._loop.run(_coroutine(opening.__aexit__(None, None, None))))
        return saver

    def close(self) -> None:
        """Leave the saver, and its event loop."""
        self._stack.close()

    def call(self, verb: str, *args: Any, **options: Any) -> Any:
        """A verb's answer; its async twin's when the laws are awaited."""
        if not self.awaited:
            return getattr(self.saver, verb)(*args, **options)
        return self._loop.run(_coroutine(getattr(self.saver, f"a{verb}")(*args, **options)))

    def together(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The answers of verbs at the same time: each a tuple of its name and arguments."""
        if self.awaited:
            return self._loop.run(_all(getattr(self.saver, f"a{verb}")(*args) for verb, *args in calls))
        with ThreadPoolExecutor(len(calls)) as pool:
            under_way = [pool.submit(getattr(self.saver, verb), *args) for verb, *args in calls]
            return [done.result() for done in under_way]

    # -- the first tier ----------------------------------------------------------------------------------------------

    def put(self, values: Mapping[str, Any], where: RunnableConfig | None = None, **options: Any) -> RunnableConfig:
        """`put` of a checkpoint with these values on top of `where`; its config comes back. See `put_arguments`."""
        found: RunnableConfig = self.call("put", *self.put_arguments(values, where, **options))
        return found

    def put_arguments(
        self,
        values: Mapping[str, Any],
        where: RunnableConfig | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        versions: Mapping[str, Any] | None = None,
        new: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> tuple[Any, ...]:
        """The arguments of a `put`: `fields` are those of the checkpoint, `new` the versions that changed (all)."""
        if versions is None:
            versions = dict.fromkeys(values, self.version(1))
        checkpoint = {
            "v": 4,
            "id": fresh_id(),
            "ts": "2026-01-01T00:00:00+00:00",
            "channel_values": dict(values),
            "channel_versions": dict(versions),
            "versions_seen": {},
            "updated_channels": None,
            **fields,
        }
        whole = {"source": "loop", "step": 1, "parents": {}, **(metadata or {})}
        return where or config(checkpoint_ns=""), checkpoint, whole, dict(versions if new is None else new)

    def version(self, counter: int) -> Any:
        """The version that the saver gives to this counter."""
        version = None
        for _ in range(counter):
            version = self.saver.get_next_version(version, None)
        return version

    def write(
        self, where: RunnableConfig, writes: Sequence[tuple[str, Any]], task: str = "task", path: str = ""
    ) -> None:
        """`put_writes`."""
        self.call("put_writes", where, writes, task, path)

    def get(self, where: RunnableConfig) -> CheckpointTuple:
        """`get_tuple` of something that must be there."""
        found: CheckpointTuple | None = self.call("get_tuple", where)
        if found is None:
            raise AssertionError(f"There is nothing at {where}.")
        return found

    def find(self, where: RunnableConfig) -> CheckpointTuple | None:
        """`get_tuple`."""
        found: CheckpointTuple | None = self.call("get_tuple", where)
        return found

    def listed(self, where: RunnableConfig | None, **options: Any) -> list[CheckpointTuple]:
        """`list`, whole."""
        if not self.awaited:
            return list(self.saver.list(where, **options))
        return self._loop.run(_collected(self.saver.alist(where, **options)))

    def ids(self, where: RunnableConfig | None, **options: Any) -> list[str]:
        """The checkpoint ids of a `list`."""
        return [id_of(found.config) for found in self.listed(where, **options)]


async def _coroutine(work: Any) -> Any:
    return await work


async def _all(work: Any) -> list[Any]:
    return list(await asyncio.gather(*work))


async def _collected(found: Any) -> list[Any]:
    return [entry async for entry in found]


def supports(saver: object, verb: str) -> bool:
    """Whether a saver defines a verb that the contract leaves open."""
    return getattr(type(saver), verb) is not getattr(BaseCheckpointSaver, verb)


def fresh_id() -> str:
    """A checkpoint id above all before it."""
    return new_id(0, next(_ticks))


def config(thread: str = "t", **place: Any) -> RunnableConfig:
    """The config of a thread, a namespace, a checkpoint."""
    return {"configurable": {"thread_id": thread, **place}}


def id_of(where: RunnableConfig) -> str:
    """The checkpoint id in a config."""
    return str(where["configurable"]["checkpoint_id"])


def agree(expected: object, found: object) -> None:
    """AssertionError when they differ, or differ in type."""
    if expected != found or type(expected) is not type(found):
        raise AssertionError(f"expected {expected!r}, found {found!r}")


def refused(kind: type[BaseException], call: Callable[[], object]) -> BaseException:
    """The error of this kind that a call raises; AssertionError when it raises none."""
    try:
        found = call()
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}, found {found!r}")
