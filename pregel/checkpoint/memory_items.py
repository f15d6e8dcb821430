"""The statements about items, over the rows that `InMemorySaver` keeps."""

from __future__ import annotations

from itertools import groupby

from pregel.checkpoint.flows import Row
from pregel.checkpoint.memory_rows import StoredItem, Thread


class ItemStatements:
    """Named as in sql/, for a saver whose threads are in `_numbers`."""

    _numbers: dict[int, Thread]

    def _open(self) -> list[tuple[Thread, StoredItem]]:
        found = [(thread, item) for thread in self._numbers.values() for item in thread.items.values()]
        return [(thread, item) for thread, item in found if item.state < 2]

    def _held_item(self, tno: int, id: str, token: bytes | None) -> StoredItem | None:
        item = self._numbers[tno].items.get(id) if tno in self._numbers else None
        return item if item is not None and item.state < 2 and item.token == token else None

    def _do_backlog(self, now: float) -> list[Row]:
        rows = sorted(
            (item.row.name, item.row.version, item.state == 0 or item.expires < now, item.row.at)
            for _, item in self._open()
        )
        found: list[Row] = []
        for kind, group in groupby(rows, lambda row: row[:2]):
            waits = [(is_open, at) for _, _, is_open, at in group]
            ages = [at for is_open, at in waits if is_open]
            found.append((*kind, len(ages), len(waits) - len(ages), min(ages, default=None)))
        return found

    def _of(self, name: str, version: str) -> list[tuple[Thread, StoredItem]]:
        found = [(t, item) for t, item in self._open() if (item.row.name, item.row.version) == (name, version)]
        return sorted(found, key=lambda one: one[1].row.at)

    def _do_open_items(self, name: str, version: str, now: float, limit: int) -> list[Row]:
        return [_columns(t, item) for t, item in self._of(name, version) if item.expires < now][:limit]

    def _do_held_items(self, name: str, version: str, now: float) -> list[Row]:
        return [_columns(t, item) for t, item in self._of(name, version) if item.state == 1 and item.expires >= now]

    def _do_take_item(
        self, tno: int, id: str, seen: bytes | None, token: bytes, owner: str, expires: float
    ) -> list[Row]:
        if (item := self._held_item(tno, id, seen)) is not None:
            item.state, item.token, item.owner, item.expires = 1, token, owner, expires
            item.attempt += 1
        return []

    def _do_item(self, tno: int, id: str, token: bytes) -> list[Row]:
        item = self._held_item(tno, id, token)
        return [] if item is None else [_columns(self._numbers[tno], item, whole=True)]

    def _do_renew_item(self, tno: int, id: str, token: bytes, expires: float) -> list[Row]:
        if (item := self._held_item(tno, id, token)) is not None:
            item.expires = expires
        return []

    def _do_hand_back_item(
        self, tno: int, id: str, token: bytes, at: float, attempts: int, failures: int, rejected: int
    ) -> list[Row]:
        if (item := self._held_item(tno, id, token)) is not None:
            item.state, item.token, item.owner, item.expires = 0, None, "", at
            item.attempt += attempts
            item.failures += failures
            item.rejected += rejected
        return []

    def _do_end_item(self, tno: int, id: str, token: bytes) -> list[Row]:
        if (item := self._held_item(tno, id, token)) is not None:
            item.state, item.token, item.row = 2, None, item.row._replace(type="", blob=b"")
        return []


def _columns(thread: Thread, item: StoredItem, *, whole: bool = False) -> Row:
    row = item.row
    input = (row.type, row.blob) if whole else ("", b"")
    held = (item.token, item.owner, item.expires, item.attempt, item.failures, item.rejected)
    return (thread.thread, thread.graph, thread.tno, row.id, row.name, row.version, row.at, *held, *input)
