"""Kinds of builtin types, named tuples and enums: they come back without their own code; and classes bytes misuse."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import KEEP, Enum, Flag, IntFlag
from typing import Any, ClassVar, NamedTuple, TypedDict

import attrs
import msgpack  # type: ignore[import-untyped]
import pytest

from pregel.checkpoint.serde.base import CannotStore
from pregel.checkpoint.serde.jsonplus import InvalidModuleError, JsonPlusSerializer
from pregel.checkpoint.serde.registry import types_of
from pregel.errors import SerializationError


def round_trip(value: Any) -> Any:
    serde = JsonPlusSerializer(allow=[type(value)])
    return serde.loads_typed(serde.dumps_typed(value))


# -- kinds of builtin types --------------------------------------------------------------------------------------------


@attrs.define
class Defined:
    a: int


class Text(str):
    pass


class Words(list[str]):
    """Whose own methods would change what is stored, or fail."""

    def __init__(self, *words: str) -> None:
        raise AssertionError("not to be called")

    def __iter__(self) -> Iterator[str]:
        return iter(["wrong"])

    def append(self, word: str) -> None:
        raise AssertionError("not to be called")


class Table(dict[str, int]):
    def __getitem__(self, key: str) -> int:
        return -1

    def items(self) -> Any:
        return []


class Number(int):
    def __int__(self) -> int:
        return -1


class Real(float):
    pass


class Group(set[int]):
    pass


class Frozen(frozenset[int]):
    pass


class Pair(tuple[int, ...]):
    pass


class Raw(bytes):
    pass


class Buffer(bytearray):
    pass


class Plane(complex):
    pass


class Tally(Counter[str]):
    pass


KINDS_OF_BUILTINS: list[Any] = [
    Text("a"),
    Table(a=1),
    Number(7),
    Real(1.5),
    Group([1]),
    Frozen([1]),
    Pair((1, 2)),
    Raw(b"a"),
    Buffer(b"a"),
    Plane(1, 2),
    Tally("aab"),
]


@pytest.mark.parametrize("value", KINDS_OF_BUILTINS, ids=lambda value: type(value).__name__)
def test_a_kind_of_builtin_comes_back(value: Any) -> None:
    value.tag = (1,)

    back = round_trip(value)

    assert (value, type(value), (1,)) == (back, type(back), back.tag)


def test_the_methods_of_a_kind_of_builtin_are_not_called() -> None:
    words = list.__new__(Words)
    list.extend(words, ["a", "b"])

    assert list.__eq__(words, round_trip(words))
    assert 7 == int.__add__(round_trip(Number(7)), 0)
    assert {"a": 1} == dict.copy(round_trip(Table(a=1)))


@pytest.mark.parametrize("value", KINDS_OF_BUILTINS, ids=lambda value: type(value).__name__)
def test_one_that_is_not_registered_is_refused(value: Any) -> None:
    with pytest.raises(CannotStore, match="is not registered"):
        JsonPlusSerializer().dumps_typed(value)


def test_a_kind_of_a_collection_that_keeps_more_is_refused() -> None:
    class Ordered(OrderedDict[str, int]):
        pass

    with pytest.raises(CannotStore, match="Ordered would come back as a plain OrderedDict"):
        round_trip(Ordered(a=1))


def test_the_kinds_that_a_schema_mentions_are_found() -> None:
    class State(TypedDict):
        text: Text
        rows: list[Table]
        defined: Defined
        plain: Counter[str]

    assert {Text, Table, Defined} == types_of(State)


# -- named tuples and enums --------------------------------------------------------------------------------------------


class Point(NamedTuple):
    x: int
    y: int = 2


class TaggedPoint(Point):
    pass


class Alias(Enum):
    A = 1
    B = 1  # noqa: PIE796 (an alias)
    C = [1]


class Kept(Flag, boundary=KEEP):
    A = 1


class Mask(IntFlag):
    A = 1


@pytest.mark.parametrize(
    "value", [Alias.B, Alias.C, Kept.A, Kept(8), Mask(9), Mask(0), Point(1)], ids=lambda value: repr(value)
)
def test_an_enum_member_or_named_tuple_comes_back(value: Any) -> None:
    back = round_trip(value)

    assert (value, type(value)) == (back, type(back))


def test_attributes_of_a_named_tuple_come_back() -> None:
    point = TaggedPoint(1)
    point.tag = 5  # type: ignore[attr-defined]

    assert 5 == round_trip(point).tag


# -- bytes that misuse what is registered ------------------------------------------------------------------------------


@dataclass
class Trap:
    """Fails when any of its own code runs."""

    ran: ClassVar[list[str]] = []
    a: int = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.ran.append("__init__")

    def __setattr__(self, name: str, value: Any) -> None:
        self.ran.append("__setattr__")

    @property
    def prop(self) -> int:
        return 0

    @prop.setter
    def prop(self, value: int) -> None:
        self.ran.append("prop")


def ext(code: int, *parts: Any) -> bytes:
    packed: bytes = msgpack.packb(msgpack.ExtType(code, msgpack.packb(parts)))
    return packed


@pytest.mark.parametrize("code", [40, 41, 43, 44, 45, 46])
def test_a_registered_class_is_not_called_under_another_kind(code: int) -> None:
    serde = JsonPlusSerializer(allow=[Trap])
    Trap.ran.clear()

    with pytest.raises(SerializationError):
        serde.loads(ext(code, f"{Trap.__module__}:Trap", {"a": 1}))

    assert [] == Trap.ran


@pytest.mark.parametrize("name", ["prop", "__class__", "__dict__", "a"])
def test_attributes_in_bytes_run_no_code(name: str) -> None:
    serde = JsonPlusSerializer(allow=[Trap])
    Trap.ran.clear()

    back = serde.loads(ext(42, f"{Trap.__module__}:Trap", {"a": 1, name: {}}))

    assert (Trap, []) == (type(back), Trap.ran)


def test_a_class_that_is_of_another_kind_now_is_a_clear_error() -> None:
    class Shape(Enum):
        ROUND = 1

    stored = JsonPlusSerializer(allow=[Shape]).dumps(Shape.ROUND)

    @dataclass
    class Other:
        a: int = 0

    Other.__module__, Other.__qualname__ = Shape.__module__, Shape.__qualname__

    with pytest.raises(SerializationError, match=r"Shape was stored as an enum, and is a dataclass now"):
        JsonPlusSerializer(allow=[Other]).loads(stored)


@pytest.mark.parametrize(
    "name", ["os:system", "builtins:eval", "subprocess:Popen", "tests.unit.test_serde_kinds:Trap.__init__"]
)
@pytest.mark.parametrize("code", [40, 41, 42, 43, 44, 45, 46])
def test_a_name_in_bytes_reaches_only_registered_classes(name: str, code: int) -> None:
    with pytest.raises(InvalidModuleError, match=re.escape(f"{name}, which is not registered here")):
        JsonPlusSerializer().loads(ext(code, name, {}))
