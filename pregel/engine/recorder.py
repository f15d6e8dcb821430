"""What a run shows, on its way into the journal: which of it counts, at which offset, and what became of it.

1. A chunk of a Step goes into the append that stores what it tells of. What a node shows while it runs is pending: it
   goes along with the next append, or in one of its own after a moment, and its row is marked once the writes of its
   task are stored. What a failed attempt had shown is superseded by its retry.
2. Offsets are handed out here. They start where the thread's chunks ended when it was loaded: a claim compares `seq`,
   which moves with all chunks, so nobody can have added any since.
3. A payload is encoded where it was shown, so nothing changes it later, and what cannot be stored is refused there.
4. Everything happens under the turn of the journal, except `note`, which any thread may call.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from pregel.checkpoint.chunks import LANDED, PENDING, SUPERSEDED, ChunkedAppend, ChunkRow, pack_chunks
from pregel.checkpoint.keys import task_text
from pregel.checkpoint.records import ATTEMPT, CONTROL
from pregel.engine.gate import CROWD, Gate
from pregel.errors import SerializationError, told

if TYPE_CHECKING:
    from pregel.checkpoint.chunks import ChunkTail, Encoded
    from pregel.checkpoint.records import Append, TaskWrites, ThreadRow
    from pregel.checkpoint.serde.base import SerializerProtocol
    from pregel.engine.effects import Chunk, Step
    from pregel.engine.running import Running

RECORDED = ("updates", "messages", "custom", "tools")
"""What ``journal_stream=True`` stands for: values and checkpoints are in the journal as it is."""

BEGINNING = "attempt"  # the mode of the chunk that says that an attempt begins, and what it supersedes
MOMENT = 0.05  # seconds: what is shown waits for one to two of them
MANY = CROWD // 2  # chunks that wait for no moment


class Shown(NamedTuple):
    """A chunk, with what has to come through for it: a task's id, or nothing when it tells of what is stored."""

    task: str
    node: str
    chunk: Encoded


