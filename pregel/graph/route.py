"""Where control may go: the names of nodes, and the writes that wake them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pregel.constants import END, START, TASKS
from pregel.errors import InvalidRouteError, InvalidUpdateError, UnknownTargetError
from pregel.graph.names import known_names
from pregel.types import Send


def branch_channel(node: str) -> str:
    """The channel that wakes a node."""
    return f"branch:to:{node}"


def join_channel(starts: Iterable[str], end: str) -> str:
    """The channel that wakes a node when all of `starts` are done."""
    return f"join:{'+'.join(starts)}:{end}"


Wakes = dict[str, tuple[str, Any]]


def wakes_of(nodes: Collection[str]) -> Wakes:
    """The write that wakes each node; one dict for all routers of a graph."""
    return {name: (branch_channel(name), None) for name in nodes if name != START}


class Router:
    """Turns the targets that user code names into writes, refusing what does not exist.

    `source` is the node that routes; it stands in every error.
    """

    __slots__ = ("source", "wakes")

    def __init__(self, source: str, wakes: Wakes) -> None:
        self.source = source
        self.wakes = wakes

    def writes(self, targets: Iterable[Any], who: str) -> list[tuple[str, Any]]:
        """The writes for names and Sends, each name once, END left out; `who` says whose result this is."""
        writes: dict[Any, tuple[str, Any]] = {}
        for index, target in enumerate(targets):
            if isinstance(target, Send):
                writes[index] = self.send(target, who)
            elif isinstance(target, str):
                if target != END:
                    writes[target] = self.name(target, who)
            else:
                raise InvalidRouteError(
                    f"{who} gave {target!r}, which is not a valid destination.",
                    fix=f"Give node names, END or Sends. {known_names(target, self.wakes)}",
                    node=self.source,
                )
        return list(writes.values())

    def name(self, target: str, who: str) -> tuple[str, Any]:
        """The write that wakes a node."""
        write = self.wakes.get(target)
        if write is None:
            if target == START:
                raise InvalidRouteError(
                    f"{who} gave START, which is not a valid destination.",
                    fix=f"A run starts once. {known_names(target, self.wakes)}",
                    node=self.source,
                )
            raise self.unknown(target, f"{who} gave {target!r}")
        return write

    def send(self, send: Send, who: str) -> tuple[str, Any]:
        """The write that makes a Send a task of the next step."""
        if send.node == END:
            raise InvalidUpdateError(
                f"{who} gave a Send to END, which takes no packets.", fix="Give END itself.", node=self.source
            )
        if send.node not in self.wakes:
            raise self.unknown(send.node, f"{who} gave a Send to {send.node!r}")
        return TASKS, send

    def unknown(self, target: object, what: str) -> UnknownTargetError:
        """The error for a target that is no node."""
        return UnknownTargetError(
            f"{what}, but the graph has no such node.", fix=known_names(target, self.wakes), node=self.source
        )
