"""The shape in which a stream gives its chunks.

Version 1: bare, tagged with the mode, led by the namespace. Version 2: a dict with type, namespace and data. A chunk
inside the engine is (namespace text, mode, payload); one encoder a call, chosen here, makes what the consumer gets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pregel.engine.effects import Chunk
from pregel.errors import InvalidInputError

Shape = Callable[[Chunk], Any]
VERSIONS = ("v1", "v2")


class Typed(Protocol):
    """A graph that makes instances of its schemas from dicts."""

    output_channels: str | Sequence[str]

    def typed_output(self, values: Any) -> Any: ...

    def typed_state(self, values: Any) -> Any: ...


def chunk_shape(graph: Typed, *, version: str, tagged: bool, subgraphs: bool) -> Shape:
    """The function that turns a chunk into what the consumer gets."""
    return part_shape(graph) if version == "v2" else _SHAPES[tagged, subgraphs]


def checked_version(version: str) -> str:
    """The version; a named error for one that does not exist."""
    if version not in VERSIONS:
        raise InvalidInputError(f"Unknown version {version!r}.", fix='Use "v1" or "v2".')
    return version


def ns_tuple(ns: str) -> tuple[str, ...]:
    """A namespace as the tuple of the tasks that lead to it."""
    return tuple(ns.split("|")) if ns else ()


def print_chunk(chunk: Chunk) -> None:
    """Print a chunk to standard output: its mode in bold, the subgraph it comes from, its payload."""
    ns, mode, payload = chunk
    where = f" \x1b[33m[graph={ns}]\x1b[0m" if ns else ""
    print(f"\x1b[1m[{mode}]\x1b[0m{where} {payload!r}")  # noqa: T201  # printing is what was asked for


_SHAPES: dict[tuple[bool, bool], Shape] = {
    (False, False): lambda chunk: chunk[2],
    (True, False): lambda chunk: (chunk[1], chunk[2]),
    (False, True): lambda chunk: (ns_tuple(chunk[0]), chunk[2]),
    (True, True): lambda chunk: (ns_tuple(chunk[0]), chunk[1], chunk[2]),
}


def part_shape(graph: Typed) -> Shape:
    """Chunks as the typed parts of `pregel.types`; the values of the graph itself are instances of its schemas."""

    def values(ns: str, data: Any) -> dict[str, Any]:
        asked: tuple[Any, ...] = ()
        if isinstance(data, dict) and "__interrupt__" in data:
            asked = data["__interrupt__"]
            data = {key: value for key, value in data.items() if key != "__interrupt__"}
            if not data and isinstance(graph.output_channels, str):  # it has no output yet
                data = None
        data = data if ns else graph.typed_output(data)
        return {"type": "values", "ns": ns_tuple(ns), "data": data, "interrupts": asked}

    def checkpoint(ns: str, data: Any) -> dict[str, Any]:
        return {"type": "checkpoints", "ns": ns_tuple(ns), "data": data if ns else _typed(graph, data)}

    def debug(ns: str, data: Any) -> dict[str, Any]:
        if not ns and data["type"] == "checkpoint":
            data = {**data, "payload": _typed(graph, data["payload"])}
        return {"type": "debug", "ns": ns_tuple(ns), "data": data}

    parts: dict[str, Callable[[str, Any], dict[str, Any]]] = {
        "values": values,
        "checkpoints": checkpoint,
        "debug": debug,
    }

    def shape(chunk: Chunk) -> dict[str, Any]:
        ns, mode, data = chunk
        make = parts.get(mode)
        return {"type": mode, "ns": ns_tuple(ns), "data": data} if make is None else make(ns, data)

    return shape


def _typed(graph: Typed, payload: dict[str, Any]) -> dict[str, Any]:
    return {**payload, "values": graph.typed_state(payload["values"])}
