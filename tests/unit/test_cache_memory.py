"""The in-memory cache: its bounds, and entries that cannot be read."""

from __future__ import annotations

import logging

import pytest

from pregel.cache.memory import InMemoryCache
from pregel.errors import InvalidInputError, SerializationError

NS = ("ns",)


def filled(cache: InMemoryCache[int], *names: str, ttl: float | None = None) -> InMemoryCache[int]:
    for number, name in enumerate(names):
        cache.set({(NS, name): (number, ttl)})
    return cache


def names(cache: InMemoryCache[int]) -> list[str]:
    return [key for _, key in cache.get([(NS, name) for name in "abcdef"])]


def test_the_least_recently_used_entry_makes_room() -> None:
    cache = filled(InMemoryCache[int](max_entries=3), *"abc")
    cache.get([(NS, "a")])
    filled(cache, "d")

    assert ["a", "c", "d"] == names(cache)
    assert len(cache) == 3


def test_bytes_are_bounded() -> None:
    cache = InMemoryCache[str](max_bytes=1_000)
    for name in "abcd":
        cache.set({(NS, name): ("x" * 300, None)})

    assert len(cache) == 3


def test_a_value_above_the_bound_is_not_kept_and_replaces_nothing_else() -> None:
    cache = InMemoryCache[str](max_bytes=1_000)
    cache.set({(NS, "a"): ("small", None), (NS, "b"): ("old", None)})
    cache.set({(NS, "b"): ("x" * 2_000, None)})

    assert {(NS, "a"): "small"} == cache.get([(NS, "a"), (NS, "b")])


def test_lapsed_entries_make_room_first() -> None:
    now = [0.0]
    cache = InMemoryCache[int](max_entries=4, clock=lambda: now[0])
    filled(cache, "a", "b")
    filled(cache, "c", "d", ttl=1)
    now[0] = 2.0
    filled(cache, "e")

    assert ["a", "b", "e"] == names(cache)


def test_bounds_are_numbers_above_0() -> None:
    with pytest.raises(InvalidInputError, match="max_entries"):
        InMemoryCache[int](max_entries=0)


class Fussy:
    """A serialiser that reads nothing back."""

    def dumps_typed(self, obj: int) -> tuple[str, bytes]:
        return "int", b"%d" % obj

    def loads_typed(self, data: tuple[str, bytes]) -> int:
        raise SerializationError("The class is gone.")


def test_an_entry_that_cannot_be_read_is_a_miss_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    cache = filled(InMemoryCache[int](serde=Fussy()), "a")

    with caplog.at_level(logging.WARNING, logger="pregel.cache"):
        assert cache.get([(NS, "a")]) == {}
    assert "The class is gone" in caplog.text
