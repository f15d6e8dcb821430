"""A run's authority over its thread: the claim, what it holds and until when, and what others ask of it.

1. A thread may be claimed when nobody holds it, its holder is dead or its lease has lapsed by the store's clock. A live
   run of this very process never lapses for this process; a stream that nobody pulls gives way to it.
2. The deadline is this side's idea of the lease, never later than the store's: it says when to ask before going on.
3. What a run holds is told by (epoch, run) in the store alone; nothing here decides who may write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from pregel.checkpoint import lease
from pregel.checkpoint.heartbeat import heartbeat
from pregel.checkpoint.keys import id_bytes
from pregel.checkpoint.records import Claim, Hold, Owner, ThreadRow
from pregel.errors import AuthorityLost, ThreadBusy

if TYPE_CHECKING:
    from pregel.checkpoint.appender import Appender
    from pregel.checkpoint.journal_saver import JournalSaver


QUEUED = "~"
"""Leads a word of one who waits, and asks nothing of the run that holds the thread; all other words sort before it."""


class ClaimMissed(Exception):
    """The thread changed between load and claim: load again and start over. Never reaches a user."""


class Stoppable(Protocol):
    """What drives a run."""

    def stop(self, why: str) -> None:
        """Have the run wound down, from whatever thread: what ended is kept."""


def _nobody() -> None:
    return None


class Authority:
    """What a run may do to its thread, as far as it knows; a `lease.Holder`."""

    # what most runs never set stands on the class: Python keeps few attributes of an object without a dict
    after: int | None = None  # the epoch on which this run's start was planned, when it is not the tip
    around: frozenset[bytes] = frozenset()  # the runs in whose nodes this one runs
    graph = ""  # whose run it is, by name
    acts = False  # whether this process knows it as a run that may act on the thread
    goes_back: str | None = None  # where it starts if it rolls one back itself; empty for the very beginning
    asked = ""  # what another run asks of this one
    taken: Sequence[str] = ()  # the events that the claim takes
    ended = ""  # why this run's authority is over, when it was taken
    parked: Callable[[object], bool] | None = None  # of a stream: whether nobody pulls it
    stands_back: Callable[[ThreadRow], bool] | None = None  # of one that waits: whether others come first
    appender: Appender | None = None  # the short way of a run that holds its thread, where there is one
    _seen = 0  # the seq at the last look of the heartbeat

    def __init__(self, saver: JournalSaver, thread: str, token: bytes, caller: object) -> None:
        self.saver = saver
        self.thread = thread
        self.token = token
        self.row = ThreadRow(thread)
        self.head = ""  # the root graph's newest checkpoint as loaded: where this run starts for one that rolls it back
        self.epoch = 0
        self.claimed = False
        self.roused = False  # the thread rested with waits, or its run died, which may have taken it up from some
        self.lease: float = saver.lease
        self.deadline = 0.0  # uptime until which nobody else may take the thread
        self.caller = caller  # what drives the run
        self.driven_by: Callable[[], Stoppable | None] = _nobody  # what drives it, looked up: it holds this object

    def claim(self) -> Claim:
        """The claim on the thread as it was loaded; ThreadBusy when another run holds it."""
        row = self.row
        dead = self.may_begin()
        self.keep()
        start = row.pin if row.is_rolled_back else self.head
        start = start if self.goes_back is None else self.goes_back
        pin = id_bytes(start) if start else None
        claim = Claim(row.epoch, row.gen, lease.this_owner(), dead, self.lease, self.graph, pin, row.asked)
        claim.rouses, claim.taken = row.status == "waiting", self.taken
        self.roused = claim.rouses or row.run is not None
        return claim

    def may_begin(self) -> bool:
        """Whether the run that the thread was loaded with is known to be over; ThreadBusy when it may go on.

        What is asked of a thread that is held is judged once it is free, as it is then.
        """
        row = self.row
        if self.after is not None and (row.epoch != self.after or row.is_done):
            raise ClaimMissed
        if row.run is not None:
            return self._may_take(row, row.run)
        if row.asked and self.stands_back is not None and self.stands_back(row):
            raise ThreadBusy(
                f"Thread {self.thread!r} is free, and others have waited for it longer.",
                reason="queued",
                thread=self.thread,
            )
        return False

    def _may_take(self, row: ThreadRow, run: bytes) -> bool:
        """True when the run that holds the thread is known to be over; ThreadBusy when it may go on."""
        if run in self.around:
            raise ThreadBusy(
                f"Thread {self.thread!r} is held by the run that this call is made from.",
                fix="Use another thread_id inside a node, or leave the config out to run as part of the node.",
                reason="held by this run",
                thread=self.thread,
            )
        if row.owner is None or lease.is_dead(row.owner, run):
            return True
        if lease.lives_here(row.owner, run):
            holder = lease.holder_of(run)
            if holder is not None and holder.gives_way(self.caller):
                return True
            raise self._busy(row.owner, ", which is this process")
        if row.lapsed:
            return False  # the claim asks the store's clock again
        raise self._busy(row.owner)

    def _busy(self, owner: Owner, which: str = "") -> ThreadBusy:
        where = f"process {owner.pid} on {owner.host or 'this host'}{which}"
        return ThreadBusy(f"Thread {self.thread!r} is being run by {where}.", thread=self.thread)

    def over(self, how: str) -> AuthorityLost:
        """The error of a run whose thread is another's."""
        return AuthorityLost(
            f"Thread {self.thread!r} was taken over by another owner ({self.ended or how}).",
            fix="Nothing of this run was written after that; load the thread again to see how it went on.",
            thread=self.thread,
        )

    def keep(self) -> None:
        """This run acts on the thread from here on: nobody else may claim it."""
        self.deadline = lease.uptime() + self.lease
        self.acts = True
        lease.hold(self.token, self)

    def abandon(self) -> None:
        """This run will not act on the thread again; without a release the next claim finds a dead owner."""
        self.appender = None
        if (hold := self.hold) is not None:
            self.claimed = False
            heartbeat.drop(self.saver, hold)  # before the release: the heartbeat ends when nobody holds anything
        lease.release(self.token)
        self.acts = False

    def __del__(self) -> None:
        if self.acts or self.claimed:
            self.abandon()  # of a run whose event loop was closed under it nobody else says so

    @property
    def hold(self) -> Hold | None:
        """What this run holds; None before its claim has landed and after its release."""
        return Hold(self.row.tno, self.epoch, self.token) if self.claimed and self.renews else None

    @property
    def renews(self) -> bool:
        """Whether the saver knows leases; one with the reference's verbs only does not."""
        return hasattr(self.saver, "renew")

    @property
    def is_late(self) -> bool:
        """Whether another may have taken the thread by now."""
        return lease.uptime() >= self.deadline and self.renews

    def has_moved(self, since: float) -> bool:
        """Whether an append has come through since the last look, which was at this uptime."""
        moved, self._seen = self.row.seq != self._seen, self.row.seq
        if moved:
            self.renewed(since)
        return moved

    def renewed(self, at: float) -> None:
        """The lease was renewed at this uptime."""
        self.deadline = max(self.deadline, at + self.lease)

    def lapse(self) -> None:
        """The thread is another's: nothing starts any more, and the next append is refused."""
        self.deadline = 0.0

    def heed(self, asked: str) -> None:
        """Make way when another run asks for the thread: what runs is cancelled, nothing starts any more."""
        if asked == "rollback" and self.asked:
            self.asked = asked  # it stops already, for one that would have kept what it did
        elif asked and not self.asked and not asked.startswith(QUEUED):
            self.asked = asked
            if (driver := self.driven_by()) is not None:
                driver.stop(asked)

    def gives_way(self, caller: object) -> bool:
        """Whether this is a stream that nobody pulls, seen from a run of that caller."""
        if self.parked is None or not self.parked(caller):
            return False
        self.ended = "nobody pulled this stream, and a newer run of the same process needed the thread"
        return True

    def disown(self) -> None:
        """In a forked child: the run goes on in the parent, and its copy never writes."""
        self.ended = "this is the copy of a run in a forked child; the run itself goes on in the parent"
        self.epoch, self.deadline, self.appender = -1, 0.0, None

    def checked(self, kept: dict[bytes, str], at: float) -> None:
        """Take in the answer to a renewal that was sent at this uptime."""
        if self.token not in kept:
            self.claimed = False
            self.abandon()
            raise self.over("its lease ran out")
        self.renewed(at)
        self.heed(kept[self.token])
