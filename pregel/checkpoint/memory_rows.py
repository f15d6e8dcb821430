"""A thread in memory: its row's columns, and its rows of the other tables.

What a run says becomes rows when somebody looks (`checkpoint.late`): whoever reads a table calls `catch_up` first.
"""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Sequence

from pregel.checkpoint.chunks import StoredChunks
from pregel.checkpoint.flows import Row, owner_text
from pregel.checkpoint.keys import id_text
from pregel.checkpoint.late import LateLedger, Said
from pregel.checkpoint.records import (
    Append,
    CheckpointRow,
    EventRow,
    ItemRow,
    Owner,
    ThreadRow,
    ValueRow,
    WaitRow,
    WriteRow,
)
from pregel.errors import InternalError


class Branch:
    """The checkpoints of one namespace, by id and in order."""

    __slots__ = ("ids", "rows")

    def __init__(self) -> None:
        self.ids: list[bytes] = []
        self.rows: dict[bytes, CheckpointRow] = {}

    def add(self, row: CheckpointRow) -> None:
        if not self.ids or row.id > self.ids[-1]:
            self.ids.append(row.id)
        else:
            insort(self.ids, row.id)
        self.rows[row.id] = row

    @property
    def newest(self) -> CheckpointRow | None:
        """The row of the greatest id."""
        return self.rows[self.ids[-1]] if self.ids else None


class StoredItem:
    """An item and how it stands: 0 it waits, 1 it is held, 2 it is done."""

    __slots__ = ("attempt", "expires", "failures", "owner", "rejected", "row", "state", "token")

    def __init__(self, row: ItemRow) -> None:
        self.row = row
        self.state = self.attempt = self.failures = self.rejected = 0
        self.token: bytes | None = None
        self.owner, self.expires = "", 0.0


