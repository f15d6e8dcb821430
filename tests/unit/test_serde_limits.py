"""How deep and how large values may be: what is written can be read, and what cannot is refused quickly."""

from __future__ import annotations

import itertools
import random
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest
from pydantic import BaseModel

from pregel.checkpoint.serde.base import CannotStore
from pregel.checkpoint.serde.compression import inflated
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.checkpoint.serde.packing import DEEPEST, FLATTEST
from pregel.errors import PregelError, SerializationError
from tests.counted import calls

serde = JsonPlusSerializer()


def nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    value: Any = None
    for _ in range(depth):
        value = wrap(value)
    return value


WRAPS: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda value: (value,),
    "list": lambda value: [value],
    "dict": lambda value: {"a": value},
    "list of tuples": lambda value: [(value,)],
    "tuple of lists": lambda value: ([[value]],),
}


# -- depth -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("depth", "wrap"), [(DEEPEST, "tuple"), (1000, "list"), (1000, "dict"), (DEEPEST, "tuple of lists")]
)
def test_a_deep_value_comes_back(depth: int, wrap: str) -> None:
    value = nested(depth, WRAPS[wrap])

    packed = serde.dumps(value)

    assert packed == serde.dumps(serde.loads(packed))  # comparing the values themselves would need the stack


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_deeper_one_is_refused(wrap: str) -> None:
    value = nested(20_000, WRAPS[wrap])

    with pytest.raises(CannotStore, match="nested too deeply"):
        serde.dumps_typed(value)


def calls_until_refused(value: Any) -> int:
    """How many functions are called until a value is refused."""

    def refused() -> None:
        with suppress(CannotStore):
            serde.dumps_typed(value)

    return calls(refused)


@pytest.mark.parametrize("wrap", WRAPS)
def test_it_is_refused_before_half_of_it_was_looked_at(wrap: str) -> None:
    assert 20_000 > calls_until_refused(nested(40_000, WRAPS[wrap]))


def test_deep_lists_inside_deep_objects_are_refused() -> None:
    """msgpack packs lists on the C stack: hundreds of them at each of a hundred depths would overflow it."""
    value = nested(50, lambda value: (nested(FLATTEST + 1, lambda inner: [inner] if inner else [value]),))

    with pytest.raises(CannotStore, match="nested too deeply"):
        serde.dumps_typed(value)


@pytest.mark.parametrize("parts", [[1], {"a": 1}], ids=["list", "dict"])
def test_a_circle_is_refused_where_it_closes(parts: Any) -> None:
    if isinstance(parts, list):
        parts.append((0, parts))
    else:
        parts["b"] = (0, parts)

    with pytest.raises(CannotStore, match=r"\[1\]: it contains itself"):
        serde.dumps_typed(parts)


def test_one_object_in_two_places_is_no_circle() -> None:
    shared = [1]

    assert ([1], [1], {"a": [1]}) == serde.loads(serde.dumps((shared, shared, {"a": shared})))


def test_a_fault_far_inside_is_found_with_a_short_path() -> None:
    value = nested(100, lambda value: {"k": value if value else object()})

    with pytest.raises(CannotStore) as refused:
        serde.dumps_typed(value)

    assert "cannot store value" + "['k']" * 4 + "..." + "['k']" * 4 in str(refused.value)


@pytest.mark.parametrize("depth", [DEEPEST + 1, 1_000, 200_000])
def test_bytes_that_nest_too_deeply_are_an_error_and_no_crash(depth: int) -> None:
    data = b"\xc0"
    for _ in range(min(depth, 2_000)):
        data = msgpack.packb(msgpack.ExtType(8, b"\x91" + data))

    with pytest.raises(SerializationError, match="nested too deeply"):
        serde.loads(data)


@pytest.mark.parametrize("head", [b"\x91", b"\x81\xa1a", b"\xdd\x00\x00\x00\x01"])
def test_lists_that_nest_too_deeply_are_an_error(head: bytes) -> None:
    with pytest.raises(SerializationError, match="cannot be read"):
        serde.loads(head * 200_000 + b"\xc0")


# -- size --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x08",
        b"\xdc\xff\xff" * 2_000,
        b"\xdd\x00\x0f\xff\xff" * 200_000,
        msgpack.packb(msgpack.ExtType(19, msgpack.packb(["1e999999999"]))),
        msgpack.packb(msgpack.ExtType(19, msgpack.packb(["1e999999999", 1]))),
    ],
    ids=range(9),
)
def test_bytes_that_say_they_are_large_are_an_error(data: bytes) -> None:
    with pytest.raises(SerializationError):
        serde.loads(data)


def ext(code: int, parts: Any) -> msgpack.ExtType:
    return msgpack.ExtType(code, msgpack.packb(parts))


