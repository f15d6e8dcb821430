"""What the engine and a journal hand each other: requests, what was loaded, what is to be appended.

1. Above the line the engine speaks: names, texts, live values (`Load`, `Page`, `TaskWrites`, `Save`, `Saved`).
2. Below the line a store speaks: interned integers, 16-byte ids, encoded blobs (`Append` and its rows). Only
   `checkpoint.ledger` translates, so every saver stores the same rows and reads them the same way.
3. An `Append` is the only way in. It lands whole or not at all, and only if the thread's row still says
   (epoch, run, seq) as expected; with a `Claim` the expectation is (epoch, seq, gen) as loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, SupportsBytes

from pregel.checkpoint.keys import PULL, TaskName, pull_text, task_parts
from pregel.errors import RunDisplaced

if TYPE_CHECKING:
    from pregel.checkpoint.chunks import ChunkRow
    from pregel.checkpoint.late import LateLedger, Said

ERROR, INTERRUPT, RESUME, NO_WRITES = "__error__", "__interrupt__", "__resume__", "__no_writes__"
ATTEMPT, ERROR_SOURCE, MEMO, REJECTED = "__attempt__", "__error_source_node__", "__memo__", "__rejected__"
EFFECT, REWIND = "__effect__", "__rewind__"

CONTROL = {
    ERROR: -1,
    INTERRUPT: -3,
    RESUME: -4,
    ATTEMPT: -5,
    ERROR_SOURCE: -6,
    MEMO: -7,
    REJECTED: -8,
    EFFECT: -9,
    REWIND: -10,
}
"""Row index of control channels. Such rows are upserted; all others are insert-once at their position (0, 1, ...)."""

Status = Literal["idle", "pending", "running", "interrupted", "waiting", "failed"]
Source = Literal["input", "loop", "update", "fork"]

ROLLED_BACK = RunDisplaced("rollback").reason
"""The reason in the row of a thread whose last run was told that it is rolled back."""

# -- what the engine says and hears ------------------------------------------------------------------------------------


class Mail(NamedTuple):
    """The events of the thread that nobody has taken yet, the oldest first; all of them without a limit."""

    limit: int | None = None


@dataclass(slots=True)
class Load:
    """One checkpoint of a namespace: `checkpoint`, or else the newest (before the id `before` when that is given)."""

    ns: str = ""
    checkpoint: str | None = None
    before: str | None = None


@dataclass(slots=True)
class Page:
    """Checkpoints newest first: of one namespace, or of all when `ns` is None."""

    ns: str | None = ""
    before: str | None = None
    limit: int | None = None
    filter: Mapping[str, Any] | None = None


class TaskWrites(NamedTuple):
    """What one task wrote, to be stored under the checkpoint it started from. Control channels may be among it."""

    ns: str
    checkpoint: str
    task: TaskName
    name: str
    path: str
    writes: Sequence[tuple[str, Any]]
    first: int = 0  # position of the first write, when the task has stored some before
    child: str | None = None  # shown only: these writes are in that checkpoint already


class Save(NamedTuple):
    """A checkpoint, as what changed since the last one loaded or saved in this namespace.

    - `changed`: channel -> (counter, value), value `MISSING` for an empty channel.
    - `seen`: node -> all its seen counters, for the nodes whose entry changed. ``__interrupt__`` -> {"": c} means
      "all channels up to counter c".
    - `updated`: None when it is not known which channels woke the next step.
    - `applied`: path texts of the tasks that this checkpoint applied.
    - `metadata`: all but source and step, which have fields of their own.
    """

    ns: str
    id: str
    parent: str | None
    step: int
    source: Source
    metadata: Mapping[str, Any]
    lineage: SupportsBytes
    changed: Mapping[str, tuple[int, Any]]
    seen: Mapping[str, Mapping[str, int]]
    updated: Sequence[str] | None
    applied: Sequence[str] = ()


class Lone(NamedTuple):
    """The usual superstep in one record: a task that was triggered, what it wrote, the checkpoint that applied it.

    It says the same as a `TaskWrites` and a `Save`, with nothing in it that follows from something else: a store in
    memory keeps it so, and a ledger makes its rows of it. `wrote` and `saved` are the general records.

    - `counter`: of every changed channel; `changed` and `values`: their names, and their values in that order.
    - `seen`: all seen counters of the node, as pairs; None when they are what they were.
    """

    ns: str
    id: str
    parent: str
    step: int
    name: str
    triggers: Sequence[str]
    writes: tuple[tuple[str, Any], ...]
    counter: int
    changed: tuple[str, ...]
    values: tuple[Any, ...]
    seen: tuple[tuple[str, int], ...] | None
    updated: tuple[str, ...]
    metadata: Mapping[str, Any]
    lineage: SupportsBytes

    @property
    def source(self) -> Source:
        """That of every superstep."""
        return "loop"

    def names(self) -> set[str]:
        """The names in it."""
        return {self.name, *self.changed, *self.updated, *dict(self.writes), *dict(self.seen or ())}

    def wrote(self) -> TaskWrites:
        """What the task wrote, under the checkpoint it started from."""
        task = task_parts(self.parent, self.ns, self.step, self.name, PULL, *self.triggers)
        return _wrote((self.ns, self.parent, task, self.name, pull_text(self.name), self.writes, 0, None))

    def saved(self) -> Save:
        """The checkpoint that applied it."""
        ns, id, parent, step, name, _, _, counter, changed, values, seen, updated, metadata, lineage = self
        return _saved(
            (
                *(ns, id, parent, step, "loop", metadata, lineage),
                {channel: (counter, value) for channel, value in zip(changed, values, strict=True)},
                {} if seen is None else {name: dict(seen)},
                updated,
                (pull_text(name),),
            )
        )


_wrote = partial(tuple.__new__, TaskWrites)  # a third of the cost of calling the class
_saved = partial(tuple.__new__, Save)


class Write(NamedTuple):
    """One stored write. `idx` < 0 marks a control channel."""

    task: str
    idx: int
    channel: str
    value: Any
    path: str
    name: str
    child: str | None = None


@dataclass(slots=True)
class Saved:
    """A checkpoint as loaded. `writes` are in task-path order; `metadata` is whole, with source and step.

    A version of the saver contract is made of `counters` and `ats`. `foreign` holds what a first-tier `put` was given
    beyond that, word for word.
    """

    ns: str
    id: str
    parent: str | None
    step: int
    source: Source
    metadata: dict[str, Any]
    created_at: str
    lineage: bytes
    values: dict[str, Any]
    counters: dict[str, int]
    ats: dict[str, int]
    seen: dict[str, dict[str, int]]
    updated: list[str] | None
    applied: list[str]
    writes: list[Write]
    foreign: dict[str, Any] | None = None
    manifest: Any = None  # what the ledger needs to go on from here; opaque to the engine


class Owner(NamedTuple):
    """The process that holds a thread. Two owners are one process only when all four parts agree."""

    boot: str
    pidns: int
    pid: int
    ticks: int
    host: str = ""


class Hold(NamedTuple):
    """A run's authority over a thread: what every append and every renewal of it compares."""

    tno: int
    epoch: int
    run: bytes


