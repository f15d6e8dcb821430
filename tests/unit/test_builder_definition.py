"""How a graph is written down, and what is refused while it is."""

from __future__ import annotations

import functools
import logging
import operator
import warnings
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import DefinitionError, GraphValidationError, ReservedNameError
from pregel.graph import END, START, StateGraph
from pregel.runnable import RunnableLambda
from pregel.types import Command, Send
from pregel.warnings import LangGraphDeprecatedSinceV05, LangGraphDeprecatedSinceV10, PregelWarning


class State(TypedDict):
    items: Annotated[list[str], operator.add]


def nothing(state: State) -> None:
    return None


def to_b_or_end(state: State) -> Literal["b", "__end__"]:
    return "b"


def commanding(state: State) -> Command[Literal["b", "__end__"]] | None:
    return None


def anywhere(state: State) -> Any:
    return Command(goto="b")


def packets(state: State) -> Any:
    return [Send("b", state)]


def helped(state: State) -> Any:
    return anywhere(state)


def holding(state: State) -> Any:
    return HANDOFFS


HANDOFFS = [Command(goto="b")]


class CallableObject:
    def __call__(self, state: State) -> None:
        return None


def graph(*names: str) -> StateGraph[Any]:
    builder: StateGraph[Any] = StateGraph(State)
    for name in names:
        builder.add_node(name, nothing)
    return builder


def compiled(**options: Any) -> Any:
    return graph("a").set_entry_point("a").compile(**options)


@pytest.mark.parametrize(
    ("action", "name"),
    [
        (nothing, "nothing"),
        (lambda state: None, "<lambda>"),
        (functools.partial(nothing), "partial"),
        (CallableObject(), "CallableObject"),
        (RunnableLambda(nothing, name="mine"), "mine"),
    ],
)
def test_a_node_is_called_after_its_action(action: Any, name: str) -> None:
    assert [name] == list(graph().add_node(action).nodes)


