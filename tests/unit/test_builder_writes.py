"""What a node's output, a route and an input become: channel writes, or an error that says what was meant."""

from __future__ import annotations

import operator
import warnings
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypedDict

import pytest
from pydantic import BaseModel, Field, field_validator

from pregel.errors import (
    InvalidRouteError,
    InvalidUpdateError,
    NodeReturnError,
    ParentCommand,
    PregelError,
    UnknownTargetError,
)
from pregel.graph import END, START, StateGraph
from pregel.graph.lower import lower
from pregel.graph.write import StateWriter
from pregel.managed import RemainingSteps
from pregel.types import Command, Overwrite, Send
from pregel.warnings import PregelWarning


class State(TypedDict):
    total: int
    items: Annotated[list[str], operator.add]
    steps: RemainingSteps


class OnlyTotal(TypedDict):
    total: int


@dataclass
class Data:
    total: int
    items: list[str] | None = None
    limit: ClassVar[int] = 3


@dataclass
class Stranger:
    colour: str = "red"


class Model(BaseModel):
    total: int = Field(default=5, ge=0)
    items: Annotated[list[int], operator.add] = Field(default_factory=lambda: [1])
    note: str | None = None

    @field_validator("note")
    @classmethod
    def shout(cls, value: str | None) -> str | None:
        return value and value.upper()


def writer(schema: Any = State, node: str = "a", **options: Any) -> StateWriter:
    graph = StateGraph(schema, input_schema=options.pop("input_schema", None))
    for name in ("a", "other"):
        graph.add_node(name, lambda state: None)
    found = lower(graph, **options).nodes[node].writers[0]
    assert isinstance(found, StateWriter)
    return found


def written(output: Any, schema: Any = State, node: str = "a", **options: Any) -> list[tuple[str, Any]]:
    out: list[tuple[str, Any]] = []
    writer(schema, node, **options).write(output, out)
    return out


GO, PACKET = ("branch:to:other", None), Send("other", 1)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (None, []),
        ({}, []),
        ({"total": 1, "items": ["x"]}, [("total", 1), ("items", ["x"])]),
        ({"total": 1, "steps": 3}, [("total", 1)]),
        (Data(total=2), [("total", 2), ("items", None)]),
        (Command(), []),
        (Command(update={"total": 1}), [("total", 1)]),
        (Command(update=[("items", ["x"]), ("items", ["y"])]), [("items", ["x"]), ("items", ["y"])]),
        (Command(update=Data(total=2, items=[])), [("total", 2), ("items", [])]),
        (Command(goto="other"), [GO]),
        (Command(goto=END), []),
        (
            Command(goto=["other", PACKET, "other", PACKET]),
            [GO, ("__pregel_tasks", PACKET), ("__pregel_tasks", PACKET)],
        ),
        (Command(update={"total": 1}, goto=PACKET), [("total", 1), ("__pregel_tasks", PACKET)]),
        (PACKET, [("__pregel_tasks", PACKET)]),
        (
            [Command(update={"items": ["1"]}), {"items": ["2"]}, None, Command(goto="other")],
            [("items", ["1"]), ("items", ["2"]), GO],
        ),
    ],
)
def test_an_output_becomes_writes(output: Any, expected: Any) -> None:
    assert expected == written(output)


@pytest.mark.parametrize(
    "output", [5, "text", [], [1], [PACKET], (PACKET,), [{"total": 1}], Stranger(), object(), State]
)
def test_what_is_no_update_is_refused(output: Any) -> None:
    with pytest.raises(NodeReturnError, match="node 'a' returned something that is not a state update"):
        written(output)


def test_a_packet_among_commands_is_refused() -> None:
    with pytest.raises(NodeReturnError, match="Expected dict, got Send"):
        written([Command(update={"total": 1}), PACKET])


@pytest.mark.parametrize("output", [{"totl": 1}, Command(update={"totl": 1}), [Command(), {"totl": 1}]])
def test_an_unknown_key_is_named_with_what_was_meant(output: Any) -> None:
    with pytest.raises(
        InvalidUpdateError, match=r"(?s)Node 'a' returned 'totl'.*Did you mean 'total'\? Known: items, total"
    ):
        written(output)


def test_unknown_keys_can_be_ignored() -> None:
    assert [("total", 1)] == written({"totl": 1, "total": 1}, unknown_keys="ignore")


def test_unknown_keys_can_be_warned_of_once_a_node() -> None:
    node = writer(unknown_keys="warn")
    with pytest.warns(PregelWarning, match="'totl'"):
        node.write({"totl": 1}, [])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        node.write({"totl": 1}, [])


@pytest.mark.parametrize("goto", ["othr", Send("othr", 1), ["othr"]])
def test_an_unknown_target_is_named_with_what_was_meant(goto: Any) -> None:
    with pytest.raises(UnknownTargetError, match=r"(?s)node 'a' gave .*othr.*Did you mean 'other'\? Known: a, other"):
        written(Command(goto=goto))


@pytest.mark.parametrize(
    ("goto", "error"),
    [
        (START, InvalidRouteError),
        ([None], InvalidRouteError),
        (5, InvalidRouteError),
        (Send(END, 1), InvalidUpdateError),
    ],
)
def test_a_target_that_is_none_is_refused(goto: Any, error: type[PregelError]) -> None:
    with pytest.raises(error):
        written(Command(goto=goto))


def test_a_command_for_the_parent_travels_up() -> None:
    command = Command(graph=Command.PARENT, update={"strange": 1}, goto="elsewhere")

    with pytest.raises(ParentCommand) as caught:
        written(command)

    assert command is caught.value.command


