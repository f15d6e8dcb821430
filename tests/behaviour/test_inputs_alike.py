"""An input means the same with a saver, where it has a step of its own, and without, where START takes it at once."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.graph import START, StateGraph
from pregel.runtime import RunControl, Runtime
from pregel.types import Command, Overwrite

from .conftest import Runner
from .marks import Thread


class Notes(TypedDict, total=False):
    notes: Annotated[list[Any], operator.add]
    left: int


def compiled(saver: InMemorySaver | None, **options: Any) -> Any:
    """A graph in a graph; the inner one notes its steps, and how many are left to it."""

    def note(state: Notes, runtime: Runtime[Any]) -> dict[str, Any]:
        assert runtime.execution_info is not None
        return {"notes": [len(state.get("notes", []))], "left": len(state)}

    inner = StateGraph(Notes).add_node("first", note).add_node("second", note)
    inner.add_edge(START, "first").add_edge("first", "second")
    graph = StateGraph(Notes).add_node("inner", inner.compile()).add_node("last", note)
    graph.add_edge(START, "inner").add_edge("inner", "last")
    return graph.compile(saver, **options)


def outcome(run: Runner, app: Any, input: Any, config: Any, **options: Any) -> Any:
    """What a run gives: its values, or all that its error says."""
    try:
        return run.invoke(app, input, config, **options)
    except Exception as error:
        notes = [note.replace(" of thread '1'", "") for note in getattr(error, "__notes__", ())]
        return type(error), str(error).replace("thread='1', ", "").replace("[thread '1', ", "["), notes


INPUTS: list[Any] = [
    {"notes": ["a"]},
    {"notes": ["a"], "left": 1},
    {"notes": Overwrite(["a"])},
    {"notes": {"__overwrite__": ["a"]}},
    {"__overwrite__": {"notes": ["a"]}},
    Overwrite({"notes": ["a"]}),
    {"notes": 1},  # its reducer refuses it
    {"notes": ["a"], "left": Overwrite(2)},
    {},
    None,
    3,
    Command(update={"notes": ["a"]}),
    Command(goto="last"),
]


@pytest.mark.parametrize("input", INPUTS, ids=repr)
def test_an_input_means_the_same_with_and_without_a_saver(run: Runner, thread: Thread, input: Any) -> None:
    stored = outcome(run, compiled(InMemorySaver()), input, thread("1"))
    unstored = outcome(run, compiled(None), input, thread("1"))

    if isinstance(stored, tuple) and input is None:  # the words differ there: there is no thread
        assert stored[0] is unstored[0]
    else:
        assert stored == unstored


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_the_recursion_limit_counts_the_same_steps(run: Runner, thread: Thread, limit: int) -> None:
    config = {**thread("1"), "recursion_limit": limit}

    stored = outcome(run, compiled(InMemorySaver()), {"notes": []}, config)
    unstored = outcome(run, compiled(None), {"notes": []}, config)

    assert isinstance(stored, dict) == isinstance(unstored, dict) == (limit > 2)


@pytest.mark.parametrize("saver", [InMemorySaver(), None], ids=["stored", "not stored"])
def test_a_run_that_is_to_stop_before_it_starts_runs_no_node(
    run: Runner, thread: Thread, saver: InMemorySaver | None
) -> None:
    control = RunControl()
    control.request_drain("enough")

    kind, *_ = outcome(run, compiled(saver), {"notes": ["a"]}, thread("1"), control=control)

    assert kind.__name__ == "GraphDrained"
