"""What a node returned, as channel writes.

1. None writes nothing; a dict, an instance of an annotated class and ``Command.update`` write their keys.
2. A Command routes beside that; a list may mix Commands and updates; a bare Send is a packet and no update.
3. Everything else is an error: what a node says is never dropped without a word (`unknown_keys` relaxes it for keys).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from pregel.channels import BaseChannel, LastValue
from pregel.channels.base import copy_container
from pregel.config import current_task
from pregel.constants import ROOT, START
from pregel.engine.node import Writes
from pregel.errors import InvalidUpdateError, NodeReturnError, ParentCommand
from pregel.graph import pydantic_adapter
from pregel.graph.check import Checks
from pregel.graph.names import known_names, quoted
from pregel.graph.route import Router, Wakes
from pregel.graph.schema import Channel, default_of, instance_keys
from pregel.types import Command, Send
from pregel.warnings import warn_caller

UnknownKeys = Literal["error", "warn", "ignore"]
Pairs = Iterable[tuple[str, Any]]
NO_CHECKS: Checks = {}
NO_KEYS = frozenset[str]()


class StateWriter:
    """The writer of a node that has a state of named keys.

    `surplus`: keys that the state does not have are dropped silently, as for the output of a subgraph. `ends`: where
    its Commands are declared to go, for drawings only.
    """

    __slots__ = (
        "_warned",
        "channels",
        "checks",
        "ends",
        "managed",
        "node",
        "plain",
        "unknown_keys",
        "wakes",
    )
    asks: Literal[False] = False
    maps = False

    def __init__(
        self,
        node: str,
        channels: Mapping[str, Channel],
        wakes: Wakes,
        *,
        managed: Collection[str] = (),
        checks: Checks = NO_CHECKS,
        unknown_keys: UnknownKeys = "error",
        surplus: bool = False,
        ends: Sequence[str] | Mapping[str, str] = (),
    ) -> None:
        self.node = node
        self.channels = channels
        self.wakes = wakes
        self.managed = frozenset(managed)
        self.checks = checks
        self.unknown_keys: UnknownKeys = "ignore" if surplus else unknown_keys
        self.ends = ends
        self.plain = not self.checks  # no user code looks at what is written
        self._warned = NO_KEYS

    @property
    def router(self) -> Router:
        """What turns the targets of this node's Commands into writes; few nodes have any."""
        return Router(self.node, self.wakes)

    def admit(self, value: Any) -> None:
        """Raise what `write` would raise for this, an input; one that cannot be refused is not looked at."""
        if not (self.plain and type(value) is dict and value.keys() <= self.channels.keys()):
            self.write(value, [])

    def write(self, output: Any, out: Writes) -> None:
        """Append the writes for what the node returned."""
        if type(output) is dict and self.plain and output.keys() <= self.channels.keys():
            out.extend(output.items())
        elif isinstance(output, Command):
            self._commands([output], out)
        elif isinstance(output, Send):
            out.append(self.router.send(output, f"Node {self.node!r}"))
        elif isinstance(output, list | tuple) and any(isinstance(item, Command) for item in output):
            self._commands(output, out)
        elif output is not None:
            self.update(output, out, self.unknown_keys)

    def update(self, update: Any, out: Writes, unknown_keys: UnknownKeys) -> None:
        """Append the writes for a state update."""
        pairs = pairs_of(update, self.channels)
        if pairs is None:
            raise self._not_an_update(update)
        unknown = []
        for key, value in pairs:
            if key in self.channels:
                out.append((key, self._checked(key, value)))
            elif key not in self.managed:
                unknown.append(key)
        if unknown and unknown_keys != "ignore":
            self._unknown(unknown, unknown_keys)

    def _commands(self, items: Iterable[Any], out: Writes) -> None:
        """Updates first, then routes, each in the order they were given."""
        items = list(items)
        above = [item for item in items if isinstance(item, Command) and item.graph is not None]
        if above:
            raise ParentCommand(self._merged(above))
        targets: list[Any] = []
        for item in items:
            update = item.update if isinstance(item, Command) else item
            if isinstance(item, Command):
                targets.extend(_targets(item.goto))
                update = self._paired(update)
            if update is not None:
                self.update(update, out, self.unknown_keys)
        if targets:
            out.extend(self.router.writes(targets, f"Command.goto of node {self.node!r}"))

    def _paired(self, update: Any) -> Any:
        """A ``Command.update`` in which a list of (key, value) pairs is marked as one."""
        pairs = _key_value_pairs(update)
        return update if pairs is None else _Pairs(pairs)

    def _merged(self, commands: Sequence[Command[Any]]) -> Command[Any]:
        """One Command for the parent graph from several."""
        if len(commands) == 1:
            return commands[0]
        if len({command.graph for command in commands}) > 1:
            raise NodeReturnError(
                f"Node {self.node!r} returned Commands for several graphs.",
                fix="Return Commands for one graph from one node.",
                node=self.node,
            )
        pairs = [pair for command in commands for pair in _any_pairs(command.update)]
        targets = [target for command in commands for target in _targets(command.goto)]
        return Command(graph=commands[0].graph, update=pairs, goto=targets)

    def _checked(self, key: str, value: Any) -> Any:
        check = self.checks.get(key)
        if check is None:
            return value
        try:
            return check(value)
        except Exception as error:
            error.add_note(f"Node {self.node!r} wrote this to {key!r}; nothing of it was stored.")
            raise

    def _unknown(self, keys: Sequence[str], policy: UnknownKeys) -> None:
        who = f"update_state as node {self.node!r} gave" if _outside() else f"Node {self.node!r} returned"
        message = f"{who} {quoted(keys)}, but the state has no such key."
        fix = known_names(keys[0], self.channels)
        if policy == "error":
            raise InvalidUpdateError(
                message, fix=f'{fix} Or compile(unknown_keys="warn" or "ignore").', node=self.node, channel=str(keys[0])
            )
        self._warn_once(keys, f"{message} {fix}")

    def _warn_once(self, keys: Sequence[str], message: str) -> None:
        if not self._warned.issuperset(keys):
            self._warned = self._warned.union(keys)
            warn_caller(message)

    def _not_an_update(self, output: Any) -> NodeReturnError:
        who = f"update_state as node {self.node!r} gave" if _outside() else f"node {self.node!r} returned"
        return NodeReturnError(
            f"Expected dict, got {output!r}: {who} something that is not a state update.",
            fix="Return a dict of the keys that change, a Command, or None. Several Sends go in Command(goto=[...]).",
            node=self.node,
        )


