"""The state of one graph on one thread between two supersteps: channels, counters, what each node has seen.

1. `counters[c]` is the step-change counter of channel c; all channels changed in one step get one new value.
2. A channel that was never written is made from its prototype when first touched, so a step costs what it touches. One
   that keeps the last write is its mere value in `plain`, while nobody can change that and no more is written to it at
   once: of thousands of keys that are only read no channel is made.
3. Views are the dicts that nodes read, one for each distinct list of keys, kept up to date by `apply`; handing one out
   is one C-level copy plus a one-level copy of each container in it, so only returned updates change state.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pregel.channels import MISSING, BaseChannel, DeltaChannel
from pregel.channels.batches import Unfolded
from pregel.channels.growth import ATOMS
from pregel.engine.ids import ROOT_LINEAGE, Lineage

if TYPE_CHECKING:
    from pregel.engine.plan import Plan

FEW = 16  # keys, which are read for a single task without a view: a graph of one step reads them once

UNSEEN: dict[str, Any] = {}  # by no view; never added to

COPIERS: dict[type, Callable[[Any], Any]] = {
    t: t.copy for t in (list, dict, set, bytearray, deque, defaultdict, OrderedDict, Counter)
}


def hand_out(value: Any) -> Any:
    """The value itself, or a one-level copy when it is a container."""
    copier = COPIERS.get(type(value))
    return value if copier is None else copier(value)


class Channels(dict[str, BaseChannel[Any, Any, Any]]):
    """The live channels by name; the missing ones are made from the graph's prototypes."""

    __slots__ = ("plain", "prototypes")

    def __init__(self, prototypes: Mapping[str, BaseChannel[Any, Any, Any]]) -> None:
        self.prototypes = prototypes
        self.plain: dict[str, Any] = {}

    def __missing__(self, name: str) -> BaseChannel[Any, Any, Any]:
        channel = self[name] = self.prototypes[name].from_checkpoint(self.plain.pop(name, MISSING))
        return channel


@lru_cache(256)
def _set_of(keys: tuple[str, ...]) -> frozenset[str]:
    """The keys as a set, which runs of one graph share."""
    return frozenset(keys)


class View:
    """The available values of a list of channels, as one dict."""

    __slots__ = ("containers", "keys", "order", "values")

    def __init__(self, keys: tuple[str, ...], channels: Channels) -> None:
        self.order = keys
        self.keys = _set_of(keys)
        plain = channels.plain
        self.values: dict[str, Any] = {}
        self.containers: dict[str, Callable[[Any], Any]] = {}
        if tuple(plain) == keys:  # thousands of keys, as they were put in
            self.values, keys = plain.copy(), ()
        values, containers = self.values, self.containers
        for key in keys:
            if key in plain:
                values[key] = plain[key]
                continue
            channel = channels[key]
            if channel.bare:
                value = channel.value
                if value is MISSING:
                    continue
            elif channel.is_available():
                value = channel.get()
            else:
                continue
            values[key] = value
            if type(value) in COPIERS:
                containers[key] = COPIERS[type(value)]

    def refresh(self, key: str, channel: BaseChannel[Any, Any, Any], available: bool) -> None:
        """Take in what the channel holds now."""
        if available:
            self.values[key] = value = channel.get()
            if type(value) in COPIERS:
                self.containers[key] = COPIERS[type(value)]
            elif self.containers:
                self.containers.pop(key, None)
        else:
            self.values.pop(key, None)
            self.containers.pop(key, None)

    def keep(self, key: str, value: Any) -> None:
        """Take in a value that nobody can change."""
        self.values[key] = value
        if self.containers:
            self.containers.pop(key, None)

    def hand_out(self) -> dict[str, Any]:
        """A dict that its receiver may change."""
        values = self.values.copy()
        if self.containers:
            for key, copier in self.containers.items():
                values[key] = copier(values[key])
        return values


