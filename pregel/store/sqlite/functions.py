"""What a connection to SQLite is taught for stores: filters, and how near two vectors are.

Vectors are compared by the extension `sqlite-vec` where it is installed and this Python can load extensions; elsewhere
by Python itself, with the same results.
"""

from __future__ import annotations

import math
import re
import sqlite3
from array import array
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, get_args

import orjson

from pregel.store.filters import ORDERS, Filter
from pregel.store.vectors import Distance, numpy, score

BY_EXTENSION = {
    "cosine": "coalesce(1.0 - vec_distance_cosine(v.vector, ?6), 0.0)",
    "l2": "-vec_distance_l2(v.vector, ?6)",
    "inner_product": "pregel_inner_product(v.vector, ?6)",  # the extension has none
}
BY_PYTHON = {distance: f"pregel_{distance}(v.vector, ?6)" for distance in get_args(Distance)}


_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")  # a JSON path takes it as it stands


def teach(connection: sqlite3.Connection) -> None:
    """Make the functions of filters and scores known to a connection."""
    for name, parameters, function in functions():
        connection.create_function(name, parameters, function, deterministic=True)


def functions() -> list[tuple[str, int, Callable[..., Any]]]:
    """(name, number of parameters, function)."""
    scores = [(f"pregel_{distance}", 2, _scoring(distance)) for distance in get_args(Distance)]
    return [("pregel_matches", 2, matches), *scores]


def extension() -> str | None:
    """Where the extension is; None when it is not installed."""
    try:
        import sqlite_vec
    except ModuleNotFoundError:
        return None
    path: str = sqlite_vec.loadable_path()
    return path


def load_extension(connection: sqlite3.Connection) -> bool:
    """Whether the extension works on this connection now."""
    path = extension()
    if path is None or not hasattr(connection, "enable_load_extension"):
        return False
    try:
        connection.enable_load_extension(True)
        try:
            connection.load_extension(path)
        finally:
            connection.enable_load_extension(False)
    except sqlite3.Error:
        return False
    return True


def matches(text: str, given: bytes) -> bool:
    """Whether a document's view matches a filter."""
    return _filter(given).matches(orjson.loads(text))


@lru_cache(256)
def _filter(given: bytes) -> Filter:
    return Filter.of(given)


def _scoring(distance: Distance) -> Callable[[bytes, bytes], float]:
    known = lru_cache(8)(partial(comparing, distance))  # a search compares all vectors with that of one query
    return lambda one, query: known(query)(one)


def comparing(distance: Distance, query: bytes, *, fast: bool = True) -> Callable[[bytes], float]:
    """What scores vectors by that of a query: `fast`, by numpy, where it is installed."""
    np = numpy() if fast else None
    if np is None:
        plain = array("f", query)
        return lambda one: score(distance, array("f", one), plain)
    asked = np.frombuffer(query, np.float32)
    length = math.sqrt(float(asked.dot(asked)))

    def scored(one: bytes) -> float:
        vector = np.frombuffer(one, np.float32)
        if distance == "l2":
            apart = vector - asked
            return -math.sqrt(float(apart.dot(apart)))
        inner = float(vector.dot(asked))
        if distance == "inner_product":
            return inner
        lengths = math.sqrt(float(vector.dot(vector))) * length
        return inner / lengths if lengths else 0.0

    return scored


def hint(wanted: Filter) -> str:
    """A text that occurs in the JSON of every document that matches: the longest that a condition tells."""
    return max((_hint(*condition) for condition in wanted.conditions), key=len, default="")


def bounds(wanted: Filter) -> tuple[str | None, float, float]:
    """A JSON path, and numbers between which lies what it leads to in every document that matches; None: nothing."""
    for path, op, value in wanted.conditions:
        if op not in ORDERS or isinstance(value, str | bool) or not isinstance(value, int | float):
            continue
        if all(_NAME.fullmatch(key) for key in path):
            above = op in ("$gt", "$gte")
            return "$." + ".".join(path), value if above else -math.inf, math.inf if above else value
    return None, 0.0, 0.0


def _hint(path: tuple[str, ...], op: str, value: Any) -> str:
    if op == "$ne" or (op in ("$eq", "like") and value is None):
        return ""  # a missing field will do
    name = orjson.dumps(path[-1]).decode() + ":"
    whole = op in ("$eq", "like") and isinstance(value, str | bool)
    return name + orjson.dumps(value).decode() if whole else name
