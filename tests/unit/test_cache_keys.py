"""Cache keys: equal inputs share one, all others do not."""

from __future__ import annotations

import collections
import datetime
import decimal
import functools
import operator
import pathlib
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pregel.cache.keys import function_identity, input_key, node_namespace
from pregel.errors import InvalidInputError

F = b"function"


class Pair(NamedTuple):
    a: int
    b: int


@dataclass
class Point:
    a: int
    b: Any


class Array:
    """Bytes with a shape and a dtype, as numpy's are."""

    def __init__(self, content: bytes, shape: tuple[int, ...], dtype: str) -> None:
        self.content, self.shape, self.dtype = content, shape, dtype

    def __bytes__(self) -> bytes:
        return self.content


class Text(str):
    __slots__ = ()


APART: list[Any] = [
    1, True, 1.0, "1", b"1", bytearray(b"1"), 0.0, -0.0, 0, False, None, ..., "", b"", float("nan"), float("inf"), -1,
    [1], (1,), {1}, frozenset({1}), {1: 1}, {"1": 1}, [], (), {}, set(), [[], []], [[[]]], ["a", "b"], ["ab"],
    [1, 2], [2, 1], (1, 2), Pair(1, 2), Pair(2, 1), Point(1, 2), Point(1, [2]), SimpleNamespace(a=1), Text("1"),
    np.zeros(2, "i4"), np.zeros(1, "i8"), np.zeros(1, "f8"), np.zeros((1, 2), "i4"), np.zeros((2, 1), "i4"),
    np.float32(1), np.int32(1), np.float64(1),
    Array(b"\0" * 8, (2,), "int32"), Array(b"\0" * 8, (1,), "int64"), Array(b"\0" * 8, (1,), "float64"),
    datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
    decimal.Decimal(1), decimal.Decimal("1.0"), uuid.UUID(int=1), pathlib.PurePosixPath("1"),
    collections.OrderedDict({1: 1}), collections.defaultdict(int, {1: 1}), collections.Counter({1: 1}),
    collections.deque([1]), int, float, len, functools.partial(int, base=2), functools.partial(int, base=3),
]  # fmt: skip


def test_every_input_gets_its_own_key() -> None:
    keys = [input_key(F, value) for value in APART]

    assert [] == [
        (a, b) for i, a in enumerate(APART) for j, b in enumerate(APART[:i]) if keys[i] == keys[j]
    ]  # fmt: skip


def test_arguments_do_not_run_into_each_other() -> None:
    calls = [((1, 2), {}), (((1, 2),), {}), ((1,), {"b": 2}), ((), {"a": 1, "b": 2}), (({"a": 1, "b": 2},), {})]

    assert len(calls) == len({input_key(F, *args, **kwargs) for args, kwargs in calls})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"x", "y", "z"}, {"z", "y", "x"}),
        (Point(1, {"a": 1, "b": 2}), Point(1, {"b": 2, "a": 1})),
        (Array(b"1", (1,), "i1"), Array(b"1", (1,), "i1")),
        (np.arange(4), np.arange(4)),
    ],
)
def test_equal_inputs_share_a_key(one: Any, other: Any) -> None:
    assert input_key(F, one) == input_key(F, other)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


def typed(value: Any) -> Any:
    """A value with the types of all its parts, so that 1 and True differ."""
    if isinstance(value, list | tuple):
        return type(value).__name__, [typed(item) for item in value]
    if isinstance(value, dict):
        return "dict", sorted((repr(key), typed(item)) for key, item in value.items())
    return type(value).__name__, repr(value)


@settings(max_examples=50)
@given(PLAIN, PLAIN)
def test_keys_are_equal_exactly_when_values_are(one: Any, other: Any) -> None:
    assert (typed(one) == typed(other)) == (input_key(F, one) == input_key(F, other))


def closure(value: Any) -> Callable[[], Any]:
    return lambda: value


def test_two_closures_of_one_definition_are_two_functions() -> None:
    assert function_identity(closure(1)) == function_identity(closure(1))
    assert function_identity(closure(1)) != function_identity(closure(2))


def test_a_closure_over_something_untellable_is_only_itself() -> None:
    one, other = closure(Lock()), closure(Lock())

    assert function_identity(one) == function_identity(one)
    assert function_identity(one) != function_identity(other)


def test_code_and_defaults_tell_functions_apart() -> None:
    functions: list[Callable[..., Any]] = [lambda a: a, lambda a: a + 1, lambda a=1: a, lambda *, a=1: a]

    assert len(functions) == len({function_identity(function) for function in functions})


def test_classes_of_one_name_are_told_apart() -> None:
    def local() -> Any:
        class Local:
            pass

        return Local()

    assert input_key(F, local()) != input_key(F, local())


def test_decorated_functions_of_two_modules_are_told_apart() -> None:
    one, other = functools.lru_cache(closure(1)), functools.lru_cache(closure(2))

    assert function_identity(one) != function_identity(other)


def generator() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize("value", [generator(), sys.stdout.buffer, operator], ids=["generator", "file", "module"])
def test_what_cannot_be_told_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInputError, match="key_func"):
        input_key(F, {"a": [value]})


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)

    with pytest.raises(InvalidInputError, match="contains itself"):
        input_key(F, value)


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]

    with pytest.raises(InvalidInputError, match="too deeply"):
        input_key(F, value)


def test_a_key_is_the_same_in_another_process() -> None:
    code = (
        "from pregel.cache.keys import *; import os; print(input_key(function_identity(os.path.join), {'a', 'b', 'c'}))"
    )
    seeds = ("1", "2")
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
        ).stdout
        for seed in seeds
    }

    assert len(printed) == 1


def test_nodes_and_graphs_have_namespaces_of_their_own() -> None:
    places = [("a", "b"), ("a", "c"), ("b", "b"), ("a,b", ""), ("", "a,b")]

    assert len(places) == len({node_namespace(*place) for place in places})
