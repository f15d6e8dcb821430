"""NodeWorker: does the work that nodes have done `elsewhere`, of the names and versions that it has code for.

1. It claims an item for a lease, which it renews; one whose worker died, or was not heard of, is taken by the next. So
   work is done at least once, under one idempotency key, and a result of who has lost the item changes nothing.
2. The result and the end of the item are one transaction, which makes the thread due: a `Worker` goes on with it.
3. What fails is tried again as the retry policy says, by whichever worker; after that it fails in its node.
4. What it may not or cannot do stays in the queue, for others: this worker looks at it again after a pause that grows.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from pregel.checkpoint import lease as leases
from pregel.checkpoint.base import is_journal
from pregel.checkpoint.items import Asked, Back
from pregel.checkpoint.labels import named
from pregel.checkpoint.lease import LEASE
from pregel.checkpoint.records import EventRow, ItemHold, OpenItem
from pregel.durable.elsewhere import WorkItem
from pregel.durable.matching import REGISTERED, Codes, Filter, Match, Matching, Mismatch
from pregel.engine.call import clock as wall_clock
from pregel.engine.ids import TICKS
from pregel.engine.starts import admitted
from pregel.errors import (
    AsyncOnlyError,
    InvalidInputError,
    NotAuthorisedError,
    NotBuiltError,
    StoreError,
    UnregisteredWorkError,
)
from pregel.hops import tell
from pregel.types import RetryPolicy
from pregel.waits import ITEM

SHORTEST, LONGEST = 0.05, 60.0  # seconds that a worker leaves alone what it may not or cannot do
Authorise = Callable[[str, WorkItem], bool]

log = logging.getLogger("pregel.durable.node_worker")
log.addHandler(logging.NullHandler())


class NodeWorker:
    """Does work for the nodes of a store's threads. `codes`: name, or (name, version), -> ``code(input)`` or
    ``code(input, item)``, where item is a `WorkItem`; a name alone means version ``"1"``.

    - `filter`: name -> versions that it is offered; None for everything. Left out, what it has code for.
    - `match`: ``current_or_older`` does older versions with the next newer code. `on_mismatch`: what becomes of work
      that was accepted and has no code: back to the queue (``reject``), or it fails in its node (``fail``).
    - `authorise`: ``(identity, item) -> bool``, asked at each claim, in its transaction; it must not use the store.
    - `retry_policy`: how often, and when, what raised is tried again; not without one.
    - `lease`: seconds after which an item is another's whose worker was not heard of.
    """

    def __init__(
        self,
        saver: Any,
        codes: Codes,
        *,
        filter: Filter = REGISTERED,
        match: Match = "strict",
        on_mismatch: Mismatch = "reject",
        identity: str = "",
        authorise: Authorise | None = None,
        retry_policy: RetryPolicy | None = None,
        concurrency: int = 8,
        poll_interval: float = 1.0,
        lease: float = LEASE,
    ) -> None:
        kind: Any = type(saver)  # a class has a hash
        if not is_journal(kind):
            raise NotBuiltError(
                f"{kind.__name__} keeps no items.", fix="Use InMemorySaver, SqliteSaver or PostgresSaver."
            )
        if concurrency < 1 or poll_interval <= 0 or lease <= 0:
            raise InvalidInputError("concurrency is at least 1, poll_interval and lease above 0.")
        if on_mismatch not in ("reject", "fail"):
            raise InvalidInputError(f"on_mismatch is {on_mismatch!r}.", fix='"reject" or "fail".')
        self.saver, self.matching, self.on_mismatch = saver, Matching(codes, filter, match), on_mismatch
        self.identity, self.authorise, self.retry_policy = identity, authorise, retry_policy
        self.concurrency, self.poll_interval, self.lease = concurrency, poll_interval, lease
        self.clock: Callable[[], int] = wall_clock
        self._held: dict[bytes, ItemHold] = {}
        self._left: dict[tuple[int, str], tuple[float, float]] = {}  # until when, and the pause
        self._stopped, self._woken = threading.Event(), threading.Event()
        self._awoken: Callable[[], object] = int
        self._turns = itertools.count()
        self._pause = SHORTEST

    def stop(self) -> None:
        """Take nothing more; `run` returns when what it does has ended. From any thread."""
        self._stopped.set()
        self._wake()

    # -- blocking ----------------------------------------------------------------------------------------------------

    def run_once(self) -> int:
        """Do what can be done now, one after the other; how many items it took. NotAuthorisedError, in the end, when it
        was refused one.
        """
        self._check_blocking()
        with self._renewing():
            count, refused = 0, list[NotAuthorisedError]()
            while not self._stopped.is_set() and (item := self._take(refused)) is not None:
                count += 1
                self._do(item)
        if refused:
            raise refused[0]
        return count

    def run(self) -> None:
        """Do what there is, until the worker is stopped."""
        self._check_blocking()
        with ThreadPoolExecutor(self.concurrency, "pregel-node-worker") as pool, self._stopping(), self._renewing():
            running: set[Future[None]] = set()
            while not self._stopped.is_set():
                self._woken.clear()
                running -= {future for future in running if future.done() and not future.result()}
                item = self._take_quietly() if len(running) < self.concurrency else None
                if item is None:
                    self._woken.wait(self._next_pause())
                    continue
                self._pause = SHORTEST
                future = pool.submit(self._do, item)
                future.add_done_callback(lambda _: self._wake())
                running.add(future)

    def _check_blocking(self) -> None:
        for (name, _), code in self.matching.codes.items():
            if _is_awaited(code):
                raise AsyncOnlyError(f"The code for {name!r} is awaited.", fix="Use arun() or arun_once().")

    def _take(self, refused: list[NotAuthorisedError]) -> OpenItem | None:
        while True:
            asked = self._asked()
            try:
                return self._took(asked, self.saver.take_item(asked))
            except _Refused as error:
                refused.append(error)
            finally:
                self._forget(asked)

    def _take_quietly(self) -> OpenItem | None:
        refused: list[NotAuthorisedError] = []
        try:
            return self._take(refused)
        except StoreError as error:
            self._away(error)
            return None
        finally:
            self._tell(refused)

    def _do(self, item: OpenItem) -> None:
        try:
            with self._holding(item) as hold:
                code, event = self._begun(item)
                if code is not None:
                    event = self._ended(item, code)
                if isinstance(event, Back):
                    self.saver.hand_back(hold, event)
                elif not self.saver.end_item(hold, event):
                    self._late(item)
        except StoreError as error:
            self._away(error)
        self._tell_workers()

    def _ended(self, item: OpenItem, code: Callable[..., Any]) -> EventRow | Back:
        try:
            return self._event(item, {"result": code(*self._arguments(item, code))})
        except Exception as error:
            return self._failed(item, error)

    @contextmanager
    def _renewing(self) -> Iterator[None]:
        """Renew the leases of what is held, for as long."""
        over = threading.Event()

        def renew() -> None:
            while not over.wait(self.lease / 3):
                try:
                    held = list(self._held.values())
                    self._renewed(held, self.saver.renew_items(held, self._now() + self.lease))
                except StoreError as error:
                    self._away(error)

        thread = threading.Thread(target=renew, name="pregel-item-leases", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._stopped.set()

    # -- awaiting ----------------------------------------------------------------------------------------------------

    async def arun_once(self) -> int:
        """Async twin of `run_once`; code that blocks runs on other threads."""
        async with self._arenewing():
            count, refused = 0, list[NotAuthorisedError]()
            while not self._stopped.is_set() and (item := await self._atake(refused)) is not None:
                count += 1
                await self._ado(item)
        if refused:
            raise refused[0]
        return count

    async def arun(self) -> None:
        """Async twin of `run`. Cancelled, it cancels what it does: another worker takes that."""
        event, loop = asyncio.Event(), asyncio.get_running_loop()
        self._awoken = lambda: tell(loop, event.set)
        try:
            async with self._arenewing(), asyncio.TaskGroup() as group:
                running: set[asyncio.Task[None]] = set()
                while not self._stopped.is_set():
                    event.clear()
                    item = await self._atake_quietly() if len(running) < self.concurrency else None
                    if item is None:
                        await _awaited(event, self._next_pause())
                        continue
                    self._pause = SHORTEST
                    task = group.create_task(self._ado(item))
                    running.add(task)
                    task.add_done_callback(running.discard)
                    task.add_done_callback(lambda _: event.set())
        finally:
            self._awoken = int

    async def _atake(self, refused: list[NotAuthorisedError]) -> OpenItem | None:
        while True:
            asked = self._asked()
            try:
                return self._took(asked, await self._aclaim(asked))
            except _Refused as error:
                refused.append(error)
            finally:
                self._forget(asked)

    async def _aclaim(self, asked: Asked) -> OpenItem | None:
        """Take an item; a claim that is under way when this is cancelled is waited for, and given back."""
        claim: asyncio.Future[OpenItem | None] = asyncio.ensure_future(self.saver.atake_item(asked))
        try:
            return await asyncio.shield(claim)
        except asyncio.CancelledError:
            await asyncio.wait([claim])
            if not claim.cancelled() and claim.exception() is None and (item := claim.result()) is not None:
                with suppress(StoreError):  # its lease runs out all the same
                    await self.saver.ahand_back(_hold(item), Back(0.0, -1, 0, 0))
            raise

    async def _atake_quietly(self) -> OpenItem | None:
        refused: list[NotAuthorisedError] = []
        try:
            return await self._atake(refused)
        except StoreError as error:
            self._away(error)
            return None
        finally:
            self._tell(refused)

    async def _ado(self, item: OpenItem) -> None:
        try:
            with self._holding(item) as hold:
                code, event = self._begun(item)
                if code is not None:
                    event = await self._aended(item, code)
                if isinstance(event, Back):
                    await self.saver.ahand_back(hold, event)
                elif not await self.saver.aend_item(hold, event):
                    self._late(item)
        except StoreError as error:
            self._away(error)
        self._tell_workers()

    async def _aended(self, item: OpenItem, code: Callable[..., Any]) -> EventRow | Back:
        try:
            arguments = self._arguments(item, code)
            done = await (code(*arguments) if _is_awaited(code) else asyncio.to_thread(code, *arguments))
            return self._event(item, {"result": done})
        except Exception as error:
            return self._failed(item, error)

    @asynccontextmanager
    async def _arenewing(self) -> AsyncIterator[None]:
        async def renew() -> None:
            while True:
                await asyncio.sleep(self.lease / 3)
                try:
                    held = list(self._held.values())
                    self._renewed(held, await self.saver.arenew_items(held, self._now() + self.lease))
                except StoreError as error:
                    self._away(error)

        task = asyncio.create_task(renew())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    # -- both --------------------------------------------------------------------------------------------------------

    def _now(self) -> float:
        return self.clock() / TICKS

    def _asked(self) -> Asked:
        now, token = self._now(), uuid.uuid4().bytes
        leases.live_runs.add(token)

        def passes(tno: int, id: str) -> bool:
            return self._left.get((tno, id), (0.0, 0.0))[0] > now

        return Asked(
            token,
            leases.this_owner(),
            now,
            now + self.lease,
            self._kinds(),
            self.matching.accepts,
            passes,
            self._check_right,
        )

    def _kinds(self) -> Sequence[tuple[str, str]] | None:
        """What is offered, another kind first each time, so that much work of one lets the others have their turn."""
        kinds = self.matching.kinds
        if not kinds:
            return kinds
        first = next(self._turns) % len(kinds)
        return kinds[first:] + kinds[:first]

    def _check_right(self, item: OpenItem) -> None:
        if self.authorise is not None and not self.authorise(self.identity, _told(item, item.attempt + 1)):
            self._leave(item)
            raise _Refused(
                f"Worker {self.identity!r} has no right to {item.name!r} (version {item.version}).",
                fix="A filter says what a worker wants, authorise= what it may have: give it the right, or ask less.",
                thread=item.thread,
            )

    def _took(self, asked: Asked, item: OpenItem | None) -> OpenItem | None:
        if item is not None:
            self._held[asked.token] = _hold(item)
        return item

    def _forget(self, asked: Asked) -> None:
        """Let go of a token that took nothing."""
        if asked.token not in self._held:
            leases.live_runs.discard(asked.token)

    @contextmanager
    def _holding(self, item: OpenItem) -> Iterator[ItemHold]:
        hold = _hold(item)
        try:
            yield hold
        finally:
            self._held.pop(hold.token, None)
            leases.live_runs.discard(hold.token)

    def _renewed(self, held: list[ItemHold], tokens: Sequence[bytes]) -> None:
        """What is held no more is not renewed again; its code goes on, and its result is dropped."""
        for token in {hold.token for hold in held} - set(tokens):
            self._held.pop(token, None)

    def _leave(self, item: OpenItem) -> None:
        pause = min(LONGEST, self._left.get((item.tno, item.id), (0.0, SHORTEST / 2))[1] * 2)
        self._left[item.tno, item.id] = (self._now() + pause, pause)

    def _begun(self, item: OpenItem) -> tuple[Callable[..., Any] | None, EventRow | Back]:
        """The code for an item; without one, what becomes of it."""
        code = self.matching.code(item.name, item.version)
        if code is not None:
            self._left.pop((item.tno, item.id), None)
            return code, Back()
        if self.on_mismatch == "reject":
            self._leave(item)
            log.info("%r (version %s) goes back to the queue: there is no code for it here", item.name, item.version)
            return None, Back(0.0, -1, 0, 1)
        missing = UnregisteredWorkError(f"Worker {self.identity!r} has no code for version {item.version}.")
        return None, self._event(item, _error(missing))

    def _arguments(self, item: OpenItem, code: Callable[..., Any]) -> tuple[Any, ...]:
        input = self.saver.serde.loads_typed((item.type, item.blob))
        return (input, _told(item, item.attempt)) if _wants_item(code) else (input,)

    def _event(self, item: OpenItem, outcome: dict[str, Any]) -> EventRow:
        return EventRow(item.id, ITEM, item.id, self._now(), *self.saver.serde.dumps_typed(outcome))

    def _failed(self, item: OpenItem, error: Exception) -> EventRow | Back:
        failures, policy = item.failures + 1, self.retry_policy
        log.warning("%r of thread %r failed: %s: %s", item.name, item.thread, type(error).__name__, error)
        if policy is not None and failures < policy.max_attempts and policy.wants(error):
            return Back(self._now() + policy.wait(failures), 0, 1, 0)
        return self._event(item, _error(error))

    def _late(self, item: OpenItem) -> None:
        log.warning("%r of thread %r ended here after another had taken it: dropped", item.name, item.thread)

    def _away(self, error: StoreError) -> None:
        log.warning("the store could not be reached: %s", error)

    def _tell(self, refused: list[NotAuthorisedError]) -> None:
        for error in refused:
            log.warning("%s", error)

    def _tell_workers(self) -> None:
        for wake in tuple(admitted):
            wake()

    def _wake(self) -> None:
        self._woken.set()
        self._awoken()

    def _next_pause(self) -> float:
        pause, self._pause = self._pause, min(self._pause * 2, self.poll_interval)
        return min(pause, self.poll_interval)


class _Refused(NotAuthorisedError):
    """Raised in the transaction of a claim, which it undoes."""


def _hold(item: OpenItem) -> ItemHold:
    assert item.token is not None
    return ItemHold(item.thread, item.tno, item.id, item.token)


def _told(item: OpenItem, attempt: int) -> WorkItem:
    return WorkItem(item.id, item.name, item.version, attempt, item.thread, named(item.graph)[0])


def _error(error: Exception) -> dict[str, Any]:
    return {"error": {"type": type(error).__name__, "message": str(error)}}


def _is_awaited(code: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(code) or inspect.iscoroutinefunction(getattr(code, "__call__", None))  # noqa: B004


def _wants_item(code: Callable[..., Any]) -> bool:
    """Whether it takes a second argument without a default."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        found = [p for p in inspect.signature(code).parameters.values() if p.kind in kinds and p.default is p.empty]
    except (TypeError, ValueError):
        return False
    return len(found) > 1


async def _awaited(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