LONG_RANGE = ext(27, [0, 2**63 - 1, 1])
LONG_INDEX = ext(36, ["range", 0, 2**62, 1, None])
ODD: list[Any] = [LONG_RANGE, LONG_INDEX, [LONG_RANGE], {"a": LONG_INDEX}, 2**40, "a", None]
LIBRARY_PARTS: dict[int, list[Any]] = {
    33: ["<i8", "O"],
    34: ["<i8", "str", "bytes"],
    36: ["frame", "series", "range", "multi", "index", "timestamp", "timedelta", "period", "interval"],
    39: ["SecretStr"],
}


class Registered(BaseModel):
    a: Any = None


@pytest.mark.parametrize("code", [code for code in range(8, 57) if code != 47])
def test_a_range_in_bytes_is_never_gone_through(code: int) -> None:
    """It has no end to speak of: what goes through it, or compares it with something, fills the memory."""
    own = JsonPlusSerializer(allow=[Registered])
    heads = [*ODD, *LIBRARY_PARTS.get(code, []), f"{__name__}:Registered"]
    tails = [*ODD, *(["numpy", odd] for odd in ODD)] if code == 36 else ODD

    for count in range(5 if code in (33, 36, 44) else 3):  # parts behind the first
        for parts in itertools.product(heads, *[tails if count < 3 else tails[:4]] * count):
            with suppress(PregelError):
                own.loads(msgpack.packb(ext(code, list(parts))))
    for parts in ODD:
        with suppress(PregelError):
            own.loads(msgpack.packb(ext(code, parts)))


def bomb(depth: int, claimed: int, elements: int) -> bytes:
    """Arrays in arrays, each of which says how long it is, in tuples in tuples."""
    data = b"\xc0" * elements
    for _ in range(depth):
        data = msgpack.packb(msgpack.ExtType(8, (b"\xdd" + claimed.to_bytes(4, "big")) * 900 + data))
    return data


@pytest.mark.parametrize(
    ("depth", "claimed", "elements"),
    [(1, 2_000, 0), (1, 16_000, 16_000), (1, 1_000_000, 1_000_000), (100, 16_000, 20_000)],
)
def test_memory_is_bounded_by_the_size_of_the_bytes(depth: int, claimed: int, elements: int) -> None:
    data = bomb(depth, claimed, elements)
    tracemalloc.start()
    try:
        with pytest.raises(SerializationError):
            serde.loads(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 20_000_000 + 10 * len(data)


@pytest.mark.parametrize(
    "value", [list(range(0xDC, 0xDE)) * 40, [[0xDC, 0xDD]] * 70_000, (0xDD,) * 5_000, [b"\xdc" * 9_000]]
)
def test_long_arrays_come_back(value: Any) -> None:
    assert value == serde.loads(serde.dumps(value))


# -- compression -------------------------------------------------------------------------------------------------------

small = JsonPlusSerializer(compress_above=100)


@pytest.mark.parametrize("value", ["a" * 1000, b"a" * 1000, bytearray(1000), ["text"] * 1000, ("a" * 1000,)])
def test_a_large_value_is_stored_compressed(value: Any) -> None:
    kind, data = small.dumps_typed(value)

    back = serde.loads_typed((kind, data))

    assert ("zlib", value, type(value)) == (kind, back, type(back))
    assert len(data) < 100


@pytest.mark.parametrize("value", ["a" * 50, b"a" * 100, None, 1, [1]])
def test_a_small_one_is_not(value: Any) -> None:
    assert serde.dumps_typed(value) == small.dumps_typed(value)


def test_one_that_does_not_shrink_is_not() -> None:
    value = random.Random(1).randbytes(1000)

    assert "msgpack" == JsonPlusSerializer(compress_above=10).dumps_typed(value)[0]


def test_a_value_above_the_limit_is_stored_as_it_is() -> None:
    own = JsonPlusSerializer(compress_above=100, largest=1000)

    assert "msgpack" == own.dumps_typed("a" * 1001)[0]


def test_bytes_that_inflate_beyond_the_limit_are_an_error() -> None:
    bomb = zlib.compress(b"\0" * (2 << 20), 9)

    with pytest.raises(SerializationError, match="larger than 1048576 bytes"):
        JsonPlusSerializer(largest=1 << 20).loads_typed(("zlib", bomb))


@pytest.mark.parametrize("size", [0, 10, 19])
def test_the_limit_is_exact(size: int) -> None:
    assert b"\0" * size == inflated(zlib.compress(b"\0" * size), size)
    with pytest.raises(SerializationError):
        inflated(zlib.compress(b"\0" * (size + 1)), size)


@pytest.mark.parametrize(
    "data",
    [b"", b"no zlib", zlib.compress(b"\x01")[:-1], zlib.compress(b"\x01") + b"x", zlib.compress(b"\xc1")],
    ids=["nothing", "other", "cut off", "followed", "no value"],
)
def test_damaged_compressed_bytes_are_a_named_error(data: bytes) -> None:
    with pytest.raises(SerializationError, match="stored value cannot be"):
        serde.loads_typed(("zlib", data))
