"""How far each node of a run has come, read from the snapshots of its thread."""

from __future__ import annotations

from collections.abc import Iterable

from pregel.constants import START
from pregel.graph.draw.scene import Mark
from pregel.types import PregelTask, StateSnapshot


def marks_of(run: StateSnapshot | Iterable[StateSnapshot]) -> dict[str, Mark]:
    """Node -> done, running, waiting or failed; a node that has not started has none.

    `run`: what ``get_state`` gives (with ``subgraphs=True`` also what is inside), or ``get_state_history``, which knows
    all that has run before.
    """
    history: list[StateSnapshot] = [run] if isinstance(run, StateSnapshot) else list(run)
    marks: dict[str, Mark] = {}
    for entry in history[1:]:
        marks.update(dict.fromkeys((task.name for task in entry.tasks), "done"))
    if history:
        _add(history[0], "", marks)
    marks.pop(START, None)
    return marks


def _add(snapshot: StateSnapshot, prefix: str, marks: dict[str, Mark]) -> None:
    rank: list[Mark] = ["done", "running", "waiting", "failed"]
    found: dict[str, Mark] = {}
    for task in snapshot.tasks:
        mark = _mark(task)
        found[prefix + task.name] = max(found.get(prefix + task.name, "done"), mark, key=rank.index)
        if isinstance(task.state, StateSnapshot):
            _add(task.state, f"{prefix}{task.name}:", marks)
    marks.update(found)


def _mark(task: PregelTask) -> Mark:
    if task.error is not None:
        return "failed"
    if task.interrupts:
        return "waiting"
    return "done" if task.result is not None else "running"
