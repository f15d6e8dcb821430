"""Typed dicts of `typing` as schemas of answers and tools, on every Python."""

import sys
import typing
from typing import Annotated, Any, Literal, NotRequired

import pytest

from pregel.agents import ScriptedModel, create_agent, tool
from pregel.agents.models import call_tool
from pregel.errors import DefinitionError


class Point(typing.TypedDict):
    """Where it is."""

    x: int
    label: NotRequired[Annotated[str, "what it is"]]


class Optional(typing.TypedDict, total=False):
    """Nothing of it is needed."""

    kind: Literal["a", "b"]


class Route(Optional):
    """A way."""

    points: list[Point]
    end: Point | None


class Tree(typing.TypedDict):
    """It holds itself."""

    children: "list[Tree]"


def test_a_typed_dict_is_the_schema_of_an_answer() -> None:
    route: dict[str, Any] = {"points": [{"x": 1, "label": "home"}, {"x": 2}], "end": None}
    model = ScriptedModel(
        [call_tool("Route", {"points": [{"label": 1}], "end": None}), call_tool("Route", route)],
    )

    result = create_agent(model, response_format=Route).invoke({"messages": "Which way?"})

    assert route == result["structured_response"]
    told = result["messages"][2].text
    assert "points.0.x: Field required" in told
    assert "kind" not in told


def test_a_typed_dict_is_an_argument_of_a_tool() -> None:
    @tool
    def draw(points: list[Point]) -> str:
        """Draw."""
        return str([point["x"] for point in points])

    model = ScriptedModel([call_tool("draw", {"points": [{"x": "3"}]}), "done"])

    assert "[3]" == create_agent(model, [draw]).invoke({"messages": "Draw."})["messages"][-2].text


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic takes it")
def test_one_that_holds_itself_is_refused_with_what_to_import() -> None:
    with pytest.raises(DefinitionError, match=r"typing_extensions\.TypedDict"):
        create_agent(ScriptedModel([]), response_format=Tree)