@dataclass(slots=True)
class ThreadRow:
    """A thread as its row says: everything that an append is compared with, and its status in plain words."""

    thread: str
    tno: int = 0  # 0: the store has no such thread yet
    epoch: int = 0
    run: bytes | None = None
    seq: int = 0
    gen: int = 0
    last_id: str = ""
    status: Status = "idle"
    reason: str = ""
    owner: Owner | None = None
    expires: float = 0.0
    lapsed: bool = False  # the lease has run out, by the store's clock
    asked: str = ""
    inbox: int = 0
    graph: str = ""
    updated_at: float = 0.0  # unix seconds
    namespaces: dict[str, int] = field(default_factory=dict)  # those that were asked for
    next_ns: int = 0  # greater than the number of every namespace
    pin: str = ""  # the checkpoint on which the run of the last claim started; empty when there was none
    crashes: int = 0  # takeovers of running threads in a row, since the last release

    @property
    def is_done(self) -> bool:
        """Whether its last run came to its end: nothing stopped it, and nothing is left to go on with."""
        return self.run is None and self.status == "idle" and not self.reason

    @property
    def is_rolled_back(self) -> bool:
        """Whether its last run made way for one that rolls it back, or died asked to: a new input starts at `pin`."""
        return self.asked == "rollback" and (self.run is not None or self.reason == ROLLED_BACK)


@dataclass(slots=True)
class Opened:
    """The answer to loads of a thread: its row, one `Saved` or None a load, the newest id of each loaded namespace."""

    thread: ThreadRow
    saved: list[Saved | None]
    heads: dict[str, str]


# -- what a store says and hears ---------------------------------------------------------------------------------------


class CheckpointRow(NamedTuple):
    ns: int
    id: bytes
    parent: bytes | None
    base: bytes | None
    lineage: bytes
    step: int
    source: str
    run_id: str | None
    created_at: float  # unix seconds
    metadata: bytes  # JSON object
    manifest: bytes


class ValueRow(NamedTuple):
    ns: int
    channel: int
    at: int
    kind: str  # value | delta | cache
    type: str
    blob: bytes
    prev: int | None = None
    base: int | None = None
    fold: int | None = None
    n: int | None = None


class WriteRow(NamedTuple):
    ns: int
    checkpoint: bytes
    task: bytes
    idx: int
    channel: int
    type: str
    blob: bytes
    path: str
    name: int
    child: bytes | None = None


class WaitRow(NamedTuple):
    """A wait: the id of its question, the event's name (empty: a timer) and key, when it is due in unix seconds."""

    id: str
    name: str
    key: str | None
    due: float | None


class EventRow(NamedTuple):
    """An event that nobody has taken yet; `type` and `blob` are its value."""

    id: str
    name: str
    key: str | None
    at: float
    type: str
    blob: bytes


class ItemRow(NamedTuple):
    """Work that a thread rests for and a worker elsewhere does; `type` and `blob` are its input, `at` its time."""

    id: str
    name: str
    version: str
    at: float
    type: str
    blob: bytes


