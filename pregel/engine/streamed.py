"""The stream of a graph that a node's code calls: what shows inside goes to that code, and is kept for the next time.

1. The called graph runs in the run of its caller, as one that is invoked does. It does not wait for who reads its
   stream; closing the stream cancels it.
2. What a step of it showed is stored with that step, as values that its caller made (`runtime.step`): when the caller
   runs again it is given all that once more, then what the graph goes on to show. Modes that tell about the run
   (``checkpoints tasks debug``) show live only.
3. A graph that keeps nothing (``checkpointer=False``) starts over with its caller, so what it showed counts when it is
   done: it is the result of the call.
4. Namespaces are those inside the called graph. Who streams the run around, with subgraphs, sees it all the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from threading import Thread
from typing import TYPE_CHECKING, Any

from pregel.checkpoint.records import MEMO, Write
from pregel.engine.calls import GraphCall
from pregel.engine.effects import Chunk, Dropped, Settled, Step, more
from pregel.engine.frame import LIVE, Frame
from pregel.engine.memos import as_stored, memo, memo_record
from pregel.engine.trace import TRACES

if TYPE_CHECKING:
    from pregel.engine.call import Call
    from pregel.engine.future import CallFuture
    from pregel.engine.running import Running

TOLD = frozenset(("checkpoints", "tasks", "debug"))  # about the run; nothing that a node computes with


class CallStream:
    """Where the chunks of one called graph go, and who reads them."""

    def __init__(self, made: GraphCall, call: Call) -> None:
        self.made, self.modes, self.deep = made, call.modes, call.subgraphs
        run = made.inner_run
        self.outer = run.post
        self.outer_modes: frozenset[str] = run.modes if run.subgraphs else frozenset()
        self.outer_stream: CallStream | None = None  # the stream around, when the caller runs in a called graph too
        self.top: Frame | None = None
        self.ready: deque[Chunk] = deque()
        self.shown: list[Chunk] = []  # what the graph's end will be asked to tell again
        self.fresh: list[Chunk] = []  # of these, what no step has stored yet
        self.steps = 0  # that were stored with what they showed
        self.wake: Callable[[], object] | None = None
        run.modes, run.subgraphs = self.modes | self.outer_modes, self.deep or bool(self.outer_modes)
        run.post = self.post
        run.live = not run.modes.isdisjoint(LIVE)
        if "messages" not in self.outer_modes:
            run.spoken = set()

    def begin(self, frame: Frame) -> None:
        """The called graph is about to run: it shows what a root would, after what it showed before."""
        self.top = frame
        frame.shows = frame.run.modes
        frame.traced = not frame.shows.isdisjoint(TRACES)
        frame.watched = "values" in frame.shows or frame.graph.outputs_expire
        if self.records:
            for chunk in self._told():
                self.ready.append(chunk)
            self._wake()

    @property
    def records(self) -> bool:
        """Whether each step's chunks are stored with it."""
        return self.top is not None and self.top.journal is not None

    def _told(self) -> Iterator[Chunk]:
        """What was stored of the stream before."""
        while found := memo(self.made.parent, self._key):
            self.steps += 1
            yield from (tuple(chunk) for chunk in found[0])

    @property
    def _key(self) -> str:
        return f"__stream__{self.made.number} {self.steps}"

    # -- from inside -------------------------------------------------------------------------------------------------

    def post(self, chunk: Chunk, task: Running) -> None:
        """Take in a chunk from a node that runs."""
        for outward in self._taken([chunk]):
            self.outer(outward, task)

    def divert(self, step: Step) -> None:
        """Take what a step of the called graph shows; it is given on once the step is stored."""
        mine: list[Chunk] = []
        step.emit = self._split(step.emit, mine)
        if self.outer_stream is not None and step.emit:
            self.outer_stream.divert(step)
        if mine:
            step.settle = more(step.settle, [Settled(self, mine)])  # type: ignore[arg-type]  # it is told like a future
            self._keep(mine)
        if self.fresh and self.records and (step.saves or step.writes):
            self._record(step)

    def settle(self, chunks: list[Chunk], error: BaseException | None = None) -> None:
        """The step that showed these is stored."""
        self.ready += chunks
        self._wake()

    @property
    def result(self) -> list[Any] | None:
        """The result of the call: nothing more than what was stored with its steps, else all that it showed."""
        return None if self.records else [list(chunk) for chunk in self.shown]

    def _taken(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        mine: list[Chunk] = []
        outward = self._split(chunks, mine)
        if mine and self.records:  # as it is now: who reads it may change it before a step stores it
            self._keep(as_stored(self.made.parent, mine))
        else:
            self._keep(mine)
        self.ready += mine
        self._wake()
        return outward

    def _split(self, chunks: Iterable[Chunk], mine: list[Chunk]) -> list[Chunk]:
        """The chunks for the run around; those for the caller go to `mine`, by their namespace inside."""
        assert self.top is not None
        top, outward = self.top.ns, []
        for ns, mode, data in chunks:
            if mode in self.modes and (self.deep or ns == top):
                mine.append((ns[len(top) + 1 :], mode, data))
            if mode in self.outer_modes:
                outward.append((ns, mode, data))
        return outward

    def _keep(self, chunks: list[Chunk]) -> None:
        told = [chunk for chunk in chunks if chunk[1] not in TOLD]
        (self.fresh if self.records else self.shown).extend(told)

    def _record(self, step: Step) -> None:
        fresh, self.fresh = self.fresh, []
        caller = self.made.parent
        record = memo_record(caller, self._key, [list(chunk) for chunk in fresh])
        self.steps += 1
        task = str(record.task)
        caller.frame.recalled[task] = [Write(task, -7, MEMO, record.writes[0][1], record.path, record.name)]
        step.writes.append(record)

    # -- to the caller -----------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Chunk]:
        from queue import SimpleQueue

        news: SimpleQueue[None] = SimpleQueue()
        self.wake = lambda: news.put(None)
        future = self._pushed()
        try:
            if future.wait is not None:
                future.wait()
            else:  # what the graph runs may need a thread: this one reads
                Thread(target=future.lend, name="pregel-stream", daemon=True).start()
            while not future.done() or self.ready:
                while self.ready:
                    yield self.ready.popleft()
                if not future.done():
                    news.get()
            yield from self._rest(future.result())
        finally:
            self._close(future)

    async def awaited(self) -> AsyncGenerator[Chunk, None]:
        """The chunks, awaited."""
        import asyncio

        from pregel.hops import tell

        loop, news = asyncio.get_running_loop(), asyncio.Event()
        self.wake = lambda: tell(loop, news.set)
        future = self._pushed()
        try:
            while not future.done() or self.ready:
                news.clear()
                while self.ready:
                    yield self.ready.popleft()
                if not future.done():
                    await news.wait()
            for chunk in self._rest(await future):
                yield chunk
        finally:
            self._close(future)

    def _pushed(self) -> CallFuture[Any]:
        future = self.made.push()
        future.add_done_callback(lambda _: self._wake())
        return future

    def _wake(self) -> None:
        if self.wake is not None:
            self.wake()

    def _rest(self, result: Any) -> Iterator[Chunk]:
        """What was stored and is not given yet, of a call that was done before this one began."""
        if self.top is None:
            yield from self._told()
            yield from ((ns, mode, data) for ns, mode, data in result or ())

    def _close(self, future: CallFuture[Any]) -> None:
        host = self.made.frame.run.host
        if not future.done() and host is not None:
            host.push(Dropped(self.made.parent, self.made))
