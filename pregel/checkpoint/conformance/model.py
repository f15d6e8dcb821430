"""Random calls of a saver beside a dict that does the same.

After each call what it touched is compared, at the end every thread whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pregel.checkpoint.conformance.drawn import Call, drawn
from pregel.checkpoint.conformance.verbs import Verbs, agree, config, id_of
from pregel.checkpoint.records import CONTROL, ERROR

Place = tuple[str, str]  # thread, namespace

WORDS = {"put": 6, "write": 6, "get": 2, "list": 2, "delete": 1}
HOUSEKEEPING = {"prune": 1, "copy": 1, "forget": 1}
VALUES: list[Any] = [None, 0, "text", "x" * 300, [1, [2]], {"a": {"b": None}}, b"\0", True]
CHANNELS = ("a", "b", "c")


@dataclass
class Entry:
    """A checkpoint as the dict has it."""

    parent: str | None
    values: dict[str, Any]
    versions: dict[str, Any]
    metadata: dict[str, Any]
    writes: dict[tuple[str, int], tuple[str, Any]] = field(default_factory=dict)

    def pending(self) -> list[tuple[str, str, Any]]:
        """Its writes as `get_tuple` gives them, all paths being equal."""
        return [(task, *self.writes[task, index]) for task, index in sorted(self.writes)]


class Walk:
    """One series of calls on threads of its own."""

    def __init__(self, verbs: Verbs, name: str) -> None:
        self.verbs, self.name = verbs, name
        self.branches: dict[Place, dict[str, Entry]] = {}
        self.copies = 0

    def run(self, calls: Iterable[Call]) -> None:
        """Make the calls, and compare."""
        for word, numbers in calls:
            getattr(self, f"_{word}")(*numbers)
        for thread in {thread for thread, _ in self.branches}:
            self._compare(thread)

    # -- calls -------------------------------------------------------------------------------------------------------

    def _put(self, a: int, b: int, c: int) -> None:
        place = self._place(a)
        branch = self.branches.setdefault(place, {})
        parent = self._pick(branch, b) if c % 5 else None
        below = branch[parent] if parent is not None else Entry(None, {}, {}, {})
        changed = [channel for position, channel in enumerate(CHANNELS) if c >> position & 1]
        version = self.verbs.saver.get_next_version(max(below.versions.values(), default=None), None)
        values = below.values | {channel: VALUES[(b + len(channel) + c) % len(VALUES)] for channel in changed}
        if c % 7 == 0:
            values = {channel: value for channel, value in values.items() if channel not in changed}
        versions = below.versions | dict.fromkeys(changed, version)
        metadata = {"source": "loop", "step": c % 4, "parents": {}, "run_id": f"{self.name}-{b % 3}"}
        where = config(place[0], checkpoint_ns=place[1])
        if parent is not None:
            where["configurable"]["checkpoint_id"] = parent
        options = {"versions": versions, "new": dict.fromkeys(changed, version), "metadata": metadata}
        made = self.verbs.put(values, where, **options)
        branch[id_of(made)] = Entry(parent, values, versions, metadata)

    def _write(self, a: int, b: int, c: int) -> None:
        place = self._place(a)
        checkpoint = self._pick(self.branches.get(place, {}), b)
        if checkpoint is None:
            return
        task = f"task-{c % 2}"
        writes = [(channel, VALUES[(c + i) % len(VALUES)]) for i, channel in enumerate((*CHANNELS, ERROR)[c % 4 :])]
        self.verbs.write(self._config(place, checkpoint), writes, task, "~")
        rows = self.branches[place][checkpoint].writes
        for position, (channel, value) in enumerate(writes):
            index = CONTROL.get(channel, position)
            if index < 0 or (task, index) not in rows:
                rows[task, index] = channel, value

    def _get(self, a: int, b: int, c: int) -> None:
        place = self._place(a)
        branch = self.branches.get(place, {})
        checkpoint = self._pick(branch, b) if c % 2 else max(branch, default=None)
        found = self.verbs.find(self._config(place, checkpoint if c % 2 else None))
        if checkpoint is None:
            agree(None, found)
        else:
            self._same(place, checkpoint, found)

    def _list(self, a: int, b: int, c: int) -> None:
        place = self._place(a)
        branch = self.branches.get(place, {})
        before = self._pick(branch, b) if c % 3 == 0 else None
        step, limit = (c % 4 if c % 2 else None), (b % 4 if c % 5 == 0 else None)
        found = self.verbs.listed(
            self._config(place, None),
            filter=None if step is None else {"step": step},
            before=None if before is None else self._config(place, before),
            limit=limit,
        )
        expected = [
            checkpoint
            for checkpoint in sorted(branch, reverse=True)
            if (before is None or checkpoint < before) and (step is None or branch[checkpoint].metadata["step"] == step)
        ]
        agree(expected[:limit], [id_of(entry.config) for entry in found])

    def _delete(self, a: int, b: int, c: int) -> None:
        thread = self._place(a)[0]
        self.verbs.call("delete_thread", thread)
        self._drop(thread)
        agree([], self.verbs.listed(config(thread)))

    def _prune(self, a: int, b: int, c: int) -> None:
        thread = self._place(a)[0]
        self.verbs.call("prune", [thread])
        for place, branch in self.branches.items():
            if place[0] == thread and branch:
                newest = max(branch)
                branch[newest].parent = None
                self.branches[place] = {newest: branch[newest]}
        self._compare(thread)

    def _copy(self, a: int, b: int, c: int) -> None:
        source, self.copies = self._place(a)[0], self.copies + 1
        target = f"{self.name}-copy-{self.copies}"
        self.verbs.call("copy_thread", source, target)
        for (thread, ns), branch in list(self.branches.items()):
            if thread == source:
                self.branches[target, ns] = {
                    checkpoint: Entry(one.parent, one.values, one.versions, one.metadata, dict(one.writes))
                    for checkpoint, one in branch.items()
                }
        self._compare(target)

    def _forget(self, a: int, b: int, c: int) -> None:
        run = f"{self.name}-{b % 3}"
        self.verbs.call("delete_for_runs", [run])
        for place, branch in self.branches.items():
            gone = {one: entry.parent for one, entry in branch.items() if entry.metadata["run_id"] == run}
            left = {one: entry for one, entry in branch.items() if one not in gone}
            for entry in left.values():
                while entry.parent in gone:
                    entry.parent = gone[entry.parent]
            self.branches[place] = left

    # -- comparing ---------------------------------------------------------------------------------------------------

    def _compare(self, thread: str) -> None:
        for place, branch in self.branches.items():
            if place[0] == thread:
                found = self.verbs.listed(config(thread, checkpoint_ns=place[1]))
                agree(sorted(branch, reverse=True), [id_of(entry.config) for entry in found])
                for entry in found:
                    self._same(place, id_of(entry.config), entry)

    def _same(self, place: Place, checkpoint: str, found: Any) -> None:
        entry = self.branches[place][checkpoint]
        if found is None:
            raise AssertionError(f"Checkpoint {checkpoint} of {place} is gone.")
        agree(self._config(place, checkpoint), found.config)
        agree(None if entry.parent is None else self._config(place, entry.parent), found.parent_config)
        agree(entry.values, found.checkpoint["channel_values"])
        agree(entry.versions, found.checkpoint["channel_versions"])
        agree(entry.metadata, dict(found.metadata))
        agree(entry.pending(), [tuple(write) for write in found.pending_writes or ()])

    # -- picking -----------------------------------------------------------------------------------------------------

    def _place(self, number: int) -> Place:
        places = [*itertools.product((f"{self.name}-0", f"{self.name}-1"), ("", "child")), *self.branches]
        return places[number % len(places)]

    @staticmethod
    def _pick(branch: dict[str, Entry], number: int) -> str | None:
        ids = sorted(branch)
        return ids[-1 - number // 2 % len(ids)] if ids else None

    @staticmethod
    def _config(place: Place, checkpoint: str | None) -> Any:
        where = config(place[0], checkpoint_ns=place[1])
        if checkpoint is not None:
            where["configurable"]["checkpoint_id"] = checkpoint
        return where

    def _drop(self, thread: str) -> None:
        self.branches = {place: branch for place, branch in self.branches.items() if place[0] != thread}


def random_calls(verbs: Verbs, *, examples: int, housekeeping: bool) -> None:
    """Compare random calls with a dict. Nothing is done where hypothesis is not installed."""
    names = itertools.count()
    words = WORDS | HOUSEKEEPING if housekeeping else WORDS
    drawn(words, lambda calls: Walk(verbs, f"walk-{next(names)}").run(calls), examples=examples)
