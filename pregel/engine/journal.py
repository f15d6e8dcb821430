"""One run's way to its thread in the saver: the claim, the queue of appends, the durability modes.

1. The claim rides in the first append that has records, the release in the last; no commit of their own on the
   straight path. A claim is always waited for, whatever the durability.
2. ``sync`` waits for each append. ``async`` holds an append back for a moment (`engine.background`): the next one takes
   it along and is waited for, or it is sent meanwhile and the next one waits for it. So a step is stored before the
   code of the step after the next starts. ``exit`` claims, then holds everything for one last append.
3. Records are encoded on the caller's thread before anything is handed over, so nothing changes them later.
4. An append that was sent is never abandoned: a cancellation waits until its answer is there.
5. A lease that may have run out is renewed before anything new starts: at once when the last append is not known to
   have come through since. What another run asks for is heard with each append and each renewal.
6. An intent of work outside, and its outcome, are stored before the run goes on, whatever the durability, together with
   all that was held back before.
7. After a refused or failed append nothing more is sent. A value that cannot be encoded fails the run once, and
   what the other tasks wrote is stored all the same.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pregel.channels.batches import Batched
from pregel.channels.growth import Log
from pregel.checkpoint import lease
from pregel.checkpoint.heartbeat import heartbeat
from pregel.checkpoint.records import (
    RESUME,
    Append,
    Load,
    Lone,
    Mail,
    Opened,
    Page,
    Receipt,
    Release,
    Save,
    TaskWrites,
)
from pregel.engine.authority import Authority, ClaimMissed
from pregel.engine.background import background
from pregel.engine.effects import Loaded, Step
from pregel.engine.held import is_over_with, with_held
from pregel.engine.ids import Ids
from pregel.errors import SerializationError, ThreadDeleted
from pregel.telemetry import gauges
from pregel.types import Durability

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pregel.checkpoint.journal_saver import JournalSaver


class Journal(Authority):
    """What both kinds of journal share: everything but the waiting."""

    flight: Any = None  # the append that was held back and is being sent

    def __init__(
        self,
        saver: JournalSaver,
        thread: str,
        ids: Ids,
        token: bytes,
        durability: Durability,
        names: Iterable[str] = (),
    ) -> None:
        super().__init__(saver, thread, token, self.here())
        self.ids = ids
        self.durability = durability
        self.holds_back = durability == "async" and saver.blocking  # a store in memory has nothing to wait for
        self.held: Append | None = None  # what waits for the next append, or for its moment to pass
        self.names = names
        self.ledger = saver.ledger()
        self.seq = 0
        self.held_saves: dict[str, Save] = {}
        self.held_writes: list[TaskWrites] = []
        self.failure: SerializationError | None = None  # the first value that was refused
        # Dicts, since an empty set is one object more for the garbage collector, in each of thousands of runs.
        self.torn: dict[str, None] = {}  # checkpoints on which writes were refused: none that applies these is stored
        self.lost: dict[str, None] = {}  # checkpoints that were not stored for it

    @staticmethod
    def here() -> object:
        """What drives a run that is made now."""
        raise NotImplementedError

    @property
    def unstored(self) -> int:
        """How many appends of durability "async" are held back or in flight."""
        flight = self.flight
        return (self.held is not None) + (flight is not None and not flight.done())

    # -- reading -----------------------------------------------------------------------------------------------------

    def took(self, requests: Sequence[Load | Page | Mail], opened: Opened | None, pages: list[Any]) -> Loaded:
        """Take in what a load found."""
        if opened is not None:
            self.ledger.open(opened)
            self.ids.follow(opened.thread.last_id)
            if self.held_saves:
                opened = with_held(requests, opened, self.held_saves, self.held_writes)
            if not self.claimed:
                self.row, self.seq = opened.thread, opened.thread.seq
                self.head = opened.heads.get("", "")
        return Loaded(list(requests), opened, pages)

    def runs_as(self, run_id: str) -> None:
        """The run goes on as one of another id."""

    # -- writing -----------------------------------------------------------------------------------------------------

    def keeps(self, step: Step) -> bool:
        """Store a usual superstep the short way, where there is one; whether it is stored.

        What is refused there goes the long way: it is refused as well, and that says why.
        """
        appender, saves = self.appender, step.saves
        if appender is None or len(saves) != 1 or saves[0].__class__ is not Lone:
            return False
        if step.writes or step.release is not None or step.load or self.failure is not None:
            return False
        try:
            asked = appender.append(saves[0], self.seq)
        except SerializationError:
            return False
        if asked is None:
            self.appender = None
            return False
        self.seq += 1
        if asked:
            self.heed(asked)
        return True

    def records_of(self, step: Step) -> tuple[list[TaskWrites], Sequence[Save | Lone]]:
        """A step's records, usual supersteps as they are where the ledger takes them so."""
        if self.ledger.takes_lone and self.durability != "exit":
            return step.writes, step.saves
        return step.records()

    def encode(self, step: Step, writes: list[TaskWrites], saves: Sequence[Save | Lone]) -> Append | None:
        """The append for a step and its records; None when they are held for the end."""
        if self.durability == "exit":
            writes, saves = self._hold(step, writes, saves)  # type: ignore[arg-type]  # then all are general
            if self.claimed and step.release is None and not step.at_once:
                return None
        append = Append(self.thread, self.row.tno, self.epoch, self.token, self.seq, 0, lease.new_mark(), step.release)
        append.drops = step.drops
        for record in writes:
            self._add_writes(record, append)
        for save in saves:
            if not (isinstance(save, Lone) and self.failure is None and self._add_lone(save, append)):
                self._add_save(save, append)
        if self.failure is not None and append.release is not None:
            append.release = Release("failed", f"{type(self.failure).__name__}: {self.failure.message}")
        append.k = append.k or 1
        if not self.claimed:
            append.claim = self.claim()
        if append.release is not None and self.roused:
            append.release.withdraws = True
        self.seq += append.k
        return append

    def _add_writes(self, record: TaskWrites, append: Append) -> None:
        if self.lost and record.checkpoint in self.lost:
            return
        try:
            self.ledger.add_writes(record, append)
        except SerializationError as error:  # what its siblings wrote is stored all the same
            self.failure = self.failure or error
            self.torn[record.checkpoint] = None

    def _add_lone(self, lone: Lone, append: Append) -> bool:
        """Add a usual superstep as it is; False when a value was refused: the general records say which, and why."""
        try:
            self.ledger.add_lone(lone, append, self.seq + append.k + 1)
        except SerializationError:
            return False
        append.k += 1
        return True

    def _add_save(self, save: Save | Lone, append: Append) -> None:
        if isinstance(save, Lone):
            self._add_writes(save.wrote(), append)
            save = save.saved()
        if self.failure is not None and (save.parent in self.torn or save.parent in self.lost):
            self.lost[save.id] = None
            return
        try:
            self.ledger.add_save(save, append, self.seq + append.k + 1)
        except SerializationError as error:
            self.failure = self.failure or error
            self.lost[save.id] = None
        else:
            append.k += 1

    def may_wait(self, append: Append) -> bool:
        """Whether an append may be held back: it neither takes nor gives back the thread, and all was encoded."""
        return append.claim is None and append.release is None and self.failure is None

    def _hold(self, step: Step, wrote: list[TaskWrites], saved: list[Save]) -> tuple[list[TaskWrites], list[Save]]:
        """Keep records for the end; what must go out now anyway is returned."""
        answers = [record for record in wrote if any(channel == RESUME for channel, _ in record.writes)]
        for save in saved:
            held = self.held_saves.get(save.ns) if save.parent is not None else None  # a subgraph may begin anew
            self.held_saves[save.ns] = save if held is None else _merged(held, save)
            over = {save.ns, *(ns for ns in self.held_saves if is_over_with(ns, save.ns))}
            self.held_writes = [record for record in self.held_writes if record.ns not in over]
            for ns in over - {save.ns}:  # what a subgraph of the next superstep says comes after its parent's word
                del self.held_saves[ns]
        stored = {save.ns: save.id for save in saved}
        self.held_writes += [r for r in wrote if stored.get(r.ns, r.checkpoint) == r.checkpoint]
        if step.release is not None or step.at_once:
            writes, self.held_writes = self.held_writes, []
            saves, self.held_saves = sorted(self.held_saves.values(), key=_id), {}  # the last is the newest of all
            return writes, saves
        return ([], []) if self.claimed else (answers, [])

    def settle(self, append: Append, receipt: Receipt) -> None:
        """Take in the answer to an append."""
        if receipt.landed:
            if receipt.row is not None:
                self.row, self.epoch = receipt.row, receipt.row.epoch
                if receipt.row.asked:
                    self.heed(receipt.row.asked)
            self.claimed = append.release is None
            if append.release is not None:
                self.abandon()
            elif append.claim is not None:
                heartbeat.watch(self.lease)
                if self.durability != "exit" and (hold := self.hold) is not None:
                    self.appender = self.saver.appender(self.thread, hold, self.ledger)
            return
        self.claimed = False
        self.abandon()
        if append.claim is not None:
            raise ClaimMissed
        if receipt.thread.tno == 0:
            raise ThreadDeleted(thread=self.thread)
        raise self.over(f"its epoch is {receipt.thread.epoch}, ours {append.epoch}")