def test_several_commands_for_the_parent_travel_up_as_one() -> None:
    first = Command(graph=Command.PARENT, update={"a": 1}, goto="x")
    second = Command(graph=Command.PARENT, update=[("a", 2)], goto=["y"])

    with pytest.raises(ParentCommand) as caught:
        written([first, second])

    assert Command(graph=Command.PARENT, update=[("a", 1), ("a", 2)], goto=["x", "y"]) == caught.value.command


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ([1], [("__root__", [1])]),
        ({"k": 1}, [("__root__", {"k": 1})]),
        (None, []),
        (Command(update=[("k", 1)], goto="other"), [("__root__", [("k", 1)]), GO]),
        (Command(update=[("__root__", 1), ("__root__", 2)]), [("__root__", 1), ("__root__", 2)]),
        (PACKET, [("__pregel_tasks", PACKET)]),
    ],
)
def test_without_keys_the_output_is_the_write(output: Any, expected: Any) -> None:
    assert expected == written(output, Annotated[list[Any], operator.add])


# -- a typed state -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"total": "7"}, [("total", 7)]),
        ({"items": ["1", 2]}, [("items", [1, 2])]),
        ({"note": "hi"}, [("note", "HI")]),
        ({"items": Overwrite(["1"])}, [("items", Overwrite([1]))]),
        (Model(total=2), [("total", 2)]),
        (Model(items=[3]), [("total", 5), ("items", [3])]),
        (Model(total=2, note=None), [("total", 2), ("note", None)]),
    ],
)
def test_a_model_checks_what_is_written(output: Any, expected: Any) -> None:
    assert expected == written(output, Model)


def test_the_default_of_a_model_that_declares_no_reducer_is_written() -> None:
    class Found(BaseModel):
        items: list[int] = Field(default_factory=lambda: [3, 4])
        note: str | None = None

    assert [("items", [3, 4])] == written(Found(), Model)
    assert [("items", [5])] == written(Found(items=[5]), Model)


@pytest.mark.parametrize(
    "output",
    [{"total": "x"}, {"total": -1}, {"items": None}, {"items": [None]}, {"items": Overwrite(None)}, {"note": 5}],
)
def test_a_value_that_a_model_cannot_hold_is_never_written(output: Any) -> None:
    with pytest.raises(ValueError, match="1 validation error for Model") as caught:
        written(output, Model)

    assert any("Node 'a' wrote this to" in note for note in caught.value.__notes__)


def one_or_many(left: list[str], right: Any) -> list[str]:
    return [*left, *(right if isinstance(right, list) else [right])]


def without(left: list[str], right: Any) -> list[str]:
    if right is None:
        raise ValueError("no update")
    if right["remove"] not in left:
        raise ValueError("not there")
    return [item for item in left if item != right["remove"]]


class Reducing(BaseModel):
    items: Annotated[list[str], one_or_many] = []
    left: Annotated[list[str], without] = []
    last: Annotated[list[str], lambda left, right: right] = []


@pytest.mark.parametrize("update", [{"items": "one"}, {"left": {"remove": "x"}}, {"last": ["x"]}])
def test_an_update_that_only_its_reducer_understands_is_let_through(update: Any) -> None:
    assert list(update.items()) == written(update, Reducing)


@pytest.mark.parametrize("update", [{"items": 5}, {"left": None}, {"last": None}])
def test_an_update_that_a_reducer_makes_invalid_is_refused(update: Any) -> None:
    with pytest.raises(ValueError, match="validation error for Reducing"):
        written(update, Reducing)


# -- the input ---------------------------------------------------------------------------------------------------------


def test_an_input_key_that_only_the_state_has_is_dropped() -> None:
    assert [("total", 1)] == written({"total": 1, "items": ["x"]}, node=START, input_schema=OnlyTotal)


def test_an_input_key_that_nobody_declares_is_warned_of_once() -> None:
    start, out = writer(node=START), list[tuple[str, Any]]()
    with pytest.warns(PregelWarning, match="The input has 'totl'.*Did you mean 'total'"):
        start.write({"totl": 1, "total": 1}, out)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        start.write({"totl": 1}, out)
    assert [("total", 1)] == out


def test_strict_refuses_an_input_key_that_nobody_declares() -> None:
    with pytest.raises(InvalidUpdateError, match="The input has 'totl'"):
        written({"totl": 1}, node=START, strict=True)


@pytest.mark.parametrize("value", [[1], "text", 5, Stranger()])
def test_an_input_that_is_no_state_is_refused(value: Any) -> None:
    with pytest.raises(InvalidUpdateError, match="Expected dict, got"):
        written(value, node=START)


def test_an_instance_is_an_input_and_stays_the_callers() -> None:
    data = Data(total=1, items=["x"])

    values = dict(written(data, node=START))

    assert {"total": 1, "items": ["x"]} == values
    assert data.items is not values["items"]


def test_a_model_of_which_nothing_is_set_is_an_update_that_changes_nothing() -> None:
    assert [] == written(Reducing(), Reducing)


@pytest.mark.parametrize("update", [Reducing(), Command(update=Reducing()), [Command(update=Reducing())]])
def test_a_model_of_which_nothing_is_set_is_an_input_and_an_output(update: Any) -> None:
    graph = StateGraph(Reducing).add_node("a", lambda state: {"items": "x"}).add_node("b", lambda state: update)

    app = graph.add_edge(START, "a").add_edge("a", "b").compile()

    assert app.invoke(Reducing()) == {"items": ["x"], "left": [], "last": []}


def test_a_typed_input_is_checked_by_its_own_schema() -> None:
    assert [("total", 7)] == written({"total": "7"}, State, START, input_schema=Model)
    with pytest.raises(ValueError, match="validation error for Model"):
        written({"total": "x"}, State, START, input_schema=Model)
