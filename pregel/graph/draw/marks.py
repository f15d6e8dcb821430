"""How far each node of a run has come, read from the snapshots of its thread.

1. A snapshot says by its namespace which graph it is of: the first one given is of the graph that is drawn, and those
   below it are of its subgraphs. In each namespace the newest comes first.
2. What a newer snapshot has left behind is done. The newest one shows how its own tasks stand, unless the task that ran
   the subgraph is gone by now: then it shows what was done.
3. Of several runs of one subgraph the one that needs most attention marks a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pregel.constants import START
from pregel.graph.draw.scene import Mark
from pregel.types import PregelTask, StateSnapshot

RANK: list[Mark] = ["done", "running", "waiting", "failed"]
Places = dict[str, list[StateSnapshot]]
"""Snapshots by namespace below the graph that is drawn."""


def marks_of(run: StateSnapshot | Iterable[StateSnapshot]) -> dict[str, Mark]:
    """Node -> done, running, waiting or failed; a node that has not started has none.

    `run`: what ``get_state`` gives (with ``subgraphs=True`` also what is inside), or ``get_state_history``, which knows
    all that has run before, or `whole_history`, which knows it of the subgraphs too.
    """
    marks: dict[str, Mark] = {}
    places = _places(run)
    for place, entries in places.items():
        prefix = "".join(f"{part.partition(':')[0]}:" for part in place.split("|") if part)
        for name, mark in _standing(entries, is_live=_is_live(place, places)).items():
            marks[prefix + name] = max(marks.get(prefix + name, "done"), mark, key=RANK.index)
    return marks


def _places(run: StateSnapshot | Iterable[StateSnapshot]) -> Places:
    places: Places = {}
    base: str | None = None
    for entry in _flat([run] if isinstance(run, StateSnapshot) else run):
        ns = str(entry.config["configurable"].get("checkpoint_ns") or "")
        base = ns if base is None else base
        if ns == base or not base or ns.startswith(f"{base}|"):
            places.setdefault(ns[len(base) :].removeprefix("|"), []).append(entry)
    return places


def _flat(entries: Iterable[StateSnapshot]) -> Iterator[StateSnapshot]:
    for entry in entries:
        yield entry
        yield from _flat(task.state for task in entry.tasks if isinstance(task.state, StateSnapshot))


def _is_live(place: str, places: Places) -> bool:
    """Whether what the newest snapshot of a place shows is what the thread stands at."""
    around, _, part = place.rpartition("|")
    if not part or around not in places:
        return True
    name, _, id = part.partition(":")
    running = (task for task in places[around][0].tasks if task.result is None)
    return any(task.id == id or (not id and task.name == name) for task in running) and _is_live(around, places)


def _standing(entries: list[StateSnapshot], *, is_live: bool) -> dict[str, Mark]:
    """The marks of one graph."""
    marks: dict[str, Mark] = {task.name: "done" for entry in entries[1:] for task in entry.tasks}
    newest: dict[str, Mark] = {}
    for task in entries[0].tasks:
        mark = _mark(task)
        if is_live or mark == "done":
            newest[task.name] = max(newest.get(task.name, "done"), mark, key=RANK.index)
    marks.update(newest)
    marks.pop(START, None)
    return marks


def _mark(task: PregelTask) -> Mark:
    if task.error is not None:
        return "failed"
    if task.result is not None:
        return "done"
    return "waiting" if task.interrupts else "running"
