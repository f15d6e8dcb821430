"""What a call does when another run holds its thread: refuse, wait for it, or make it stop.

1. ``reject`` (the default) raises ThreadBusy at once. ``enqueue`` waits until the other run is over, and nothing else.
2. ``interrupt`` makes the other run stop: async nodes are cancelled, blocking ones end by themselves or at their next
   call, nothing new starts. What had ended by then is kept, and the newcomer goes on from there. ``rollback`` does the
   same, and goes on from where that run had started: what it did stays as a branch of history. So does whoever comes
   first with something new, since the thread's row says it (`ThreadRow.is_rolled_back`), also when who asked is gone.
   A run that came to its end before it heard of it has told its caller so, and is not rolled back.
3. Who waits looks at the thread again and again, more seldom the longer the same run holds it, and oftener the longer
   it has waited. Who has waited for `LONG`, or was beaten to a free thread for so long, leaves a ticket in the thread's
   row, whoever holds it; when it is free, the one with the oldest ticket comes first, and others who wait stand back
   for a moment (`GRACE`). A claim takes away the ticket that it saw, and none that came since. So nobody starves, and
   that is all: a queue with an order belongs to a task queue.
4. A run never waits for itself, and no run waits in a queue for another: A would wait for B, and B for A.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from pregel import flow as runner
from pregel.checkpoint import lease
from pregel.checkpoint.records import Hold, ThreadRow
from pregel.engine.authority import QUEUED, ClaimMissed
from pregel.errors import InvalidInputError, ThreadBusy
from pregel.flow import Flow

if TYPE_CHECKING:
    from pregel.engine.journal import Journal

Concurrency = Literal["reject", "enqueue", "interrupt", "rollback"]
MISSES = 100  # claims that may be lost to others in a row before a call that does not wait gives up
SHORTEST, LONGEST = 0.001, 0.25  # seconds between two looks at a thread that another run holds
LONG = 0.1  # seconds of waiting after which a call gets a place in the queue
GRACE = 0.1  # seconds for which a free thread is left to the one whose turn it is, who may have died
FRESH = 0.008  # the shortest for a call that has only begun to wait: those that wait longer come first


class Ask(NamedTuple):
    """Leave word for the run that holds a thread; a ticket is for whoever holds it next."""

    hold: Hold
    asked: str


class Look(NamedTuple):
    """The row of a thread, after so many seconds."""

    thread: str
    pause: float


class Displaced(NamedTuple):
    """The run that made way: where it had started, unless another claim came after its own."""

    epoch: int
    pin: str


class Contender:
    """One call's way to its thread. `displaced` is set once a run was asked to roll back."""

    def __init__(self, thread: str, mode: Concurrency, wait: float | None) -> None:
        self.thread = thread
        self.mode = mode
        self.wait = wait
        self.displaced: Displaced | None = None
        self.misses = 0
        self.began: float | None = None  # monotonic time at which it began to wait
        self.until: float | None = None  # monotonic time at which patience ends
        self.ticket = ""  # once it has waited: the store's time at which it began, so that tickets sort by age
        self.free: tuple[int, int, float] = (0, 0, 0.0)  # epoch and seq of a free thread, and since when it is seen

    def stands_back(self, row: ThreadRow) -> bool:
        """Whether a free thread is to be left to another call, which has waited longer."""
        if not row.asked.startswith(QUEUED) or (self.ticket and self.ticket <= row.asked):
            return False
        now = time.monotonic()
        if self.free[:2] != (row.epoch, row.seq):
            self.free = row.epoch, row.seq, now
        return now - self.free[2] < GRACE

    def meet(self, error: ClaimMissed | ThreadBusy, journal: Journal) -> Flow[None]:
        """Return when the call may try again; the error when it may not."""
        if self.until is None and self.wait is not None:
            self.until = time.monotonic() + self.wait
        if self.displaced is not None and (journal.row.epoch != self.displaced.epoch or journal.row.is_done):
            self.displaced = None  # it came to its end all the same, or a later run did: its caller has the result
        if isinstance(error, ClaimMissed):
            yield from self._missed(journal.row)
            return
        row = journal.row
        if error.reason == "queued":
            yield from self._let_pass(row)
            return
        if self.mode == "reject" or error.reason != "held" or row.run is None:
            raise error
        hold = Hold(row.tno, row.epoch, row.run)
        if self.mode != "enqueue":
            yield Ask(hold, self.mode)
        if self.mode == "rollback":
            self.displaced = Displaced(row.epoch, row.pin)
        yield from self._stand_by(row, hold, error, journal.caller)

    def _let_pass(self, row: ThreadRow) -> Flow[None]:
        """Look until the one whose turn it is has the thread, or does not come."""
        while row.run is None and self.stands_back(row):
            row = yield Look(self.thread, FRESH * random.uniform(0.5, 1.0))

    def _missed(self, row: ThreadRow) -> Flow[None]:
        """Another call was quicker."""
        self.misses += 1
        limit = MISSES if self.mode == "reject" else None
        if self.misses == limit or (self.mode != "reject" and self.until is not None and time.monotonic() > self.until):
            raise ThreadBusy(
                f"Thread {self.thread!r} changed under {self.misses} claims in a row.", thread=self.thread
            ) from None
        yield from self._queue_up(row)

    def _queue_up(self, row: ThreadRow) -> Flow[float]:
        """See that a call which has waited long has its place in the queue; seconds since it began to wait."""
        now = time.monotonic()
        if self.began is None:
            self.began = now
            self.ticket = f"{QUEUED}{row.updated_at:018.6f} {os.urandom(4).hex()}"
        waited = now - self.began
        if self.mode == "enqueue" and waited >= LONG and row.tno and (not row.asked or row.asked > self.ticket):
            yield Ask(Hold(row.tno, row.epoch, row.run or b""), self.ticket)
        return waited

    def _stand_by(self, row: ThreadRow, hold: Hold, error: ThreadBusy, caller: object) -> Flow[None]:
        """Look until the thread has changed hands."""
        since = time.monotonic()
        while True:
            waited = yield from self._queue_up(row)
            now = time.monotonic()
            shortest = max(SHORTEST, FRESH - waited / 50)
            pause = min(max((now - since) / 4, shortest), LONGEST) * random.uniform(0.5, 1.0)
            if self.until is not None:
                left = self.until - time.monotonic()
                if left <= 0:
                    raise self._given_up(error)
                pause = min(pause, left)
            row = yield Look(self.thread, pause)
            if row.run is None:
                yield from self._let_pass(row)
                return
            if row.run != hold.run or row.epoch != hold.epoch or row.lapsed or row.owner is None:
                return
            if lease.is_dead(row.owner, hold.run):
                return
            holder = lease.holder_of(hold.run)
            if holder is not None and holder.gives_way(caller):
                return

    def _given_up(self, error: ThreadBusy) -> ThreadBusy:
        """The error at the end of patience. What was asked may have been heard, and is not taken back."""
        if self.mode == "enqueue":
            return ThreadBusy(
                f"{error.message} It was not over within {self.wait} s.",
                fix="Try again, give a longer wait=, or use another thread_id.",
                thread=self.thread,
            )
        return ThreadBusy(
            f"{error.message} It was asked to make way ({self.mode}) and stops for it, but not within {self.wait} s.",
            fix="Try again: it stops as soon as it hears of it and its blocking nodes come to an end.",
            asked=self.mode,
            thread=self.thread,
        )

    # -- doing it ----------------------------------------------------------------------------------------------------

    def meet_blocking(self, error: ClaimMissed | ThreadBusy, journal: Journal) -> None:
        """`meet`, blocking."""
        saver = journal.saver

        def perform(request: Ask | Look) -> Any:
            if isinstance(request, Ask):
                if not journal.renews or saver.ask(*request):
                    _tell_here(request)
                return None
            time.sleep(request.pause)
            return saver.load(request.thread, []).thread

        runner.run(self.meet(error, journal), perform)

    async def meet_awaiting(
        self, error: ClaimMissed | ThreadBusy, journal: Journal, sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        """`meet`, awaited."""
        saver = journal.saver

        async def perform(request: Ask | Look) -> Any:
            if isinstance(request, Ask):
                if not journal.renews or await saver.aask(*request):
                    _tell_here(request)
                return None
            await sleep(request.pause)
            return (await saver.aload(request.thread, [])).thread

        await runner.arun(self.meet(error, journal), perform)


def _tell_here(request: Ask) -> None:
    """Tell a run of this process straight away. Its row says so first, since it may end as soon as it hears of it."""
    holder = lease.holder_of(request.hold.run)
    if holder is not None:
        holder.heed(request.asked)


def checked_concurrency(mode: str, wait: float | None) -> Concurrency:
    """The mode; a named error for one that does not exist, or a wait that is none."""
    if mode not in get_args(Concurrency):
        raise InvalidInputError(f"Unknown concurrency {mode!r}.", fix=f"Use one of {', '.join(get_args(Concurrency))}.")
    is_number = isinstance(wait, int | float) and not isinstance(wait, bool)
    if wait is not None and not (is_number and wait >= 0):
        raise InvalidInputError(f"wait is {wait!r}.", fix="Give seconds, or None to wait as long as it takes.")
    return mode  # type: ignore[return-value]  # one of them
