"""The vocabulary of the engine: what a flow wants (`Step`) and what it hears (events).

1. A driver performs the parts of a Step *in field order*: what is stored comes before what is shown, and both come
   before what starts. That order is the durability rule.
2. `writes` and `saves` of one Step are one transaction.
3. An event carries the `Task` object it is about, so news of an attempt that is over is told by identity.
4. Exactly one of Done, Failed, Paused, Gone ends each started or cancelled task; nothing else frees its slot.
5. A Step with `wait` False is answered as soon as it is performed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from pregel.checkpoint.records import Load, Lone, Mail, Opened, Page, Release, Save, TaskWrites
from pregel.types import Interrupt

if TYPE_CHECKING:
    from pregel.engine.calls import CallTask
    from pregel.engine.future import CallFuture
    from pregel.engine.task import Task

T = TypeVar("T")
Chunk = tuple[str, str, Any]  # namespace, stream mode, data


class Step:
    """What a flow wants done, in the order it is done.

    The parts that a superstep rarely has start as an empty tuple; `more` adds to them.
    """

    claim = False
    at_once = False  # what it stores, and all that came before, is stored before it goes on, whatever the durability
    drops = False  # the events of the thread that nobody has taken
    release: Release | None = None
    settle: Sequence[Settled] = ()
    cancel: Sequence[tuple[Task, bool]] = ()
    after: Sequence[tuple[float, bool, Event]] = ()  # seconds, jitter, event

    def __init__(self, *, load: Sequence[Load | Page | Mail] = (), wait: bool = True) -> None:
        self.load = load
        self.writes: list[TaskWrites] = []
        self.saves: list[Save | Lone] = []
        self.emit: list[Chunk] = []
        self.start: list[Task] = []
        self.wait = wait

    @property
    def stores(self) -> bool:
        """Whether performing this step appends to the journal."""
        return bool(self.writes or self.saves or self.claim or self.release)

    def records(self) -> tuple[list[TaskWrites], list[Save]]:
        """The general records: what tasks wrote, and checkpoints."""
        writes, saves = [*self.writes], list[Save]()
        for save in self.saves:
            if isinstance(save, Lone):
                writes.append(save.wrote())
                saves.append(save.saved())
            else:
                saves.append(save)
        return writes, saves

    def absorb(self, other: Step) -> None:
        """Add another flow's wishes to this one, part by part."""
        if other.load:
            self.load = [*self.load, *other.load]
        self.claim = self.claim or other.claim
        if other.at_once:
            self.at_once = True
        self.writes += other.writes
        self.saves += other.saves
        if other.drops:
            self.drops = True
        self.release = other.release or self.release
        if other.settle:
            self.settle = more(self.settle, other.settle)
        self.emit += other.emit
        if other.cancel:
            self.cancel = more(self.cancel, other.cancel)
        if other.after:
            self.after = more(self.after, other.after)
        self.start += other.start
        self.wait = self.wait or other.wait


def more(part: Sequence[T], added: Iterable[T]) -> list[T]:
    """A part of a Step with these at its end: the same list where it is one, so that thousands cost no more each."""
    if isinstance(part, list):
        part += added
        return part
    return [*part, *added]


class Event:
    """Something that happened."""

    __slots__ = ()


class TaskEvent(Event):
    """Something that happened to a task."""

    __slots__ = ("task",)

    def __init__(self, task: Task) -> None:
        self.task = task


class Done(TaskEvent):
    """The node returned; `writes` is what it wrote, routing already evaluated."""

    __slots__ = ("writes",)

    def __init__(self, task: Task, writes: list[tuple[str, Any]]) -> None:
        self.task, self.writes = task, writes


class Entered(TaskEvent):
    """The input of a subgraph task was read; `value` is what the child starts from."""

    __slots__ = ("value",)

    def __init__(self, task: Task, value: Any) -> None:
        self.task, self.value = task, value


class Failed(TaskEvent):
    """The node raised."""

    __slots__ = ("error",)

    def __init__(self, task: Task, error: BaseException) -> None:
        self.task, self.error = task, error


