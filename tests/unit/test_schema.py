"""What a state schema becomes: one channel or managed value a key."""

from __future__ import annotations

import operator
import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import Annotated, Any, ClassVar, Generic, NotRequired, Required, TypedDict, TypeVar

import pytest
from pydantic import BaseModel, Field

from pregel.channels import BaseChannel, BinaryOperatorAggregate, DeltaChannel, LastValue, Topic, UntrackedValue
from pregel.errors import DefinitionError
from pregel.graph import StateGraph
from pregel.graph.message import MessagesState, add_messages
from pregel.graph.schema import annotations_of, mapper_of, read_schema
from pregel.managed import IsLastStep, IsLastStepManager, RemainingSteps, RemainingStepsManager

T = TypeVar("T")


def one_argument(value: list[Any]) -> list[Any]:
    return value


def other_reducer(left: list[Any], right: list[Any]) -> list[Any]:
    return left + right


def batch(value: list[Any], writes: list[Any]) -> list[Any]:
    return [*value, *writes]


class Kinds(TypedDict, total=False):
    plain: int
    reduced: Annotated[list[int], operator.add]
    outside: NotRequired[Annotated[list[int], operator.add]]
    inside: Annotated[NotRequired[list[int]], operator.add]
    required: Required[str]
    not_callable: Annotated[list[int], 5]
    builtin: Annotated[int, max]
    instance: Annotated[list[int], Topic(int, accumulate=True)]
    by_class: Annotated[int, UntrackedValue]
    delta: Annotated[dict[str, int], DeltaChannel(batch)]
    last: IsLastStep
    left: NotRequired[RemainingSteps]


class Boxed(TypedDict, Generic[T]):
    item: T


class Plain(TypedDict):
    key: list[int]


class Reduced(TypedDict):
    key: Annotated[list[int], operator.add]


class ReducedOtherwise(TypedDict):
    key: Annotated[list[int], other_reducer]


class Lambda(TypedDict):
    key: Annotated[list[int], lambda a, b: a + b]


class OtherLambda(TypedDict):
    key: Annotated[list[int], lambda a, b: b]


class WrongReducer(TypedDict):
    key: Annotated[list[int], one_argument]


class Base:
    first: int
    shared: ClassVar[int] = 1
    __slots__ = ("first", "second")


class Derived(Base):
    second: int


class Model(BaseModel):
    number: int = 3
    items: Annotated[list[int], operator.add] = Field(default_factory=lambda: [1])
    maybe: Annotated[list[int] | None, operator.add] = None
    steps: RemainingSteps = 0
    renamed: str = Field(default="x", alias="Renamed")
    _private: int = 0


@dataclass
class Data:
    number: int
    items: Annotated[list[int], operator.add] = field(default_factory=lambda: [1])
    derived: int = field(init=False, default=0)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("plain", LastValue),
        ("reduced", BinaryOperatorAggregate),
        ("outside", BinaryOperatorAggregate),
        ("inside", BinaryOperatorAggregate),
        ("required", LastValue),
        ("not_callable", LastValue),
        ("builtin", BinaryOperatorAggregate),
        ("instance", Topic),
        ("by_class", UntrackedValue),
        ("delta", DeltaChannel),
    ],
)
def test_a_key_becomes_the_channel_its_annotation_names(key: str, kind: type[BaseChannel[Any, Any, Any]]) -> None:
    channel = read_schema(Kinds)[key]

    assert kind is type(channel)
    assert isinstance(channel, BaseChannel)
    assert key == channel.key


def test_a_managed_key_becomes_its_class() -> None:
    keys = read_schema(Kinds)

    assert (IsLastStepManager, RemainingStepsManager) == (keys["last"], keys["left"])


def test_a_delta_channel_starts_from_the_annotated_type() -> None:
    channel = read_schema(Kinds)["delta"]

    assert isinstance(channel, DeltaChannel)
    assert {} == channel.get()


