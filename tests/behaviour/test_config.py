"""What a call is configured with: merging, what nodes see of it, what is stored of it, batches, bound configs."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from pregel import get_config
from pregel.config import RunnableConfig, merge_configs
from pregel.errors import GraphRecursionError, InvalidInputError, MissingThreadError, OutsideRunError
from pregel.graph import START, StateGraph
from pregel.types import Send

from .conftest import Runner
from .marks import Saver, State, Thread, chain, mark


def seeing(seen: list[Any]) -> StateGraph[Any]:
    """A node that keeps the config that it is called with."""

    def node(state: State, config: RunnableConfig) -> dict[str, Any]:
        seen.append(config)
        return {"a": ["x"]}

    return StateGraph(State).add_node("x", node, metadata={"node": "meta"}).add_edge(START, "x")


# -- merging -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        (({"tags": ["a"]}, {"tags": ["b"]}), {"tags": ["a", "b"]}),
        (({"metadata": {"k": 1, "m": 1}}, {"metadata": {"k": 2}}), {"metadata": {"k": 2, "m": 1}}),
        (({"configurable": {"k": {"deep": 1}}}, {"configurable": {"k": {}}}), {"configurable": {"k": {}}}),
        (({"recursion_limit": 5}, {}), {"recursion_limit": 5}),
        (({"recursion_limit": 5}, {"recursion_limit": 7}), {"recursion_limit": 7}),
        (({"run_name": "r"}, {"run_name": ""}), {"run_name": "r"}),
        (({"max_concurrency": 2}, {"max_concurrency": None}), {"max_concurrency": 2}),
        ((None, {"tags": ["a"]}, None), {"tags": ["a"]}),
        (({"thread_id": "1"}, {"configurable": {"user": "u"}}), {"configurable": {"thread_id": "1", "user": "u"}}),
    ],
)
def test_later_configs_are_stronger(configs: Any, expected: Any) -> None:
    assert merge_configs(*configs) == expected


def test_merging_changes_none_of_the_configs() -> None:
    one: Any = {"tags": ["a"], "metadata": {"k": 1}}
    two: Any = {"tags": ["b"], "metadata": {"m": 2}}

    merge_configs(one, two)

    assert (one, two) == ({"tags": ["a"], "metadata": {"k": 1}}, {"tags": ["b"], "metadata": {"m": 2}})


# -- what a node sees --------------------------------------------------------------------------------------------------


def test_a_node_sees_the_callers_config_with_its_own_coordinates(run: Runner, saver: Saver, thread: Thread) -> None:
    seen: list[Any] = []
    app = seeing(seen).compile(checkpointer=saver)

    run.invoke(app, {"a": []}, {**thread("1"), "tags": ["t"], "metadata": {"user": "u"}, "recursion_limit": 50})

    (task,) = run.history(app, thread("1"))[1].tasks
    (config,) = seen
    assert config["tags"] == ["t"]
    assert config["recursion_limit"] == 50
    assert config["configurable"]["thread_id"] == "1"
    assert config["configurable"]["checkpoint_ns"] == f"x:{task.id}"
    metadata = config["metadata"]
    assert (metadata["user"], metadata["node"]) == ("u", "meta")
    assert {key: metadata[f"langgraph_{key}"] for key in ("step", "node", "path", "triggers", "checkpoint_ns")} == {
        "step": 1,
        "node": "x",
        "path": ("__pregel_pull", "x"),
        "triggers": ("branch:to:x",),
        "checkpoint_ns": f"x:{task.id}",
    }


def test_a_sent_task_sees_its_place_among_the_packets(run: Runner) -> None:
    paths: list[Any] = []
    graph = StateGraph(State).add_node("w", lambda arg: paths.append(get_config()["metadata"]["langgraph_path"]))
    graph.add_conditional_edges(START, lambda state: [Send("w", 1), Send("w", 2)], ["w"])

    run.invoke(graph.compile(), {"a": []})

    assert sorted(paths) == [("__pregel_push", 0, False), ("__pregel_push", 1, False)]


def test_there_is_no_config_outside_of_a_run(run: Runner) -> None:
    run.invoke(chain("x", x=lambda state: get_config() and None).compile(), {"a": []})

    with pytest.raises(OutsideRunError):
        get_config()


# -- what is stored ----------------------------------------------------------------------------------------------------


def test_primitives_of_the_config_are_stored_as_metadata(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x").compile(checkpointer=saver)
    config = {
        "configurable": {"thread_id": "1", "user": "u", "list": [1], "__private": "p", "langgraph_x": 1, "flag": True},
        "metadata": {"source_of": "test", "n": 3, "ratio": 0.5, "nested": {"k": 1}, "user": "stronger", "nul": "a\0b"},
    }

    run.invoke(app, {"a": []}, config)

    stored = [entry.metadata for entry in run.history(app, thread("1"))]
    extra = {"user": "stronger", "flag": True, "source_of": "test", "n": 3, "ratio": 0.5, "nul": "ab"}
    assert stored == [
        {"source": source, "step": step, "parents": {}, **extra}
        for source, step in (("loop", 1), ("loop", 0), ("input", -1))
    ]


def test_what_places_a_run_stands_in_its_metadata(run: Runner) -> None:
    seen: list[Any] = []
    place = {"thread_id": "1", "checkpoint_id": "c", "checkpoint_ns": "n", "task_id": "t", "run_id": "r", "key": "k"}

    run.invoke(seeing(seen).compile(), {"a": []}, {"configurable": {**place, "graph_id": ""}})

    (config,) = seen
    told = {key: value for key, value in config["metadata"].items() if not key.startswith("langgraph_")}
    assert told == {**{key: place[key] for key in place if key != "key"}, "node": "meta"}


def test_a_run_id_is_stored(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, {"configurable": {"thread_id": "1", "run_id": "r-1"}})

    assert run.state(app, thread("1")).metadata["run_id"] == "r-1"


def test_an_update_stores_the_metadata_of_its_own_config(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, {**thread("1"), "metadata": {"user": "anna"}})

    run.update(app, {**thread("1"), "metadata": {"reviewer": "ben"}}, {"b": "b"})

    metadata = run.state(app, thread("1")).metadata
    assert (metadata.get("user"), metadata.get("reviewer"), metadata["source"]) == (None, "ben", "update")


# -- bound configs -----------------------------------------------------------------------------------------------------


def test_a_graph_with_a_config_runs_with_it(run: Runner, saver: Saver, thread: Thread) -> None:
    seen: list[Any] = []
    app = seeing(seen).compile(checkpointer=saver).with_config({"configurable": {"thread_id": "1"}, "tags": ["bound"]})

    run.invoke(app, {"a": []})
    run.invoke(app, {"a": []}, {"tags": ["call"], "configurable": {"user": "u"}})

    assert [config["tags"] for config in seen] == [["bound"], ["bound", "call"]]
    assert seen[1]["configurable"]["thread_id"] == "1"
    assert run.state(app, {}).values == {"a": ["x", "x"]}


def test_a_bound_config_changes_a_copy(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver)
    bound = app.with_config(recursion_limit=1, configurable={"thread_id": "bound"})

    with pytest.raises(GraphRecursionError):
        run.invoke(bound, {"a": []})

    assert type(bound) is type(app)
    assert run.invoke(app, {"a": []}, thread("1")) == {"a": ["x", "y"]}
    with pytest.raises(MissingThreadError):
        run.invoke(app, {"a": []})


# -- batches -----------------------------------------------------------------------------------------------------------


class Total(TypedDict):
    n: Annotated[int, operator.add]


def adding() -> StateGraph[Any]:
    return StateGraph(Total).add_node("x", lambda state: {"n": 1}).add_edge(START, "x")


def test_a_batch_is_independent_runs_in_order(run: Runner, saver: Saver, thread: Thread) -> None:
    app = adding().compile(checkpointer=saver)

    results = run.batch(app, [{"n": n} for n in range(3)], [thread(str(n)) for n in range(3)])

    assert results == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert [run.state(app, thread(str(n))).values for n in range(3)] == results


def test_a_batch_raises_the_first_failure_or_returns_it(run: Runner) -> None:
    def fail(state: State) -> dict[str, Any]:
        if "bad" in state["a"]:
            raise ValueError("bad")
        return {"a": ["x"]}

    app = chain("x", x=fail).compile()
    inputs = [{"a": ["good"]}, {"a": ["bad"]}]

    with pytest.raises(ValueError, match="bad"):
        run.batch(app, inputs)
    good, bad = run.batch(app, inputs, return_exceptions=True)

    assert (good, type(bad)) == ({"a": ["good", "x"]}, ValueError)


def test_a_batch_of_nothing_is_nothing_and_configs_must_match(run: Runner) -> None:
    app = chain("x", x=mark("x")).compile()

    assert run.batch(app, []) == []
    with pytest.raises(InvalidInputError, match="2 inputs but 1 configs"):
        run.batch(app, [{"a": []}, {"a": []}], [{}])
