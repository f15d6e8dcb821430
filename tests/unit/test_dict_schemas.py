"""JSON Schemas written by hand are refused where they are given when they cannot mean what they say."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pregel.agents import ScriptedModel, Tool, create_agent
from pregel.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
from pregel.errors import DefinitionError


def described(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


FAULTY: dict[str, tuple[dict[str, Any], str, str]] = {
    "a list": ({"type": "array", "items": {"type": "string"}}, "is of type 'array'", '"type": "object"'),
    "properties alone": ({"properties": {"n": {"type": "integer"}}}, "has no type", '"type": "object"'),
    "nothing": ({}, "has no type", '"type": "object"'),
    "arguments without properties": ({"n": {"type": "integer"}}, "has no type", '"properties": {...}'),
    "a list of properties": (
        {"type": "object", "properties": ["n"]},
        "the schema has properties ['n']",
        "Write a dict by name",
    ),
    "a name that is misspelt": (
        {**described(city={"type": "string"}), "required": ["citty"]},
        "the schema requires 'citty', which is not among its properties",
        "Described: city.",
    ),
    "a name that is none": ({**described(n={}), "required": [["n"]]}, "requires ['n']", "Described: n."),
    "required of one property": (described(n={"type": "integer", "required": True}), "n has required=True", "list"),
    "a property that is a type": (described(n="integer"), "n is 'integer', which is no schema", "Write a dict"),
    "a type of Python": (described(n={"type": "str"}), "n has the type 'str'", "Write 'string'."),
    "a class": (described(n={"type": int}), "n has the type <class 'int'>", "Write 'integer'."),
    "no type at all": (described(n={"type": ["text", "null"]}), "n has the type 'text'", "Choose from string, integer"),
    "something inside": (
        described(order={**described(n={}), "required": ["m"]}),
        "order requires 'm'",
        "Described: n.",
    ),
    "something in a list": (described(all={"type": "array", "items": {"type": "dict"}}), "all.items has", "'object'"),
}


@pytest.mark.parametrize(("schema", "said", "fix"), FAULTY.values(), ids=FAULTY)
def test_a_faulty_schema_is_refused_where_it_is_given(schema: dict[str, Any], said: str, fix: str) -> None:
    for make in (
        lambda: Tool(lambda **given: given, name="look", description="d", args_schema=schema),
        lambda: create_agent(ScriptedModel(["x"]), response_format=schema),
        lambda: ToolStrategy[Any](schema),
        lambda: ProviderStrategy[Any](schema),
    ):
        with pytest.raises(DefinitionError, match=re.escape(said)) as raised:
            make()
        assert fix in str(raised.value)


def test_the_error_says_whose_schema_it_is() -> None:
    with pytest.raises(DefinitionError, match=r"^The args_schema of the tool 'look' has no type"):
        Tool(lambda **given: given, name="look", description="d", args_schema={"properties": {}})
    with pytest.raises(DefinitionError, match=r"^The schema 'City' has no type"):
        AutoStrategy[Any]({"title": "City", "properties": {}})
    with pytest.raises(DefinitionError, match=r"^The schema of the answer is of type 'string'"):
        AutoStrategy[Any]({"oneOf": [{"type": "string"}, described(n={})]})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        described(),
        described(n={}, m=True, kinds={"type": ["integer", "null"]}, required={"type": "string"}),
        {"$defs": {"Node": described(next={"$ref": "#/$defs/Node"})}, "$ref": "#/$defs/Node"},
        {**described(n={"enum": [1, 2]}), "required": ["n"], "additionalProperties": False},
    ],
)
def test_a_sound_schema_is_taken_as_it_is(schema: dict[str, Any]) -> None:
    made = Tool(lambda **given: given, name="look", description="d", args_schema=schema)

    assert schema == made.parameters
