"""The serialiser's one law, over drawn values: what goes in comes back equal and of its type, at every depth."""

from __future__ import annotations

import math
import zlib
from collections import Counter, OrderedDict, defaultdict, deque
from contextlib import suppress
from dataclasses import field, make_dataclass
from datetime import UTC, timedelta, timezone
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import attrs
import pydantic
from hypothesis import example, given
from hypothesis import strategies as st

from pregel.checkpoint.serde.base import CannotStore
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.errors import SerializationError
from pregel.messages import AIMessage, HumanMessage, ToolMessage
from pregel.types import Command, Interrupt, Overwrite, Send

serde = JsonPlusSerializer()

offsets = st.timedeltas(timedelta(hours=-23), timedelta(hours=23))
fixed_zones = offsets.map(timezone) | st.builds(timezone, offsets, st.text(st.characters()))

hashable = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters())  # surrogates and NUL included
    | st.binary()
    | st.uuids()
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.complex_numbers(allow_nan=False)
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC))
    | st.datetimes(timezones=st.timezones())
    | st.datetimes(timezones=fixed_zones)
    | st.dates()
    | st.times()
    | st.times(timezones=fixed_zones)
    | fixed_zones
    | st.timezones()
    | st.builds(range, st.integers(), st.integers(), st.integers(1, 9))
    | st.text(st.characters(exclude_characters="\0")).map(PurePosixPath)
    | st.text(st.characters(exclude_characters="\0")).map(PureWindowsPath)
    | st.timedeltas()
    | st.ip_addresses()
)
leaf = hashable | st.binary().map(bytearray)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(hashable | st.tuples(hashable, hashable), inner, max_size=4)
        | st.sets(hashable, max_size=4)
        | st.frozensets(hashable, max_size=4)
        | st.lists(inner, max_size=4).map(deque)
        | st.lists(inner, max_size=4).map(lambda items: deque(items, maxlen=5))
        | st.dictionaries(hashable, inner, max_size=4).map(OrderedDict)
        | st.dictionaries(hashable, inner, max_size=4).map(lambda items: defaultdict(list, items))
        | st.dictionaries(hashable, st.integers(), max_size=4).map(Counter)
        | st.builds(slice, inner, inner, inner)
        | st.builds(Command, update=inner, resume=inner, goto=st.lists(st.text(), max_size=2))
        | st.builds(ToolMessage, st.text(), tool_call_id=st.text(), artifact=inner)
        | st.builds(Send, st.text(), inner)
        | st.builds(Interrupt, inner, st.text())
        | st.builds(Overwrite, inner)
        | st.builds(HumanMessage, st.text(), id=st.none() | st.text(), artifact=inner)
        | st.builds(AIMessage, st.text(), response_metadata=st.dictionaries(st.text(), inner, max_size=2))
    )


values = st.recursive(leaf, containers, max_leaves=12)


def shape(value: Any) -> Any:
    """The types in a value, at every depth; equality alone takes 1 for True and 1.0."""
    kind = type(value).__name__
    if isinstance(value, dict):
        return kind, [(shape(key), shape(part)) for key, part in value.items()]
    if isinstance(value, list | tuple | deque):
        return kind, [shape(part) for part in value]
    if isinstance(value, set | frozenset):
        return kind, sorted(str(shape(part)) for part in value)
    if isinstance(value, Send):
        return kind, shape(value.arg)
    if isinstance(value, Interrupt | Overwrite):
        return kind, shape(value.value)
    return kind


@given(values)
def test_a_value_comes_back_equal_and_of_its_type(value: Any) -> None:
    back = serde.loads_typed(serde.dumps_typed(value))

    assert value == back
    assert shape(value) == shape(back)


@given(values)
def test_the_same_value_is_stored_as_the_same_bytes(value: Any) -> None:
    stored = serde.dumps_typed(value)

    assert stored == serde.dumps_typed(serde.loads_typed(stored))


