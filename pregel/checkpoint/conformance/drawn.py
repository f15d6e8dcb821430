"""Random calls for the laws: hypothesis draws them, and finds the shortest that break one.

A call is data: a word and small numbers. Numbers pick among what exists, so that every call means something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

Call = tuple[str, tuple[int, ...]]


def drawn(words: Mapping[str, int], walk: Callable[[list[Call]], None], *, examples: int) -> None:
    """Walk along so many series of calls, each word as often as its weight says. Nothing is done without hypothesis."""
    try:
        from hypothesis import HealthCheck, given, settings
        from hypothesis import strategies as st
    except ModuleNotFoundError:
        return
    weighted = [word for word, weight in words.items() for _ in range(weight)]
    number = st.integers(0, 30)
    call = st.tuples(st.sampled_from(weighted), st.tuples(number, number, number))

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(call, max_size=30))
    def walks(calls: list[Call]) -> None:
        walk(calls)

    walks()