class BlockingJournal(Journal):
    """The journal of the blocking driver."""

    flight: Future[None] | None = None

    def __init__(self, saver: JournalSaver, *args: Any, **kwargs: Any) -> None:
        super().__init__(saver, *args, **kwargs)
        self._lock = threading.Lock()  # on what is held back or in flight

    @staticmethod
    def here() -> object:
        """What drives the run: a thread."""
        return threading.get_ident()

    def load(self, requests: Sequence[Load | Page | Mail]) -> Loaded:
        """Answer a step's loads in one round trip."""
        self.flush()  # a persistent subgraph loads what this very run has queued
        loads = [request for request in requests if isinstance(request, Load)]
        opened = self.saver.load(self.thread, loads, self.names) if loads else None
        pages: list[Any] = [self.saver.page(self.thread, request) for request in requests if isinstance(request, Page)]
        if isinstance(requests[0], Mail):
            pages = [self.saver.events(self.thread, requests[0].limit)]
        return self.took(requests, opened, pages)

    def store(self, step: Step) -> None:
        """Store a step's records as the durability says."""
        writes, saves = self.records_of(step)
        if missing := self.ledger.missing(writes, saves):
            self.saver.intern(missing)
        failed = self.failure
        append = self.encode(step, writes, saves)
        if append is None:
            self.on_time()
            return
        if self.holds_back and (held := self._take()) is not None:
            append = held.followed_by(append)
        elif self.holds_back and not step.at_once and self.may_wait(append):
            self.defer(append)
            self.on_time()
            return
        self.send(append)
        if self.failure is not failed:
            raise self.failure  # type: ignore[misc]  # it is set now

    def on_time(self) -> None:
        """Return once this run is known to hold its thread; AuthorityLost when it does not."""
        if self.is_late:
            self.flush()
            if (hold := self.hold) is not None:
                at = lease.uptime()
                self.checked(self.saver.renew([hold]), at)

    def flush(self) -> None:
        """Send what is held back, and wait for what is in flight."""
        if (held := self._take()) is not None:
            self.send(held)

    def defer(self, append: Append) -> None:
        """Hold an append back for a moment."""
        self.held = append
        background.watch(self)

    def let_go(self, append: Append) -> None:
        """Send this append from another thread, unless the run has taken it meanwhile."""
        with self._lock:
            if self.held is append:
                try:
                    self.flight = background.submit(partial(self.send, append))
                except RuntimeError:  # the interpreter ends, and sends what is held back when its threads are done
                    background.watch(self)
                else:
                    self.held = None

    def _take(self) -> Append | None:
        """What is held back, which nobody else sends from here on; None once what was in flight has landed."""
        if self.held is None and self.flight is None:
            return None
        with self._lock:
            held, self.held = self.held, None
            flight, self.flight = self.flight, None
        if flight is not None:
            flight.result()
        return held

    def send(self, append: Append) -> None:
        """Send an append and take in the answer."""
        append.epoch = self.epoch
        self.settle(append, self.saver.append(append))