class ItemHold(NamedTuple):
    """A worker's authority over an item: what every statement about it compares."""

    thread: str
    tno: int
    id: str
    token: bytes


class OpenItem(NamedTuple):
    """An item that may be taken, or is held by somebody (`token`, `owner`) whose lease ends at `expires`."""

    thread: str
    graph: str
    tno: int
    id: str
    name: str
    version: str
    at: float
    token: bytes | None
    owner: str
    expires: float
    attempt: int  # how often it was taken, without what was rejected
    failures: int
    rejected: int
    type: str
    blob: bytes


class Backlog(NamedTuple):
    """How many items of a name and version wait for a worker and are worked on; `oldest`: when the first was stored.

    An item whose worker was not heard of for its lease waits again. `oldest` is of those, in unix seconds.
    """

    name: str
    version: str
    pending: int
    running: int
    oldest: float | None


class Sent(NamedTuple):
    """What became of an event. `keys`: of the waits for this name, none of which takes it; then it was not stored."""

    found: bool  # the thread
    repeated: bool = False  # an event with this id was sent before
    awaited: bool = False  # a wait takes it
    keys: Sequence[str | None] = ()


@dataclass(slots=True)
class Claim:
    """Take the thread: only if (epoch, seq, gen) are as loaded and it is free, or its owner is `dead`."""

    epoch: int
    gen: int
    owner: Owner
    dead: bool = False
    ttl: float = 30.0  # seconds
    graph: str = ""
    pin: bytes | None = None  # the checkpoint on which the run starts: the root graph's newest, as loaded
    heard: str = ""  # the ticket of one who waits that the thread was loaded with; one that came later is kept
    rouses: bool = False  # the thread rested with waits, which are over or will be said again
    taken: Sequence[str] = ()  # the events that it takes


@dataclass(slots=True)
class Release:
    """Give the thread back with a status and the reason for it in plain words."""

    status: Status
    reason: str = ""
    waits: Sequence[WaitRow] = ()  # what the thread rests for
    items: Sequence[ItemRow] = ()  # the work that it waits for; one that is there stays as it is
    withdraws: bool = False  # other items than these are taken back
    graph: str = ""  # the label of the graph that is to go on, where it is another one


@dataclass(slots=True, init=False)
class Append:
    """Records of one run, to land in one transaction. `k` is how much it raises seq: at least 1.

    With a `claim` the guard is (claim.epoch, seq, claim.gen); `epoch` is not looked at, the receipt tells the new one.
    With tno 0 the thread is created, if it still does not exist; it must carry a claim. `mark` is random, new for each
    append: by it an append that is sent again is known to have landed, and a forked twin's is not mistaken for it.
    `said` is what `ledger` has yet to make rows of (see `checkpoint.late`).
    """

    thread: str
    tno: int
    epoch: int
    run: bytes
    seq: int
    k: int
    mark: bytes
    last_id: bytes | None
    claim: Claim | None
    release: Release | None
    namespaces: list[tuple[int, str]]
    checkpoints: list[CheckpointRow]
    values: list[ValueRow]
    writes: list[WriteRow]
    said: list[Said]
    drops: bool  # the events that nobody has taken
    ledger: LateLedger | None
    chunks: ClassVar[Sequence[ChunkRow]] = ()  # only `checkpoint.chunks.ChunkedAppend` has some
    marks: ClassVar[Sequence[tuple[int, int]]] = ()

    def __init__(
        self,
        thread: str,
        tno: int,
        epoch: int,
        run: bytes,
        seq: int,
        k: int,
        mark: bytes,
        release: Release | None = None,
    ) -> None:
        self.thread = thread
        self.tno = tno
        self.epoch = epoch
        self.run = run
        self.seq = seq
        self.k = k
        self.mark = mark
        self.release = release
        self.last_id = self.claim = self.ledger = None
        self.drops = False
        self.namespaces = []
        self.checkpoints = []
        self.values = []
        self.writes = []
        self.said = []

    def but(self, **changes: Any) -> Append:
        """A copy in which these fields are others; the lists of records are shared."""
        other = copy(self)
        for name, value in changes.items():
            setattr(other, name, value)
        return other

    def followed_by(self, later: Append) -> Append:
        """This append with the next one of its run in it."""
        self.k += later.k
        self.mark = later.mark
        self.last_id = later.last_id or self.last_id
        self.release = later.release
        self.drops = self.drops or later.drops
        self.namespaces += later.namespaces
        self.checkpoints += later.checkpoints
        self.values += later.values
        self.writes += later.writes
        self.said += later.said
        return self


@dataclass(slots=True)
class Receipt:
    """What became of an append: `landed`, and the thread's row after it (or as it is, when it was refused).

    The row has no namespaces and no `last_id`; tno 0 says that the thread is gone. A store may leave it out after an
    append that claimed nothing, when nothing is asked: it is as the append said.
    """

    landed: bool
    row: ThreadRow | None = None

    @property
    def thread(self) -> ThreadRow:
        """The row, where the store must give one."""
        assert self.row is not None
        return self.row
