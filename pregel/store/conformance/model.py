"""Random calls of a store beside a dict that does the same. Nothing of the stores' own code decides what is right."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pregel.checkpoint.conformance.drawn import Call
from pregel.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp

if TYPE_CHECKING:
    from pregel.store.conformance.laws import Laws

Namespace = tuple[str, ...]

WORDS = {"put": 6, "delete": 2, "get": 2, "search": 3, "filter": 4, "list": 2, "batch": 2, "wait": 2}
LABELS = ("a", "b", "a%", "*", "ab")
VALUES: list[Any] = [None, 0, 1, 1.5, "1", "b", True, [1, 2], {"a": 1}, "a\0"]


def number(value: Any) -> bool:
    """Whether a value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


FILTERS: list[tuple[dict[str, Any], Callable[[Any], bool]]] = [
    ({"x": 1}, lambda x: number(x) and x == 1),
    ({"x": None}, lambda x: x is None),
    ({"x": True}, lambda x: x is True),
    ({"x": "1"}, lambda x: x == "1"),
    ({"x": "a\0"}, lambda x: x == "a\0"),
    ({"x": {"$ne": 1}}, lambda x: not number(x) or x != 1),
    ({"x": {"$gte": 1}}, lambda x: number(x) and x >= 1),
    ({"x": {"$lt": 1.5}}, lambda x: number(x) and x < 1.5),
    ({"x": {"$gt": "1"}}, lambda x: isinstance(x, str) and x > "1"),
    ({"x": {"a": {"$gt": 0}}}, lambda x: isinstance(x, dict)),
    ({"x": [1, 2]}, lambda x: x == [1, 2]),
]


class Walk:
    """One series of calls in namespaces of its own. A document is {"x": value, "n": number}; some live 60 seconds."""

    def __init__(self, laws: Laws, name: str) -> None:
        self.laws, self.name, self.now = laws, name, 0.0
        self.items: dict[tuple[Namespace, str], tuple[Any, float]] = {}

    def run(self, calls: Iterable[Call]) -> None:
        """Make the calls, compare what they give, and at the end everything."""
        for word, numbers in calls:
            getattr(self, f"_{word}")(*numbers)
            self.now += 0.001  # as long as `Laws.put` takes
        self._search(0, 0, 0)

    def _place(self, a: int, b: int) -> tuple[Namespace, str]:
        tail = [LABELS[(a + depth) % len(LABELS)] for depth in range(a % 3)]
        return (self.name, *tail), str(b % 4)

    def _document(self, b: int, c: int) -> dict[str, Any]:
        return {"n": b} if c % 11 == 0 else {"x": VALUES[c % len(VALUES)], "n": b}

    def _live(self, prefix: Namespace) -> dict[tuple[Namespace, str], Any]:
        found = {at: value for at, (value, expires) in self.items.items() if expires > self.now}
        return {at: value for at, value in found.items() if at[0][: len(prefix)] == prefix}

    def _touch(self, places: Iterable[tuple[Namespace, str]]) -> None:
        for at in places:
            value, expires = self.items[at]
            self.items[at] = value, expires if expires == float("inf") else self.now + 60.0

    # -- calls -------------------------------------------------------------------------------------------------------

    def _put(self, a: int, b: int, c: int) -> None:
        namespace, key = self._place(a, b)
        value, ttl = self._document(b, c), 1 if c % 3 == 0 else None
        self.laws.store.call("put", namespace, key, value, ttl=ttl)
        self.items[namespace, key] = value, float("inf") if ttl is None else self.now + 60.0
        self.laws.pass_time(0.001)

    def _delete(self, a: int, b: int, c: int) -> None:
        namespace, key = self._place(a, b)
        self.laws.store.call("delete", namespace, key)
        self.items.pop((namespace, key), None)
        self.laws.pass_time(0.001)

    def _get(self, a: int, b: int, c: int) -> None:
        at = self._place(a, b)
        live = self._live(at[0])
        assert live.get(at) == self.laws.value(*at)
        self._touch([at] if at in live else [])
        self.laws.pass_time(0.001)

    def _search(self, a: int, b: int, c: int) -> None:
        prefix, _ = self._place(a, b)
        live = self._live(prefix)
        assert live == {(item.namespace, item.key): item.value for item in self.laws.search(prefix, limit=1_000)}
        self._touch(live)
        self.laws.pass_time(0.001)

    def _filter(self, a: int, b: int, c: int) -> None:
        prefix, _ = self._place(a, b)
        given, right = FILTERS[c % len(FILTERS)]
        wanted = {at: value for at, value in self._live(prefix).items() if right(value.get("x"))}
        found = self.laws.search(prefix, filter=given, limit=1_000)
        assert wanted == {(item.namespace, item.key): item.value for item in found}
        self._touch(wanted)
        self.laws.pass_time(0.001)

    def _list(self, a: int, b: int, c: int) -> None:
        prefix, _ = self._place(a, b)
        depth = 1 + c % 3
        live = self._live((self.name,))
        wanted = {
            namespace[:depth]
            for namespace, _ in live
            if len(namespace) >= len(prefix)
            and all(want in ("*", label) for want, label in zip(prefix, namespace, strict=False))
        }
        assert sorted(wanted) == self.laws.namespaces(prefix=prefix, max_depth=depth, limit=1_000)
        self.laws.pass_time(0.001)

    def _batch(self, a: int, b: int, c: int) -> None:
        one, other = self._place(a, b), self._place(a + 1, c)
        live = self._live((self.name,))
        first, second = self._document(b, c), self._document(c, a)
        results = self.laws.batch(
            PutOp(*one, first),
            GetOp(*one, refresh_ttl=False),
            PutOp(*one, None if b % 3 == 0 else second),
            PutOp(*other, second),
            SearchOp((self.name,), limit=1_000, refresh_ttl=False),
            ListNamespacesOp(limit=0),
        )
        assert live.get(one) == (None if results[1] is None else results[1].value)
        assert live == {(item.namespace, item.key): item.value for item in results[4]}
        self.items.pop(one, None)
        if b % 3:
            self.items[one] = second, float("inf")
        self.items[other] = second, float("inf")

    def _wait(self, a: int, b: int, c: int) -> None:
        seconds = float(a)
        self.laws.pass_time(seconds + 0.001)
        self.now += seconds