class RootWriter(StateWriter):
    """The writer of a node whose state is one value without keys: what it returns is the write."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.plain = False

    def update(self, update: Any, out: Writes, unknown_keys: UnknownKeys) -> None:
        values = [value for _, value in update] if isinstance(update, _Pairs) else [update]
        out.extend((ROOT, self._checked(ROOT, value)) for value in values)

    def _paired(self, update: Any) -> Any:
        pairs = _key_value_pairs(update)
        return _Pairs(pairs) if pairs and all(key == ROOT for key, _ in pairs) else update


class InputWriter(StateWriter):
    """The writer of START: the input's keys become writes, checked like any update.

    `declared`: every key that some schema of the graph has. Such a key is dropped when the input schema lacks it; a
    key that nobody declared is named in a warning, once, or in an error when `strict`.
    """

    def __init__(
        self,
        channels: Mapping[str, Channel],
        wakes: Wakes,
        *,
        declared: Collection[str],
        checks: Checks = NO_CHECKS,
        strict: bool = False,
    ) -> None:
        super().__init__(START, channels, wakes, managed=declared, checks=checks)
        self.strict = strict

    def write(self, output: Any, out: Writes) -> None:
        if type(output) is dict and self.plain and output.keys() <= self.channels.keys():
            out.extend(output.items())
        elif isinstance(output, dict):
            self.update(output, out, "error" if self.strict else "warn")
        elif output is not None:
            pairs = pairs_of(output, self.channels)
            if pairs is None:
                raise InvalidUpdateError(
                    f"Expected dict, got {output!r}: the input of this graph is a dict or an instance of its schema.",
                    fix=f"Keys: {', '.join(self.channels) or 'none'}.",
                    node=START,
                )
            owned = _Pairs((key, copy_container(value)) for key, value in pairs)  # the caller keeps the instance
            self.update(owned, out, "ignore")

    def _checked(self, key: str, value: Any) -> Any:
        check = self.checks.get(key)
        return value if check is None else check(value)

    def _unknown(self, keys: Sequence[str], policy: UnknownKeys) -> None:
        message = f"The input has {quoted(keys)}, which no schema of the graph declares."
        fix = known_names(keys[0], self.channels)
        if policy == "error":
            raise InvalidUpdateError(message, fix=fix, node=START)
        self._warn_once(keys, f"{message} {fix}")


def _outside() -> bool:
    """Whether what is written comes from an update from outside."""
    return getattr(current_task.get(), "outside", False)


class _Pairs(list[tuple[str, Any]]):
    """An update that is known to be (key, value) pairs."""


def pairs_of(update: Any, channels: Mapping[str, Channel]) -> Pairs | None:
    """The keys and values of an update; None when it is none."""
    if isinstance(update, dict):
        return update.items()
    if isinstance(update, _Pairs):
        return update
    return _instance_pairs(update, channels) if any(key in channels for key in _keys_of(update)) else None


def _keys_of(instance: Any) -> list[str]:
    """The keys that an instance of an annotated class has; none of anything else."""
    cls: Any = type(instance)
    return [] if cls.__module__ == "builtins" else [key for key in instance_keys(cls) if hasattr(instance, key)]


def _instance_pairs(instance: Any, channels: Mapping[str, Channel]) -> list[tuple[str, Any]]:
    """What an instance of an annotated class writes: every key it has.

    A model leaves out the fields that nobody set and whose default is None; also those that it declares with a reducer,
    whose default the key already started from.
    """
    cls: Any = type(instance)
    pairs = [(key, getattr(instance, key)) for key in _keys_of(instance)]
    given = pydantic_adapter.fields_set(instance) if pydantic_adapter.is_model(cls) else None
    if given is None:
        return pairs
    return [(key, value) for key, value in pairs if key in given or _default_counts(cls, key, value, channels.get(key))]


def _default_counts(cls: type, key: str, value: Any, channel: Channel | None) -> bool:
    if channel is not None and not isinstance(channel, LastValue):
        metadata = pydantic_adapter.field_metadata(cls, key)
        return not any(callable(item) or isinstance(item, BaseChannel) for item in metadata)
    return value is not None or default_of(cls, key) is not None


def _key_value_pairs(update: Any) -> list[tuple[str, Any]] | None:
    """The pairs of a ``Command.update`` that is a list of them; None when it is something else."""
    if not isinstance(update, list | tuple):
        return None
    pairs = [item for item in update if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)]
    return pairs if len(pairs) == len(update) else None


def _any_pairs(update: Any) -> list[tuple[str, Any]]:
    """An update for a graph whose keys are not known here."""
    if update is None:
        return []
    if isinstance(update, dict):
        return list(update.items())
    pairs = _key_value_pairs(update) or _instance_pairs(update, {})
    return pairs if pairs or _keys_of(update) else [(ROOT, update)]


def _targets(goto: Any) -> Iterable[Any]:
    if isinstance(goto, str | Send):
        return (goto,)
    return goto or () if isinstance(goto, list | tuple | None) else (goto,)
