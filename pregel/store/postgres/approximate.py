"""Approximate indexes of pgvector: what `ann_index_config` says, checked, and the SQL that follows from it.

1. The table holds vectors of any length, so an index is over those of one length, cast to it.
2. An index decides only which vectors are looked at first: namespaces, filters and the generation of the item are
   conditions of the same statement, pgvector goes on scanning while they turn rows away, and scores are exact.
3. Where it gives fewer items than were asked for, all vectors are compared: nothing that matches is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from pregel.errors import InvalidInputError
from pregel.store.base import IndexConfig
from pregel.store.vectors import Distance, Index

OPERATORS: dict[Distance, tuple[str, str]] = {
    "cosine": ("<=>", "cosine_ops"),
    "l2": ("<->", "l2_ops"),
    "inner_product": ("<#>", "ip_ops"),
}
EXACT_BELOW = 2_000
LONGEST = {"vector": 2_000, "halfvec": 4_000}  # dims that pgvector indexes
BOUNDS = {"m": (2, 100), "ef_construction": (4, 1_000), "nlist": (1, 32_768)}
OPTIONS = {"hnsw": {"m": "m", "ef_construction": "ef_construction"}, "ivfflat": {"nlist": "lists"}, "flat": {}}


class ANNIndexConfig(TypedDict, total=False):
    """An approximate index of vectors.

    - `kind`: ``hnsw``; ``ivfflat``, which learns from what is stored when `setup` makes it; or ``flat`` (none).
    - `vector_type`: ``vector`` (default, up to 2,000 dims), or ``halfvec``: half the size, up to 4,000 dims.
    - `exact_below`: where no more items than this lie under a prefix, all are compared (default 2,000): that is faster.
    - `m` (2 to 100) and `ef_construction` (4 to 1,000) are options of hnsw, `nlist` (1 to 32,768) that of ivfflat.
    """

    kind: Literal["hnsw", "ivfflat", "flat"]
    vector_type: Literal["vector", "halfvec"]
    exact_below: int
    m: int
    ef_construction: int
    nlist: int


class PostgresIndexConfig(IndexConfig, total=False):
    """An `IndexConfig` that may name an approximate index; without one all vectors under the prefix are compared."""

    ann_index_config: ANNIndexConfig


@dataclass(frozen=True, slots=True)
class Approximate:
    """A checked ANNIndexConfig of an index."""

    kind: Literal["hnsw", "ivfflat"]
    vector_type: Literal["vector", "halfvec"]
    dims: int
    distance: Distance
    options: tuple[tuple[str, int], ...]
    exact_below: int = EXACT_BELOW

    @classmethod
    def of(cls, config: IndexConfig | None, index: Index | None) -> Approximate | None:
        """The approximate index of a config; InvalidInputError when something is wrong with it."""
        given: Mapping[str, Any] | None = (config or {}).get("ann_index_config")  # type: ignore[assignment]
        if given is None or index is None:
            return None
        kind, vector_type = given.get("kind", "hnsw"), given.get("vector_type", "vector")
        if kind not in OPTIONS:
            raise InvalidInputError(f"The kind of ann_index_config is {kind!r}.", fix=f"Use one of {list(OPTIONS)}.")
        if vector_type not in LONGEST:
            raise InvalidInputError(f"vector_type is {vector_type!r}.", fix=f"Use one of {list(LONGEST)}.")
        options = _options(kind, given)
        if kind == "flat":
            return None
        if index.dims > LONGEST[vector_type]:
            raise InvalidInputError(
                f"pgvector indexes a {vector_type} of up to {LONGEST[vector_type]} dims, this index has {index.dims}.",
                fix="Use vector_type='halfvec' for up to 4,000, or kind='flat'.",
            )
        if index.hybrid:
            raise InvalidInputError(
                "An approximate index ranks by meaning alone, and `hybrid` asks for words too.",
                fix="Leave out `hybrid` or `ann_index_config`.",
            )
        below = given.get("exact_below", EXACT_BELOW)
        if isinstance(below, bool) or not isinstance(below, int) or below < 0:
            raise InvalidInputError(f"exact_below is {below!r}.", fix="Give a number of items from 0 on.")
        return cls(kind, vector_type, index.dims, index.distance, options, below)

    @property
    def name(self) -> str:
        """The name of the index in the database: one a kind, type, length and distance."""
        return f"pregel_store_vectors_{self.kind}_{self.vector_type}_{self.dims}_{self.distance}"

    def creation(self) -> str:
        """The statement that makes the index where it is missing. All parts of it are ours or checked numbers."""
        _, operators = OPERATORS[self.distance]
        options = ", ".join(f"{name} = {value:d}" for name, value in self.options)
        return (
            f"CREATE INDEX IF NOT EXISTS {self.name} ON pregel_store_vectors "
            f"USING {self.kind} ((vector::{self._type}) {self.vector_type}_{operators}) "
            f"{f'WITH ({options}) ' if options else ''}WHERE vector_dims(vector) = {self.dims:d}"
        )

    def order(self, place: int) -> str:
        """The expression by which the index is in order, for a query vector at this place of the arguments."""
        operator, _ = OPERATORS[self.distance]
        return f"v.vector::{self._type} {operator} ${place}::text::{self._type}"

    def settings(self, size: int) -> list[tuple[str, str]]:
        """What the transaction sets, so that a scan goes on until `size` rows are found."""
        if self.kind == "hnsw":
            return [("hnsw.iterative_scan", "relaxed_order"), ("hnsw.ef_search", str(min(max(size * 4, 100), 1_000)))]
        lists = dict(self.options).get("lists", 100)
        return [("ivfflat.iterative_scan", "relaxed_order"), ("ivfflat.probes", str(max(1, round(lists**0.5))))]

    @property
    def _type(self) -> str:
        return f"{self.vector_type}({self.dims:d})"


def _options(kind: str, given: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    names = OPTIONS[kind]
    found = {"lists": 100} if kind == "ivfflat" else {}
    for key, value in given.items():
        if key in ("kind", "vector_type", "exact_below"):
            continue
        low, high = BOUNDS.get(key, (0, 0))
        if key not in names:
            raise InvalidInputError(f"An index of kind {kind!r} has no option {key!r}.", fix=f"It has {list(names)}.")
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise InvalidInputError(f"{key} is {value!r}.", fix=f"Give a number from {low} to {high}.")
        found[names[key]] = value
    return tuple(found.items())
