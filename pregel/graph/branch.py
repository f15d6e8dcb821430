"""Conditional edges: a path function of the user reads the state after its node and says where to go."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pregel.constants import ROOT
from pregel.engine.node import Writes
from pregel.errors import InvalidRouteError, PathMapError
from pregel.graph.names import known_names
from pregel.graph.route import Router
from pregel.graph.schema import KeyMap, Mapper, channel_keys, managed_keys
from pregel.runnable import Runnable
from pregel.types import Send


class BranchSpec(NamedTuple):
    """A conditional edge: `ends` maps what `path` returns to nodes; None: it returns the nodes themselves."""

    path: Runnable
    ends: dict[Hashable, str] | None = None
    input_schema: Any = None


class BranchWriter:
    """Calls the path of one conditional edge and writes to where it leads.

    The path reads the keys of `keys` as they are after this node's own writes, and none of its siblings'. Where its
    input has no schema of its own, the node's raw output lies beneath.
    """

    asks: Literal[True] = True

    def __init__(
        self, name: str, spec: BranchSpec, router: Router, *, keys: KeyMap, mapper: Mapper | None = None
    ) -> None:
        self.name = name
        self.spec = spec
        self.path = spec.path
        self.router = router
        self.ends = spec.ends
        self.has_async = spec.path.has_async
        self.keys = tuple(channel_keys(keys))
        self.bare = self.keys == (ROOT,)
        self.who = f"Branch {name!r} of node {router.source!r}"
        self.answered: dict[str, Writes] = {}  # the writes for answers that were one text
        self.managed = managed_keys(keys)
        self.mapper = mapper

    def read(self, output: Any, running: Any) -> Any:
        """The path's input."""
        values: dict[str, Any] = running.fresh_values(self.keys)
        if self.managed:
            values.update(running.managed_values(self.managed))
        if self.bare:
            return values.get(ROOT)
        if self.mapper is not None:
            return self.mapper(values)
        if self.spec.input_schema is None and isinstance(output, dict) and not output.keys() <= values.keys():
            return {**output, **values}
        return values

    def writes(self, result: Any) -> Writes:
        """The writes for an answer: one target or a list of them."""
        if type(result) is str:
            if result not in self.answered:
                self.answered[result] = self._writes((result,))
            return self.answered[result]
        return self._writes(result if isinstance(result, list | tuple) else (result,))

    def _writes(self, results: Iterable[Any]) -> Writes:
        return self.router.writes([self._target(one, self.who) for one in results], self.who)

    def _target(self, result: Any, who: str) -> Any:
        if self.ends is None or isinstance(result, Send):
            return result
        try:
            return self.ends[result]
        except (KeyError, TypeError):  # a key that is not hashable is no key either
            pass
        if result is None:
            raise InvalidRouteError(
                f"{who} gave None, which is not a valid destination.",
                fix=f"Return a key of the path map. {known_names('', map(str, self.ends))}",
                node=self.router.source,
            )
        raise PathMapError(
            f"{who} gave {result!r}, which its path map does not have.",
            fix=known_names(result, map(str, self.ends)),
            node=self.router.source,
        )

    def __repr__(self) -> str:
        return f"BranchWriter<{self.router.source}:{self.name}>"


def path_map_of(ends: Mapping[Hashable, str] | Sequence[str] | None) -> dict[Hashable, str] | None:
    """A path map as a dict; a list maps each name to itself."""
    if ends is None:
        return None
    return dict(ends) if isinstance(ends, Mapping) else {name: name for name in ends}
