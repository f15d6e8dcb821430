"""What a node may be, what it may return, and what a subgraph gives back: edges that have no page of their own."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict, cast

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import InvalidUpdateError, NodeInterrupt, ParentCommand
from pregel.graph import END, StateGraph
from pregel.runnable import RunnableLambda
from pregel.types import Command, Send, interrupt

from .conftest import Runner
from .marks import State, Thread, chain, mark


def only(node: Any) -> Any:
    """A graph of one node."""
    return chain("x", x=node).compile()


def test_of_a_generators_updates_that_cannot_be_added_the_last_one_counts(run: Runner) -> None:
    def node(state: State) -> Any:
        yield {"a": ["first"]}
        yield {"b": "second"}

    assert {"a": ["in"], "b": "second"} == run.invoke(only(node), {"a": ["in"]})


def test_a_runnable_that_a_node_returns_is_called_with_the_nodes_input(run: Runner) -> None:
    app = only(lambda state: RunnableLambda(lambda again: {"a": [f"{len(again['a'])} before"]}))

    assert {"a": ["in", "1 before"]} == run.invoke(app, {"a": ["in"]})


def test_a_dict_of_functions_is_a_node_that_writes_each_key(run: Runner) -> None:
    app = only({"a": lambda state: ["a"], "b": lambda state: "b"})

    assert {"a": ["in", "a"], "b": "b"} == run.invoke(app, {"a": ["in"]})


@pytest.mark.parametrize(("goto", "ran"), [(END, ["x", "z"]), ("y", ["x", "y", "z"])])
def test_a_command_stops_no_static_edge(run: Runner, goto: str, ran: list[str]) -> None:
    graph = chain("x", "z", x=lambda state: Command(update={"a": ["x"]}, goto=goto)).add_node("y", mark("y"))
    graph.add_edge("y", END)

    assert {"a": ran} == run.invoke(graph.compile(), {"a": []})


def test_a_command_for_a_parent_that_there_is_none_of_reaches_the_caller(run: Runner) -> None:
    app = only(lambda state: Command(graph=Command.PARENT, goto="somewhere"))

    with pytest.raises(ParentCommand) as caught:
        run.invoke(app, {"a": []})

    assert "somewhere" == caught.value.commands[0].goto == caught.value.args[0].goto
    assert "there is none" in str(caught.value)


def test_what_a_subgraph_gives_back_of_a_shared_list_is_folded_again(run: Runner) -> None:
    app = only(chain("inner").compile())

    assert {"a": ["in", "in", "inner"]} == run.invoke(app, {"a": ["in"]})


def test_a_raised_question_of_the_older_kind_pauses_until_its_node_raises_it_no_more(
    run: Runner, thread: Thread
) -> None:
    approved = list[bool]()

    def node(state: State) -> dict[str, Any]:
        if not approved:
            raise NodeInterrupt("approve?")
        return {"a": ["approved"]}

    app = chain("x", x=node).compile(checkpointer=InMemorySaver())

    (question,) = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]
    assert ("approve?", "placeholder-id") == (question.value, question.id)
    assert (question,) == run.state(app, thread("1")).interrupts
    approved.append(True)
    assert {"a": ["approved"]} == run.invoke(app, None, thread("1"))


def test_a_subgraph_that_is_never_stored_starts_over_for_its_answer(run: Runner, thread: Thread) -> None:
    ran, saver = list[str](), InMemorySaver()
    inner = chain("before", "ask", before=mark("before", ran), ask=lambda state: {"a": [interrupt("?")]})
    app = chain("x", x=inner.compile(checkpointer=False)).compile(checkpointer=saver)

    run.invoke(app, {"a": []}, thread("1"))

    assert {"a": ["before", "yes"]} == run.invoke(app, Command(resume="yes"), thread("1"))
    assert ["before", "before"] == ran
    assert {""} == {saved.config["configurable"]["checkpoint_ns"] for saved in saver.list(thread("1"))}


def test_two_lambdas_are_one_reducer_and_two_functions_are_not() -> None:
    def left(old: list[str], new: list[str]) -> list[str]:
        return old

    def right(old: list[str], new: list[str]) -> list[str]:
        return new

    typed = cast(Any, TypedDict)

    def schema(reducer: Any) -> Any:
        return typed("Schema", {"a": Annotated[list[str], reducer] if reducer else list[str]})

    StateGraph(schema(lambda old, new: old), output_schema=schema(lambda old, new: new))
    StateGraph(schema(operator.add), output_schema=schema(None))
    with pytest.raises(ValueError, match="'a'"):
        StateGraph(schema(left), output_schema=schema(right))


def test_a_graph_names_what_it_takes_after_itself() -> None:
    assert ("LangGraphInput", "mineOutput") == (
        chain("x").compile().get_name("Input"),
        chain("x").compile(name="mine").get_name("Output"),
    )


def test_a_send_to_the_end_is_refused(run: Runner) -> None:
    graph = chain("x").add_conditional_edges("x", lambda state: Send(END, state))

    with pytest.raises(InvalidUpdateError, match="END"):
        run.invoke(graph.compile(), {"a": []})
