"""Apply: what the writes of a superstep make of the state. Pure apart from the state it is given.

1. Writes go in task order (pulled nodes by name, then Sends by index), never in the order tasks finished.
2. What a finished task was triggered by is marked seen and consumed.
3. All channels changed in the step get one new counter.
4. After a step with triggered tasks, what was not written may expire; and when nothing that changed wakes a node, the
   channels that wait for the end are finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from pregel.channels import MISSING
from pregel.checkpoint.records import CONTROL, NO_WRITES
from pregel.engine.plan import Plan
from pregel.engine.state import State
from pregel.errors import InvalidUpdateError

IGNORED = frozenset([*CONTROL, NO_WRITES, "__return__", "__previous_task__"])


class Finished(Protocol):
    """A task that is over, with what it wrote."""

    @property
    def name(self) -> str: ...

    @property
    def triggers(self) -> Sequence[str]: ...

    @property
    def writes(self) -> list[tuple[str, Any]]: ...


class Input(NamedTuple):
    """Writes from outside: an input, a command, an update. They were triggered by nothing, so nothing expires."""

    writes: list[tuple[str, Any]]
    name: str = "__input__"
    triggers: Sequence[str] = ()


class Applied(NamedTuple):
    """What a step changed: the channels with a new counter, and the nodes whose seen map is new."""

    changed: list[str]
    seen: list[str]


def apply(graph: Plan, state: State, tasks: Sequence[Finished]) -> Applied:
    """Bring the writes of these tasks, given in task order, into the state."""
    channels, trigger_to_nodes = state.channels, graph.trigger_to_nodes
    changed: dict[str, None] = {}
    updated: list[str] = []
    bump, seen = _mark_seen(state, tasks, changed)
    for name, values in _grouped(graph, tasks).items():
        channel = channels[name]
        if channel.update(values):
            changed[name] = None
            if channel.is_available():
                updated.append(name)
    if bump:
        written = set(updated)
        for name in list(state.live):
            if name not in written and channels[name].update(()):
                changed[name] = None
                if channels[name].is_available():
                    updated.append(name)
        if not any(name in trigger_to_nodes for name in updated):
            for name in graph.finishers:
                if channels[name].finish():
                    changed[name] = None
                    if channels[name].is_available():
                        updated.append(name)
    state.updated = updated
    _count(state, changed)
    return Applied(list(changed), seen)


def _mark_seen(state: State, tasks: Sequence[Finished], changed: dict[str, None]) -> tuple[bool, list[str]]:
    """What the tasks were triggered by is seen and consumed; whether anything was triggered, and whose map is new."""
    counters, seen = state.counters, state.seen
    consumed: dict[str, None] = {}
    marked: dict[str, None] = {}
    bump = False
    for task in tasks:
        news = {name: counters[name] for name in task.triggers if name in counters}
        if task.triggers:
            bump = True
            consumed.update(dict.fromkeys(news))
        if news or task.name not in seen:
            seen[task.name] = {**seen.get(task.name, {}), **news}
            marked[task.name] = None
    for name in consumed:
        if state.channels[name].consume():
            changed[name] = None
    return bump, list(marked)


def _grouped(graph: Plan, tasks: Sequence[Finished]) -> Mapping[str, list[Any]]:
    grouped: dict[str, list[Any]] = {}
    known = graph.channels
    for task in tasks:
        for name, value in task.writes:
            if name in grouped:
                grouped[name].append(value)
            elif name in known:
                grouped[name] = [value]
            elif name not in IGNORED:
                raise InvalidUpdateError(
                    f"Node {task.name!r} wrote to the unknown channel {name!r}.",
                    fix=f"Known channels: {', '.join(sorted(known))}.",
                    node=task.name,
                    channel=name,
                )
    return grouped


def _count(state: State, changed: Iterable[str]) -> None:
    """One new counter for all that changed; views and the set of expiring channels follow."""
    state.counter += 1
    counter, counters, channels, live = state.counter, state.counters, state.channels, state.live
    any_changed = False
    for name in changed:
        any_changed = True
        counters[name] = counter
        channel = channels[name]
        if channel.expires:
            if channel.is_available():
                live.add(name)
            else:
                live.discard(name)
        for view in state.views.values():
            if name in view.keys:
                view.refresh(name, channel)
    if not any_changed:
        state.counter -= 1


def values_of(state: State, names: Iterable[str]) -> dict[str, tuple[int, Any]]:
    """(counter, stored value) of channels; the value is MISSING for an empty one."""
    return {name: (state.counters.get(name, 0), stored(state.channels[name])) for name in names}


def stored(channel: Any) -> Any:
    """What is kept of a channel: its checkpoint, or the snapshot of one that keeps none itself."""
    value = channel.checkpoint()
    if value is MISSING and hasattr(channel, "snapshot"):
        return channel.snapshot()
    return value
