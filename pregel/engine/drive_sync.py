"""The blocking driver: performs a flow's Steps on the caller's thread and on worker threads.

1. The parts of a Step are performed in field order: nothing starts before a consumer has taken what there is to show.
2. News is fed to the flow, and so stored, before chunks that came with it are shown.
3. What was fetched but not yet fed lives on the driver, so closing the stream at any point loses nothing: the flow is
   told what happened and wound down; tasks that run are waited for, tasks that have not started never do.
4. After a failed append nothing more is stored: the flow is closed, running tasks are waited for, the error is raised.
5. While a node that runs on the caller's thread has calls out, another thread performs the Steps: it hands the run back
   when the node has ended. However a run ends, no future of a call stays unsettled.
6. A node that shows more than the consumer takes waits for it, so a slow consumer costs `CROWD` chunks at most twice.
7. A KeyboardInterrupt or SystemExit of a node is raised once what ended with it is safe, however the run ends.
"""

from __future__ import annotations

import inspect
import os
import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import copy_context
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeGuard

from pregel.constants import LIFECYCLE
from pregel.engine.body import run_body
from pregel.engine.clock import Clock, left_behind, timed_out
from pregel.engine.effects import (
    Cancel,
    Chunk,
    Done,
    Dropped,
    Entered,
    Event,
    Failed,
    Flow,
    Gone,
    Noted,
    Paused,
    Pushed,
    Result,
    Step,
    TaskEvent,
    Timeout,
)
from pregel.engine.gate import Gate
from pregel.engine.journal import BlockingJournal
from pregel.engine.pool import Job, on_worker, shared_pool, still_runs
from pregel.engine.task import Task
from pregel.errors import SerializationError

if TYPE_CHECKING:
    from pregel.engine.future import CallFuture
    from pregel.engine.running import Running

ENDS = (Done, Failed, Paused, Gone, Entered)
OVER = Event()  # the node that ran on the caller's thread has ended
_beginning = Lock()