def _id(save: Save) -> str:
    return save.id


def unstored() -> int:
    """The same for all runs of this process that hold threads."""
    return sum(holder.unstored for holder in lease.holders() if isinstance(holder, Journal))


gauges["pregel.saves.pending"] = unstored


def _merged(held: Save, save: Save) -> Save:
    """Two checkpoints of a run in ``exit`` mode as one: the later one, hanging where the earlier one hung."""
    changed = dict(held.changed)
    for name, (counter, value) in save.changed.items():
        if name in changed:
            if type(value) is Log:
                value = _since(changed[name][1], value)
            elif type(value) is Batched:
                value = _both(changed[name][1], value)
        changed[name] = counter, value
    return save._replace(parent=held.parent, changed=changed, seen={**held.seen, **save.seen})


def _since(held: Any, log: Log) -> Log:
    """What a list keeps of what was stored before both."""
    if type(held) is Log and log.base is held.value:
        return log._replace(kept=min(held.kept, log.kept), base=held.base, write=None, runs=())
    return log._replace(kept=0, base=None, runs=())


def _both(held: Any, log: Batched) -> Batched:
    """A value that stands on what was stored before both."""
    if type(held) is Batched and log.base is held.value and held.base is not None:
        return log._replace(batches=[*held.batches, *log.batches], base=held.base)
    return log._replace(base=None)
