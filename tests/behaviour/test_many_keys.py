"""A state of many keys does what one of few does: most of its keys are mere values until somebody does more to them."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from pregel.errors import ConcurrentUpdateError
from pregel.graph import START, StateGraph
from pregel.types import Overwrite

from .conftest import Runner
from .marks import Saver, Thread

KEYS = [f"k{number}" for number in range(40)]
Wide = TypedDict("Wide", {"log": Annotated[list[str], operator.add], "missing": Any, **dict.fromkeys(KEYS, Any)})  # type: ignore[misc]
GIVEN: dict[str, Any] = {**{key: number for number, key in enumerate(KEYS)}, "k1": None, "k2": ["a"], "k3": {"b": 1}}


def changed(state: dict[str, Any]) -> dict[str, Any]:
    """Changes a few keys in each way there is, and what it was given as well."""
    state["k2"].append("not returned")
    assert "missing" not in state
    return {"k0": state["k0"] + 1, "k1": ["now a list"], "k2": "no list", "k4": Overwrite({"whole": 4}), "log": ["one"]}


def wide(*nodes: Any) -> StateGraph[Any]:
    graph = StateGraph(Wide)
    for before, (name, node) in zip(
        ("", "first", "second"), zip(("first", "second"), nodes, strict=False), strict=False
    ):
        graph.add_node(name, node)
        graph.add_edge(before or START, name)
    return graph


def test_many_keys_are_written_read_and_stored_as_few_are(run: Runner, saver: Saver, thread: Thread) -> None:
    app = wide(changed, lambda state: {"k5": state["k0"], "log": [f"{len(state)} keys"]}).compile(checkpointer=saver)
    after = {**GIVEN, "k0": 1, "k1": ["now a list"], "k2": "no list", "k4": {"whole": 4}, "k5": 1}

    assert run.invoke(app, {**GIVEN, "log": ["in"]}, thread("1")) == {**after, "log": ["in", "one", "41 keys"]}

    given = {"k2": ["again"], "k6": 66}
    assert run.invoke(app, given, thread("1")) == {
        **after,
        "k0": 2,
        "k5": 2,
        "k6": 66,
        "log": ["in", "one", "41 keys", "one", "41 keys"],
    }
    assert run.state(app, thread("1")).values["k6"] == 66


@pytest.mark.parametrize("turned", [False, True])
def test_a_node_sees_many_keys_in_the_order_of_the_schema(run: Runner, turned: bool) -> None:
    seen: list[str] = []
    app = StateGraph(TypedDict("Plain", dict.fromkeys(KEYS, Any)))  # type: ignore[operator]
    app.add_node("n", lambda state: seen.extend(state)).add_edge(START, "n")
    given = {key: number for number, key in enumerate(KEYS)}

    out = run.invoke(app.compile(), dict(reversed(given.items())) if turned else given)

    assert KEYS == seen == list(out)
    assert given == out


def test_two_writes_of_a_step_to_one_of_many_keys_are_refused(run: Runner) -> None:
    graph = wide(lambda state: {"k7": "first"})
    graph.add_node("beside", lambda state: {"k7": "beside"})
    graph.add_edge(START, "beside")

    with pytest.raises(ConcurrentUpdateError, match="k7"):
        run.invoke(graph.compile(), GIVEN)
