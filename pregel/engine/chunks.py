"""The shape in which a stream gives its chunks: bare, tagged with the mode, led by the namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pregel.engine.effects import Chunk


def chunk_shape(*, tagged: bool, subgraphs: bool) -> Callable[[Chunk], Any]:
    """The function that turns (namespace, mode, payload) into what the consumer gets."""
    return _SHAPES[tagged, subgraphs]


def _ns(ns: str) -> tuple[str, ...]:
    return tuple(ns.split("|")) if ns else ()


_SHAPES: dict[tuple[bool, bool], Callable[[Chunk], Any]] = {
    (False, False): lambda chunk: chunk[2],
    (True, False): lambda chunk: (chunk[1], chunk[2]),
    (False, True): lambda chunk: (_ns(chunk[0]), chunk[2]),
    (True, True): lambda chunk: (_ns(chunk[0]), chunk[1], chunk[2]),
}