class Thread:
    """One thread: its row's columns, and its rows of the other tables."""

    def __init__(self, tno: int, thread: str, epoch: int) -> None:
        self.tno, self.thread, self.epoch = tno, thread, epoch
        self.run: bytes | None = None
        self.seq = self.gen = self.inbox = 0
        self.mark = b""
        self.last_id: bytes | None = None
        self.pin: bytes | None = None
        self.crashes = 0
        self.status, self.reason, self.asked, self.graph = "idle", "", "", ""
        self.owner: Owner | None = None
        self.ttl = self.expires = self.updated_at = 0.0
        self.namespaces: dict[str, int] = {}
        self.next_ns = 0  # greater than the number of every namespace there ever was
        self.branches: dict[int, Branch] = {}
        self.values: dict[tuple[int, int, int, str], ValueRow] = {}
        self.deltas: dict[tuple[int, int], list[int]] = {}  # where the deltas of a channel are, in order
        self.late: list[tuple[LateLedger, list[Said]]] = []  # what nobody has looked at yet, in turns of one run each
        self.teller: LateLedger | None = None  # of the last turn
        self.writes: dict[tuple[int, bytes], dict[tuple[bytes, int], WriteRow]] = {}
        self.chunks: dict[int, StoredChunks] = {}  # by their last offset, in order
        self.waits: Sequence[WaitRow] = ()
        self.events: dict[str, EventRow | None] = {}  # by id, in the order in which they came; None: taken
        self.items: dict[str, StoredItem] = {}  # by id

    def columns(self) -> Row:
        """The thread as the statement `thread` shows it."""
        return (
            self.tno,
            self.thread,
            self.epoch,
            self.run,
            self.seq,
            self.gen,
            self.last_id,
            self.status,
            self.reason,
            None if self.owner is None else owner_text(self.owner),
            self.expires,
            self.lapsed(time.time()),
            self.asked,
            self.inbox,
            self.graph,
            self.updated_at,
            self.next_ns,
            self.pin,
            self.crashes,
        )

    def row(self, last_id: str = "") -> ThreadRow:
        """The same as the engine sees it; `last_id` as text costs more than the rest."""
        return ThreadRow(
            self.thread,
            self.tno,
            self.epoch,
            self.run,
            self.seq,
            self.gen,
            last_id,
            self.status,  # type: ignore[arg-type]
            self.reason,
            self.owner,
            self.expires,
            False,
            self.asked,
            self.inbox,
            self.graph,
            self.updated_at,
            {},
            self.next_ns,
            "" if self.pin is None else id_text(self.pin),
            self.crashes,
        )

    def loaded(self, ns: str) -> ThreadRow:
        """The same for a run that loads the newest checkpoint of a namespace, which there is."""
        row = self.row("" if self.last_id is None else id_text(self.last_id))
        row.lapsed = self.lapsed(time.time())
        row.namespaces[ns] = self.namespaces[ns]
        return row

    def lapsed(self, now: float) -> bool:
        return self.run is not None and self.expires < now

    def take(self, append: Append, now: float) -> None:
        """Keep what an append says, and bring the row's own columns to what they are after it."""
        if append.said:
            self.hears(append.ledger).extend(append.said)  # type: ignore[arg-type]  # who said it is known
        elif append.checkpoints or append.writes or append.values or append.namespaces or append.chunks or append.marks:
            self.catch_up().add(append)
        self.seq += append.k
        self.mark = append.mark
        self.updated_at = now
        self.expires = now + self.ttl
        if append.release is not None:
            self.run, self.owner, self.crashes = None, None, 0
            self.status, self.reason = append.release.status, append.release.reason
            self.graph = append.release.graph or self.graph
            if append.release.waits:
                self.waits = append.release.waits
            if append.release.withdraws:
                named = {row.id for row in append.release.items}
                self.items = {id: item for id, item in self.items.items() if id in named}
            for row in append.release.items:
                self.items.setdefault(row.id, StoredItem(row))
        if append.drops:
            self.events = dict.fromkeys(self.events)

    def rouse(self, taken: Sequence[str]) -> None:
        """The thread rests no more, and whoever takes it up has taken these events."""
        self.waits = ()
        self.events.update(dict.fromkeys(taken))

    def is_due(self, now: float) -> bool:
        """Whether what it rests for has come."""
        events = [event for event in self.events.values() if event is not None] if self.waits else ()
        return self.run is None and any(
            (wait.due is not None and wait.due <= now)
            or any(event.name == wait.name and wait.key in (None, event.key) for event in events)
            for wait in self.waits
        )

    def has_unread(self, name: str) -> bool:
        """Whether its last run came to its end, and it has an event of this name that nobody has taken."""
        is_done = self.run is None and self.status == "idle" and not self.reason
        return is_done and any(event is not None and event.name == name for event in self.events.values())

    def hears(self, ledger: LateLedger) -> list[Said]:
        """Where what this ledger says now is kept."""
        if ledger is not self.teller:
            self.teller = ledger
            self.late.append((ledger, []))
        return self.late[-1][1]

    def catch_up(self) -> Thread:
        """Add the rows of what nobody has looked at yet."""
        self.teller = None
        while self.late:
            ledger, said = self.late[0]
            self.add(ledger.translate(said))
            del self.late[0]  # only now: what could not be read is told again, not forgotten
        return self

    def add(self, append: Append) -> None:
        """Add an append's rows."""
        for row in append.checkpoints:
            branch = self.branches.get(row.ns)
            if branch is not None and row.id in branch.rows:
                raise InternalError(f"Checkpoint {id_text(row.id)} is stored twice.", thread=self.thread)
        self.last_id = append.last_id or self.last_id
        for ns, text in append.namespaces:
            self.namespaces[text], self.next_ns = ns, ns + 1
        for row in append.checkpoints:
            branch = self.branches.get(row.ns)
            if branch is None:
                branch = self.branches[row.ns] = Branch()
            branch.add(row)
        for value in append.values:
            self.add_value(value)
        for write in append.writes:
            self.add_write(write)
        for chunk in append.chunks:
            self.chunks[chunk.last] = chunk.stored(self.epoch)
        for last, state in append.marks:
            if last in self.chunks:
                self.chunks[last] = self.chunks[last]._replace(state=state)

    def add_value(self, row: ValueRow) -> None:
        if row.kind == "delta":
            insort(self.deltas.setdefault((row.ns, row.channel), []), row.at)
        self.values[row[:4]] = row

    def add_write(self, row: WriteRow) -> None:
        """Control rows replace, all others stay as they were first written."""
        rows = self.writes.get(row[:2])
        if rows is None:
            rows = self.writes[row[:2]] = {}
        if row.idx < 0:
            rows[row[2:4]] = row
        else:
            rows.setdefault(row[2:4], row)
