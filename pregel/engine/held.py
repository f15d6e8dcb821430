"""What a run under durability ``exit`` holds back, as a load of the same run has to find it.

A persistent subgraph that runs twice in one call goes on from what its first run left, and that is not stored yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pregel.channels import MISSING
from pregel.channels.batches import Batched
from pregel.channels.growth import Log
from pregel.checkpoint.keys import task_text
from pregel.checkpoint.records import CONTROL, Load, Mail, Opened, Page, Save, Saved, TaskWrites, Write


def with_held(
    requests: Sequence[Load | Page | Mail], opened: Opened, saves: Mapping[str, Save], writes: Iterable[TaskWrites]
) -> Opened:
    """What was loaded, with the newest checkpoints that are held in the place of the stored ones."""
    loads = [request for request in requests if isinstance(request, Load)]
    found = [
        _as_saved(saves[load.ns], saved, writes) if _finds(load, saves.get(load.ns)) else saved
        for load, saved in zip(loads, opened.saved, strict=True)
    ]
    return replace(opened, saved=found, heads={**opened.heads, **{ns: save.id for ns, save in saves.items()}})


def is_over_with(inner: str, ns: str) -> bool:
    """Whether what is stored under a namespace was for a superstep of another one, which is whole now.

    A part with a task id lives as long as its task; a subgraph that is persistent, under its mere name, goes on.
    """
    return inner.startswith(f"{ns}|" if ns else "") and ":" in inner[len(ns) :]


def _finds(load: Load, save: Save | None) -> bool:
    if save is None:
        return False
    return load.checkpoint == save.id if load.checkpoint else load.before is None or save.id < load.before


def _as_saved(save: Save, base: Saved | None, writes: Iterable[TaskWrites]) -> Saved:
    """A held checkpoint as a load shows it: what it changed, over what is stored."""
    values: dict[str, Any] = dict(base.values) if base is not None else {}
    counters = dict(base.counters) if base is not None else {}
    for channel, (counter, value) in save.changed.items():
        counters[channel] = counter
        values[channel] = value.value if type(value) in (Log, Batched) else value
        if value is MISSING:
            del values[channel]
    seen = {**(base.seen if base is not None else {}), **save.seen}
    return Saved(
        ns=save.ns,
        id=save.id,
        parent=save.parent,
        step=save.step,
        source=save.source,
        metadata={**save.metadata, "source": save.source, "step": save.step},
        created_at="",
        lineage=bytes(save.lineage),
        values=values,
        counters=counters,
        ats={},
        seen={name: dict(counted) for name, counted in seen.items()},
        updated=None if save.updated is None else list(save.updated),
        applied=list(save.applied),
        writes=[write for record in writes if record.ns == save.ns for write in _writes(record)],
        manifest=base.manifest if base is not None else None,
    )


def _writes(record: TaskWrites) -> Iterable[Write]:
    task = task_text(record.task)
    for position, (channel, value) in enumerate(record.writes, record.first):
        yield Write(task, CONTROL.get(channel, position), channel, value, record.path, record.name, record.child)
