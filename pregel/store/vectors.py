"""How near two vectors are, and what a store's index is made of.

A score is the cosine of the angle (the default), minus the distance (``l2``), or the inner product: higher is nearer,
and the same in every store. A vector without length is as far from all others as a right angle.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any, Literal, get_args

from pregel.errors import InvalidInputError
from pregel.flow import Flow
from pregel.store.base.embed import Embeddings, IndexConfig, Vector, awaited, ensure_embeddings
from pregel.store.base.ops import Op, TTLConfig
from pregel.store.words import words
from pregel.store.work import Embed, Work, work_flow

Distance = Literal["cosine", "l2", "inner_product"]


@dataclass(frozen=True, slots=True)
class Index:
    """A checked IndexConfig."""

    dims: int
    embeddings: Embeddings
    fields: tuple[str, ...]
    distance: Distance
    hybrid: float = 0.0

    @classmethod
    def of(cls, config: IndexConfig | None) -> Index | None:
        """The index of a config; InvalidInputError when something is wrong with it."""
        if config is None:
            return None
        dims = config.get("dims")
        if isinstance(dims, bool) or not isinstance(dims, int) or dims < 1:
            raise InvalidInputError(f"The index has dims={dims!r}.", fix="Give the length of a vector.")
        distance = config.get("distance_type", "cosine")
        if distance not in get_args(Distance):
            raise InvalidInputError(f"distance_type is {distance!r}.", fix=f"Use one of {get_args(Distance)}.")
        fields = config.get("fields") or config.get("text_fields") or ["$"]
        hybrid = _checked_hybrid(config.get("hybrid", 0.0), distance)
        return cls(dims, ensure_embeddings(config.get("embed")), tuple(fields), distance, hybrid)  # type: ignore[arg-type]

    def embed(self, request: Embed) -> tuple[list[Vector], list[Vector]]:
        """The vectors that are wanted."""
        texts = self.embeddings.embed_documents(request.texts) if request.texts else []
        queries = [self.embeddings.embed_query(query) for query in request.queries]
        return self._checked(texts, request.texts), self._checked(queries, request.queries)

    async def aembed(self, request: Embed) -> tuple[list[Vector], list[Vector]]:
        """`embed`, awaited."""
        texts = await awaited(self.embeddings, "embed_documents", request.texts) if request.texts else []
        queries = [await awaited(self.embeddings, "embed_query", query) for query in request.queries]
        return self._checked(texts, request.texts), self._checked(queries, request.queries)

    def _checked(self, found: Sequence[Vector], texts: list[str]) -> list[Vector]:
        if len(found) != len(texts):
            raise InvalidInputError(
                f"The embedding gave {len(found)} vectors for {len(texts)} texts.", fix="Give one vector a text."
            )
        vectors: list[Vector] = [array("f", vector) for vector in found]
        for vector in vectors:
            if len(vector) != self.dims or not all(map(math.isfinite, vector)):
                raise InvalidInputError(
                    f"The embedding gave a vector of {len(vector)} numbers, or one that is not finite; the index has "
                    f"dims={self.dims}.",
                    fix="Give the embedding's own length as dims.",
                )
        return vectors


def _checked_hybrid(hybrid: object, distance: str) -> float:
    if isinstance(hybrid, bool) or not isinstance(hybrid, int | float) or not 0.0 <= hybrid <= 1.0:
        raise InvalidInputError(
            f"hybrid is {hybrid!r}.", fix="Give a number from 0 (meaning alone) to 1 (words alone)."
        )
    if hybrid and distance != "cosine":
        raise InvalidInputError(
            f"Words cannot be weighed against {distance!r}, which has no bounds.", fix="Use distance_type='cosine'."
        )
    return float(hybrid)


def working(index: Index | None, ops: Iterable[Op], now: float, ttl: TTLConfig | None) -> Flow[Work]:
    """What a batch comes to in a store with this index, as a flow that wants texts embedded."""
    if index is None:
        return work_flow(ops, now, ttl, None)
    return work_flow(ops, now, ttl, index.fields, words if index.hybrid else None)


def embedding(index: Index | None) -> Callable[[Any], Any]:
    """What performs the requests of `work_flow`."""
    return _no_index if index is None else index.embed


def aembedding(index: Index | None) -> Callable[[Any], Any]:
    """What performs them, awaited."""
    return _no_index if index is None else index.aembed


def _no_index(_: object) -> Any:
    raise AssertionError("Nothing is embedded without an index.")


def score(distance: Distance, one: Sequence[float], other: Sequence[float]) -> float:
    """How near two vectors are."""
    if distance == "l2":
        return -math.dist(one, other)
    inner = float(sum(map(mul, one, other)))
    if distance == "inner_product":
        return inner
    lengths = math.hypot(*one) * math.hypot(*other)
    return inner / lengths if lengths else 0.0


class Rows:
    """Vectors in numbered places, all of them scored at once: by numpy where that is installed."""

    def __init__(self, dims: int, *, fast: bool = True) -> None:
        self.dims = dims
        self._np = numpy() if fast else None
        self._count = 0
        self._free: list[int] = []
        self._matrix: Any = [] if self._np is None else self._np.zeros((16, dims), dtype=self._np.float32)

    def add(self, vector: Vector) -> int:
        """Keep a vector; its place comes back."""
        if self._free:
            place = self._free.pop()
        else:
            place = self._count
            self._count += 1
            if self._np is None:
                self._matrix.append(None)
            elif place == len(self._matrix):
                self._matrix = self._np.concatenate([self._matrix, self._np.zeros_like(self._matrix)])
        self._matrix[place] = vector
        return place

    def remove(self, place: int) -> None:
        """Give a place free."""
        self._free.append(place)

    def scores(self, distance: Distance, query: Vector, places: Sequence[int]) -> Sequence[float]:
        """The scores of these places."""
        if self._np is None:
            return [score(distance, self._matrix[place], query) for place in places]
        whole = len(places) * 2 > self._count
        scores = _scores(self._np, distance, self._matrix[: self._count] if whole else self._matrix[places], query)
        return [scores[place] for place in places] if whole else scores


def numpy() -> Any:
    """The module; None where it is not installed."""
    try:
        import numpy as found
    except ModuleNotFoundError:
        return None
    return found


def _scores(np: Any, distance: Distance, matrix: Any, query: Vector) -> list[float]:
    asked = np.asarray(query, dtype=np.float32)
    if distance == "l2":
        found = -np.linalg.norm(matrix - asked, axis=1)
    else:
        found = matrix @ asked
        if distance == "cosine":
            lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix)) * np.linalg.norm(asked)
            found = np.divide(found, lengths, out=np.zeros_like(found), where=lengths > 0)
    scores: list[float] = found.tolist()
    return scores