class BlockingDriver:
    """Drives one run. `chunks` yields what it shows; `result` is there when it is over."""

    def __init__(
        self, flow: Flow[Result], journal: BlockingJournal | None, *, live: bool = False, room: int | None = None
    ) -> None:
        self.flow = flow
        self.journal = journal
        self.body: Callable[[Task], TaskEvent] = run_body
        self.live = live  # chunks must show before their node ends: no node runs on the caller's thread
        self.room = room
        self.result: Result | None = None
        self.ended = False  # a flow that only reads may end with None
        self.news: list[Event] = []
        self.out: deque[Chunk] = deque()
        self.jobs: dict[Task, Job] = {}
        self.waiting: deque[Job] = deque()  # jobs beyond max_concurrency
        self.timers: list[tuple[float, int, Event]] = []
        self.inbox: SimpleQueue[Event | Chunk] = SimpleQueue()
        self.sound = True  # no append has failed
        self.fatal: BaseException | None = None  # a worker's KeyboardInterrupt or SystemExit
        self.process = os.getpid()
        self.inline: Task | None = None  # what runs on the caller's thread now
        self.beside: Thread | None = None  # performs the Steps meanwhile
        self.broken: BaseException | None = None  # what it met
        self.owed: set[CallFuture[Any]] = set()
        self.closed = False  # calls are withdrawn
        self.stopping = ""  # why nothing starts any more
        self.gate: Gate | None = Gate(self.inbox.qsize) if live else None

    def run(self, show: Callable[[Chunk], object] | None = None, tell: Callable[[Any], None] | None = None) -> Result:
        """The result; what it shows on the way goes to `show`, its lifecycle to `tell`."""
        for chunk in self.chunks():
            if tell is not None and chunk[1] == LIFECYCLE:
                tell(chunk[2])
            elif show is not None:
                show(chunk)
        assert self.ended
        return self.result  # type: ignore[return-value]  # None only from flows that say so

    def chunks(self) -> Iterator[Chunk]:
        """What the run shows, as it goes; it moves only while somebody pulls."""
        reply: list[Event] | None = None
        try:
            while True:
                try:
                    step = self.flow.send(reply)  # type: ignore[arg-type]  # None starts a flow
                except StopIteration as stop:
                    self.result, self.ended, self.news = stop.value, True, []  # news hold tasks, and these the run
                    break
                self.news = reply = []
                if self.journal is not None:
                    self.record(step, reply)
                if step.emit:
                    self.out.extend(step.emit)
                while self.out:
                    yield self.out.popleft()
                if len(step.start) == 1 and self.is_free_for(step.start[0]) and not (step.cancel or step.after):
                    self.inline = step.start[0]
                    event = copy_context().run(self.body, step.start[0])
                    self.inline = None
                    if self.beside is not None:
                        self._take_back(reply)
                    reply.append(event)
                    continue
                self.set_off(step, reply)
                while step.wait and not reply:
                    for item in self.wait():
                        if isinstance(item, Event):
                            reply.append(item)
                        else:
                            self.out.append(item)
                    self._exit()
                    while self.out and not reply:
                        yield self.out.popleft()
            if self.journal is not None:
                self.journal.flush()
            while self.out:
                yield self.out.popleft()
        finally:
            if not self.ended:
                self.shutdown()
            elif self.owed:
                self._withdraw_calls()

    loop = None  # it lives on none
    loop_body = None

    def push(self, event: Pushed | Dropped | Noted) -> None:
        """Hear what a task calls, from whatever thread."""
        self.owed.add(event.future)
        self.inbox.put(event)
        if self.ended or self.closed or self.broken is not None:
            self._withdraw_calls()
        elif self.inline is not None:
            self._perform_beside()

    def stop(self, why: str) -> None:
        """Have the run wound down, from whatever thread. A node on the caller's thread is met at its next call."""
        self.stopping = why
        self.live = True  # no other node comes there
        self.inbox.put(Cancel(why))

    def post(self, chunk: Chunk, task: Running) -> None:
        """Take in a chunk from a task that runs; waits while the consumer is behind."""
        if self.gate is not None and not self.gate.enter():
            return
        self.inbox.put(chunk)

    # -- performing --------------------------------------------------------------------------------------------------

    def record(self, step: Step, events: list[Event]) -> None:
        """The first half: load and store."""
        journal = self.journal
        if journal is None:
            return
        if step.saves:
            self.sound = False
            if journal.keeps(step):
                self.sound = True
                return
        stores = step.stores
        if not (stores or step.load):
            if step.start:  # nothing was stored just now that would tell that the thread is still this run's
                journal.on_time()
            return
        self.sound = False
        if step.load:
            events.append(journal.load(step.load))
        if stores:
            try:
                journal.store(step)
            except SerializationError:
                self.sound = True  # the append has landed: what still runs is kept as well
                raise
        self.sound = True

    def set_off(self, step: Step, events: list[Event]) -> None:
        """The second half, once everything has been shown: cancel, set timers, start."""
        for settled in step.settle:
            settled.future.settle(settled.value, settled.error)
            self.owed.discard(settled.future)
        for task, abandon in step.cancel:
            self._cancel(task, abandon, events)
        for seconds, jitter, event in step.after:
            if isinstance(event, Timeout) and event.task.clock is None:
                event.task.clock = Clock(event.task)
            self._after(seconds + (random.random() if jitter else 0.0), event)
        if step.start:
            self._start(step.start, events)

    def _after(self, seconds: float, event: Event) -> None:
        heappush(self.timers, (time.monotonic() + seconds, id(event), event))

    def is_free_for(self, task: Task) -> bool:
        """Whether a single task may run right here: nothing else goes on, and nobody listens meanwhile."""
        if self.jobs or self.live or (self.timers and self._next_timer()):
            return False
        return not (task.frame.run.shows_calls and task.node.may_call)

    def _next_timer(self) -> float | None:
        """When the next timer rings; those of attempts that have ended never do."""
        while self.timers and isinstance(event := self.timers[0][2], Timeout) and event.task.clock.over:  # type: ignore[union-attr]  # it was made with its timers
            heappop(self.timers)
        return self.timers[0][0] if self.timers else None

    def _rung(self) -> Iterator[Event]:
        """The timers that ring now. A limit that was moved on is watched again for what is left of it."""
        while (due := self._next_timer()) is not None and due <= time.monotonic():
            event = heappop(self.timers)[2]
            if isinstance(event, Timeout) and event.task.clock is not None:
                if (left := event.task.clock.left(event.kind)) > 0:
                    self._after(left, event)
                    continue
                event.elapsed = event.task.clock.elapsed
            yield event

    def _start(self, tasks: list[Task], events: list[Event]) -> None:
        if len(tasks) == 1 and self.is_free_for(tasks[0]):
            events.append(copy_context().run(self.body, tasks[0]))
            return
        if self.stopping:
            events += [Cancel(self.stopping), *map(Gone, tasks)]
            return
        for task in tasks:
            if task.clock is not None and still_runs(task):
                task.clock.over = True
                events.append(Failed(task, left_behind(timed_out(task, "run", 0.0))))
                continue
            hand = task.call or task.frame.caller
            job = self.jobs[task] = Job(
                task, copy_context() if hand is None else hand.context.copy(), self.inbox.put, self.body
            )
            if self.room is not None and len(self.jobs) - len(self.waiting) - self._lent() > self.room:
                self.waiting.append(job)
            else:
                shared_pool().submit(job)
            if hand is not None:
                hand.hands.put(job)

    def _lent(self) -> int:
        """How many of the jobs wait for calls of theirs: these need no room."""
        return len({future.caller for future in list(self.owed)} & self.jobs.keys())

    # -- calls of a node that runs on this thread --------------------------------------------------------------------

    def _perform_beside(self) -> None:
        with _beginning:
            if self.beside is None and self.inline is not None:
                self.live = True  # nothing else runs on the caller's thread now
                self.beside = Thread(target=self._beside, name="pregel-calls", daemon=True)
                self.beside.start()

    def _beside(self) -> None:
        """Perform the Steps, until the node has ended; what was not heard by then is in `news`."""
        reply = [*self.news]  # what was loaded before the node began comes first
        self.news.clear()
        self.news = reply
        try:
            while self.inline is not None:
                reply += [item for item in self.wait() if self._is_news(item)]
                self._exit()
                due = bool(reply)
                while due and self.inline is not None:
                    step = self.flow.send(reply)
                    self.news = reply = []
                    self.record(step, reply)
                    self.out.extend(step.emit)
                    self.set_off(step, reply)
                    due = bool(reply) or not step.wait
        except BaseException as error:
            self.broken = error
            self._withdraw_calls()

    def _is_news(self, item: Event | Chunk) -> TypeGuard[Event]:
        """Whether an item is an event to be heard; a chunk waits until it can be shown."""
        if not isinstance(item, Event):
            self.out.append(item)
        return isinstance(item, Event) and item is not OVER

    def _take_back(self, events: list[Event]) -> None:
        """The node has ended: go on here, with what was not heard yet."""
        assert self.beside is not None
        self.inbox.put(OVER)
        stopped: KeyboardInterrupt | None = None
        while self.beside.is_alive():
            try:
                self.beside.join()
            except KeyboardInterrupt as error:  # this thread's, while the other one is not done yet
                stopped = error
        self.beside, self.live = None, bool(self.stopping)
        while not self.inbox.empty():  # what it had not read when the node ended, OVER among it
            item = self.inbox.get_nowait()
            if self._counts(item) and self._is_news(item := self._heard(item)):
                self.news.append(item)
        broken, self.broken = self.broken or self.fatal, None
        self.fatal = None
        events += self.news
        self.news = events
        if broken is not None or stopped is not None:
            raise broken or stopped  # type: ignore[misc]  # it is one of the two

    def _cancel(self, task: Task, abandon: bool, events: list[Event]) -> None:
        if task is self.inline:
            return  # its calls are refused from here on, and its end comes by itself
        job = self.jobs.get(task)
        if job is None or job.claim():
            self._free(task)
            events.append(Gone(task))
        elif abandon:
            self._free(task)
            events.append(Gone(task, lives=job.leave()))

    def _free(self, task: Task) -> None:
        if task.clock is not None:
            task.clock.over = True
        if self.jobs.pop(task, None) is None:
            return
        while self.waiting:
            job = self.waiting.popleft()
            if job.ticket:  # whoever waits for a call may have run it already
                shared_pool().submit(job)
                return

    # -- waiting -----------------------------------------------------------------------------------------------------

    def wait(self) -> list[Event | Chunk]:
        """What happened next; blocks until something did."""
        if on_worker() and self.inbox.empty():
            beyond = set(self.waiting)  # there is no room for these
            job = next((job for job in self.jobs.values() if job not in beyond and job.claim()), None)
            if job is not None:
                job.run()
        due = self._next_timer() if self.timers else None
        timeout = None if due is None else max(0.0, due - time.monotonic())
        news: list[Event | Chunk] = []
        try:
            news.append(self.inbox.get(timeout=timeout))
            for _ in range(self.inbox.qsize()):  # no more: nodes that write as fast as this reads would add without end
                news.append(self.inbox.get_nowait())
        except Empty:
            pass
        if self.gate is not None:
            self.gate.emptied()
        if self.timers:
            news.extend(self._rung())
        return [self._heard(item) for item in news if self._counts(item)]

    def _counts(self, item: Event | Chunk) -> bool:
        """Free the slot of a task that ended; news of a task that was left behind does not count."""
        if not isinstance(item, ENDS):
            return True
        if item.task not in self.jobs:
            return False
        self._free(item.task)
        return True

    def _heard(self, item: Event | Chunk) -> Event | Chunk:
        if isinstance(item, Failed) and isinstance(item.error, KeyboardInterrupt | SystemExit):
            if self.fatal is None:
                self.fatal = item.error  # raised once the rest of the batch is safe
            return Gone(item.task)
        return item

    def _exit(self) -> None:
        """Raise what a node wants the whole process to hear, once."""
        error, self.fatal = self.fatal, None
        if error is not None:
            try:
                raise error
            finally:
                del error

    # -- the end -----------------------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Wind the flow down: what ended is stored, what has not started never runs, what runs is waited for."""
        if os.getpid() != self.process:  # this is a fork's copy: the run goes on in the parent
            self.flow.close()
            return
        self.inline = None
        self.closed = True
        self._withdraw_calls()  # what the last Step wanted settled may not have been
        failure: BaseException | None = None
        if self.beside is not None:  # what the node raised is more than its end
            try:
                self._take_back([])
            except BaseException as error:
                failure = error
        self.live = True  # nothing runs on this thread any more: an exit is news, and cuts nothing short
        if self.journal is not None and self.journal.ended:
            self.sound = False  # it gave its thread up: nothing that it stores would land
        if self.gate is not None:
            self.gate.close()
        try:
            failure = self._wind_down() or failure
            self.flow.close()
            self._withdraw()
        finally:  # a second Ctrl-C comes here at once
            self.flow.close()
            for job in self.jobs.values():
                job.claim()
            if self.journal is not None:
                self.journal.abandon()
        self._exit()
        if failure is not None:
            raise failure

    def _wind_down(self) -> Exception | None:
        """Tell the flow what happened and that it is over, until it is; what its last appends met."""
        failure: Exception | None = None
        if not self.sound or inspect.getgeneratorstate(self.flow) != inspect.GEN_SUSPENDED:
            return None
        events: list[Event] = [*self.news, Cancel(again=True)]
        while True:
            try:
                step = self.flow.send(events)
            except StopIteration as stop:
                self.result = stop.value
                break
            events = []
            try:
                self.record(step, events)
            except Exception as error:  # a value was refused; or the store failed, and then nothing is sound
                failure = error
            if not self.sound:
                break
            self.out.extend(step.emit)
            self.set_off(step, events)
            while step.wait and not events:
                events = [item for item in self.wait() if isinstance(item, Event) and item is not OVER]
        return failure

    def _withdraw_calls(self) -> None:
        """Nobody waits for a call that will not end."""
        while self.owed:
            self.owed.pop().withdraw()

    def _withdraw(self) -> None:
        for task, job in list(self.jobs.items()):
            if job.claim():
                del self.jobs[task]
        while self.jobs:
            item = self.inbox.get()
            if isinstance(item, ENDS):
                self.jobs.pop(item.task, None)
                self._heard(item)
