"""Feeds a serialiser bytes that nobody packed: `python -m tests.properties.fuzz_serde <inputs> <seed>`.

Runs in a process of its own, since it watches what loading does (an audit hook cannot be taken off again) and how much
memory the process has taken. It prints one JSON object: how many inputs were a value, how many an error, and what it
found. The inputs are valid values with bytes changed, cut, doubled and spliced, valid structure that misuses types,
and random bytes.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import attrs
import msgpack  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
from pydantic import BaseModel, HttpUrl, SecretStr

from pregel.checkpoint.serde.encrypted import EncryptedSerializer
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.errors import PregelError
from tests.counted import calls

ran: list[str] = []  # code of user classes that was run


class Unregistered:
    """None of whose code may run."""

    def __new__(cls, *given: Any, **named: Any) -> Unregistered:
        ran.append("__new__")
        return super().__new__(cls)

    def __setattr__(self, name: str, value: Any) -> None:
        ran.append("__setattr__")


@dataclass
class Plain:
    name: Any = None


@attrs.define
class Defined:
    name: Any = None


class Model(BaseModel):
    name: Any = None


class Colour(Enum):
    RED = 1


class Point(NamedTuple):
    x: Any = 1


class Text(str):
    pass


class Items(list[Any]):
    pass


CLASSES = (Plain, Defined, Model, Colour, Point, Text, Items)
WATCHED = (
    "import",
    "exec",
    "compile",
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "socket.connect",
    "pickle.find_class",
)

serde = JsonPlusSerializer(allow=CLASSES).with_secrets()


# -- inputs ------------------------------------------------------------------------------------------------------------


def seeds() -> list[bytes]:
    """Bytes of valid values, of every kind."""
    from tests.unit.test_serde import VALUES

    own: list[Any] = [
        Plain("a"),
        Defined((1,)),
        Model(name=[1]),
        Colour.RED,
        Point(2),
        Text("t"),
        Items([1, 2]),
        np.arange(6).reshape(2, 3),
        np.array([None, (1,)], dtype=object),
        np.float64(1.5),
        np.dtype([("a", "i4")]),
        pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
        pd.Series(pd.date_range("2026", periods=2, tz="UTC")),
        pd.Series(["a"], dtype="category"),
        pd.Timestamp("2026"),
        HttpUrl("http://a.b"),
        SecretStr("s"),
    ]
    wide = JsonPlusSerializer(allow=[type(value) for value in VALUES]).with_allowlist(CLASSES).with_secrets()
    packed = [wide.dumps(value) for value in (*VALUES, *own) if value is not None]
    return [*packed, wide.dumps([own[:7], {"k": (1, [2.5, {"x"}])}])]


NAMES = [
    "os:system",
    "builtins:eval",
    f"{__name__}:Unregistered",
    *(f"{__name__}:{cls.__name__}" for cls in CLASSES),
]
LEAVES: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    2**64 - 1,
    1.5,
    "",
    "a",
    "1e999999999",
    b"",
    b"\0" * 9,
    "<i8",
    "|O",
    "range",
    "series",
]


LONG = [  # ranges, which cost memory only to whoever goes through them
    msgpack.ExtType(27, msgpack.packb([0, 2**63 - 1, 1])),
    msgpack.ExtType(36, msgpack.packb(["range", 0, 2**62, 1, None])),
    2**40,
]


def structure(chance: random.Random, depth: int = 0) -> Any:
    """A value of msgpack that misuses codes: any code around any parts."""
    kind = chance.randrange(9 if depth < 6 else 4)
    if kind < 3:
        return chance.choice(LEAVES if chance.random() < 0.7 else LONG)
    if kind == 3:
        return chance.choice(NAMES)
    parts = [structure(chance, depth + 1) for _ in range(chance.randrange(5))]
    if kind == 4:
        return parts
    if kind == 5:
        return {str(chance.choice(["a", "name", "__class__", "__dict__", "content", "x"])): part for part in parts}
    code = chance.choice(range(128) if chance.random() < 0.1 else range(8, 57))
    if kind == 6 and code >= 40:
        parts = [chance.choice(NAMES), *parts]
    return msgpack.ExtType(code, msgpack.packb(parts if chance.random() < 0.9 else structure(chance, depth + 1)))


def mutated(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """The bytes with a few of them changed."""
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(changed) + 1)
        to = min(len(changed), at + chance.randrange(1, 9))
        match chance.randrange(6):
            case 0:
                changed[at:to] = chance.randbytes(to - at)
            case 1:
                del changed[at:to]
            case 2:
                changed[at:at] = changed[at:to] * chance.randrange(1, 40)
            case 3:
                start = chance.randrange(len(other) + 1)
                changed[at:at] = other[start : start + chance.randrange(1, 40)]
            case 4:
                changed[at:to] = bytes([chance.choice(b"\xc7\xc8\xc9\xd4\xdc\xdd\xde\xdf\x91\x81\xc0\xff\x7f\x00")])
            case _:
                changed[at : at + 1] = chance.choice(
                    [b"\xdd\xff\xff\xff\xff", b"\xc6\x7f\xff\xff\xff", b"\xdc\xff\xff"]
                )
        if len(changed) > 20_000:
            del changed[20_000:]
    return bytes(changed)


def inputs(count: int, seed: int) -> Iterator[bytes]:
    chance = random.Random(seed)
    valid = seeds()
    for number in range(count):
        match number % 8:
            case 0:
                yield chance.randbytes(chance.randrange(1, 400))
            case 1 | 2:
                yield msgpack.packb(structure(chance), unicode_errors="surrogatepass")
            case 3:
                head = chance.choice(
                    [b"\x91", b"\xdd\x00\x00\x00\x02", b"\x81\xa1a", b"\xdc\x40\x00", b"\xdd\x00\xff\xff\xff"]
                )
                yield head * chance.randrange(1, 2000) + chance.choice(valid)
            case _:
                yield mutated(chance, chance.choice(valid), chance.choice(valid))


# -- the run -----------------------------------------------------------------------------------------------------------


def watch(found: Counter[str]) -> None:
    """Note every import, run of code, process and connection while `active.loading` is set."""

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if active.loading and event in WATCHED:
            found[f"{event} {getattr(given[0], 'co_filename', given[0])}"] += 1

    sys.addaudithook(hook)


class Active(threading.local):
    loading = False


active = Active()


def fuzz(count: int, seed: int) -> dict[str, Any]:
    warnings.simplefilter("ignore")  # of regular expressions and dtypes in the bytes
    events: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    for data in seeds():  # whatever these need is imported by now
        serde.loads_typed(("msgpack", data))
    ran.clear()
    cipher = EncryptedSerializer.from_keys(b"k" * 16, serde)
    targets: list[tuple[str, Callable[[tuple[str, bytes]], Any]]] = [("msgpack", serde.loads_typed)] * 14
    targets += [("zlib", serde.loads_typed), ("msgpack+aesgcm", cipher.loads_typed)]
    watch(events)
    most = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number, data in enumerate(inputs(count, seed)):
        kind, load = targets[number // 8 % 16]

        def loaded(kind: str = kind, load: Any = load, data: bytes = data) -> None:
            active.loading = True
            try:
                load((kind, data))
                outcomes["value"] += 1
            except PregelError:
                outcomes["error"] += 1
            except BaseException as error:
                wrong.append(f"{type(error).__name__}: {error} for {kind} {data[:200].hex()}")
            finally:
                active.loading = False

        most = max(most, calls(loaded))
    taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    return {
        "outcomes": outcomes,
        "wrong": wrong[:5],
        "events": events,
        "ran": sorted(set(ran)),
        "megabytes": taken,
        "most calls": most,
    }


if __name__ == "__main__":
    print(json.dumps(fuzz(int(sys.argv[1]), int(sys.argv[2]))))
