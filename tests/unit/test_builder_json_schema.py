"""The JSON schemas of a graph's input and output."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from pydantic import BaseModel, Field

from pregel.graph import START, StateGraph
from pregel.graph.json_schema import type_schema
from pregel.managed import RemainingSteps


class Colour(Enum):
    RED = "red"


class Inner(TypedDict):
    x: int


class State(TypedDict):
    first_name: str
    items: Annotated[list[int], operator.add]
    maybe: NotRequired[str | None]
    steps: RemainingSteps


@dataclass
class Data:
    number: int
    items: list[int] = field(default_factory=list)
    label: str | None = None


class Model(BaseModel):
    number: int = Field(ge=1)


def schema_of(schema: Any) -> dict[str, Any]:
    return StateGraph(schema).add_node("a", lambda state: None).add_edge(START, "a").compile().get_input_jsonschema()


def test_a_typed_dict_is_an_object_without_its_managed_keys() -> None:
    assert {
        "title": "State",
        "type": "object",
        "properties": {
            "first_name": {"title": "First Name", "type": "string"},
            "items": {"title": "Items", "type": "array", "items": {"type": "integer"}},
            "maybe": {"title": "Maybe", "anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["first_name", "items"],
    } == schema_of(State)


def test_a_dataclass_shows_its_defaults() -> None:
    shown = schema_of(Data)

    assert ["number"] == shown["required"]
    assert [] == shown["properties"]["items"]["default"]


def test_a_model_describes_itself() -> None:
    assert Model.model_json_schema() == schema_of(Model)


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (Any, {}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Colour, {"title": "Colour", "enum": ["red"]}),
        (
            Inner,
            {
                "title": "Inner",
                "type": "object",
                "properties": {"x": {"title": "X", "type": "integer"}},
                "required": ["x"],
            },
        ),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (tuple[int, str], {"type": "array"}),
        (Model, Model.model_json_schema()),
        (operator.add, {}),
    ],
)
def test_an_annotation_becomes_json_schema(hint: Any, expected: Any) -> None:
    assert expected == type_schema(hint)


@pytest.mark.parametrize(("context", "title"), [(None, None), (Data, "Data"), (Model, "Model"), (Inner, "Inner")])
def test_the_schema_of_a_context(context: Any, title: str | None) -> None:
    app = StateGraph(Inner, context).add_node("a", lambda state: None).add_edge(START, "a").compile()
    shown = app.get_context_jsonschema()

    assert title == (shown and shown["title"])
    if shown is not None:
        assert ["number"] == shown["required"] if context is not Inner else ["x"] == shown["required"]


def test_input_and_output_are_models() -> None:
    app = StateGraph(State).add_node("a", lambda state: None).add_edge(START, "a").compile(name="App")
    taken, given = app.get_input_schema(), app.get_output_schema()

    assert ("AppInput", "AppOutput") == (taken.__name__, given.__name__)
    assert {"first_name": "x", "items": [1], "maybe": None} == taken(first_name="x", items=["1"]).model_dump()
    assert {"first_name": None, "items": None, "maybe": None} == given().model_dump()
    with pytest.raises(ValueError, match="first_name"):
        taken(items=[])
    typed = StateGraph(Model).add_node("a", lambda state: None).add_edge(START, "a").compile()
    assert Model is typed.get_input_schema()


def test_a_state_without_keys_is_a_model_too() -> None:
    app = StateGraph(Annotated[list[int], operator.add]).add_node("a", lambda state: []).add_edge(START, "a").compile()  # type: ignore[arg-type]

    assert [1] == app.get_input_schema()(["1"]).root


def test_a_notebook_shows_the_graph() -> None:
    app = StateGraph(State).add_node("a", lambda state: None).add_edge(START, "a").compile()

    assert "image/svg+xml" in app._repr_mimebundle_()
