"""The awaiting driver: performs a flow's Steps on an event loop, blocking nodes on worker threads.

1. The parts of a Step are performed in field order: nothing starts before a consumer has taken what there is to show.
   News is fed, and so stored, before chunks that came with it show.
2. A single task whose code is async is awaited right here, with no task of its own around it; several get one each and
   post their own end.
3. What a Step loads and stores is done whole, whatever is cancelled meanwhile.
4. Cancelling or closing the run winds the flow down: what ended is stored, async tasks are cancelled, threads are
   waited for.
5. While a node that is awaited in place has calls out, another asyncio task performs the Steps: it hands the run back
   when the node has ended. However a run ends, no future of a call stays unsettled.
6. A node that shows more than the consumer takes waits for it: a thread in its writer, an async node at its next await.
7. A KeyboardInterrupt or SystemExit of a node or of the store is raised by whoever awaits the run, once that is wound
   down: out of any other task it would stop the loop before anything is stored.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import random
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeGuard

from pregel.constants import LIFECYCLE
from pregel.engine.body import run_body
from pregel.engine.body_async import arun_body, awaits, never_begins
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
from pregel.engine.gate import Gate, Paced
from pregel.engine.journal_async import AwaitingJournal, outcome, whole
from pregel.engine.pool import Job, shared_pool, still_runs
from pregel.engine.puller import Puller
from pregel.engine.task import Task
from pregel.engine.timers import Timers
from pregel.errors import SerializationError
from pregel.hops import tell
from pregel.owned import Owned

if TYPE_CHECKING:
    from pregel.engine.future import CallFuture
    from pregel.engine.running import Running

ENDS = (Done, Failed, Paused, Gone, Entered)
NONE: OrderedDict[Any, None] = OrderedDict()  # what waits where nothing does; never added to
WAVE = 500  # tasks that start in one turn of the loop: of more at once the garbage collector visits all that never wait
OVER = Event()  # the node that was awaited in place has ended


class AwaitingDriver:
    """Drives one run. `chunks` yields what it shows; `result` is there when it is over.

    Where thousands of runs go on at once each object costs, so what most runs never have is a dict: an empty one is
    nothing to the garbage collector.
    """

    __slots__ = (
        "__weakref__",
        "beside",
        "body",
        "broken",
        "closed",
        "ended",
        "fatal",
        "flow",
        "gate",
        "inbox",
        "inline",
        "jobs",
        "journal",
        "live",
        "loop",
        "loop_body",
        "news",
        "out",
        "owed",
        "process",
        "puller",
        "result",
        "room",
        "sound",
        "stopping",
        "timers",
        "waiting",
        "waker",
        "waking",
    )
    loop: asyncio.AbstractEventLoop

    def __init__(
        self, flow: Flow[Result], journal: AwaitingJournal | None, *, live: bool = False, room: int | None = None
    ) -> None:
        self.flow = flow
        self.journal = journal
        self.body: Callable[[Task], TaskEvent] = run_body  # of what runs on threads
        self.loop_body: Callable[[Task], Coroutine[Any, Any, TaskEvent]] = arun_body
        self.live = live
        self.room = room
        self.result: Result | None = None
        self.ended = False  # a flow that only reads may end with None
        self.news: list[Event] = []
        self.out: deque[Chunk] = deque()
        self.jobs: dict[Task, asyncio.Task[None] | Job | None] = {}  # None: waits for room
        self.waiting: OrderedDict[Task, None] = NONE
        self.timers: Timers | None = None  # none before something is due later
        self.inbox: deque[Event | Chunk] = deque()
        self.waker: asyncio.Future[None] | None = None
        self.sound = True
        self.fatal: BaseException | None = None  # a worker's KeyboardInterrupt or SystemExit
        self.process = os.getpid()
        self.inline: Task | None = None  # what is awaited in place now
        self.beside: asyncio.Task[None] | None = None  # performs the Steps meanwhile
        self.broken: BaseException | None = None  # what it met
        self.owed: dict[CallFuture[Any], None] = {}
        self.closed = False  # calls are withdrawn
        self.stopping = ""  # why nothing starts any more
        self.puller = Puller()
        self.gate: Gate | None = Gate(self.inbox.__len__) if live else None
        self.waking = False  # a wake-up is on its way to the loop

    async def run(
        self, show: Callable[[Chunk], object] | None = None, tell: Callable[[Any], Awaitable[None]] | None = None
    ) -> Result:
        """The result; what it shows on the way goes to `show`, its lifecycle to `tell`."""
        async with self.chunks() as chunks:
            async for chunk in chunks:
                if tell is not None and chunk[1] == LIFECYCLE:
                    await tell(chunk[2])
                elif show is not None:
                    show(chunk)
        assert self.ended
        return self.result  # type: ignore[return-value]  # None only from flows that say so

    def chunks(self) -> Owned[Chunk]:
        """What the run shows, as it goes; it moves only while somebody pulls."""
        return Owned(self._chunks())

    async def _chunks(self) -> AsyncIterator[Chunk]:
        self.loop = asyncio.get_running_loop()
        self.puller.note()
        reply: list[Event] | None = None
        try:
            while True:
                try:
                    step = self.flow.send(reply)  # type: ignore[arg-type]  # None starts a flow
                except StopIteration as stop:
                    self.result, self.ended, self.news = stop.value, True, []  # news hold tasks, and these the run
                    break
                self.news = reply = []
                await self.record(step, reply)
                while self.out:
                    yield self.out.popleft()
                    self.puller.note()
                await self.set_off(step, reply)
                while step.wait and not reply:
                    for item in await self.wait():
                        if isinstance(item, Event):
                            reply.append(item)
                        else:
                            self.out.append(item)
                    self._exit()
                    while self.out and not reply:
                        yield self.out.popleft()
                        self.puller.note()
            if self.journal is not None:
                await self.journal.flush()
            while self.out:
                yield self.out.popleft()
        finally:
            if not self.ended:
                await self.shutdown()
            elif self.owed:
                self._withdraw_calls()

    def push(self, event: Pushed | Dropped | Noted) -> None:
        """Hear what a task calls, from whatever thread."""
        self.owed[event.future] = None
        here = asyncio._get_running_loop() is self.loop
        (self.post if here else self.post_from_thread)(event)
        if self.ended or self.closed or self.broken is not None:
            self._withdraw_calls()
        elif self.inline is not None:
            tell(self.loop, self._perform_beside)

    def stop(self, why: str) -> None:
        """Have the run wound down, from whatever thread: async nodes are cancelled, those on threads waited for."""
        self.stopping = why
        self.live = True  # no other node is awaited in place
        self.post_from_thread(Cancel(why))
        tell(self.loop, self._perform_beside)

    def post(self, item: Event | Chunk) -> None:
        """Put something into the inbox, from the loop's own thread."""
        self.inbox.append(item)
        if self.waker is not None and not self.waker.done():
            self.waker.set_result(None)

    def post_from_thread(self, item: Event | Chunk) -> None:
        """The same from any thread. A loop that was closed under the run takes nothing any more."""
        self.inbox.append(item)
        if not self.waking:  # set, it is read before what was put in above is taken out
            self.waking = True
            tell(self.loop, self._wake)

    def _wake(self) -> None:
        self.waking = False
        if self.waker is not None and not self.waker.done():
            self.waker.set_result(None)

    def post_chunk(self, chunk: Chunk, task: Running) -> None:
        """Take in a chunk from a task that runs, wherever; a thread waits while the consumer is behind."""
        try:
            here = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            here = False
        if here:
            if self.gate is None or not self.gate.closed:
                self.post(chunk)
        elif self.gate is None or self.gate.enter():
            self.post_from_thread(chunk)

    # -- performing --------------------------------------------------------------------------------------------------

    async def record(self, step: Step, events: list[Event]) -> None:
        """The first half: load, store, and line up what shows."""
        journal = self.journal
        if journal is not None and (step.load or step.stores):
            self.sound = False
            if journal.keeps(step):
                self.sound = True
            elif step.load:
                await self._whole(journal, self._load(journal, step, events))
            elif (storing := journal.store(step)) is not None:
                await self._whole(journal, self._stored(storing))
            else:
                self.sound = True
        elif journal is not None and step.start:  # nothing was stored that would tell that the thread is still ours
            await journal.on_time()
        self.out.extend(step.emit)

    async def _load(self, journal: AwaitingJournal, step: Step, events: list[Event]) -> None:
        events.append(await journal.load(step.load))
        if step.stores and (storing := journal.store(step)) is not None:
            await self._stored(storing)
        self.sound = True  # said here: whoever waits may hear of a cancellation instead

    async def _stored(self, storing: Awaitable[None]) -> None:
        try:
            await storing
        except SerializationError:
            self.sound = True  # the append has landed: what still runs is kept as well
            raise
        self.sound = True

    async def _whole(self, journal: AwaitingJournal, work: Coroutine[Any, Any, None]) -> None:
        """Do something to its end, whatever is cancelled meanwhile."""
        await (work if journal.at_once else whole(lambda: work))

    async def set_off(self, step: Step, events: list[Event]) -> None:
        """The second half, once everything has been shown: cancel, set timers, start."""
        for settled in step.settle:
            settled.future.settle(settled.value, settled.error)
            self.owed.pop(settled.future, None)
        for task, abandon in step.cancel:
            self._cancel(task, abandon, events)
        for seconds, jitter, event in step.after:
            if isinstance(event, Timeout) and event.task.clock is None:
                event.task.clock = Clock(event.task)
            if self.timers is None:
                self.timers = Timers(self.loop, self.post)
            self.timers.start(seconds + (random.random() if jitter else 0.0), event)
        if step.start:
            await self._start(step.start, events)

    async def _start(self, tasks: list[Task], events: list[Event]) -> None:
        if len(tasks) == 1 and self._is_free_for(tasks[0]):
            self.inline = tasks[0]
            event: TaskEvent
            try:
                event = await self.loop_body(tasks[0])
            except asyncio.CancelledError:
                if not self.puller.was_torn_alone():
                    raise  # the puller is cancelled: winding down hears that the node is gone
                event = Gone(tasks[0])
            self.inline = None
            if self.beside is not None:
                self.puller.was_torn_alone()  # a cancellation that the node swallowed is over as well
                await self._take_back(events)
            if self.inbox:
                events += self._unread()
            events.append(event)
            return
        if self.stopping:
            events += [Cancel(self.stopping), *map(Gone, tasks)]
            return
        left = WAVE if self.room is None else self.room + self._lent() - len(self.jobs) + len(self.waiting)
        for task in tasks:
            if task.clock is not None and still_runs(task):
                events.append(Failed(task, left_behind(timed_out(task, "run", 0.0))))
                self._free(task)
            elif left > 0:
                left -= 1
                self._launch(task)
            else:
                self.jobs[task] = None
                self.waiting = self.waiting or OrderedDict()
                self.waiting[task] = None

    def _is_free_for(self, task: Task) -> bool:
        """Whether a single task may be awaited in place: nothing else goes on, and nobody listens meanwhile."""
        if self.jobs or self.timers or self.live or not awaits(task):
            return False
        return not (task.frame.run.shows_calls and task.node.may_call)

    def _lent(self) -> int:
        """How many of the jobs wait for calls of theirs: these need no room."""
        return len({future.caller for future in list(self.owed)} & self.jobs.keys())

    def _launch_next(self) -> None:
        self._launch(self.waiting.popitem(last=False)[0])

    def _launch(self, task: Task) -> None:
        hand = task.call or task.frame.caller
        context = copy_context() if hand is None else hand.context.copy()
        if awaits(task):
            self.jobs[task] = self.loop.create_task(self._body(task), context=context)
            return
        job = self.jobs[task] = Job(task, context, self.post_from_thread, self.body)
        shared_pool().submit(job)
        if hand is not None:
            hand.hands.put(job)

    # -- calls of a node that is awaited in place --------------------------------------------------------------------

    def _perform_beside(self) -> None:
        if self.beside is None and self.inline is not None:
            self.live = True  # nothing else is awaited in place now
            self.beside = self.loop.create_task(self._beside())

    async def _beside(self) -> None:
        """Perform the Steps, until the node has ended; what was not heard by then is in `news`."""
        reply = [*self.news]  # what was loaded before the node began comes first
        self.news.clear()
        self.news = reply
        try:
            while self.inline is not None:
                reply += [item for item in await self.wait() if self._is_news(item)]
                self._exit()
                due = bool(reply)
                while due and self.inline is not None:
                    step = self.flow.send(reply)
                    self.news = reply = []
                    await self.record(step, reply)
                    await self.set_off(step, reply)
                    due = bool(reply) or not step.wait
        except BaseException as error:
            self.broken = error
            self._withdraw_calls()

    def _is_news(self, item: Event | Chunk) -> TypeGuard[Event]:
        """Whether an item is an event to be heard; a chunk waits until it can be shown."""
        if not isinstance(item, Event):
            self.out.append(item)
        return isinstance(item, Event) and item is not OVER

    async def _take_back(self, events: list[Event]) -> None:
        """The node has ended: go on here, with what was not heard yet."""
        assert self.beside is not None
        self.post(OVER)
        cancelled = False
        while not self.beside.done():
            try:
                await asyncio.wait({self.beside})
            except asyncio.CancelledError:
                cancelled = True
        self.beside, self.live = None, bool(self.stopping)
        self.news += self._unread()
        broken, self.broken = self.broken or self.fatal, None
        self.fatal = None
        events += self.news
        self.news = events
        if broken is not None:
            raise broken
        if cancelled:
            raise asyncio.CancelledError

    def _unread(self) -> list[Event]:
        """What nobody had read when the node ended."""
        items = [self.inbox.popleft() for _ in range(len(self.inbox))]
        heard = [self._heard(item) for item in items if self._counts(item)]
        return [item for item in heard if self._is_news(item)]

    async def _body(self, task: Task) -> None:
        event: Event = Gone(task)
        if task.clock is not None:
            task.clock.begin()
        try:
            event = await (self.loop_body(task) if self.gate is None else Paced(self.loop_body(task), self.gate))
        except asyncio.CancelledError:
            pass  # whoever cancelled it hears Gone
        except BaseException as error:
            event = Failed(task, error)
        finally:
            self.post(event if task.clock is None else task.clock.judged(event))

    def _cancel(self, task: Task, abandon: bool, events: list[Event]) -> None:
        if task is self.inline:
            self.puller.tear()
            return
        job = self.jobs.get(task)
        if isinstance(job, asyncio.Task):
            if never_begins(job):
                self._free(task)
                events.append(Gone(task))
        elif job is None or job.claim():
            self._free(task)
            events.append(Gone(task))
        elif abandon:
            self._free(task)
            events.append(Gone(task, lives=job.leave()))

    def _free(self, task: Task) -> None:
        if self.timers is not None:
            self.timers.drop(task)
        if task in self.jobs:
            if self.jobs.pop(task) is None:
                del self.waiting[task]
            elif self.waiting and self.room is not None:
                self._launch_next()

    # -- waiting -----------------------------------------------------------------------------------------------------

    async def wait(self) -> list[Event | Chunk]:
        """What happened next; suspends until something did, or more than one wave of tasks was to start."""
        if self.waiting and self.room is None:
            await asyncio.sleep(0)  # what was launched begins, and may be over with that
            for _ in range(min(WAVE, len(self.waiting))):
                self._launch_next()
        elif not self.inbox:
            self.waker = self.loop.create_future()
            try:
                await self.waker
            finally:
                self.waker = None
        news = [self.inbox.popleft() for _ in range(len(self.inbox))]  # threads may add to it meanwhile
        if self.gate is not None:
            self.gate.emptied()
        return [self._heard(item) for item in news if self._counts(item)]

    def _counts(self, item: Event | Chunk) -> bool:
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

    async def shutdown(self) -> None:
        """Wind the flow down, to its end even when this is cancelled again."""
        if os.getpid() != self.process:  # this is a fork's copy: the run goes on in the parent
            self.flow.close()
            return
        self.closed = True
        self._withdraw_calls()  # what the last Step wanted settled may not have been
        if self.loop.is_closed():  # nobody can wait for anything: what is stored stays
            self.flow.close()
            if self.journal is not None:
                self.journal.abandon()
            return
        self.live = True  # nothing is awaited in place any more: an exit is news, and cuts nothing short
        if self.journal is not None and self.journal.ended:
            self.sound = False  # it gave its thread up: nothing that it stores would land
        if self.gate is not None:
            self.gate.close()
        while True:
            winding = asyncio.create_task(outcome(self._wind_down))
            while not winding.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.shield(winding)
            if not winding.cancelled():  # the end of a loop cancels every task: this one before it began
                break
        failure = winding.result()[1]
        self._exit()
        if failure is not None:
            try:
                raise failure
            finally:
                del failure, winding

    async def _wind_down(self) -> None:
        """What `shutdown` waits for. A loop that ends cancels this too: it goes on all the same."""
        failure: BaseException | None = None
        self.inline = None
        if self.beside is not None:
            try:
                await self._take_back([])
            except BaseException as error:
                failure = None if isinstance(error, asyncio.CancelledError) else error
            self.live = True
        try:
            if self.sound and inspect.getgeneratorstate(self.flow) == inspect.GEN_SUSPENDED:
                failure = await self._tell_the_flow() or failure
            self.flow.close()
            await self._withdraw()
        finally:
            if self.journal is not None:
                self.journal.abandon()
        if failure is not None:
            raise failure

    async def _tell_the_flow(self) -> BaseException | None:
        """Tell the flow what happened and that it is over, until it is; what its last appends met."""
        failure: BaseException | None = None
        events: list[Event] = [*self.news, Cancel(again=True)]
        while True:
            try:
                step = self.flow.send(events)
            except StopIteration as stop:
                self.result = stop.value
                break
            events = []
            try:
                await self.record(step, events)
            except asyncio.CancelledError:
                pass
            except BaseException as error:  # a value was refused; or the store failed, and then nothing is sound
                failure = error
            if not self.sound:
                break
            await self.set_off(step, events)
            while step.wait and not events:
                with suppress(asyncio.CancelledError):
                    events = [item for item in await self.wait() if isinstance(item, Event) and item is not OVER]
        return failure

    def _withdraw_calls(self) -> None:
        """Nobody waits for a call that will not end."""
        while self.owed:
            self.owed.popitem()[0].withdraw()

    async def _withdraw(self) -> None:
        if self.timers is not None:
            self.timers.clear()
        self.waiting.clear()
        for task, job in list(self.jobs.items()):
            if never_begins(job) if isinstance(job, asyncio.Task) else job is None or job.claim():
                del self.jobs[task]
        while self.jobs:
            while not self.inbox:
                self.waker = self.loop.create_future()
                with suppress(asyncio.CancelledError):
                    await self.waker
                self.waker = None
            item = self.inbox.popleft()
            if isinstance(item, ENDS):
                self.jobs.pop(item.task, None)
                self._heard(item)
