"""Objects of user classes: they come back with all they held, without their own code, or are refused with a reason."""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, InitVar, dataclass, field
from datetime import date
from typing import Any, Generic, TypeVar

import attrs
import pytest
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, RootModel
from pydantic.dataclasses import dataclass as pydantic_dataclass

from pregel.checkpoint.serde.base import CannotStore
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.checkpoint.serde.registry import register_types
from pregel.errors import InvalidInputError, SerializationError
from pregel.messages import HumanMessage

T = TypeVar("T")


def round_trip(value: Any) -> Any:
    serde = JsonPlusSerializer(allow=[type(value)])
    return serde.loads_typed(serde.dumps_typed(value))


# -- dataclasses -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Strict:
    a: int
    left_out: int = field(default=1, compare=False)


@dataclass
class Late:
    a: int
    given: InitVar[int] = 0
    total: int = field(init=False)
    _: KW_ONLY
    seen: list[int] = field(init=False, default_factory=list)


@dataclass(slots=True)
class Unset:
    a: int = field(init=False)


class Hidden:
    __slots__ = ("__secret", "hidden")

    def hide(self, value: int) -> None:
        self.__secret = value

    def secret(self) -> int:
        return self.__secret


@dataclass(slots=True)
class OverHidden(Hidden):
    a: int


@dataclass
class Lazy:
    a: int

    @functools.cached_property
    def worked_out(self) -> object:
        return object()


@dataclass
class Box(Generic[T]):
    content: T


