"""Apply: what the writes of a superstep make of the state. Pure apart from the state it is given.

1. Writes go in task order (pulled nodes by name, then Sends by index), never in the order tasks finished.
2. What a finished task was triggered by is marked seen and consumed.
3. All channels changed in the step get one new counter.
4. After a step with triggered tasks, what was not written may expire; and when nothing that changed wakes a node, the
   channels that wait for the end are finished.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from contextlib import suppress
from itertools import compress, repeat
from operator import is_
from typing import Any, NamedTuple, Protocol

from pregel.channels import MISSING, BaseChannel
from pregel.channels.growth import ATOMS
from pregel.checkpoint.records import CONTROL, NO_WRITES
from pregel.engine.plan import MANY, TASKS, Plan
from pregel.engine.state import Channels, State
from pregel.errors import InvalidUpdateError, PregelError
from pregel.types import Send

Grouped = Mapping[str, Sequence[Any]]
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


Applied = tuple[Collection[str], Collection[str]]
"""What a step changed: the channels with a new counter, and the nodes whose seen map is new (some may come twice)."""


def apply(graph: Plan, state: State, tasks: Sequence[Finished]) -> Applied:
    """Bring the writes of these tasks, given in task order, into the state."""
    channels = state.channels
    changed: dict[str, bool] = {}  # name -> whether it is available now
    updated: list[str] = []
    state.updated = updated
    bump, seen = _mark_seen(state, tasks)
    if graph.consumers:
        _consume(graph, channels, tasks, changed)
    if len(tasks) == 1 and len(tasks[0].writes) > MANY:
        grouped = _lasting(graph, channels, tasks, changed, updated)
    else:
        grouped = _grouped(tasks)
    for name, values in grouped.items():
        channel = channels.get(name)
        if channel is None:
            if name not in graph.channels:
                if name in IGNORED:
                    continue
                raise _unknown(graph, tasks, name)
            if name in graph.lasting and len(values) == 1 and type(values[0]) in ATOMS:
                channels.plain[name] = values[0]
                changed[name] = True
                updated.append(name)
                continue
            channel = channels[name]
        try:
            is_new = channel.update(values)
        except Exception as error:
            _tell_key(error, name, channel)
            raise
        if is_new:
            changed[name] = available = channel.value is not MISSING if channel.bare else channel.is_available()
            if available:
                updated.append(name)
    if bump:
        for name in state.live:
            if not changed.get(name) and channels[name].update(()):
                _changed(name, channels, changed, updated)
        if graph.finishers and graph.trigger_to_nodes.keys().isdisjoint(updated):
            for name in graph.finishers:
                if channels[name].finish():
                    _changed(name, channels, changed, updated)
    if changed:
        _count(state, changed)
    return changed, seen


def _tell_key(error: Exception, name: str, channel: Any) -> None:
    """Note whose reducer raised, and what it is to blame for when it gave nothing before; errors of ours say it."""
    if isinstance(error, PregelError) or not hasattr(channel, "operator"):
        return
    none = ""
    if channel.value is None:
        none = ", whose value is None: a reducer has to return the new value, also where it changes the old one"
    with suppress(Exception):  # one that takes no note is raised as it is
        error.add_note(f"In the reducer of {name!r}{none}")


def _lasting(
    graph: Plan, channels: Channels, tasks: Sequence[Finished], changed: dict[str, bool], updated: list[str]
) -> Grouped:
    """Take in at once what of a single task's many writes is the mere value of a channel; the writes that are left."""
    mere = dict(tasks[0].writes)
    if len(mere) < len(tasks[0].writes):
        return _grouped(tasks)
    others = (mere.keys() - graph.lasting) | (mere.keys() & channels.keys())
    if not ATOMS.issuperset(map(type, mere.values())):
        others.update([name for name, value in mere.items() if type(value) not in ATOMS])
    left = {name: (mere[name],) for name in filter(others.__contains__, mere)}
    for name in left:
        del mere[name]
    channels.plain.update(mere)
    changed.update(dict.fromkeys(mere, True))
    updated.extend(mere)
    return left


def _changed(name: str, channels: Channels, changed: dict[str, bool], updated: list[str]) -> None:
    channel = channels[name]
    changed[name] = available = channel.value is not MISSING if channel.bare else channel.is_available()
    if available:
        updated.append(name)


def _mark_seen(state: State, tasks: Sequence[Finished]) -> tuple[bool, Collection[str]]:
    """The tasks have seen what triggered them; whether anything was triggered, and whose map is new."""
    counters, seen = state.counters, state.seen
    marked: list[str] = []
    bump = False
    for task in tasks:
        name = task.name
        entry = seen.get(name)
        if entry is None:
            entry = seen[name] = {}
            marked.append(name)
        for trigger in task.triggers:
            bump = True
            counter = counters.get(trigger)
            if counter is not None and entry.get(trigger) != counter:
                entry[trigger] = counter
                if not marked or marked[-1] != name:
                    marked.append(name)
    return bump, marked