@pytest.mark.parametrize(
    ("define", "error", "message"),
    [
        (lambda: graph("a").add_node("a", nothing), DefinitionError, "'a' already present"),
        (lambda: graph(START), ReservedNameError, "'__start__' is reserved"),
        (lambda: graph(END), ReservedNameError, "'__end__' is reserved"),
        (lambda: graph("a|b"), ReservedNameError, r"'\|' is a reserved character"),
        (lambda: graph("a:b"), ReservedNameError, "':' is a reserved character"),
        (lambda: graph().add_node("a"), DefinitionError, "'a' has no action"),  # type: ignore[call-overload]
        (lambda: graph().add_node("a", 5), TypeError, "Expected a Runnable, a callable or a dict"),  # type: ignore[call-overload]
        (lambda: graph().add_node("a", nothing, colour=1), TypeError, "unexpected keyword argument 'colour'"),  # type: ignore[call-overload]
        (lambda: graph().add_node("a", nothing, timeout=0), ValueError, "must be greater than 0"),
        (lambda: graph("a").add_edge(END, "a"), DefinitionError, "END cannot be a start node"),
        (lambda: graph("a").add_edge("a", START), DefinitionError, "START cannot be an end node"),
        (lambda: graph("a").add_edge(["b"], "a"), DefinitionError, "Need to add_node 'b' first"),
        (lambda: graph("a").add_edge([START], "a"), DefinitionError, "Need to add_node '__start__' first"),
        (lambda: graph("a").add_edge(["a"], "b"), DefinitionError, "Need to add_node 'b' first"),
        (lambda: graph("a").add_edge([], "a"), DefinitionError, "at least one start node"),
        (lambda: graph("a").add_edge("a", ["b"]), DefinitionError, r"the name of one node, got \['b'\]"),  # type: ignore[arg-type]
        (lambda: graph("a").add_edge("a", None), DefinitionError, "the name of one node, got None"),  # type: ignore[arg-type]
        (lambda: graph("a").add_edge(None, "a"), DefinitionError, "a list of names, got None"),  # type: ignore[arg-type]
        (lambda: graph("a").add_edge(["a", 5], END), DefinitionError, "a list of names, got"),  # type: ignore[list-item]
        (lambda: graph().add_sequence([]), DefinitionError, "at least one node"),
        (lambda: graph().add_sequence([nothing, nothing]), DefinitionError, "must be unique"),
        (lambda: compiled(checkpointer=5), TypeError, "Invalid checkpointer"),
        (lambda: compiled(checkpointer=InMemorySaver), TypeError, r"Call it: checkpointer=InMemorySaver\(\)"),
        (lambda: compiled(unknown_keys="drop"), DefinitionError, "unknown_keys"),
        (lambda: StateGraph(State, colour=1), TypeError, "unexpected keyword argument 'colour'"),
    ],
)
def test_a_definition_that_cannot_work_is_refused_at_once(
    define: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        define()


def test_a_second_lambda_on_one_source_is_refused_by_its_name() -> None:
    builder = graph("a").add_conditional_edges("a", lambda state: END)

    with pytest.raises(ValueError, match="'condition' already exists for node 'a'"):
        builder.add_conditional_edges("a", lambda state: "a")


def test_everything_that_is_wrong_is_said_at_once() -> None:
    builder = graph("a", "configurable").add_edge("ghost", "a").add_edge("a", "aa")
    builder.add_conditional_edges("a", nothing, {"x": "nowhere"}).add_node("c", nothing, destinations=["gone"])

    with pytest.raises(GraphValidationError) as caught:
        builder.compile(interrupt_before=["missing"])

    words = (
        "'configurable' is reserved",
        "entrypoint",
        "'ghost'",
        "Did you mean 'a'",
        "'nowhere'",
        "'gone'",
        "'missing'",
    )
    assert [] == [word for word in words if not any(word in problem for problem in caught.value.problems)]
    assert len(words) == len(caught.value.problems)


def test_a_sequence_chains_its_nodes() -> None:
    builder = graph().add_sequence([nothing, ("b", nothing), ("c", nothing)])

    assert {("nothing", "b"), ("b", "c")} == builder.edges


def test_the_shorthands_are_edges() -> None:
    builder = graph("a", "b").set_entry_point("a").set_finish_point("a")
    builder.set_conditional_entry_point(nothing, {"x": "b"})

    assert {(START, "a"), ("a", END)} == builder.edges
    assert {"x": "b"} == builder.branches[START]["nothing"].ends


@pytest.mark.parametrize(
    ("path_map", "ends"), [(["a", "b"], {"a": "a", "b": "b"}), ({True: "a"}, {True: "a"}), (None, None)]
)
def test_a_path_map_is_a_dict_or_names(path_map: Any, ends: Any) -> None:
    assert ends == graph("a").add_conditional_edges("a", nothing, path_map).branches["a"]["nothing"].ends


def test_a_literal_return_annotation_is_a_path_map() -> None:
    branches = graph("a", "b").add_conditional_edges("a", to_b_or_end).branches

    assert {"b": "b", END: END} == branches["a"]["to_b_or_end"].ends


def test_a_command_annotation_declares_destinations() -> None:
    assert ("b", END) == graph().add_node("a", commanding).nodes["a"].ends


@pytest.mark.parametrize(
    ("old", "new", "category"),
    [
        ("input", "input_schema", LangGraphDeprecatedSinceV05),
        ("output", "output_schema", LangGraphDeprecatedSinceV05),
        ("config_schema", "context_schema", LangGraphDeprecatedSinceV10),
    ],
)
def test_old_keywords_of_the_constructor_work_with_a_warning(old: str, new: str, category: type[Warning]) -> None:
    with pytest.warns(category, match=f"`{old}` is deprecated"):
        builder = StateGraph(State, **{old: State})

    assert State is getattr(builder, new)


def test_old_keywords_of_a_node_work_with_a_warning() -> None:
    with pytest.warns(LangGraphDeprecatedSinceV05, match="`input` is deprecated"):
        builder = graph().add_node("a", lambda state: None, input=State)  # type: ignore[call-overload]

    assert State is builder.nodes["a"].input_schema


def test_a_node_nothing_leads_to_is_named_at_the_callers_line() -> None:
    builder = graph("a", "b", "c").add_edge(START, "a").add_edge("b", "c")

    with pytest.warns(PregelWarning, match="Nothing leads to 'b', 'c'") as caught:
        builder.compile()

    assert [__file__] == [warning.filename for warning in caught]


def test_strict_refuses_a_node_nothing_leads_to() -> None:
    with pytest.raises(GraphValidationError, match="Nothing leads to 'b'"):
        graph("a", "b").add_edge(START, "a").compile(strict=True)


@pytest.mark.parametrize(
    "lead",
    [
        lambda builder: builder.add_node("go", anywhere),
        lambda builder: builder.add_node("go", packets),
        lambda builder: builder.add_node("go", helped),
        lambda builder: builder.add_node("go", holding),
        lambda builder: builder.add_node("go", functools.partial(anywhere)),
        lambda builder: builder.add_node("go", CallableObject()),
        lambda builder: builder.add_node("go", CallableObject().__call__),
        lambda builder: builder.add_node("go", commanding),
        lambda builder: builder.add_node("go", nothing, destinations=["b"]),
        lambda builder: builder.add_node("go", nothing).add_edge(["go"], "b"),
        lambda builder: builder.add_node("go", nothing).add_conditional_edges("go", nothing),
        lambda builder: builder.add_node("go", nothing).add_conditional_edges("go", packets, ["go"]),
        lambda builder: builder.add_node("go", graph("b").add_edge(START, "b").compile()),
    ],
)
def test_a_node_that_something_may_route_to_is_not_warned_of(lead: Callable[[Any], Any]) -> None:
    builder = lead(graph("b")).add_edge(START, "go")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "b" in builder.compile(strict=True).nodes


def test_what_is_added_after_compiling_stays_out_of_the_compiled_graph(caplog: pytest.LogCaptureFixture) -> None:
    builder = graph("a").add_edge(START, "a")
    app = builder.compile()

    with caplog.at_level(logging.WARNING, "pregel.graph.state"):
        builder.add_node("b", nothing)

    assert "b" not in app.nodes
    assert "has been compiled" in caplog.text


@pytest.mark.parametrize("of_key", [False, True])
def test_a_name_that_cannot_be_written_down_is_refused_at_build(of_key: bool) -> None:
    name = "half a pair \ud800"
    schema: Any = type("Named", (), {"__annotations__": {name if of_key else "a": str}})
    builder: Any = StateGraph(schema)
    builder.add_node("node" if of_key else name, lambda state: {})
    builder.add_edge(START, "node" if of_key else name)

    with pytest.raises(DefinitionError, match="has half a surrogate pair, which no store keeps"):
        builder.compile()
