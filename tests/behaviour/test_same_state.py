"""A new version of a reducer on what an old one recorded: the same state, or the first difference."""

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from pregel.agents import create_agent
from pregel.agents.models.scripted import ScriptedModel, call_tool
from pregel.channels import DeltaChannel
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import CheckpointNotFoundError, InvalidInputError, NotBuiltError
from pregel.graph import START, StateGraph
from pregel.testing import StateDiffers, aassert_same_state, assert_same_state
from pregel.types import Command, Overwrite, Send, interrupt
from pregel.warnings import PregelWarning

from .conftest import Runner
from .marks import Saver, Thread
from .savers.third_party import FiveVerbs
from .test_authority import has_authority, row_of

Reducer = Callable[[Any, Any], Any]


@pytest.fixture(autouse=True)
def needs_writes(saver: Saver) -> None:
    if not has_authority(saver):
        pytest.skip("no authority there")


def version(saver: Any, logs: Reducer = operator.add, totals: Reducer = operator.add) -> Any:
    """Adds, asks, fans out; these are its reducers."""

    class State(TypedDict, total=False):
        log: Annotated[list[str], logs]
        total: Annotated[int, totals]
        last: str
        seen: Annotated[list[str], DeltaChannel(operator.add)]

    def add(state: State) -> Any:
        return {"log": ["added"], "total": 3, "last": "add", "seen": ["add"]}

    def ask(state: State) -> Any:
        return {"log": [interrupt("go on?")], "total": -5}

    def fan(state: State) -> Any:
        return [Send("part", {"total": number}) for number in (7, 9)]

    def part(state: Any) -> Any:
        return {"total": state["total"], "seen": [f"part {state['total']}"]}

    graph = StateGraph(State).add_node("add", add).add_node("ask", ask).add_node("part", part)
    graph.add_edge(START, "add").add_edge("add", "ask").add_conditional_edges("ask", fan, ["part"])
    return graph.compile(checkpointer=saver)


def record(run: Runner, app: Any, config: Any) -> None:
    """A thread with a question, an update, an overwrite, two inputs and a command beside its tasks."""
    run.invoke(app, {"log": ["in"], "total": 1}, config)
    run.invoke(app, Command(resume="yes"), config)
    run.update(app, config, {"log": ["put in"], "total": 100}, as_node="ask")
    run.invoke(app, None, config)
    run.update(app, config, {"log": Overwrite(["anew"])}, as_node="part")
    run.invoke(app, {"log": ["again"], "total": 1}, config)
    run.invoke(app, Command(resume="no", update={"total": 1000}), config)


def compared(run: Runner, *args: Any) -> int:
    return assert_same_state(*args) if run.name == "sync" else asyncio.run(aassert_same_state(*args))


@pytest.mark.acceptance("S6-3")
def test_a_version_that_makes_the_same_state_is_proved_equal_and_nothing_is_stored(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    old = version(saver)
    record(run, old, thread("1"))
    history, row = run.history(old, thread("1")), row_of(saver, "1")

    def extends(old: list[str], new: list[str]) -> list[str]:
        return [*old, *new]

    def sums(old: int, new: int) -> int:
        return sum((old, new))

    count = compared(run, old, version(None, logs=extends, totals=sums), thread("1"))

    assert len(history) == count > 10
    assert (history, row.seq, row.epoch) == (
        run.history(old, thread("1")),
        row_of(saver, "1").seq,
        row_of(saver, "1").epoch,
    )


@pytest.mark.acceptance("S6-3")
def test_the_first_difference_is_told_with_its_place_and_both_values(run: Runner, saver: Saver, thread: Thread) -> None:
    """It keeps no negative sums, which shows once one comes, and not before."""
    old = version(saver)
    record(run, old, thread("1"))

    with pytest.raises(StateDiffers) as told:
        compared(run, old, version(None, totals=lambda old, new: old + abs(new)), thread("1"))

    differs = told.value
    found = [state for state in run.history(old, thread("1")) if state.values["total"] == -1][-1]
    assert (found.config["configurable"]["checkpoint_id"], found.metadata["step"]) == (differs.checkpoint, differs.step)
    assert ("total", -1, 9) == (differs.channel, differs.old, differs.new)
    assert "-1 in the old version, 9 in the new one" in str(differs)
    before = {"configurable": {"thread_id": "1", "checkpoint_id": found.parent_config["configurable"]["checkpoint_id"]}}
    assert 3 == compared(run, old, version(None, totals=lambda old, new: old + abs(new)), before)


def test_a_channel_that_the_new_version_lacks_differs_and_one_that_it_adds_does_not(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    class Old(TypedDict, total=False):
        a: int
        b: int

    class New(TypedDict, total=False):
        a: int
        b: int
        c: int

    def app(schema: Any, saver: Any) -> Any:
        graph = StateGraph(schema).add_node("n", lambda state: {"a": 1, "b": 2})
        return graph.add_edge(START, "n").compile(checkpointer=saver)

    class Less(TypedDict, total=False):
        a: int

    old = app(Old, saver)
    run.invoke(old, {"a": 0}, thread("1"))

    assert 3 == compared(run, old, app(New, None), thread("1"))
    with pytest.raises(StateDiffers, match="2 in the old version, nothing in the new one"):
        compared(run, old, app(Less, None), thread("1"))


def test_what_is_not_recorded_is_not_compared(run: Runner, saver: Saver, thread: Thread) -> None:
    old = version(saver)
    run.invoke(old, {"log": ["in"], "total": 1}, thread("1"), durability="exit")
    record(run, old, thread("2"))

    with pytest.raises(InvalidInputError, match="does not follow from the recorded writes"):
        compared(run, old, version(None), thread("1"))
    with pytest.raises(InvalidInputError, match="does not follow from the recorded writes"):
        compared(run, version(saver, totals=max), version(None), thread("2"))  # it did not record this
    with pytest.raises(CheckpointNotFoundError):
        compared(run, old, version(None), thread("3"))


def test_messages_of_an_agent_fold_to_the_same(run: Runner, saver: Saver, thread: Thread) -> None:
    def look(word: str) -> str:
        """Look something up."""
        return f"{word} is there"

    def agent(saver: Any) -> Any:
        model = ScriptedModel([call_tool("look", {"word": "x"}), "it is there"])
        return create_agent(model, [look], checkpointer=saver)

    old = agent(saver)
    run.invoke(old, {"messages": [{"role": "user", "content": "x?"}]}, thread("1"))

    assert 3 < compared(run, old, agent(InMemorySaver()), thread("1"))


def test_a_saver_that_shows_no_writes_is_refused() -> None:
    old = version(FiveVerbs())
    with pytest.warns(PregelWarning, match="no guarded append"):
        old.invoke({"log": [], "total": 1}, {"configurable": {"thread_id": "1"}})
    with pytest.raises(NotBuiltError, match="FiveVerbs"):
        assert_same_state(old, version(None), {"configurable": {"thread_id": "1"}})
