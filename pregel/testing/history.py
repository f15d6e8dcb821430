"""A thread as two runs of the same program must both leave it: everything but ids, times and numbers of records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pregel.checkpoint.records import INTERRUPT, Saved
from pregel.engine.ids import NULL_TASK


class Checkpoint(NamedTuple):
    """One checkpoint without its ids; `parent` counts from the oldest checkpoint of the namespace."""

    parent: int | None
    step: int
    source: str
    lineage: bytes
    values: dict[str, Any]
    counters: dict[str, int]
    seen: dict[str, dict[str, int]]
    updated: list[str] | None
    applied: list[str]
    writes: list[tuple[str, str, str, Any]]  # path, node, channel, value


Branch = tuple[str, list[Checkpoint]]  # namespace without task ids, oldest checkpoint first


def history(checkpoints: Sequence[Saved]) -> list[Branch]:
    """All checkpoints of a thread, given newest first, by namespace."""
    found: dict[str, list[Saved]] = {}
    for saved in reversed(checkpoints):
        found.setdefault(saved.ns, []).append(saved)
    branches = [(_plain(ns), _comparable(branch)) for ns, branch in found.items()]
    return sorted(branches, key=repr)  # two tasks of one node: by what they did, their ids say nothing


def difference(expected: list[Branch], actual: list[Branch]) -> str:
    """Where two histories differ, in plain words; empty when they are equal."""
    if expected == actual:
        return ""
    names = [name for name, _ in expected], [name for name, _ in actual]
    if names[0] != names[1]:
        return f"namespaces {names[1]} instead of {names[0]}"
    for (name, wanted), (_, found) in zip(expected, actual, strict=True):
        if len(wanted) != len(found):
            return f"{len(found)} checkpoints in {name!r} instead of {len(wanted)}"
        for want, have in zip(wanted, found, strict=True):
            for field in Checkpoint._fields:
                if getattr(want, field) != getattr(have, field):
                    old, new = getattr(want, field), getattr(have, field)
                    return f"{field} of step {want.step} in {name!r} is {new!r} instead of {old!r}"
    return "the same checkpoints in another order"


def _plain(ns: str) -> str:
    return "|".join(part.split(":")[0] for part in ns.split("|"))


def _comparable(branch: list[Saved]) -> list[Checkpoint]:
    numbers = {saved.id: number for number, saved in enumerate(branch)}
    return [
        Checkpoint(
            None if saved.parent is None else numbers.get(saved.parent, -1),
            saved.step,
            saved.source,
            saved.lineage,
            saved.values,
            saved.counters,
            {node: counters for node, counters in saved.seen.items() if node != INTERRUPT},  # a resume marks it
            saved.updated,
            saved.applied,
            [(w.path, w.name, w.channel, w.value) for w in saved.writes if w.idx >= 0 and w.task != NULL_TASK],
        )
        for saved in branch
    ]
