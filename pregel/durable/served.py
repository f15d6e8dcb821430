"""The graphs that a worker serves: which of them takes a thread, by its name and version, and how one is replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

from pregel.checkpoint.labels import named
from pregel.engine.pregel import Pregel
from pregel.engine.starts import check_named
from pregel.engine.versions import is_older, rank
from pregel.errors import InvalidInputError
from pregel.runtime import RunControl

Match = Literal["strict", "current_or_older"]
OnMismatch = Literal["reject", "fail"]


class ServedControl(RunControl):
    """Asks the runs of one graph of a worker to stop; a node that asks stops the worker."""

    __slots__ = ("_stop",)

    hands_back = True

    def __init__(self, stop: Callable[[str], None]) -> None:
        super().__init__()
        self._stop = stop

    def request_drain(self, reason: str = "shutdown") -> None:
        """Stop the whole worker after the steps that run now."""
        self._stop(reason)

    def end(self, reason: str) -> None:
        """Have the runs of this graph end their steps and hand their threads back."""
        self.drain_reason = self.drain_reason or reason


class Served:
    """Graphs over one saver, each of a name and version of its own."""

    def __init__(
        self, graphs: Sequence[Pregel], match: Match, on_mismatch: OnMismatch, stop: Callable[[str], None]
    ) -> None:
        if not graphs:
            raise InvalidInputError("A worker serves at least one graph.", fix="Give it a compiled graph.")
        if match not in ("strict", "current_or_older"):
            raise InvalidInputError(f"match is {match!r}.", fix="Use 'strict' or 'current_or_older'.")
        if on_mismatch not in ("reject", "fail"):
            raise InvalidInputError(f"on_mismatch is {on_mismatch!r}.", fix="Use 'reject' or 'fail'.")
        for graph in graphs:
            check_named(graph)
        self._graphs = {graph.label: graph for graph in graphs}
        if len(self._graphs) < len(graphs):
            raise InvalidInputError(
                "Two graphs of a worker have one name and version.", fix="Compile each with name=..., or version=..."
            )
        self.saver = graphs[0].saver
        if any(graph.saver is not self.saver for graph in graphs):
            raise InvalidInputError("The graphs of a worker share one saver.", fix="Make a worker for each store.")
        self._takes_older, self._fails, self._stop = match == "current_or_older", on_mismatch == "fail", stop
        self._controls = {label: ServedControl(stop) for label in self._graphs}
        self._ending = ""

    def __iter__(self) -> Iterator[Pregel]:
        return iter(list(self._graphs.values()))

    def __contains__(self, label: str) -> bool:
        """Whether something is to be done here with a thread of this label."""
        return self.of(label) is not None or (self._fails and self.refusing(label) is not None)

    def of(self, label: str) -> Pregel | None:
        """The graph that takes a thread: that of its name and version, or the newest of its name that takes older."""
        found = self._graphs.get(label)
        if found is not None or not self._takes_older:
            return found
        _, version = named(label)
        newer = [graph for graph in self._named(label) if is_older(version, graph.version)]
        return max(newer, key=lambda graph: rank(graph.version), default=None)

    def refusing(self, label: str) -> Pregel | None:
        """A graph of the name of a thread that none takes."""
        return next(self._named(label), None)

    def control(self, graph: Pregel) -> ServedControl:
        """Asks the runs of a graph to stop."""
        return self._controls[graph.label]

    def replace(self, graph: Pregel) -> None:
        """Take up threads with this graph from now on, and have the runs of the one of its name and version end."""
        if graph.label not in self._graphs:
            raise InvalidInputError(
                f"This worker serves no graph {graph.label!r}.",
                fix=f"It serves {', '.join(map(repr, self._graphs))}; another version needs a worker of its own.",
            )
        if graph.saver is not self.saver:
            raise InvalidInputError("The graphs of a worker share one saver.", fix="Compile it with the same one.")
        old, control = self._controls[graph.label], ServedControl(self._stop)
        self._graphs[graph.label], self._controls[graph.label] = graph, control
        if self._ending:
            control.end(self._ending)
        old.end("its graph was replaced")

    def end(self, reason: str) -> None:
        """Have all runs end their steps and hand their threads back."""
        self._ending = self._ending or reason
        for control in list(self._controls.values()):
            control.end(reason)

    def _named(self, label: str) -> Iterator[Pregel]:
        name, _ = named(label)
        return (graph for graph in self if graph.get_name() == name)


def listed(graphs: Pregel | Iterable[Pregel]) -> list[Any]:
    """One graph, or several."""
    return [graphs] if isinstance(graphs, Pregel) else list(graphs)
