"""The serialiser: every kind of value comes back equal and of its type, or is refused with the path to it."""

from __future__ import annotations

import ipaddress
import pickle
import re
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import msgpack  # type: ignore[import-untyped]
import pytest
from pydantic import BaseModel, PrivateAttr

from pregel.checkpoint.serde.adapters import LIBRARIES
from pregel.checkpoint.serde.base import CannotStore, SerializerCompat, maybe_add_typed_methods
from pregel.checkpoint.serde.codecs import BY_CODE, TABLE
from pregel.checkpoint.serde.event_hooks import register_serde_event_listener
from pregel.checkpoint.serde.jsonplus import InvalidModuleError, JsonPlusSerializer
from pregel.checkpoint.serde.objects import USER_CODES
from pregel.checkpoint.serde.registry import register_types, types_of
from pregel.errors import InvalidInputError, NotBuiltError, SerializationError
from pregel.messages import AIMessage, HumanMessage, ToolMessage
from pregel.types import Command, Interrupt, Overwrite, PregelTask, Send, StateSnapshot, TimeoutPolicy


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1


class Word(StrEnum):
    A = "a"


class Access(Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: int
    y: tuple[int, ...] = ()


@dataclass
class Plain:
    name: str
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Frozen:
    inner: Plain
    when: date


@dataclass
class Counted:
    """Its constructor has an effect, so it must not run again at load."""

    n: int

    def __post_init__(self) -> None:
        self.n += 1


class Model(BaseModel):
    title: str
    points: list[Point] = []
    parent: Model | None = None
    _secret: int = PrivateAttr(default=0)


class Loose(BaseModel, extra="allow"):
    a: int = 1


register_types([Colour, Level, Word, Access, Point, Plain, Frozen, Counted, Model, Loose])


class Unregistered(BaseModel):
    a: int = 1


class ListOfMine(list[int]):
    pass


class OddZone(tzinfo):
    def utcoffset(self, when: datetime | None) -> timedelta:
        return timedelta(0)

    dst = utcoffset

    def tzname(self, when: datetime | None) -> str:
        return "odd"


serde = JsonPlusSerializer()


def round_trip(value: Any) -> Any:
    return serde.loads_typed(serde.dumps_typed(value))


VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    2**64,
    -(2**63) - 1,
    2**200,
    1.5,
    -0.0,
    float("inf"),
    "text",
    "nul \0 in it",
    "lone \ud800 surrogate",
    b"bytes",
    bytearray(b"bytes"),
    (),
    (1, (2, [3])),
    [1, [2, (3,)]],
    {"a": 1, 2: "b", (1, 2): "c", None: 0, True: 1.5, b"k": "bytes key"},
    {1, 2, 3},
    frozenset({"a", ("b", 1)}),
    deque([1, 2], maxlen=3),
    OrderedDict([("b", 1), ("a", 2)]),
    Counter("hello"),
    defaultdict(list, {"a": [1]}),
    datetime(2026, 1, 2, 3, 4, 5, 6),
    datetime(2026, 1, 2, 3, 4, 5, 6, UTC),
    datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=-3, minutes=-30), "NST")),
    date(2026, 1, 2),
    time(1, 2, 3, 4, timezone(timedelta(hours=1)), fold=1),
    timedelta(days=-1, microseconds=5),
    UTC,
    ZoneInfo("America/New_York"),
    Decimal("1.10"),
    Decimal("-Infinity"),
    Fraction(1, 3),
    complex(1, -2),
    UUID("1f1ec286-f3c1-643f-bffe-4625dfea6308"),
    Path("/tmp/x"),
    PurePosixPath("a/b"),
    PureWindowsPath("C:/a"),
    range(1, 10, 3),
    slice(1, None, 2),
    ...,
    re.compile("a+", re.IGNORECASE),
    re.compile(b"a+"),
    ipaddress.ip_address("127.0.0.1"),
    ipaddress.ip_network("2001:db8::/32"),
    ipaddress.ip_interface("10.0.0.1/8"),
    Colour.RED,
    Level.LOW,
    Word.A,
    Access.READ | Access.WRITE,
    Point(1, (2,)),
    Plain("a", ["b"]),
    Frozen(Plain("x"), date(2026, 1, 1)),
    Counted(1),
    Model(title="t", points=[Point(1)], parent=Model(title="p")),
    Loose.model_validate({"a": 2, "b": [1]}),
    HumanMessage("hi", id="1", name="me", more=(1, 2)),
    AIMessage("", tool_calls=[{"name": "t", "args": {"x": 1}, "id": "c"}], id="2"),
    ToolMessage("done", tool_call_id="c", artifact={"p": Path("x")}),
    Send("node", {"a": (1,)}),
    Send("node", None, timeout=TimeoutPolicy(run_timeout=2, idle_timeout=timedelta(seconds=1))),
    Command(graph=Command.PARENT, update={"a": (1,)}, resume=None, goto=[Send("n", 1), "m"]),
    Interrupt({"q": (1,)}, "a" * 32, response_schema={"type": "string"}),
    Overwrite([1]),
    PregelTask("id", "n", ("__pregel_pull", "n"), None, (Interrupt(1, "b" * 32),)),
    StateSnapshot({"a": 1}, ("n",), {"configurable": {}}, {"step": 1}, "now", None, (), ()),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_comes_back_equal_and_of_its_type(value: Any) -> None:
    back = round_trip(value)

    assert (value, type(value)) == (back, type(back))


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_it_does_so_inside_a_container(value: Any) -> None:
    assert {"deep": [(value,)]} == round_trip({"deep": [(value,)]})


