"""The closed table of types that msgpack has no notation for, and their ext codes.

1. A code is frozen once released: golden tests read bytes of every release. Codes 0-7 stay free, they are the
   incumbent's.
2. Only the exact type is matched. A subclass would come back as its base, so it has no codec.
3. `dump` gives plain values (packed by the caller, so they may nest) or, when `raw`, the bytes themselves; `load` is
   its inverse.
4. `load` meets bytes that anybody may have written: what it calls takes neither long nor much memory on any input. A
   range is as long as it likes and costs nothing until something goes through it, so only lists and dicts are gone
   through, and nothing is compared before its type is known: `checked` is for what lies inside of the parts.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import msgpack  # type: ignore[import-untyped]

from pregel.channels import DeltaSnapshot
from pregel.question import Interrupt
from pregel.types import Command, Overwrite, PregelTask, Send, StateSnapshot, StateUpdate, TimeoutPolicy
from pregel.waits import Event, ItemWait, Wait

T = TypeVar("T")


class Refused(TypeError):
    """This very object cannot be stored; says why and what to do."""

    def __init__(self, reason: str, fix: str = "") -> None:
        super().__init__(reason)
        self.reason, self.fix = reason, fix


class TooDeep(Refused):
    """The value is nested more deeply than it could be read."""

    def __init__(self) -> None:
        super().__init__("it is nested too deeply, or contains itself", "Flatten it.")


@dataclass(slots=True, frozen=True)
class Codec:
    """How one type is stored. `names` are the attributes behind the parts of `dump`, for error paths.

    `secret` values are stored only by a serialiser that encrypts.
    """

    code: int
    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]
    raw: bool = False
    unordered: bool = False
    names: tuple[str, ...] = ()
    secret: bool = False


def checked(value: Any, kind: type[T]) -> T:
    """The value, which must be of exactly this type."""
    if type(value) is not kind:
        raise ValueError(f"a {kind.__name__} is missing")
    return value


def record(code: int, cls: Callable[..., Any], *names: str) -> Codec:
    """A codec for a class whose constructor takes these attributes in this order."""

    def dump(value: Any) -> list[Any]:
        return [getattr(value, name) for name in names]

    return Codec(code, dump, lambda parts: cls(*parts), names=names)


# -- numbers and bytes -------------------------------------------------------------------------------------------------


def dump_int(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def load_int(raw: bytes) -> int:
    return int.from_bytes(raw, "big", signed=True)


def load_fraction(parts: list[Any]) -> Fraction:
    numerator, denominator = parts
    return Fraction(checked(numerator, int), checked(denominator, int))  # "1e999999999" would fill the memory


# -- dates and times ---------------------------------------------------------------------------------------------------

DATE = ("year", "month", "day")
ZONE = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")
TIME = ("hour", "minute", "second", "microsecond", "tzinfo", "fold")


def dump_datetime(d: datetime) -> list[Any]:
    parts = [d.year, d.month, d.day, d.hour, d.minute, d.second, d.microsecond]
    return parts if d.tzinfo is None and not d.fold else [*parts, checked_zone(d.tzinfo), d.fold]


def load_datetime(parts: list[Any]) -> datetime:
    return datetime(*parts[:8], fold=parts[8] if len(parts) > 8 else 0)


def dump_time(t: time) -> list[Any]:
    parts = [t.hour, t.minute, t.second, t.microsecond]
    return parts if t.tzinfo is None and not t.fold else [*parts, checked_zone(t.tzinfo), t.fold]


def load_time(parts: list[Any]) -> time:
    return time(*parts[:5], fold=parts[5] if len(parts) > 5 else 0)


def checked_zone(zone: tzinfo | None) -> tzinfo | None:
    if zone is None or type(zone) is timezone or type(zone) is ZoneInfo:
        return zone
    if type(zone).__module__ == "pydantic_core._pydantic_core":  # what pydantic gives a time that it parsed
        return zone
    raise Refused(
        f"its time zone is a {type(zone).__module__}.{type(zone).__qualname__}",
        "Use datetime.timezone.utc or zoneinfo.ZoneInfo.",
    )


UTC_BYTES = b"\x93\x00\x00\x00"


def dump_timezone(zone: timezone) -> bytes:
    if zone is UTC:  # by far the most frequent
        return UTC_BYTES
    offset, *name = zone.__getinitargs__()  # type: ignore[attr-defined]
    parts = [offset.days, offset.seconds, offset.microseconds, *name]
    packed: bytes = msgpack.packb(parts, unicode_errors="surrogatepass")
    return packed


def load_timezone(raw: bytes) -> timezone:
    if raw == UTC_BYTES:
        return UTC
    parts = msgpack.unpackb(raw, unicode_errors="surrogatepass")
    return timezone(timedelta(*parts[:3]), *parts[3:])


def dump_zone(zone: ZoneInfo) -> bytes:
    try:
        zone.__reduce__()  # raises for one that was read from a file, under whatever key
        return zone.key.encode()
    except Exception:
        raise Refused("the time zone was read from a file", "Use zoneinfo.ZoneInfo(key).") from None


def load_zone(raw: bytes) -> ZoneInfo:
    key = raw.decode("ascii")
    if not ZONE.fullmatch(key):
        raise ValueError("no time zone has such a name")
    return ZoneInfo(key)


# -- collections -------------------------------------------------------------------------------------------------------

FACTORIES: dict[str, Callable[[], Any] | None] = {
    "": None,
    **{cls.__name__: cls for cls in (list, dict, set, tuple, frozenset, int, float, str, bytes, bool, deque, Counter)},
}


def dump_defaultdict(value: defaultdict[Any, Any]) -> list[Any]:
    for name, factory in FACTORIES.items():
        if value.default_factory is factory:
            return [name, dict(value)]
    raise Refused("its default factory is not a builtin type", "Use defaultdict(list) or the like, or a plain dict.")


def load_defaultdict(parts: list[Any]) -> defaultdict[Any, Any]:
    return defaultdict(FACTORIES[parts[0]], checked(parts[1], dict))


def load_ordered_dict(items: list[Any]) -> OrderedDict[Any, Any]:
    return OrderedDict([(key, value) for key, value in (checked(item, list) for item in items)])


# -- text --------------------------------------------------------------------------------------------------------------


def dump_pattern(pattern: re.Pattern[Any]) -> list[Any]:
    if pattern.flags & re.DEBUG:
        raise Refused("it would print itself each time it is loaded", "Compile it without re.DEBUG.")
    return [pattern.pattern, pattern.flags]


def load_pattern(parts: list[Any]) -> re.Pattern[Any]:
    text, flags = parts
    return re.compile(text, checked(flags, int) & ~re.DEBUG)


# -- ours --------------------------------------------------------------------------------------------------------------


def load_send(parts: list[Any]) -> Send:
    node, arg, *timeout = parts
    return Send(node, arg, timeout=checked(timeout[0], TimeoutPolicy) if timeout else None)


def load_timeout_policy(parts: list[Any]) -> TimeoutPolicy:
    run, idle, refresh = parts
    if not {type(run), type(idle)} <= {type(None), int, float, timedelta}:
        raise ValueError("a timeout is a number or a timedelta")
    return TimeoutPolicy(run_timeout=run, idle_timeout=idle, refresh_on=checked(refresh, str))  # type: ignore[arg-type]


# -- paths and addresses -----------------------------------------------------------------------------------------------

PATHS = (PurePosixPath, PureWindowsPath, PosixPath, WindowsPath)
ADDRESSES = (
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
    ipaddress.IPv4Interface,
    ipaddress.IPv6Interface,
)


def text_codec(code: int, kinds: tuple[Any, ...]) -> Codec:
    """One code for several classes that are rebuilt from their text."""
    return Codec(code, lambda value: [kinds.index(type(value)), str(value)], lambda parts: kinds[parts[0]](parts[1]))


# -- the table ---------------------------------------------------------------------------------------------------------

TUPLE, INT, BYTEARRAY = 8, 9, 10
NDARRAY, NUMPY_SCALAR, NUMPY_DTYPE, PANDAS = 33, 34, 35, 36  # in files of their own
URL, FIXED_ZONE, SECRET = 37, 38, 39
ENUM, FLAG, DATACLASS, NAMEDTUPLE, PYDANTIC, MESSAGE, SUBCLASS = 40, 41, 42, 43, 44, 45, 46

_path = text_codec(28, PATHS)
_address = text_codec(32, ADDRESSES)

TABLE: dict[type, Codec] = {
    tuple: Codec(TUPLE, list, tuple),
    int: Codec(INT, dump_int, load_int, raw=True),  # those that msgpack has no room for
    bytearray: Codec(BYTEARRAY, bytes, bytearray, raw=True),
    set: Codec(11, list, set, unordered=True),
    frozenset: Codec(12, list, frozenset, unordered=True),
    deque: Codec(13, lambda value: [value.maxlen, list(value)], lambda parts: deque(checked(parts[1], list), parts[0])),
    OrderedDict: Codec(14, lambda value: [list(item) for item in value.items()], load_ordered_dict),
    defaultdict: Codec(15, dump_defaultdict, load_defaultdict),
    Counter: Codec(16, dict, lambda parts: Counter(checked(parts, dict))),
    complex: record(17, complex, "real", "imag"),
    Decimal: Codec(18, lambda value: str(value).encode(), lambda raw: Decimal(raw.decode()), raw=True),
    Fraction: Codec(19, lambda value: [value.numerator, value.denominator], load_fraction),
    datetime: Codec(20, dump_datetime, load_datetime, names=(*DATE, *TIME)),
    date: record(21, date, *DATE),
    time: Codec(22, dump_time, load_time, names=TIME),
    timedelta: record(23, timedelta, "days", "seconds", "microseconds"),
    timezone: Codec(24, dump_timezone, load_timezone, raw=True),
    ZoneInfo: Codec(25, dump_zone, load_zone, raw=True),
    UUID: Codec(26, lambda value: value.bytes, lambda raw: UUID(bytes=raw), raw=True),
    range: record(27, range, "start", "stop", "step"),
    **dict.fromkeys(PATHS, _path),
    slice: record(29, slice, "start", "stop", "step"),
    re.Pattern: Codec(30, dump_pattern, load_pattern, names=("pattern", "flags")),
    type(Ellipsis): Codec(31, lambda value: b"", lambda raw: ..., raw=True),
    **dict.fromkeys(ADDRESSES, _address),
    Send: Codec(
        48,
        lambda send: [send.node, send.arg] if send.timeout is None else [send.node, send.arg, send.timeout],
        load_send,
        names=("node", "arg", "timeout"),
    ),
    Command: Codec(
        49,
        lambda command: [command.graph, command.update, command.resume, command.goto],
        lambda parts: Command(graph=parts[0], update=parts[1], resume=parts[2], goto=parts[3]),
        names=("graph", "update", "resume", "goto"),
    ),
    Interrupt: Codec(
        50,
        lambda asked: [asked.value, asked.id, asked.response_schema],
        lambda parts: Interrupt(parts[0], parts[1], response_schema=parts[2]),
        names=("value", "id", "response_schema"),
    ),
    Overwrite: record(51, Overwrite, "value"),
    StateSnapshot: record(52, StateSnapshot, *StateSnapshot._fields),
    PregelTask: record(53, PregelTask, *PregelTask._fields),
    StateUpdate: record(54, StateUpdate, *StateUpdate._fields),
    TimeoutPolicy: Codec(
        55,
        lambda policy: [policy.run_timeout, policy.idle_timeout, policy.refresh_on],
        load_timeout_policy,
        names=("run_timeout", "idle_timeout", "refresh_on"),
    ),
    DeltaSnapshot: record(56, DeltaSnapshot, "value"),
    Wait: record(57, Wait, "name", "key", "due"),
    Event: record(58, Event, "id", "name", "value", "key", "sent_at"),
    ItemWait: record(59, ItemWait, "name", "key", "due", "work", "version", "at", "type", "blob"),
}

BY_CODE: dict[int, Codec] = {codec.code: codec for codec in TABLE.values()}