class Doubling:
    """A descriptor that keeps the field under another name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"_{name}"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return 0 if instance is None else getattr(instance, self.name)

    def __set__(self, instance: Any, value: int) -> None:
        setattr(instance, self.name, value * 2)


@dataclass
class Described:
    a: int = Doubling()  # type: ignore[assignment]


@dataclass
class Row(dict[str, int]):
    a: int = 1


@pydantic_dataclass
class Checked:
    a: int


class Outer:
    @dataclass
    class Inner:
        a: int


@pytest.mark.parametrize(
    "value",
    [Strict(a=1), Unset.__new__(Unset), Lazy(1), Box[int](1), Checked(a=1), Outer.Inner(1)],
    ids=lambda value: type(value).__name__,
)
def test_a_dataclass_of_any_kind_comes_back(value: Any) -> None:
    back = round_trip(value)

    assert type(value) is type(back)
    assert [getattr(value, name, "unset") for name in value.__dataclass_fields__] == [
        getattr(back, name, "unset") for name in value.__dataclass_fields__
    ]


def test_fields_that_are_not_compared_come_back() -> None:
    assert 5 == round_trip(Strict(a=1, left_out=5)).left_out


def test_fields_that_the_constructor_does_not_take_come_back() -> None:
    late = Late(1)
    unfilled = round_trip(late)
    late.total, late.seen = 7, [1, 2]

    assert late == round_trip(late)
    assert not hasattr(unfilled, "total")


def test_attributes_that_are_no_field_come_back() -> None:
    box = Box(1)
    box.note = "beside"  # type: ignore[attr-defined]

    assert "beside" == round_trip(box).note


def test_slots_of_a_base_come_back() -> None:
    value = OverHidden(1)
    value.hidden = 2  # type: ignore[attr-defined]
    value.hide(3)

    back = round_trip(value)

    assert (value, 2, 3) == (back, back.hidden, back.secret())


def test_a_cached_property_is_worked_out_anew() -> None:
    lazy = Lazy(1)
    first = lazy.worked_out

    assert first is not round_trip(lazy).worked_out


def test_a_descriptor_is_not_run_again() -> None:
    assert 6 == round_trip(Described(a=3)).a


def test_a_dataclass_that_is_a_dict_keeps_both() -> None:
    row = Row(a=4)
    row["k"] = 1

    back = round_trip(row)

    assert ({"k": 1}, 4, Row) == (dict(back), back.a, type(back))


def test_a_frozen_dataclass_may_be_a_key() -> None:
    serde = JsonPlusSerializer(allow=[Strict])

    assert {Strict(a=1): [1]} == serde.loads(serde.dumps({Strict(a=1): [1]}))


def test_a_dataclass_laid_out_as_a_date_is_refused() -> None:
    @dataclass
    class Day(date):
        pass

    with pytest.raises(CannotStore, match=r"Day would come back as a plain date"):
        round_trip(date.__new__(Day, 2026, 1, 2))


def test_a_dataclass_that_is_an_exception_is_refused() -> None:
    @dataclass
    class Failure(Exception):
        a: int

    with pytest.raises(CannotStore, match=r"an exception .* does not survive storing"):
        round_trip(Failure(1))


# -- local classes, and classes that are defined anew ------------------------------------------------------------------


def make_local() -> type:
    @dataclass
    class Local:
        a: int

    return Local


def test_a_local_class_is_refused_with_what_to_do() -> None:
    with pytest.raises(CannotStore, match=r"make_local.<locals>.Local is not registered") as refused:
        JsonPlusSerializer().dumps_typed(make_local()(1))

    assert "move it to the top of a module" in refused.value.fix


def test_a_registered_local_class_comes_back() -> None:
    cls = make_local()

    assert cls(1) == round_trip(cls(1))


def test_an_object_of_a_class_that_was_defined_anew_is_refused() -> None:
    serde = JsonPlusSerializer()
    old, new = make_local(), make_local()
    register_types([old])
    stored = serde.dumps_typed(old(1))
    assert type(serde.loads_typed(stored)) is old

    register_types([new])

    with pytest.raises(CannotStore, match="was defined anew since, and this object is of the old one"):
        serde.dumps_typed(old(1))
    assert type(serde.loads_typed(stored)) is new


def test_the_own_allow_list_goes_before_what_is_registered() -> None:
    own, registered = make_local(), make_local()
    register_types([registered])
    serde = JsonPlusSerializer(allow=[own])

    assert type(serde.loads_typed(serde.dumps_typed(own(1)))) is own
    with pytest.raises(CannotStore, match="not registered"):
        serde.dumps_typed(registered(1))


@pytest.mark.parametrize("item", ["no colon", ("one",), 5])
def test_an_allow_list_that_names_no_class_is_refused(item: Any) -> None:
    with pytest.raises(InvalidInputError, match="names no class"):
        JsonPlusSerializer(allow=[item])


def test_only_classes_are_registered() -> None:
    with pytest.raises(InvalidInputError, match="is not a class"):
        register_types([make_local])  # type: ignore[list-item]


# -- attrs -------------------------------------------------------------------------------------------------------------


@attrs.define
class Defined:
    a: int
    uncompared: list[int] = attrs.field(factory=list, eq=False)
    _private: int = 1


@attrs.frozen(hash=True, cache_hash=True)
class Hashed:
    a: str


@attrs.define(slots=False)
class Loose:
    a: int


@attrs.define
class LazyAttrs:
    a: int

    @functools.cached_property
    def worked_out(self) -> object:
        return object()


@pytest.mark.parametrize("value", [Defined(1, private=2), Hashed("a"), Loose(1), LazyAttrs(1)])
def test_an_attrs_class_comes_back(value: Any) -> None:
    back = round_trip(value)

    assert (value, type(value)) == (back, type(back))


def test_fields_of_attrs_that_are_not_compared_come_back() -> None:
    assert [1, 2] == round_trip(Defined(1, [1, 2])).uncompared


def test_a_cached_hash_is_not_stored() -> None:
    """It differs from process to process."""
    value = Hashed("a")
    known = hash(value)

    assert JsonPlusSerializer(allow=[Hashed]).dumps(Hashed("a")) == JsonPlusSerializer(allow=[Hashed]).dumps(value)
    assert known == hash(round_trip(value))


def test_a_cached_property_of_attrs_is_worked_out_anew() -> None:
    lazy = LazyAttrs(1)
    first = lazy.worked_out

    assert first is not round_trip(lazy).worked_out


def test_a_changed_attrs_class_is_constructed() -> None:
    old = Defined(1, private=2)
    stored = JsonPlusSerializer(allow=[Defined]).dumps(old)

    @attrs.define
    class Changed:
        a: int
        _private: int
        added: str = "new"

    Changed.__module__, Changed.__qualname__ = Defined.__module__, Defined.__qualname__

    assert Changed(1, private=2, added="new") == JsonPlusSerializer(allow=[Changed]).loads(stored)


# -- models ------------------------------------------------------------------------------------------------------------


class Aliased(BaseModel):
    model_config = ConfigDict(extra="allow")

    a: int = Field(1, alias="A")
    _notes: list[int] = PrivateAttr(default_factory=list)

    @functools.cached_property
    def worked_out(self) -> object:
        return object()


class Numbers(RootModel[list[int]]):
    pass


class Pipe(BaseModel, Generic[T]):
    content: T


def test_extra_values_aliases_and_private_attributes_of_a_model_come_back() -> None:
    model = Aliased.model_validate({"A": 3, "more": (1, 2)})
    model._notes.append(1)
    assert model.worked_out

    back = round_trip(model)

    assert (model, [1], {"more": (1, 2)}, {"a", "more"}) == (
        back,
        back._notes,
        back.model_extra,
        back.model_fields_set,
    )


@pytest.mark.parametrize("value", [Numbers([1]), Pipe[int](content=1), Pipe(content=(1,))], ids=repr)
def test_a_root_model_or_generic_model_comes_back(value: Any) -> None:
    assert value == round_trip(value)


def test_a_changed_model_is_validated_by_the_names_of_its_fields() -> None:
    stored = JsonPlusSerializer(allow=[Aliased]).dumps(Aliased(A=3))

    class Changed(BaseModel):
        a: int = Field(1, alias="A")
        added: int = 5

    Changed.__module__, Changed.__qualname__ = Aliased.__module__, Aliased.__qualname__

    back = JsonPlusSerializer(allow=[Changed]).loads(stored)

    assert (3, 5) == (back.a, back.added)


def test_a_changed_model_that_does_not_fit_is_an_error() -> None:
    stored = JsonPlusSerializer(allow=[Aliased]).dumps(Aliased(A=3))

    class Unfit(BaseModel):
        needed: int

    Unfit.__module__, Unfit.__qualname__ = Aliased.__module__, Aliased.__qualname__

    with pytest.raises(SerializationError, match="ValidationError"):
        JsonPlusSerializer(allow=[Unfit]).loads(stored)


def test_a_private_attribute_that_was_added_has_its_default() -> None:
    class Before(BaseModel):
        a: int = 1

    class After(BaseModel):
        a: int = 1
        _added: int = PrivateAttr(default=7)

    After.__module__, After.__qualname__ = Before.__module__, Before.__qualname__
    stored = JsonPlusSerializer(allow=[Before]).dumps(Before())

    assert 7 == JsonPlusSerializer(allow=[After]).loads(stored)._added


def test_a_model_with_slots_of_its_own_is_refused() -> None:
    class Slotted(BaseModel):
        __slots__ = ("beside",)

    with pytest.raises(CannotStore, match=r"has slots of its own \(beside\)"):
        round_trip(Slotted())


# -- messages of the user's --------------------------------------------------------------------------------------------


class Scored(HumanMessage):
    pass


def test_what_a_message_class_of_the_users_adds_comes_back() -> None:
    message = Scored("hi", id="1")
    message.score = 5  # type: ignore[attr-defined]

    back = round_trip(message)

    assert (message, 5, Scored) == (back, back.score, type(back))
