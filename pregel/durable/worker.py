"""Worker: takes up what can go on in a store, and runs it.

1. It takes up threads that were started and nobody has run (``pending``), those whose process died or was not heard of
   for its lease (``abandoned``), and those that wait for a time that has come or an event that is there. What waits
   for a person, failed, was cancelled or drained is left alone.
2. The claim decides: a thread is gone on with only as it was seen, so of many workers one runs it, once.
3. What is stopped because the worker stops becomes ``pending`` again, in the append of its last step.
4. A thread that broke off, or failed before anything of it was stored, is looked at again after the others: those that
   cannot be read here, say, keep nobody else waiting.
5. A thread is taken by the graph of its name and version; in a rolling deploy each worker finishes its own version's.
6. Between two looks at an idle store it pauses, longer each time; a start of this very process wakes it at once.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from pregel import flow as runner
from pregel.checkpoint.records import ThreadRow
from pregel.checkpoint.standing import info_of
from pregel.durable.served import Match, OnMismatch, Served, listed
from pregel.engine.authority import ClaimMissed
from pregel.engine.call import clock
from pregel.engine.ids import TICKS
from pregel.engine.pregel import Pregel
from pregel.engine.starts import TakeUp, admitted
from pregel.engine.tries import awaiting_driver, blocking_driver, let_go
from pregel.errors import GraphDrained, InvalidInputError, StoreError, ThreadBusy
from pregel.hops import tell
from pregel.runtime import RunControl

SHORTEST = 0.05  # seconds of the first pause of an idle worker
PAGE = 100  # threads that are read at once
DISPLACED = ("interrupt", "rollback")  # asked of a run that died: whoever asked goes on with the thread

log = logging.getLogger("pregel.durable.worker")
log.addHandler(logging.NullHandler())


class WorkerControl(RunControl):
    """Asks the runs of a worker to stop, and the worker to take up nothing more."""

    __slots__ = ("_worker",)

    hands_back = True

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self._worker = worker

    def request_drain(self, reason: str = "shutdown") -> None:
        """Stop after the steps that run now; what is not done is left to other workers. The first reason stays."""
        if not self.drain_requested:
            super().request_drain(reason)
            self._worker.graphs.end(reason)
        self._worker.wake()


class Worker:
    """Runs what can go on of these graphs' threads. They share one store; none has the name and version of another.

    - `concurrency`: how many runs go on at once.
    - `poll_interval`: the seconds between two looks at an idle store, at most.
    - `context`: what its runs are given as their context.
    - `match`: which threads a graph takes: ``strict``, those of its own version; ``current_or_older``, those of older
      versions too, where no graph of theirs is here. A thread that no graph takes is left alone with `on_mismatch`
      ``reject``, and ``failed`` with ``fail``.
    - `unread`: event name -> input. A thread that has ended while an event of this name was on its way, which its run
      would have read, is started once more, with that input.
    """

    def __init__(
        self,
        graphs: Pregel | Iterable[Pregel],
        *,
        concurrency: int = 8,
        poll_interval: float = 1.0,
        context: Any = None,
        unread: Mapping[str, Any] | None = None,
        match: Match = "strict",
        on_mismatch: OnMismatch = "reject",
    ) -> None:
        self.graphs = Served(listed(graphs), match, on_mismatch, self.stop)
        self.saver = self.graphs.saver
        if concurrency < 1 or poll_interval <= 0:
            raise InvalidInputError("concurrency is at least 1, and poll_interval above 0.")
        self.concurrency, self.poll_interval, self.context = concurrency, poll_interval, context
        self.control = WorkerControl(self)
        self.unread = dict(unread or {})
        self._woken = threading.Event()
        self._awoken: Callable[[], object] = int
        self._pause = SHORTEST
        self._broken: dict[str, tuple[int, int]] = {}
        """Thread -> its epoch, and how often it ended in an error as it stood then."""
        self._looks_for_left = 0.0

    def stop(self, reason: str = "shutdown") -> None:
        """Take up nothing more, and have what runs stop after its step; from any thread."""
        self.control.request_drain(reason)

    def replace(self, graph: Pregel) -> None:
        """Go on with this graph in place of the one of its name and version; from any thread.

        Runs of that one end their steps, are handed back, and go on with the new graph here or on another worker.
        """
        self.graphs.replace(graph)
        self.wake()

    def wake(self) -> None:
        """Look at the store now; from any thread."""
        self._woken.set()
        self._awoken()

    # -- blocking ----------------------------------------------------------------------------------------------------

    def run_once(self) -> int:
        """Run what can go on now, one after the other; how many runs it took up."""
        return sum(self._take(row) for row in self._look() if not self.control.drain_requested)

    def run(self) -> None:
        """Take up what can go on, until the worker is stopped; then return when its runs have stopped."""
        running: dict[Future[int], str] = {}
        admitted.add(self.wake)
        try:
            with ThreadPoolExecutor(self.concurrency, "pregel-worker") as pool, self._stopping():
                while not self.control.drain_requested:
                    self._woken.clear()
                    for row in self._look(self.concurrency - len(running), running.values()):
                        future = pool.submit(self._take, row)
                        future.add_done_callback(self._ended)
                        running[future] = row.thread
                    if self._woken.wait(self._next_pause()):
                        self._pause = SHORTEST
                    for future in [future for future in running if future.done()]:
                        del running[future]
                        future.result()
        finally:
            admitted.discard(self.wake)

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        """Have the runs stop when what takes them up ends for whatever reason."""
        try:
            yield
        except BaseException:
            self.stop("the worker broke off")
            raise

    def _look(self, room: int | None = None, busy: Collection[str] = ()) -> list[ThreadRow]:
        try:
            return runner.run(self._looking(room, busy), lambda ask: ask.blocking())
        except StoreError as error:
            return self._away(error, room)

    def _take(self, row: ThreadRow) -> int:
        """Go on with a thread to its next rest; 0 when another worker was quicker."""
        try:
            call = self._call(row, self.saver.look(row.thread, ""))
            result = blocking_driver(call).run(call.wants, None if call.callbacks is None else call.callbacks.tell)
            if result.error is not None:
                raise let_go(result)
        except Exception as error:
            return self._told(row, error)
        return 1

    # -- awaiting ----------------------------------------------------------------------------------------------------

    async def arun_once(self) -> int:
        """Async twin of `run_once`."""
        taken = 0
        for row in await self._alook():
            if not self.control.drain_requested:
                taken += await self._atake(row)
        return taken

    async def arun(self) -> None:
        """Async twin of `run`. Cancelled, it stops as `stop` does, and ends when its runs have."""
        event, loop = asyncio.Event(), asyncio.get_running_loop()
        self._awoken = lambda: tell(loop, event.set)
        running: dict[asyncio.Task[int], str] = {}
        admitted.add(self.wake)
        try:
            with self._stopping():
                while not self.control.drain_requested:
                    event.clear()
                    for row in await self._alook(self.concurrency - len(running), running.values()):
                        task = asyncio.create_task(self._atake(row))
                        task.add_done_callback(self._ended)
                        running[task] = row.thread
                    if await _awaited(event, self._next_pause()):
                        self._pause = SHORTEST
                    for task in [task for task in running if task.done()]:
                        del running[task]
                        task.result()
        finally:
            admitted.discard(self.wake)
            self._awoken = int
            await _ended(running)

    async def _alook(self, room: int | None = None, busy: Collection[str] = ()) -> list[ThreadRow]:
        try:
            return await runner.arun(self._looking(room, busy), lambda ask: ask.awaited())
        except StoreError as error:
            return self._away(error, room)

    async def _atake(self, row: ThreadRow) -> int:
        try:
            call = self._call(row, await self.saver.alook(row.thread, ""))
            tell = None if call.callbacks is None else call.callbacks.atell
            result = await awaiting_driver(call).run(call.wants, tell)
            if result.error is not None:
                raise let_go(result)
        except Exception as error:
            return self._told(row, error)
        return 1

    # -- both --------------------------------------------------------------------------------------------------------

    def _turn(self, row: ThreadRow) -> tuple[int, float, int]:
        return self._tries(row), row.updated_at, row.tno

    def _tries(self, row: ThreadRow) -> int:
        """How often it ended in an error, and stands as it did."""
        epoch, tries = self._broken.get(row.thread, (row.epoch, 0))
        return tries if epoch == row.epoch else 0

    def _looking(self, room: int | None, busy: Collection[str]) -> runner.Flow[list[ThreadRow]]:
        """What can go on, of the graphs that it serves, the longest untouched first; as many as there is room for.

        Of what was started no more is read than that. What a process left that died is looked for once in a
        `poll_interval`, because all that runs is read for it.
        """
        if room == 0:
            return []
        for graph in self.graphs:
            for name, input in self.unread.items():
                yield _Ask(graph.threads, "start_unread", name, input)
        found: list[ThreadRow] = []
        if is_whole := room is None or time.monotonic() >= self._looks_for_left:
            self._looks_for_left = time.monotonic() + self.poll_interval
            running = yield _Ask(self.saver, "threads", status="running")
            found += [row for row in running if self._is_for_us(row, busy) and _is_left(row)]
        due = yield _Ask(self.saver, "due", self._now())
        ours = [thread for thread, graph in due if graph in self.graphs and thread not in busy]
        ours.sort(key=lambda thread: self._broken.get(thread, (0, 0))[1])
        for thread in ours[:room]:
            found.append((yield _Ask(self.saver, "load", thread, [])).thread)
        last = yield from self._pending(found, room, busy)
        if last and is_whole and self._broken:
            there = {*ours, *busy, *(row.thread for row in found)}
            self._broken = {thread: seen for thread, seen in list(self._broken.items()) if thread in there}
        return sorted(found, key=self._turn)[:room]

    def _pending(self, found: list[ThreadRow], room: int | None, busy: Collection[str]) -> runner.Flow[bool]:
        """Add what was started and does not break off each time, as much as there is room for; whether that was all."""
        left = room
        size = PAGE if room is None else min(PAGE, room + len(busy))
        after: tuple[float, int] = (0.0, 0)
        while left is None or left > 0:
            page: list[ThreadRow] = yield _Ask(self.saver, "pending", after, size)
            rows = [row for row in page if self._is_for_us(row, busy)]
            found += rows
            if len(page) < size:
                return True
            if left is not None:
                left -= sum(not self._tries(row) for row in rows)
            after, size = (page[-1].updated_at, page[-1].tno), PAGE
        return False

    def _is_for_us(self, row: ThreadRow, busy: Collection[str]) -> bool:
        return row.graph in self.graphs and row.thread not in busy

    def _now(self) -> float:
        """Unix seconds, by the clock that the waits of its graphs are told by."""
        return (next(iter(self.graphs)).clock or clock)() / TICKS

    def _call(self, row: ThreadRow, saved: Any) -> TakeUp:
        graph = self.graphs.of(row.graph)
        refused = graph is None
        graph = graph or self.graphs.refusing(row.graph)
        if graph is None:  # it was replaced since
            raise ClaimMissed
        control = self.graphs.control(graph)
        return TakeUp(graph, row.thread, row.epoch, saved, refused=refused, context=self.context, control=control)

    def _told(self, row: ThreadRow, error: Exception) -> int:
        """Whether a run that ended so was this worker's; the thread's row says what became of it."""
        if isinstance(error, ClaimMissed | ThreadBusy):
            return 0
        if isinstance(error, GraphDrained):
            return 1
        tries = self._tries(row)
        self._broken[row.thread] = row.epoch, tries + 1
        what = "broke off" if isinstance(error, StoreError) else "failed"
        log.warning("thread %r %s: %s: %s", row.thread, what, type(error).__name__, error)
        return int(what == "failed" and not tries)

    def _ended(self, work: Future[int] | asyncio.Task[int]) -> None:
        """Look again at once when a run has come to a rest, and not when nothing came of it."""
        if work.cancelled() or work.exception() is not None or work.result():
            self.wake()

    def _away(self, error: StoreError, room: int | None) -> list[ThreadRow]:
        if room is None:
            raise error
        log.warning("the store could not be looked at: %s", error)
        return []

    def _next_pause(self) -> float:
        pause, self._pause = self._pause, min(self._pause * 2, self.poll_interval)
        return min(pause, self.poll_interval)


class _Ask:
    """Something that a look wants of the store."""

    def __init__(self, of: Any, verb: str, *args: Any, **named: Any) -> None:
        self.of, self.verb, self.args, self.named = of, verb, args, named

    def blocking(self) -> Any:
        return getattr(self.of, self.verb)(*self.args, **self.named)

    def awaited(self) -> Any:
        return getattr(self.of, f"a{self.verb}")(*self.args, **self.named)


def _is_left(row: ThreadRow) -> bool:
    info = info_of(row)
    return info.status == "abandoned" and info.can_resume and row.asked not in DISPLACED


async def _awaited(event: asyncio.Event, seconds: float) -> bool:
    """Whether it was set within so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


async def _ended(running: Iterable[asyncio.Task[int]]) -> None:
    """Return when these have ended, also if that is cancelled meanwhile; what they raised is raised."""
    cancelled = None
    left = set(running)
    while left:
        try:
            _, left = await asyncio.wait(left)
        except asyncio.CancelledError as error:
            if cancelled is not None:  # asked twice: as abrupt as it can be
                for task in left:
                    task.cancel()
            cancelled = error
            left = {task for task in left if not task.done()}
    if cancelled is not None:
        raise cancelled
