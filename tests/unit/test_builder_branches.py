"""What a conditional edge reads, and what the answer of its path becomes."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest

from pregel.errors import InvalidRouteError, InvalidUpdateError, PathMapError, PregelError, UnknownTargetError
from pregel.graph import END, START, StateGraph
from pregel.graph.branch import BranchWriter
from pregel.graph.lower import lower
from pregel.managed import RemainingSteps
from pregel.types import Send


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


GO, PACKET = ("branch:to:other", None), Send("other", 1)


@dataclass
class Answering:
    """What a branch asks of a running task: the state after the node's own writes."""

    values: dict[str, Any] = field(default_factory=dict)

    def fresh_values(self, keys: list[str]) -> dict[str, Any]:
        return {key: value for key, value in self.values.items() if key in keys}

    def managed_values(self, managed: dict[str, Any]) -> dict[str, Any]:
        return dict.fromkeys(managed, 9)


def branch(path: Any = lambda state: END, ends: Any = None, schema: Any = State) -> BranchWriter:
    graph = StateGraph(schema).add_node("a", lambda state: None).add_node("other", lambda state: None)
    writer = lower(graph.add_conditional_edges("a", path, ends)).nodes["a"].writers[-1]
    assert isinstance(writer, BranchWriter)
    return writer


def answered(result: Any, ends: Any = None) -> list[tuple[str, Any]]:
    return branch(ends=ends).writes(result)


@pytest.mark.parametrize(
    ("result", "ends", "expected"),
    [
        ("other", None, [GO]),
        (["other", "other", END], None, [GO]),
        ([], None, []),
        (END, None, []),
        ((PACKET, "other", PACKET), None, [("__pregel_tasks", PACKET), GO, ("__pregel_tasks", PACKET)]),
        (True, {True: "other", False: END}, [GO]),
        (False, {True: "other", False: END}, []),
        (["x", "y"], {"x": "other", "y": "other"}, [GO]),
        (PACKET, {"x": "a"}, [("__pregel_tasks", PACKET)]),
        (None, {None: "other"}, [GO]),
    ],
)
def test_an_answer_of_a_path_becomes_writes(result: Any, ends: Any, expected: Any) -> None:
    assert expected == answered(result, ends)


@pytest.mark.parametrize(
    ("result", "ends", "error", "builtin"),
    [
        ("othr", None, UnknownTargetError, InvalidUpdateError),
        (Send("othr", 1), ["a"], UnknownTargetError, InvalidUpdateError),
        (None, None, InvalidRouteError, ValueError),
        (None, ["a"], InvalidRouteError, ValueError),
        (START, None, InvalidRouteError, ValueError),
        (True, None, InvalidRouteError, ValueError),
        ({"a"}, ["a"], PathMapError, KeyError),
        ("z", {"x": "a"}, PathMapError, KeyError),
        (Send(END, 1), None, InvalidUpdateError, InvalidUpdateError),
    ],
)
def test_an_answer_that_leads_nowhere_is_refused(
    result: Any, ends: Any, error: type[PregelError], builtin: type[Exception]
) -> None:
    writer = branch(ends=ends)
    with pytest.raises(error, match="Branch 'condition' of node 'a' gave") as caught:
        writer.writes(result)

    assert isinstance(caught.value, builtin)
    assert "a" == caught.value.node


def only_total(state: OnlyTotal) -> str:
    return END


def from_data(state: Data) -> str:
    return END


@pytest.mark.parametrize(
    ("path", "output", "expected"),
    [
        (lambda state: END, {"total": 0, "raw": 1}, {"total": 1, "items": [], "steps": 9, "raw": 1}),
        (lambda state: END, None, {"total": 1, "items": [], "steps": 9}),
        (only_total, {"total": 0, "raw": 1}, {"total": 1}),
        (from_data, {"total": 0}, Data(total=1, items=[])),
    ],
)
def test_a_path_reads_the_state_after_its_nodes_writes(path: Any, output: Any, expected: Any) -> None:
    assert expected == branch(path).read(output, Answering({"total": 1, "items": []}))


def test_a_path_of_a_state_without_keys_reads_the_bare_value() -> None:
    writer = branch(schema=Annotated[list[int], operator.add])

    assert [1, 2] == writer.read([1], Answering({"__root__": [1, 2]}))
