"""What becomes of a node's update: partial, folded, typed, checked before it is stored, and never shared."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel, Field, ValidationError

from pregel.checkpoint.base import BaseCheckpointSaver
from pregel.errors import ConcurrentUpdateError, InvalidUpdateError
from pregel.graph import START, StateGraph
from pregel.managed import IsLastStep, RemainingSteps
from pregel.types import Command, Overwrite, Send
from tests.behaviour.conftest import Runner

Saver = BaseCheckpointSaver[Any]
Thread = Callable[[str], dict[str, Any]]


class State(TypedDict, total=False):
    total: int
    visited: Annotated[list[str], operator.add]


class Managed(TypedDict):
    seen: Annotated[list[Any], operator.add]
    last: IsLastStep
    left: RemainingSteps


class Model(BaseModel):
    number: int
    items: Annotated[list[int], operator.add] = Field(default_factory=lambda: [1])
    note: str | None = None
    size: int = 5


@dataclass
class Data:
    number: int = 0
    note: str | None = None
    items: Annotated[list[int], operator.add] = field(default_factory=lambda: [1])


class Given(TypedDict):
    number: int


class Got(TypedDict):
    size: int


class Secret(TypedDict):
    secret: str


def one_node(schema: Any, node: Any, **options: Any) -> Any:
    return StateGraph(schema, **options).add_node("n", node).add_edge(START, "n")


def visit(name: str) -> Callable[[Any], Any]:
    return lambda state: {"visited": [name]}


def double(state: State) -> dict[str, Any]:
    return {"total": state["total"] * 2, "visited": ["a"]}


def increment(state: State) -> dict[str, Any]:
    return {"total": state["total"] + 1, "visited": ["b"]}


@pytest.mark.acceptance("S1-3", "S1-8")
def test_updates_are_partial_and_reducers_fold_them(run: Runner) -> None:
    graph = StateGraph(State).add_node("a", double).add_node("b", increment).add_edge(START, "a").add_edge("a", "b")

    assert {"total": 21, "visited": ["a", "b"]} == run.invoke(graph.compile(), {"total": 10, "visited": []})


@pytest.mark.acceptance("S1-8")
def test_a_key_that_no_node_mentions_stays(run: Runner) -> None:
    assert {"total": 3, "visited": ["n"]} == run.invoke(one_node(State, visit("n")).compile(), {"total": 3})


@pytest.mark.acceptance("S1-31")
def test_two_writers_of_a_plain_key_in_one_step_conflict_even_when_they_agree(run: Runner) -> None:
    graph = StateGraph(State).add_node("a", lambda state: {"total": 1}).add_node("b", lambda state: {"total": 1})
    app = graph.add_edge(START, "a").add_edge(START, "b").compile()

    with pytest.raises(ConcurrentUpdateError) as caught:
        run.invoke(app, {"total": 0})

    expected = "At key 'total': Can receive only one value per step. Use an Annotated key to handle multiple values."
    assert expected == caught.value.message


@pytest.mark.parametrize(
    ("value", "expected"),
    [({"visited": []}, {"visited": []}), ({"total": 1}, {"total": 1, "visited": []}), ({}, None)],
)
def test_a_reducer_key_has_its_empty_value_and_a_plain_key_is_absent(run: Runner, value: Any, expected: Any) -> None:
    assert expected == run.invoke(one_node(State, lambda state: None).compile(), value)


@pytest.mark.parametrize("value", [[1], "text"])
def test_an_input_that_is_no_state_is_refused_and_nothing_is_stored(
    run: Runner, saver: Saver, thread: Thread, value: Any
) -> None:
    app = one_node(State, visit("n")).compile(saver)

    with pytest.raises(InvalidUpdateError, match="Expected dict"):
        run.invoke(app, value, thread("1"))

    assert {} == {key: item for key, item in run.state(app, thread("1")).values.items() if item}


def test_an_unknown_key_fails_the_step_and_nothing_of_it_is_stored(run: Runner, saver: Saver, thread: Thread) -> None:
    app = one_node(State, lambda state: {"total": 1, "totl": 2}).compile(saver)

    with pytest.raises(InvalidUpdateError, match="Node 'n' returned 'totl'"):
        run.invoke(app, {"visited": ["i"]}, thread("1"))

    assert {"visited": ["i"]} == run.state(app, thread("1")).values


def test_an_input_key_outside_of_the_input_schema_is_dropped(run: Runner) -> None:
    app = one_node(State, visit("n"), input_schema=Secret).compile()

    assert {"visited": ["n"]} == run.invoke(app, {"secret": "s", "total": 5})


def test_keys_that_only_nodes_declare_are_shared_by_nodes_and_not_returned(run: Runner) -> None:
    def read(state: Secret) -> dict[str, Any]:
        return {"visited": [state["secret"]]}

    graph = one_node(State, lambda state: {"secret": "s"}).add_node("m", read).add_edge("n", "m")

    assert {"visited": ["s"]} == run.invoke(graph.compile(), {})


def test_an_output_schema_that_nobody_writes_gives_none(run: Runner) -> None:
    app = one_node(State, visit("n"), output_schema=Secret).compile()

    assert run.invoke(app, {}) is None


def test_a_state_without_keys_is_passed_bare(run: Runner) -> None:
    schema: Any = Annotated[list[int], operator.add]

    assert [1, 2, 3] == run.invoke(one_node(schema, lambda value: [len(value) + 1, 3]).compile(), [1])


def test_managed_values_are_computed_and_neither_stored_nor_returned(run: Runner) -> None:
    def look(state: Managed) -> dict[str, Any]:
        return {**state, "seen": [(state["last"], state["left"])]}

    app = one_node(Managed, look).add_node("m", look).add_edge("n", "m").compile()

    assert {"seen": [(False, 2), (True, 1)]} == run.invoke(app, {"seen": []}, {"recursion_limit": 3})


def test_a_subgraphs_surplus_keys_are_its_own(run: Runner) -> None:
    inner = one_node(Got, lambda state: {"size": 1}).compile()
    app = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile()

    assert {"total": 1, "visited": []} == run.invoke(app, {"total": 1})


def test_a_list_of_commands_and_updates_is_streamed_piece_by_piece(run: Runner) -> None:
    parts = [Command(update={"visited": ["1"]}), {"visited": ["2"]}, Command(goto="y")]
    graph = one_node(State, lambda state: parts).add_node("y", visit("y"), destinations=[])

    chunks = run.stream(graph.compile(), {})

    assert [{"n": [{"visited": ["1"]}, {"visited": ["2"]}]}, {"y": {"visited": ["y"]}}] == chunks


# -- isolation ---------------------------------------------------------------------------------------------------------


def test_only_what_is_returned_changes_the_state(run: Runner) -> None:
    def leak(state: State) -> dict[str, Any]:
        state["visited"].append("LEAK")
        return {}

    given = {"visited": ["i"]}
    app = one_node(State, leak).add_node("m", visit("m")).add_edge("n", "m").compile()

    assert {"visited": ["i", "m"]} == run.invoke(app, given)
    assert {"visited": ["i"]} == given


def test_a_path_that_changes_what_it_reads_changes_nothing(run: Runner) -> None:
    def path(state: State) -> str:
        state["visited"].append("LEAK")
        return "m"

    graph = one_node(State, visit("n")).add_node("m", visit("m")).add_conditional_edges("n", path, ["m"])

    assert {"visited": ["n", "m"]} == run.invoke(graph.compile(), {})


def test_a_models_containers_are_its_nodes_own(run: Runner) -> None:
    def leak(state: Model) -> dict[str, Any]:
        state.items.append(99)
        return {"note": "done"}

    assert [1] == run.invoke(one_node(Model, leak).compile(), {"number": 1})["items"]


def test_a_dataclass_input_stays_the_callers(run: Runner) -> None:
    def leak(state: Data) -> dict[str, Any]:
        state.items.append(99)
        return {"items": [2]}

    given = Data(number=1, items=[7])

    assert [1, 7, 2] == run.invoke(one_node(Data, leak).compile(), given)["items"]
    assert [7] == given.items


# -- typed state -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [Model, Data])
def test_defaults_are_seen_by_nodes_and_built_on_by_updates(run: Runner, schema: Any) -> None:
    seen: list[Any] = []

    def look(state: Any) -> dict[str, Any]:
        seen.append(state)
        return {"items": [2]}

    result = run.invoke(one_node(schema, look).compile(), {"number": 1})

    assert [schema(number=1)] == seen
    assert [1, 2] == result["items"]


def test_a_typed_input_is_what_its_model_makes_of_it(run: Runner) -> None:
    assert 7 == run.invoke(one_node(Model, lambda state: None).compile(), {"number": "7"})["number"]


def test_an_invalid_input_is_refused(run: Runner) -> None:
    with pytest.raises(ValidationError, match="validation error for Model"):
        run.invoke(one_node(Model, lambda state: None).compile(), {"number": "x"})


@pytest.mark.parametrize(
    "update",
    [
        {"items": None},
        {"number": "x"},
        Command(update={"items": None}),
        [Command(), {"number": None}],
        {"items": Overwrite(None)},
    ],
)
def test_an_update_that_does_not_fit_its_model_is_never_stored(
    run: Runner, saver: Saver, thread: Thread, update: Any
) -> None:
    app = one_node(Model, lambda state: update).compile(saver)

    with pytest.raises(ValidationError) as caught:
        run.invoke(app, {"number": 1, "items": [2]}, thread("1"))

    assert "Node 'n' wrote this to" in "".join(caught.value.__notes__)
    assert {"number": 1, "items": [1, 2]} == run.state(app, thread("1")).values


def test_a_thread_with_a_typed_state_is_mended_by_an_update_that_fits(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = one_node(Model, lambda state: {"number": "x"}).compile(saver)
    with pytest.raises(ValidationError):
        run.invoke(app, {"number": 1}, thread("1"))

    with pytest.raises(ValidationError):
        run.update(app, thread("1"), {"number": "still wrong"}, "n")
    run.update(app, thread("1"), {"number": "8"}, "n")

    assert 8 == run.state(app, thread("1")).values["number"]


def test_a_command_from_outside_is_checked_like_any_update(run: Runner, saver: Saver, thread: Thread) -> None:
    app = one_node(Model, lambda state: None).compile(saver)
    run.invoke(app, {"number": 1}, thread("1"))

    with pytest.raises(ValidationError):
        run.invoke(app, Command(update={"number": "x"}), thread("1"))
    run.invoke(app, Command(update={"number": "8"}), thread("1"))

    assert 8 == run.state(app, thread("1")).values["number"]


def test_what_a_model_instance_writes(run: Runner) -> None:
    app = one_node(Model, lambda state: Model(number=2)).compile()

    assert [{"n": {"number": 2, "size": 5}}] == run.stream(app, {"number": 1, "note": "kept", "size": 9})


def test_what_a_dataclass_instance_writes(run: Runner) -> None:
    app = one_node(Data, lambda state: Data(number=2, items=[])).compile()

    assert [{"n": {"number": 2, "note": None, "items": []}}] == run.stream(app, {"number": 1, "note": "replaced"})


def test_a_missing_field_fails_the_node_that_reads_it(run: Runner) -> None:
    with pytest.raises(ValidationError, match="number"):
        run.invoke(one_node(Model, lambda state: None).compile(), {"note": "x"})


def test_a_node_may_read_less_than_the_state_requires(run: Runner) -> None:
    def look(state: Got) -> dict[str, Any]:
        return {"size": state["size"] + 1}

    assert 10 == run.invoke(one_node(Model, look).compile(), {"size": 9})["size"]


def test_a_packet_is_a_typed_nodes_input_as_it_is(run: Runner) -> None:
    seen: list[Any] = []

    def work(state: Model) -> None:
        seen.append(state)

    graph = StateGraph(Model).add_node("work", work).add_conditional_edges(START, lambda s: Send("work", {"raw": 1}))

    run.invoke(graph.compile(), {"number": 1})

    assert [{"raw": 1}] == seen