def test_types_survive_deep_inside() -> None:
    back = round_trip({"a": [bytearray(b"x"), (b"y", {"z": bytearray(b"w")})]})

    assert (bytearray, tuple) == (type(back["a"][0]), type(back["a"][1]))
    assert bytearray is type(back["a"][1][1]["z"])


def test_text_with_bytes_that_look_like_marks_is_untouched() -> None:
    value = {"polish": "Ąćęłńóśźż" * 3, "data": b"\xc4\xc5\xc6"}

    assert value == round_trip(value)


def test_private_parts_of_a_model_survive() -> None:
    model = Model(title="t")
    model._secret = 7

    back = round_trip(model)

    assert (7, {"title"}) == (back._secret, back.model_fields_set)


def test_a_default_factory_survives() -> None:
    assert list is round_trip(defaultdict(list)).default_factory


def test_a_tuple_as_key_of_a_default_dict_inside_a_set_member_is_found() -> None:
    assert {(1, frozenset({2}))} == round_trip({(1, frozenset({2}))})


def test_sets_are_stored_in_one_order() -> None:
    assert serde.dumps(set("abcdefgh")) == serde.dumps(set("hgfedcba"))


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "cannot store value: objects of type object cannot be stored"),
        ({"a": [1, 2, 3, object()]}, "cannot store value['a'][3]: objects of type object"),
        ([(1, {"k": {1, ListOfMine}})], "cannot store value[0][1]['k']{...}: objects of type type"),
        ({"a": ListOfMine()}, "cannot store value['a']: the class tests.unit.test_serde:ListOfMine is not registered"),
        (Plain("a", [ListOfMine()]), "cannot store value.tags[0]: "),  # type: ignore[list-item]
        (Send("n", {"x": object()}), "cannot store value.arg['x']: "),
        (Command(update={"x": object()}), "cannot store value.update['x']: "),
        (Interrupt([object()]), "cannot store value.value[0]: "),
        (HumanMessage("x", thing=object()), "cannot store value"),
        (Model.model_construct(title=object()), "cannot store value"),
        ({object(): 1}, "cannot store value[<object"),
        ([ValueError("x")], "cannot store value[0]: an exception (ValueError) does not survive storing"),
        ([datetime(2026, 1, 1, tzinfo=OddZone())], "cannot store value[0]: its time zone is a tests"),
        ([Unregistered()], "cannot store value[0]: the class tests.unit.test_serde:Unregistered is not registered"),
        ({"v": [memoryview(b"x")]}, "cannot store value"),
        (defaultdict(lambda: 1), "cannot store value: its default factory is not a builtin type"),
        ([lambda: 1], "cannot store value[0]: objects of type function cannot be stored"),
    ],
)
def test_what_cannot_come_back_equal_is_refused_with_the_path_to_it(value: Any, message: str) -> None:
    with pytest.raises(CannotStore, match=re.escape(message)):
        serde.dumps_typed(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)

    with pytest.raises(CannotStore, match=r"value\[0\]: it contains itself"):
        serde.dumps_typed(loop)


def test_a_refusal_leaves_the_serialiser_usable() -> None:
    with pytest.raises(SerializationError):
        serde.dumps_typed([1, object()])

    assert [1, 2] == round_trip([1, 2])


# -- what may be loaded ------------------------------------------------------------------------------------------------


def test_a_class_that_is_not_registered_is_a_clear_error_at_load() -> None:
    stored = JsonPlusSerializer(allow=[Unregistered]).dumps_typed({"a": Unregistered()})

    with pytest.raises(SerializationError, match="serde:Unregistered, which is not registered"):
        serde.loads_typed(stored)


@pytest.mark.parametrize(
    "allow",
    [Unregistered, "tests.unit.test_serde:Unregistered", ("tests.unit.test_serde", "Unregistered")],
    ids=["class", "text", "pair"],
)
def test_an_allow_list_adds_classes_to_one_serialiser(allow: Any) -> None:
    own = serde.with_allowlist([allow])

    back = own.loads_typed(own.dumps_typed(Unregistered(a=2)))

    assert 2 == back.a
    assert own is own.with_allowlist([allow])


def test_nothing_is_imported_or_called_for_a_name_in_stored_bytes() -> None:
    payload = msgpack.packb(["os:system", {"command": "true"}])
    stored = msgpack.packb(msgpack.ExtType(42, payload))

    with pytest.raises(SerializationError, match="os:system, which is not registered"):
        serde.loads_typed(("msgpack", stored))


