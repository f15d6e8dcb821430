"""Configs that cannot be, and copies of graphs."""

from __future__ import annotations

import copy
import operator
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from pregel.cache.memory import InMemoryCache
from pregel.channels import EphemeralValue, LastValue
from pregel.engine.node import NodeBuilder
from pregel.engine.pregel import Pregel
from pregel.errors import InvalidInputError
from pregel.func import entrypoint, task
from pregel.graph import START, StateGraph
from pregel.store.memory import InMemoryStore

from .conftest import Runner
from .marks import Saver, Thread, chain


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ("mine", "The config is 'mine'"),
        (5, "The config is 5"),
        ({"tags": "mine"}, "tags of the config is 'mine'"),
        ({"tags": 5}, "tags of the config is 5"),
        ({"metadata": "mine"}, "metadata of the config is 'mine'"),
        ({"metadata": ["mine"]}, r"metadata of the config is \['mine'\]"),
        ({"configurable": "1"}, "configurable of the config is '1'"),
        ({"max_concurrency": "2"}, "max_concurrency must be at least 1, and is '2'"),
        ({"max_concurrency": -1}, "max_concurrency must be at least 1, and is -1"),
        ({"recursion_limit": "9"}, "recursion_limit must be at least 1, and is '9'"),
    ],
)
def test_a_value_that_no_config_can_have_is_a_named_error(run: Runner, config: Any, what: str) -> None:
    ran: list[int] = []
    app = chain("a", a=lambda state: ran.append(1)).compile()
    outer = chain("n", n=lambda state: app.invoke({"a": []}, config)).compile()

    for act in (lambda: run.invoke(app, {"a": []}, config), lambda: run.stream(app, {"a": []}, config)):
        with pytest.raises(InvalidInputError, match=what):
            act()
    with pytest.raises(InvalidInputError, match=what):
        outer.invoke({"a": []})
    assert [] == ran


def test_a_config_that_cannot_be_is_no_place_of_a_thread_either(run: Runner, saver: Saver) -> None:
    app = chain("a").compile(checkpointer=saver)

    for config in ("1", {"configurable": "1"}):
        with pytest.raises(InvalidInputError, match="config"):
            run.state(app, config)
        with pytest.raises(InvalidInputError, match="config"):
            run.update(app, config, {"a": []})
    with pytest.raises(InvalidInputError, match="tags of the config is 'mine'"):
        app.with_config(tags="mine")


def test_a_deep_copy_of_a_graph_runs_on_the_same_saver(run: Runner, saver: Saver, thread: Thread) -> None:
    sub = chain("inner").compile()
    app = chain("a", "sub", sub=sub).compile(checkpointer=saver, store=InMemoryStore(), cache=InMemoryCache())

    copied = copy.deepcopy(app)
    first = run.invoke(copied, {"a": []}, thread("1"))

    assert first == run.state(app, thread("1")).values
    assert (saver, app.store, app.cache) == (copied.checkpointer, copied.store, copied.cache)
    assert copied.nodes["a"] is not app.nodes["a"]
    assert copied.nodes["sub"].subgraph is not sub


def test_a_deep_copy_of_an_entrypoint_and_of_a_raw_graph_runs(saver: Saver, thread: Thread) -> None:
    @task
    def add(x: int) -> int:
        return x + 1

    @entrypoint(checkpointer=saver)
    def flow(x: int) -> int:
        return add(x).result()

    node = NodeBuilder().subscribe_only("in").do(lambda x: x * 2).write_to("out")
    raw: Any = Pregel(
        nodes={"double": node},
        channels={"in": EphemeralValue(int), "out": LastValue(int)},
        input_channels="in",
        output_channels="out",
    )

    assert 2 == copy.deepcopy(flow).invoke(1, thread("1"))
    assert 4 == copy.deepcopy(raw).invoke(2)


class Forgetful(TypedDict, total=False):
    log: Annotated[list[int], lambda old, new: old.append(new)]
    total: Annotated[int, operator.add]


def test_a_reducer_that_gave_none_is_named_when_it_raises(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = StateGraph(Forgetful).add_node("a", lambda state: {"log": 1}).add_node("b", lambda state: {"log": 2})
    app = graph.add_edge(START, "a").add_edge("a", "b").compile(checkpointer=saver)

    with pytest.raises(AttributeError) as caught:
        run.invoke(app, {"log": []}, thread("1"))

    told = "\n".join(caught.value.__notes__)
    assert "In the reducer of 'log', whose value is None: a reducer has to return the new value" in told


def test_a_reducer_that_raises_is_named(run: Runner) -> None:
    app = StateGraph(Forgetful).add_node("a", lambda state: {"total": "x"}).add_edge(START, "a").compile()

    with pytest.raises(TypeError) as caught:
        run.invoke(app, {"total": 1})

    assert "In the reducer of 'total'" in caught.value.__notes__
