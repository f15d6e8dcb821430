"""Bytes of released versions still load. `python -m tests.unit.test_serde_golden` adds values that the file lacks."""

from __future__ import annotations

import ipaddress
import json
import re
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import attrs
import msgpack  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel, HttpUrl, SecretStr
from pydantic_core import TzInfo

from pregel.channels import DeltaSnapshot
from pregel.checkpoint.serde.adapters import LIBRARIES
from pregel.checkpoint.serde.codecs import BY_CODE
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.checkpoint.serde.objects import USER_CODES
from pregel.messages import AIMessage, HumanMessage
from pregel.types import Command, Interrupt, Overwrite, PregelTask, Send, StateSnapshot, StateUpdate, TimeoutPolicy
from pregel.waits import Event, ItemWait, Wait

FILE = Path(__file__).parents[1] / "golden" / "serde.json"


class Colour(Enum):
    RED = "red"


class Access(Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Plain:
    name: str


class Model(BaseModel):
    title: str
    n: int = 1


@attrs.define
class Defined:
    name: str


class Text(str):
    pass


CLASSES = (Colour, Access, Point, Plain, Model, Defined, Text)
for _cls in CLASSES:
    _cls.__module__ = "golden"  # however this file is imported

serde = JsonPlusSerializer(allow=CLASSES).with_secrets()

VALUES: dict[str, Any] = {
    "plain": {"a": [1, 1.5, True, None, "é", b"b"], 2: "int key"},
    "tuple": (1, (2,)),
    "big int": -(2**70),
    "bytearray": [bytearray(b"x")],
    "set": {3, 1, 2},
    "frozenset": frozenset({"a"}),
    "deque": deque([1], maxlen=2),
    "ordered dict": OrderedDict(a=1),
    "defaultdict": defaultdict(list, a=[1]),
    "counter": Counter("aab"),
    "complex": 1 + 2j,
    "decimal": Decimal("1.10"),
    "fraction": Fraction(1, 3),
    "naive datetime": datetime(2026, 1, 2, 3, 4, 5, 6),
    "datetime": datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    "date": date(2026, 1, 2),
    "time": time(1, 2, 3, 4, UTC),
    "timedelta": timedelta(1, 2, 3),
    "timezone": timezone(timedelta(hours=1), "X"),
    "zone": ZoneInfo("Europe/Berlin"),
    "uuid": UUID(int=1),
    "range": range(1, 9, 2),
    "path": PurePosixPath("a/b"),
    "slice": slice(1, 2, None),
    "regex": re.compile("a+", re.IGNORECASE),
    "ellipsis": ...,
    "address": ipaddress.ip_address("127.0.0.1"),
    "enum": Colour.RED,
    "flag": Access.READ | Access.WRITE,
    "named tuple": Point(1, 2),
    "dataclass": Plain("a"),
    "model": Model(title="t"),
    "human message": HumanMessage("hi", id="1"),
    "ai message": AIMessage("", tool_calls=[{"name": "t", "args": {"x": 1}, "id": "c"}], id="2"),
    "send": Send("n", (1,), timeout=TimeoutPolicy(run_timeout=1)),
    "command": Command(update={"a": 1}, goto="n"),
    "interrupt": Interrupt("q", "a" * 32),
    "overwrite": Overwrite([1]),
    "snapshot": StateSnapshot({"a": 1}, (), {}, None, None, None, (), ()),
    "task": PregelTask("id", "n", ("p",)),
    "update": StateUpdate({"a": 1}, "n"),
    "delta": DeltaSnapshot([1]),
    "wait": Wait("paid", "7", datetime(2026, 12, 1, tzinfo=UTC)),
    "item wait": ItemWait("pregel.item", "a1", None, "Ship", "1", 1.5, "null", b""),
    "event": Event("1", "paid", [7], None, datetime(2026, 12, 1, tzinfo=UTC)),
    "attrs": Defined("a"),
    "kind of text": Text("a"),
    "array": np.array([[1, 2], [3, 4]], dtype="<i4", order="F"),
    "array of objects": np.array([None, (1,)], dtype=object),
    "numpy scalar": np.float64(1.5),
    "dtype": np.dtype([("a", "<i4")]),
    "frame": pd.DataFrame(
        {"a": [1, 2], "b": np.array(["x", None], dtype=object)}, index=pd.Index([1, 2], name="i"), dtype=object
    ),
    "zoned series": pd.Series(pd.to_datetime(["2026-10-25"], utc=True).as_unit("ns"), name="t"),
    "categories": pd.Series(["b", "a"], dtype=pd.CategoricalDtype(pd.Index(["b", "a"], dtype=object))),
    "nullable": pd.Series([1, None], dtype="Int64"),
    "timestamp": pd.Timestamp("2026-01-02 03:04:05.123456789", tz="UTC"),
    "url": HttpUrl("http://a.b/c"),
    "secret": SecretStr("s"),
    "zone of pydantic": datetime(2026, 1, 2, tzinfo=TzInfo(19800)),
}


def stored() -> dict[str, str]:
    found: dict[str, str] = json.loads(FILE.read_text("utf-8"))
    return found


def equal(value: Any, other: Any) -> bool:
    if isinstance(value, (pd.DataFrame, pd.Series)):
        return bool(value.equals(other))
    if isinstance(value, np.ndarray):
        return bool(value.dtype == other.dtype and value.tolist() == other.tolist())
    return bool(value == other)


@pytest.mark.parametrize("name", VALUES)
def test_stored_bytes_load_as_the_value_they_were(name: str) -> None:
    back = serde.loads(bytes.fromhex(stored()[name]))

    assert type(VALUES[name]) is type(back)
    assert equal(VALUES[name], back)


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_stored_as_it_always_was(name: str) -> None:
    assert stored()[name] == serde.dumps(VALUES[name]).hex()


def test_every_ext_code_has_a_golden_value() -> None:
    used: set[int] = set()

    def look_inside(code: int, data: bytes) -> None:
        used.add(code)
        if code not in BY_CODE or not BY_CODE[code].raw:
            msgpack.unpackb(data, strict_map_key=False, ext_hook=look_inside)

    for text in stored().values():
        msgpack.unpackb(bytes.fromhex(text), strict_map_key=False, ext_hook=look_inside)

    assert {*BY_CODE, *USER_CODES, *LIBRARIES} == used


if __name__ == "__main__":
    old = stored() if FILE.exists() else {}
    FILE.parent.mkdir(exist_ok=True)
    new = {name: old.get(name) or serde.dumps(value).hex() for name, value in VALUES.items()}
    FILE.write_text(json.dumps({**old, **new}, indent=1) + "\n", "utf-8")