def test_listeners_hear_of_a_refused_class() -> None:
    heard: list[Any] = []
    unregister = register_serde_event_listener(heard.append)
    stored = msgpack.packb(msgpack.ExtType(42, msgpack.packb(["os:system", {}])))

    for _ in range(2):
        with pytest.raises(InvalidModuleError):
            serde.loads_typed(("msgpack", stored))
        unregister()

    assert [{"kind": "msgpack_blocked", "module": "os", "name": "system"}] == heard


def test_a_message_name_reaches_only_message_classes() -> None:
    stored = msgpack.packb(msgpack.ExtType(45, msgpack.packb(["add_messages", {}])))

    with pytest.raises(SerializationError, match="no message class 'add_messages'"):
        serde.loads_typed(("msgpack", stored))


def test_pickle_is_not_read_nor_written() -> None:
    with pytest.raises(SerializationError, match="pickled"):
        serde.loads_typed(("pickle", pickle.dumps(1)))
    with pytest.raises(InvalidInputError, match="Pickle is not supported"):
        JsonPlusSerializer(pickle_fallback=True)


def test_allowing_everything_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="Types must be named"):
        JsonPlusSerializer(allowed_msgpack_modules=True)  # type: ignore[arg-type]


def test_an_unknown_kind_of_bytes_is_not_built() -> None:
    with pytest.raises(NotBuiltError, match="Unknown serialization type: 'other'"):
        serde.loads_typed(("other", b""))


def test_damaged_bytes_are_a_named_error() -> None:
    with pytest.raises(SerializationError, match="cannot be read"):
        serde.loads_typed(("msgpack", b"\xc1"))


def test_json_of_older_savers_is_read() -> None:
    assert {"a": [1]} == serde.loads_typed(("json", b'{"a": [1]}'))


# -- classes that changed ----------------------------------------------------------------------------------------------


def changed(old: type, new: type, value: Any) -> Any:
    """The value as the new class reads what the old one stored under the same name."""
    new.__module__, new.__qualname__ = old.__module__, old.__qualname__
    stored = JsonPlusSerializer(allow=[old]).dumps_typed(value)
    register_types([new])
    return JsonPlusSerializer().loads_typed(stored)


def test_a_field_added_with_a_default_is_filled() -> None:
    @dataclass
    class Old:
        a: int

    @dataclass
    class New:
        a: int
        b: str = "new"

    assert New(1) == changed(Old, New, Old(1))


def test_a_field_added_without_a_default_is_an_error() -> None:
    @dataclass
    class Older:
        a: int

    @dataclass
    class Newer:
        a: int
        b: str

    with pytest.raises(SerializationError, match="missing 1 required positional argument: 'b'"):
        changed(Older, Newer, Older(1))


def test_a_model_whose_fields_changed_is_validated() -> None:
    class Before(BaseModel):
        a: int

    class After(BaseModel):
        a: int
        b: int = 5

    assert After(a=1, b=5) == changed(Before, After, Before(a=1))


# -- types of a schema -------------------------------------------------------------------------------------------------

T = TypeVar("T")


@dataclass
class Box(Generic[T]):
    content: T


class Inner(BaseModel):
    colour: Colour
    later: Late | None = None


class Late(BaseModel):
    level: Level


class State(TypedDict, total=False):
    a: Annotated[list[Point], "reducer"]
    b: dict[str, Inner | None]
    c: Box[Plain]
    d: Literal[Word.A, "b"]
    e: tuple[int, ...]


def test_the_types_of_a_schema_are_found_at_any_depth() -> None:
    assert {Point, Inner, Colour, Late, Level, Box, Plain, Word} == types_of(State)


def test_a_schema_of_plain_data_has_no_types() -> None:
    assert set() == types_of(dict[str, list[int | None]])


# -- the contract ------------------------------------------------------------------------------------------------------


def test_the_typed_shape_is_the_one_of_the_contract() -> None:
    typed = [serde.dumps_typed(value) for value in (None, b"x", bytearray(b"x"), 1)]

    assert [("null", b""), ("bytes", b"x"), ("bytearray", b"x"), ("msgpack", b"\x01")] == typed


def test_an_untyped_serialiser_is_wrapped() -> None:
    class Untyped:
        def dumps(self, obj: Any) -> bytes:
            return struct.pack("i", obj)

        def loads(self, data: bytes) -> Any:
            return struct.unpack("i", data)[0]

    wrapped = maybe_add_typed_methods(Untyped())

    assert isinstance(wrapped, SerializerCompat)
    assert ("int", struct.pack("i", 5)) == wrapped.dumps_typed(5)
    assert 5 == wrapped.loads_typed(("int", struct.pack("i", 5)))


def test_every_ext_code_has_one_owner() -> None:
    codes = {codec.code for codec in TABLE.values()}

    assert codes == BY_CODE.keys()
    assert len(codes) + len(USER_CODES) + len(LIBRARIES) == len(codes | USER_CODES | LIBRARIES.keys())
    assert all(8 <= code < 128 for code in codes | USER_CODES | LIBRARIES.keys())
