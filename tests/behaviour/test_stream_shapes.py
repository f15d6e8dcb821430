"""What a stream yields: the shape of chunks by mode, list of modes and subgraphs flag, and what is in them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypedDict

import pytest

from pregel.errors import InvalidInputError
from pregel.graph import START, StateGraph
from pregel.types import Command, StreamWriter, interrupt

from .conftest import Runner
from .marks import Saver, State, Thread, chain, failing_once, mark, parallel

UPDATES = [{"x": {"a": ["x"]}}, {"y": {"a": ["y"]}}]
VALUES: list[Any] = [{"a": ["i"]}, {"a": ["i", "x"]}, {"a": ["i", "x", "y"]}]


@pytest.mark.acceptance("S1-45")
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (None, UPDATES),
        ("updates", UPDATES),
        ("values", VALUES),
        (["updates"], [("updates", update) for update in UPDATES]),
        (("values",), [("values", value) for value in VALUES]),
        ("custom", []),
    ],
)
def test_one_mode_is_bare_and_a_sequence_of_modes_is_tagged(
    run: Runner, mode: str | Sequence[str] | None, expected: list[Any]
) -> None:
    assert run.stream(chain("x", "y").compile(), {"a": ["i"]}, stream_mode=mode) == expected


@pytest.mark.parametrize(("mode", "chunk"), [("updates", ((), UPDATES[0])), (["updates"], ((), "updates", UPDATES[0]))])
def test_the_namespace_leads_when_subgraphs_are_wanted(run: Runner, mode: Any, chunk: Any) -> None:
    assert run.stream(chain("x").compile(), {"a": []}, stream_mode=mode, subgraphs=True) == [chunk]


@pytest.mark.parametrize("subgraphs", [False, True])
def test_a_subgraphs_chunks_show_only_when_they_are_wanted(run: Runner, subgraphs: bool) -> None:
    app = chain("x", "child", child=chain("y").compile()).compile()

    chunks = run.stream(app, {"a": []}, stream_mode="updates", subgraphs=subgraphs)

    if subgraphs:
        (first, _), (inner, inner_update), (last, _) = chunks
        assert (first, last, len(inner)) == ((), (), 1)
        assert inner[0].startswith("child:")
        assert inner_update == {"y": {"a": ["y"]}}
    else:
        assert [next(iter(chunk)) for chunk in chunks] == ["x", "child"]


@pytest.mark.acceptance("S1-37")
def test_a_subgraph_shows_under_its_own_namespace_before_its_node_does(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    child = chain("t", t=lambda state: {"b": "done"}).compile()
    app = chain("child", child=child).compile(checkpointer=saver)

    ((place,), inner), outer = run.stream(app, {"a": []}, thread("1"), stream_mode="updates", subgraphs=True)

    assert ({"t": {"b": "done"}}, ((), {"child": {"a": [], "b": "done"}})) == (inner, outer)
    name, _, task_id = place.partition(":")
    (task,) = run.history(app, thread("1"))[1].tasks
    assert ("child", task.id) == (name, task_id)
    assert [("t",), ("__start__",)] == [
        state.next for state in run.history(app, {"configurable": {"thread_id": "1", "checkpoint_ns": place}})
    ][1:]


def test_invoke_with_another_mode_is_the_list_of_its_chunks(run: Runner) -> None:
    app = chain("x", "y").compile()

    assert run.invoke(app, {"a": ["i"]}, stream_mode="updates") == UPDATES
    assert run.invoke(app, {"a": ["i"]}, stream_mode=["values"]) == [("values", value) for value in VALUES]


def test_a_node_that_wrote_nothing_shows_none(run: Runner) -> None:
    graph = chain("x", "y", x=lambda state: None, y=lambda state: {})

    assert run.stream(graph.compile(), {"a": []}, stream_mode="updates") == [{"x": None}, {"y": None}]


def test_output_keys_choose_what_shows(run: Runner) -> None:
    app = chain("x", "y", y=lambda state: {"b": "b"}).compile()
    shown = {"output_keys": ["b"]}

    assert run.stream(app, {"a": []}, stream_mode="updates", **shown) == [{"x": None}, {"y": {"b": "b"}}]
    assert run.stream(app, {"a": []}, stream_mode="updates", output_keys="b") == [{"x": None}, {"y": "b"}]
    assert run.stream(app, {"a": []}, stream_mode="values", **shown) == [{"b": "b"}]
    assert run.invoke(app, {"a": []}, **shown) == {"b": "b"}
    assert run.invoke(app, {"a": []}, output_keys="b") == "b"


def test_an_unknown_output_key_is_an_error(run: Runner) -> None:
    with pytest.raises(InvalidInputError, match="nope"):
        run.stream(chain("x").compile(), {"a": []}, output_keys=["nope"])


def test_a_stream_shows_all_keys_and_an_output_those_of_its_schema(run: Runner) -> None:
    class Out(TypedDict, total=False):
        b: str

    class Private(TypedDict, total=False):
        secret: str

    def reads_private(state: Private) -> dict[str, Any]:
        return {"b": state["secret"]}

    graph = StateGraph(State, output_schema=Out).add_node("x", lambda state: {"secret": "s"})
    app = graph.add_node("y", reads_private, input_schema=Private).add_edge(START, "x").add_edge("x", "y").compile()

    assert run.invoke(app, {"a": ["i"]}) == {"b": "s"}
    assert run.stream(app, {"a": ["i"]}, stream_mode="values")[-1] == {"a": ["i"], "b": "s", "secret": "s"}


def test_a_step_that_changes_no_output_shows_no_values(run: Runner) -> None:
    app = chain("x", "y", x=lambda state: None).compile()

    assert run.stream(app, {"a": []}, stream_mode="values") == [{"a": []}, {"a": ["y"]}]


# -- questions, failures, resumes --------------------------------------------------------------------------------------


def test_a_question_shows_in_updates_and_then_in_values(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", x=lambda state: {"a": [interrupt("?")]}).compile(checkpointer=saver)

    chunks = run.stream(app, {"a": []}, thread("1"), stream_mode=["updates", "values"])

    (question,) = run.state(app, thread("1")).interrupts
    assert chunks == [
        ("values", {"a": []}),
        ("updates", {"__interrupt__": (question,)}),
        ("values", {"a": [], "__interrupt__": (question,)}),
    ]


def test_a_question_shows_before_the_values_that_its_siblings_wrote(run: Runner, saver: Saver, thread: Thread) -> None:
    app = parallel("x", "y", y=lambda state: {"a": [interrupt("?")]}).compile(checkpointer=saver)

    chunks = run.stream(app, {"a": []}, thread("1"), stream_mode=["values"])
    (question,) = run.state(app, thread("1")).interrupts

    assert [payload for _, payload in chunks] == [{"a": []}, {"a": [], "__interrupt__": (question,)}, {"a": ["x"]}]


def test_invoke_gives_a_list_of_questions_beside_the_values(run: Runner, saver: Saver, thread: Thread) -> None:
    app = parallel("x", "y", y=lambda state: {"a": [interrupt("?")]}).compile(checkpointer=saver)

    result = run.invoke(app, {"a": []}, thread("1"))

    assert result == {"a": ["x"], "__interrupt__": list(run.state(app, thread("1")).interrupts)}


def test_what_a_resume_finds_finished_shows_again_as_cached(run: Runner, saver: Saver, thread: Thread) -> None:
    app = parallel("x", "y", y=lambda state: {"a": [interrupt("?")]}).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    chunks = run.stream(app, Command(resume="yes"), thread("1"), stream_mode=["updates", "values"])

    assert chunks == [
        ("values", {"a": []}),
        ("updates", {"x": {"a": ["x"]}, "__metadata__": {"cached": True}}),
        ("updates", {"y": {"a": ["yes"]}}),
        ("values", {"a": ["x", "yes"]}),
    ]


def stream_into(shown: list[Any], run: Runner, app: Any, value: Any) -> None:
    """Keep what a stream shows before it raises."""

    async def follow() -> None:
        async for chunk in app.astream(value):
            shown.append(chunk)

    if run.name == "async":
        asyncio.run(follow())
    else:
        for chunk in app.stream(value):
            shown.append(chunk)


def test_a_failed_node_shows_no_update(run: Runner) -> None:
    def fail(state: State) -> None:
        raise RuntimeError("no")

    shown: list[Any] = []

    with pytest.raises(RuntimeError, match="no"):
        stream_into(shown, run, chain("x", "y", y=fail).compile(), {"a": []})

    assert shown == [{"x": {"a": ["x"]}}]


def test_a_run_that_resumes_over_a_failure_shows_only_what_ran(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", "z", y=failing_once("y", RuntimeError("once"))).compile(checkpointer=saver)
    with pytest.raises(RuntimeError, match="once"):
        run.invoke(app, {"a": []}, thread("1"))

    assert run.stream(app, None, thread("1"), stream_mode="updates") == [{"y": {"a": ["y"]}}, {"z": {"a": ["z"]}}]


def test_custom_chunks_come_in_order_and_before_their_nodes_update(run: Runner) -> None:
    def talks(state: State, writer: StreamWriter) -> dict[str, Any]:
        writer("one")
        writer({"two": 2})
        return {"a": ["x"]}

    graph = StateGraph(State).add_node("x", talks).add_node("y", mark("y")).add_edge(START, "x").add_edge("x", "y")

    assert run.stream(graph.compile(), {"a": []}, stream_mode=["custom", "updates"]) == [
        ("custom", "one"),
        ("custom", {"two": 2}),
        ("updates", {"x": {"a": ["x"]}}),
        ("updates", {"y": {"a": ["y"]}}),
    ]