@given(st.floats() | st.complex_numbers() | st.decimals(allow_nan=True))
@example(math.nan)
def test_nan_comes_back_as_the_same_bytes(number: Any) -> None:
    """It is not equal to itself, so its representation is compared."""
    back = serde.loads(serde.dumps([number, {"a": (number,)}]))

    assert repr([number, {"a": (number,)}]) == repr(back)


@given(values)
def test_a_compressed_value_is_the_value(value: Any) -> None:
    stored = JsonPlusSerializer(compress_above=0).dumps_typed(value)

    assert value == serde.loads_typed(stored)
    assert stored[0] != "zlib" or serde.dumps(value) == zlib.decompress(stored[1])


@given(values, st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=4)), min_size=1, max_size=4))
def test_damaged_bytes_are_a_value_or_the_named_error(value: Any, changes: list[tuple[int, bytes]]) -> None:
    data = bytearray(serde.dumps(value))
    for at, changed in changes:
        data[at : at + len(changed)] = changed

    with suppress(SerializationError):
        serde.loads(bytes(data))


# -- drawn classes -----------------------------------------------------------------------------------------------------

names = st.lists(st.sampled_from(["a", "b", "_c", "content", "name", "type"]), min_size=1, max_size=4, unique=True)


@st.composite
def drawn_dataclasses(draw: st.DrawFn) -> type:
    fields = [(name, Any, field(init=draw(st.booleans()), compare=draw(st.booleans()))) for name in draw(names)]
    options = {name: draw(st.booleans()) for name in ("frozen", "slots", "kw_only", "eq")}
    bases = (draw(st.sampled_from([object, Counter])),) if not options["slots"] else ()
    return make_dataclass("Drawn", fields, bases=bases, namespace={"__module__": __name__}, **options)


@st.composite
def drawn_attrs_classes(draw: st.DrawFn) -> type:
    fields = {name: attrs.field(eq=draw(st.booleans())) for name in draw(names)}
    options: dict[str, Any] = {name: draw(st.booleans()) for name in ("frozen", "slots", "kw_only")}
    cls: type = attrs.make_class("Drawn", fields, **options)
    return cls


@st.composite
def drawn_models(draw: st.DrawFn) -> Any:
    fields: Any = {name: (Any, None) for name in draw(names) if not name.startswith("_")}
    config = pydantic.ConfigDict(extra=draw(st.sampled_from(["allow", "ignore"])), frozen=draw(st.booleans()))
    return pydantic.create_model("Drawn", __config__=config, **fields)


@given(drawn_dataclasses() | drawn_attrs_classes() | drawn_models(), st.data())
def test_an_object_of_any_class_comes_back_with_all_it_held(cls: Any, data: st.DataObject) -> None:
    value = cls.__new__(cls)
    held = {name: data.draw(values) for name in _names_of(cls)}
    if issubclass(cls, pydantic.BaseModel):
        value = cls.model_construct(**held)
    for name, part in held.items():
        object.__setattr__(value, name, part)
    own = JsonPlusSerializer(allow=[cls])

    back = own.loads_typed(own.dumps_typed(value))

    assert cls is type(back)
    assert held == {name: getattr(back, name) for name in held}


def _names_of(cls: Any) -> list[str]:
    if attrs.has(cls):
        return [one.name for one in attrs.fields(cls)]
    return list(cls.model_fields if issubclass(cls, pydantic.BaseModel) else cls.__dataclass_fields__)


# -- refusals ----------------------------------------------------------------------------------------------------------


class Unstorable:
    pass


@given(st.recursive(leaf | st.just(Unstorable()), containers, max_leaves=12))
def test_a_value_is_refused_when_and_only_when_something_in_it_cannot_come_back(value: Any) -> None:
    try:
        serde.dumps_typed(value)
        refused = ""
    except CannotStore as error:
        refused = error.reason

    assert ("Unstorable object" in repr(value)) == ("test_serde_laws.Unstorable" in refused)