def _consume(graph: Plan, channels: Channels, tasks: Sequence[Finished], changed: dict[str, bool]) -> None:
    """Joins and deferred triggers are reset once the tasks that they woke are done."""
    for trigger in {trigger: None for task in tasks for trigger in task.triggers}:
        if trigger in graph.consumers and channels[trigger].consume():
            changed[trigger] = channels[trigger].is_available()


def _grouped(tasks: Sequence[Finished]) -> Grouped:
    """The values written to each channel, in task order."""
    if len(tasks) == 1:
        writes = tasks[0].writes
        single = {name: (value,) for name, value in writes}
        if len(single) == len(writes):
            return single
    grouped: dict[str, list[Any]] = {}
    for task in tasks:
        for name, value in task.writes:
            if name in grouped:
                grouped[name].append(value)
            else:
                grouped[name] = [value]
    return grouped


def _unknown(graph: Plan, tasks: Sequence[Finished], name: str) -> InvalidUpdateError:
    node = next(task.name for task in tasks if any(channel == name for channel, _ in task.writes))
    return InvalidUpdateError(
        f"Node {node!r} wrote to the unknown channel {name!r}.",
        fix=f"Known channels: {', '.join(sorted(graph.channels))}.",
        node=node,
        channel=name,
    )


def _count(state: State, changed: Mapping[str, bool]) -> None:
    """One new counter for all that changed; views and the set of expiring channels follow."""
    state.counter = counter = state.counter + 1
    counters, channels, viewed, live = state.counters, state.channels, state.viewed, state.live
    expiring, plain = state.plan.expiring, channels.plain
    if len(changed) > MANY:
        counters.update(dict.fromkeys(changed, counter))
        changed = {name: changed[name] for name in changed.keys() & (expiring | viewed.keys())}
    for name, available in changed.items():
        counters[name] = counter
        if name in expiring:
            if available:
                live.add(name)
            else:
                live.discard(name)
        if name in viewed:
            for view in viewed[name]:
                if name in plain:
                    view.keep(name, plain[name])
                else:
                    view.refresh(name, channels[name], available)


def values_of(state: State, names: Collection[str]) -> dict[str, tuple[int, Any]]:
    """(counter, stored value) of channels. To be called as `stored_values` is."""
    counters = state.counters
    stored = zip(names, stored_values(state, names), strict=True)
    return {name: (counters.get(name, 0), value) for name, value in stored}


def stored_values(state: State, names: Collection[str]) -> list[Any]:
    """What is stored of channels: MISSING for an empty one, a `Log` for a list that grows.

    To be called once for each checkpoint, with all that changed since the one before.
    """
    channels, logged = state.channels, state.plan.logged
    plain = channels.plain
    if state.plan.untracked and TASKS in names:
        untracked = state.plan.untracked
        found = [plain[name] if name in plain else _stored(channels[name], name in logged) for name in names]
        return [tracked(value, untracked) if name == TASKS else value for name, value in zip(names, found, strict=True)]
    if len(names) > MANY:  # most of many are mere values
        found = [*map(plain.get, names, repeat(MISSING))]
        for place, name in compress(enumerate(names), map(is_, found, repeat(MISSING))):
            found[place] = _stored(channels[name], name in logged)
        return found
    return [plain[name] if name in plain else _stored(channels[name], name in logged) for name in names]


def tracked(packets: Any, untracked: Container[str]) -> Any:
    """Packets as they are stored: a state that is sent whole without what an `UntrackedValue` holds."""
    if isinstance(packets, list):
        return [tracked(packet, untracked) for packet in packets]
    if not (isinstance(packets, Send) and isinstance(packets.arg, dict)):
        return packets
    kept = {key: value for key, value in packets.arg.items() if key not in untracked}
    return Send(packets.node, kept, timeout=packets.timeout)


def _stored(channel: BaseChannel[Any, Any, Any], logged: bool) -> Any:
    if logged:
        return _logged(channel)
    return channel.value if channel.bare else channel.checkpoint()


def _logged(channel: BaseChannel[Any, Any, Any]) -> Any:
    value = channel.value if channel.bare else channel.checkpoint()
    if value is MISSING and channel.snapshots:
        value = channel.snapshot()  # type: ignore[attr-defined]  # the class says that it is there
    return value if channel.growth is None else channel.growth.log(value)