@pytest.mark.parametrize("schema", [dict, list, Annotated[list[int], operator.add]])
def test_a_schema_without_annotations_is_one_root_channel(schema: Any) -> None:
    assert ["__root__"] == list(read_schema(schema))


def test_a_generic_schema_has_the_keys_of_its_class() -> None:
    assert ["item"] == list(read_schema(Boxed[int]))


def test_inherited_keys_come_first_and_class_variables_are_none() -> None:
    assert ["first", "second"] == list(annotations_of(Derived))


def test_a_model_has_its_fields_as_keys() -> None:
    assert ["number", "items", "maybe", "steps", "renamed"] == list(read_schema(Model))


def test_the_message_reducer_is_one() -> None:
    channel = read_schema(MessagesState)["messages"]

    assert isinstance(channel, BinaryOperatorAggregate)
    assert channel.operator is add_messages


@pytest.mark.parametrize("schema", [Model, Data])
def test_a_reducer_key_starts_from_the_default_of_its_field(schema: Any) -> None:
    channel = read_schema(schema)["items"]

    assert isinstance(channel, BaseChannel)
    assert [1] == channel.get()


def test_a_default_of_none_leaves_a_reducer_key_empty() -> None:
    channel = read_schema(Model)["maybe"]

    assert isinstance(channel, BaseChannel)
    assert not channel.is_available()


@pytest.mark.parametrize("schema", [Kinds, dict, Boxed[int]])
def test_a_dict_is_what_a_node_of_a_dict_schema_takes(schema: Any) -> None:
    assert mapper_of(schema) is None


@pytest.mark.parametrize(
    ("schema", "values", "expected"),
    [
        (Data, {"number": 2, "derived": 5}, Data(number=2)),
        (Model, {"number": "7", "renamed": "y"}, Model(number=7, Renamed="y")),
    ],
)
def test_values_become_an_instance_of_the_schema(schema: Any, values: dict[str, Any], expected: Any) -> None:
    mapper = mapper_of(schema)

    assert mapper is not None
    assert expected == mapper(values)


def test_a_reducer_of_one_argument_is_refused() -> None:
    with pytest.raises(ValueError, match="Invalid reducer signature"):
        StateGraph(WrongReducer)


@pytest.mark.parametrize(
    ("first", "second"), [(Reduced, Plain), (Reduced, Reduced), (Plain, Plain), (Lambda, OtherLambda)]
)
def test_schemas_that_agree_on_a_key_share_the_first_ones_channel(first: Any, second: Any) -> None:
    builder = StateGraph(first, input_schema=second)

    assert builder.channels["key"] is builder.schemas[first]["key"]


@pytest.mark.parametrize(("first", "second"), [(Plain, Reduced), (Reduced, ReducedOtherwise)])
def test_schemas_that_disagree_on_a_key_are_refused(first: Any, second: Any) -> None:
    with pytest.raises(DefinitionError, match="'key' already exists with a different type"):
        StateGraph(first, output_schema=second)


@pytest.mark.parametrize("side", ["input_schema", "output_schema"])
def test_a_managed_value_is_no_input_and_no_output(side: str) -> None:
    with pytest.raises(ValueError, match="Invalid managed channels detected in Kinds: last, left"):
        StateGraph(Plain, **{side: Kinds})


def test_something_that_is_no_type_is_named_in_a_warning() -> None:
    with pytest.warns(UserWarning, match="Invalid state_schema: 5"):
        StateGraph(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["typing", "typing_extensions"])
def test_what_a_typed_dict_inherits_means_what_it_means_in_the_module_of_its_base(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = {
        "base_module": "class Item: ...\nclass Base(TypedDict):\n    item: Item",
        "other_module": "from base_module import Base\nclass Item: ...\nclass Sub(Base):\n    own: Item",
    }
    made = {}
    for name, source in sources.items():
        made[name] = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, made[name])
        exec(f"from __future__ import annotations\nfrom {kind} import TypedDict\n{source}", made[name].__dict__)
    base, other = made["base_module"], made["other_module"]

    assert {"item": base.Item, "own": other.Item} == annotations_of(other.Sub)