class State:
    """Everything a superstep starts from."""

    __slots__ = (
        "channels",
        "checkpoint",
        "counter",
        "counters",
        "kept",
        "lineage",
        "live",
        "parents",
        "plan",
        "seen",
        "step",
        "stop",
        "updated",
        "viewed",
        "views",
    )

    def __init__(self, plan: Plan, *, stored: bool = True) -> None:
        self.plan = plan
        self.channels = Channels(plan.channels if stored else plan.unstored)
        self.counters: dict[str, int] = {}
        self.counter = 0
        self.seen: dict[str, dict[str, int]] = {}
        self.updated: list[str] | None = None
        self.step = -1
        self.stop = 0
        self.checkpoint = ""
        self.lineage: Lineage | bytes = ROOT_LINEAGE
        self.live: set[str] = set()  # available channels that an empty update may change
        self.views: dict[int, View | None] = {}  # id of a tuple of keys -> its view, None after the first reading
        self.kept: list[tuple[str, ...]] = []  # those tuples, so that their ids stay theirs
        self.viewed: dict[str, tuple[View, ...]] = UNSEEN  # channel -> the views that show it

    def restore(self, values: Mapping[str, Any], counters: Mapping[str, int]) -> None:
        """Fill the channels from stored values."""
        prototypes = self.plan.channels
        lasting, plain = self.plan.lasting, self.channels.plain
        for name, value in values.items():
            if name in lasting and type(value) in ATOMS:
                plain[name] = value
            elif name in prototypes:
                if type(value) is Unfolded and not isinstance(prototypes[name], DeltaChannel):
                    raise value.changed(name, "is no DeltaChannel now")
                self.channels[name] = channel = prototypes[name].from_checkpoint(value)
                if channel.expires and channel.is_available():
                    self.live.add(name)
        self.counters.update(counters)
        self.counter = max(self.counters.values(), default=0)

    def view(self, keys: tuple[str, ...]) -> View:
        """The kept dict for these keys, found by the tuple itself: hashing it would cost as much as it is long."""
        view = self.views.get(id(keys))
        if view is None:
            for known in tuple(self.views.values()):
                if known is not None and known.order == keys:
                    view = known
                    break
            else:
                view = View(keys, self.channels)
                self._index(view)
            self.views[id(keys)] = view
            self.kept.append(keys)
        return view

    def _index(self, view: View) -> None:
        """Note which channels a view shows."""
        viewed, alone = self.viewed, (view,)
        if not viewed:
            self.viewed = dict.fromkeys(view.keys, alone)
            return
        for key in view.keys:
            others = viewed.get(key)
            viewed[key] = alone if others is None else (*others, view)

    def read(self, keys: tuple[str, ...]) -> dict[str, Any]:
        """The available values of these channels, for the receiver to keep; few keys get a view if they come again."""
        place = id(keys)
        view = self.views.get(place)
        if view is None:
            if len(keys) <= FEW and place not in self.views:
                self.views[place] = None
                self.kept.append(keys)
                return self._read(keys)
            view = self.view(keys)
        return view.hand_out()

    def _read(self, keys: tuple[str, ...]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        plain = self.channels.plain
        for key in keys:
            if key in plain:
                values[key] = plain[key]
                continue
            channel = self.channels[key]
            if channel.bare or channel.is_available():
                value = channel.value if channel.bare else channel.get()
                if value is MISSING:
                    continue
                copier = COPIERS.get(type(value))
                values[key] = value if copier is None else copier(value)
        return values

    def fresh(self, keys: tuple[str, ...], writes: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        """The same with these writes applied on top, without changing any channel."""
        view = self.views.get(id(keys)) or self.view(keys)
        values = view.hand_out()
        touched: dict[str, list[Any]] = {}
        plain = self.channels.plain
        for name, value in writes:
            if name in view.keys:
                touched.setdefault(name, []).append(value)
        for name, news in touched.items():
            if name in plain and len(news) == 1 and type(news[0]) in ATOMS:
                values[name] = news[0]
                continue
            value = self.channels[name].after(news)
            if value is MISSING:
                values.pop(name, None)
            else:
                values[name] = hand_out(value)
        return values