class Paused(TaskEvent):
    """The node asked, whatever it did after that."""

    __slots__ = ("asked",)

    def __init__(self, task: Task, asked: tuple[Interrupt, ...]) -> None:
        self.task, self.asked = task, asked


class Gone(TaskEvent):
    """The task was cancelled and has unwound, or never ran; or it was left behind, and `lives` on in its thread."""

    __slots__ = ("lives",)

    def __init__(self, task: Task, *, lives: bool = False) -> None:
        self.task, self.lives = task, lives


class Pushed(TaskEvent):
    """A call from inside a running task: of a function (`@task`) or of a graph. Its future is owed a `settle`."""

    __slots__ = ("made",)

    def __init__(self, task: Task, made: CallTask) -> None:
        self.task, self.made = task, made

    @property
    def future(self) -> CallFuture[Any]:
        """What the caller waits for."""
        return self.made.future


class Dropped(TaskEvent):
    """A running task reads the stream of a call no further, and the call is to be cancelled."""

    __slots__ = ("made",)

    def __init__(self, task: Task, made: CallTask) -> None:
        self.task, self.made = task, made

    @property
    def future(self) -> CallFuture[Any]:
        """What the caller waited for."""
        return self.made.future


class Noted(TaskEvent):
    """A running task made a value once and for all (`runtime.step`); `future` is settled when it is stored."""

    __slots__ = ("future", "key", "value")

    def __init__(self, task: Task, key: str, value: Any, future: CallFuture[Any]) -> None:
        self.task, self.key, self.value, self.future = task, key, value, future


class Begun(Noted):
    """A running task is about to work outside (`runtime.effect`); `value` is its intent, `future` gives its key."""

    __slots__ = ()


class CameOut(Noted):
    """The work outside is over: `value` is the rows that say how."""

    __slots__ = ()


class Timeout(TaskEvent):
    """A limit of a running task was passed, after `elapsed` seconds of it; ``step`` is that of its whole superstep."""

    __slots__ = ("elapsed", "kind")

    def __init__(self, task: Task, kind: Literal["run", "idle", "step"]) -> None:
        self.task, self.kind, self.elapsed = task, kind, 0.0


class Due(TaskEvent):
    """A backoff is over: the task may start."""

    __slots__ = ()


class Loaded(Event):
    """What the loads of a Step found, in their order."""

    __slots__ = ("opened", "pages", "requests")

    def __init__(self, requests: list[Load | Page | Mail], opened: Opened | None, pages: list[Any]) -> None:
        self.requests, self.opened, self.pages = requests, opened, pages


class Cancel(Event):
    """To a flow: wind down. What ended is kept, what runs is cancelled.

    Told twice it cancels once, unless it is told `again`: what it wanted the first time may not have been done.
    """

    __slots__ = ("again", "why")

    def __init__(self, why: str = "cancelled", *, again: bool = False) -> None:
        self.why, self.again = why, again


class Drain(Event):
    """To a flow: stop at the next barrier."""

    __slots__ = ("why",)

    def __init__(self, why: str = "shutdown") -> None:
        self.why = why


class Settled(NamedTuple):
    """What a future is told: a value, or an error to raise."""

    future: CallFuture[Any]
    value: Any = None
    error: BaseException | None = None


RunStatus = Literal["done", "interrupted", "drained", "exhausted", "failed", "cancelled", "parent"]


class Result:
    """How a run ended. Only the public method raises `error`. `last`: what a graph inside left to be performed."""

    __slots__ = ("asked", "command", "error", "last", "status", "values")

    def __init__(
        self,
        status: RunStatus,
        values: Any = None,
        asked: tuple[Interrupt, ...] = (),
        error: BaseException | None = None,
        command: Any = None,
        last: Step | None = None,
    ) -> None:
        self.status, self.values, self.asked, self.error, self.command = status, values, asked, error, command
        self.last = last


Flow = Generator[Step, list[Event], T]
