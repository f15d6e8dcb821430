"""The JSON schemas of a graph's input and output."""

from __future__ import annotations

import operator
import typing
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
import typing_extensions
from pydantic import BaseModel, Field

from pregel.func import entrypoint
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


def test_a_typed_dict_that_is_not_total_requires_no_key() -> None:
    for make in (typing.TypedDict, typing_extensions.TypedDict):
        partial: Any = make("partial", {"x": int}, total=False)  # type: ignore[operator]

        assert "required" not in schema_of(partial)


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
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
        ),
        (tuple, {"type": "array"}),
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


def test_an_entrypoint_tells_what_it_takes_and_gives() -> None:
    @entrypoint(context_schema=Data)
    def counts(words: list[str]) -> int:
        return len(words)

    assert counts.get_input_jsonschema() == {
        "title": "LangGraphInput",
        "type": "array",
        "items": {"type": "string"},
    }
    assert counts.get_output_jsonschema() == {"title": "LangGraphOutput", "type": "integer"}
    assert (counts.get_context_jsonschema() or {})["title"] == "Data"
    assert ["x"] == counts.get_input_schema()(["x"]).root
    assert 3 == counts.get_output_schema()("3").root
    assert ("LangGraphInput", "LangGraphOutput") == (counts.input_schema.__name__, counts.output_schema.__name__)


def test_an_entrypoint_that_saves_something_else_tells_what_it_returns() -> None:
    @entrypoint()
    def both(text: str) -> entrypoint.final[int, str]:
        return entrypoint.final(value=1, save="x")

    @entrypoint()
    def anything(text: Model) -> entrypoint.final:  # type: ignore[type-arg]
        return entrypoint.final(value=1, save="x")

    assert both.get_output_jsonschema() == {"title": "LangGraphOutput", "type": "integer"}
    assert anything.get_output_jsonschema() == {"title": "LangGraphOutput"}
    assert anything.get_context_jsonschema() is None
    assert anything.input_schema is Model
    assert anything.invoke(Model(number=1)) == 1


def test_the_models_of_a_graph_have_the_names_of_langchain() -> None:
    app = StateGraph(State).add_node("a", lambda state: None).add_edge(START, "a").compile(name="App")

    assert ("AppInput", "AppOutput") == (app.input_schema.__name__, app.output_schema.__name__)


def test_a_notebook_shows_the_graph() -> None:
    app = StateGraph(State).add_node("a", lambda state: None).add_edge(START, "a").compile()

    assert "image/svg+xml" in app._repr_mimebundle_()