class Pending(NamedTuple):
    """A row of chunks that is stored and waits for its task."""

    last: int
    n: int
    ns: str

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last offset."""
        return self.last - self.n + 1, self.last


HELD = "held"  # what chunks wait for that tell of what durability "exit" holds back


class Recorder:
    """The chunks of one run."""

    def __init__(self, serde: SerializerProtocol, modes: frozenset[str], run_id: str | None) -> None:
        self.serde, self.modes, self.run_id = serde, modes, run_id
        self.fresh: list[Shown] = []  # another list each time it was taken
        self.gate = Gate(lambda: len(self.fresh))
        self.next, self.attempt = 0, 1
        self.begun = False
        self.left: list[tuple[int, int]] = []  # what earlier attempts had pending
        self.pending: dict[str, list[Pending]] = {}  # by what they wait for
        self.through: set[str] = set()  # tasks that have ended and are held back, under durability "exit"
        self._lock = Lock()

    def starts_from(self, tail: ChunkTail, row: ThreadRow) -> None:
        """Go on where the thread's chunks end."""
        self.next, self.left = tail.next, tail.pending
        self.attempt = row.crashes + (row.run is not None) + 1

    # -- what is shown -----------------------------------------------------------------------------------------------

    def note(self, chunk: Chunk, task: Running) -> int:
        """Keep what a running task shows; how many wait now. SerializationError for what cannot be kept."""
        shown = Shown(task.id, task.name, self._encoded(chunk))
        if not self.gate.enter():
            return 0
        with self._lock:
            self.fresh.append(shown)
            return len(self.fresh)

    def _take_in(self, chunks: Iterable[Chunk], kept: str) -> None:
        """Keep what a Step shows; `kept` is what it waits for."""
        shown = [self._of_step(chunk, kept) for chunk in chunks if chunk[1] in self.modes]
        with self._lock:
            self.fresh.extend(shown)

    def _of_step(self, chunk: Chunk, kept: str) -> Shown:
        _, mode, data = chunk
        if mode == "debug" and data["type"] != "checkpoint":
            mode, data = "tasks", data["payload"]
        if mode == "tasks":
            return Shown(start_of(data["id"]) if "triggers" in data else kept, data["name"], self._encoded(chunk))
        return Shown(kept, "", self._encoded(chunk))

    def _encoded(self, chunk: Chunk) -> Encoded:
        ns, mode, data = chunk
        try:
            return (ns, mode, *self.serde.dumps_typed(_plain(mode, data)))
        except SerializationError as error:
            error.add_note(f"It was shown in stream mode {mode!r}, which `journal_stream` is to keep.")
            raise

    # -- what goes into the journal ----------------------------------------------------------------------------------

    def ride(
        self, step: Step, append: Append | None, through: set[str], again: set[str], *, held: bool, refused: bool
    ) -> Append | None:
        """The append of a Step, with what there is to keep.

        `through` are the tasks whose writes it stores, `again` those that failed and are tried again. `held`: what the
        step wants stored waits for the end of the run. `refused`: not all of it can be stored.
        """
        if held:
            self.through |= through
            through = set()
        elif step.release is not None:
            through |= self.through | {HELD}
        if not refused:
            self._take_in(step.emit, HELD if held else "")
        if append is None:
            return None
        made = ChunkedAppend.of(append)
        if append.claim is not None and not self.begun:
            self._begin(made)
        if refused:
            through = set()
        if through:
            self._land(through, made)
        dead = [row.span for task in again for row in self.pending.pop(task, ())]
        made.marks += [(last, SUPERSEDED) for _, last in dead]
        dead += self.fill(made, through, again)
        if dead:
            self._say(made, dead)
        return made

    def fill(
        self, append: ChunkedAppend, through: Collection[str] = (), again: Collection[str] = ()
    ) -> list[tuple[int, int]]:
        """Put what waits into an append, in the order in which it was shown; where those of failed attempts are."""
        with self._lock:
            fresh, self.fresh = self.fresh, []
        self.gate.emptied()
        dead: list[tuple[int, int]] = []
        for (task, node), group in groupby(fresh, _source):
            chunks = [shown.chunk for shown in group]
            is_through = not task or _covers(through, task, chunks[0][0])
            state = SUPERSEDED if task in again else LANDED if is_through else PENDING
            row = self._add(append, chunks, node, state)
            if state == PENDING:
                self.pending.setdefault(task, []).append(row)
            elif state == SUPERSEDED:
                dead.append(row.span)
        return dead

    def _add(self, append: ChunkedAppend, chunks: Sequence[Encoded], node: str, state: int) -> Pending:
        n = len(chunks)
        self.next += n
        row = ChunkRow(self.next - 1, n, self.attempt, state, node, self.run_id, time.time(), pack_chunks(chunks))
        append.chunks.append(row)
        return Pending(row.last, n, chunks[0][0])

    def _begin(self, append: ChunkedAppend) -> None:
        """Say that an attempt begins, and what it supersedes."""
        self.begun = True
        append.marks += [(last, SUPERSEDED) for last, _ in self.left]
        self._say(append, [(last - n + 1, last) for last, n in self.left])

    def _say(self, append: ChunkedAppend, superseded: Sequence[tuple[int, int]]) -> None:
        data = {"attempt": self.attempt, "superseded": [list(span) for span in superseded]}
        self._add(append, [("", BEGINNING, *self.serde.dumps_typed(data))], "", LANDED)

    def _land(self, through: Collection[str], append: ChunkedAppend) -> None:
        """These tasks are stored, and so is what ran inside of them."""
        for task in [task for task, rows in self.pending.items() if _covers(through, task, rows[0].ns)]:
            append.marks += [(row.last, LANDED) for row in self.pending.pop(task)]


START = "start of "


def start_of(task: str) -> str:
    """What the chunk of a task's start waits for: the task, but over all of its attempts."""
    return START + task


def _covers(through: Collection[str], task: str, ns: str) -> bool:
    """Whether a task in a namespace is one of these, or runs inside of one."""
    return task.removeprefix(START) in through or (bool(ns) and any(f":{outer}" in ns for outer in through))


def ends_of(writes: Iterable[TaskWrites]) -> tuple[set[str], set[str]]:
    """The tasks whose writes these are, and those of which they say that they failed and are tried again."""
    through: set[str] = set()
    again: set[str] = set()
    for record in writes:
        channels = {channel for channel, _ in record.writes}
        if not channels <= CONTROL.keys():
            through.add(task_text(record.task))
        elif ATTEMPT in channels:
            again.add(task_text(record.task))
    return through, again


def _source(shown: Shown) -> tuple[str, str]:
    return shown.task, shown.node


def _plain(mode: str, data: Any) -> Any:
    """A payload as it is kept: an error as text, as checkpoints keep it."""
    if mode == "debug" and data["type"] == "task_result":
        return {**data, "payload": _plain("tasks", data["payload"])}
    if mode == "tasks" and isinstance(data.get("error"), BaseException):
        return {**data, "error": told(data["error"])}
    return data
