"""The state of graphs in graphs: where each one lives, how it is read, updated, resumed and travelled over."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import InvalidUpdateError, SubgraphNotFoundError
from pregel.graph import END, START, StateGraph
from pregel.types import Command, Send, interrupt

from .conftest import Runner
from .marks import Saver, State, Thread, chain, mark, parallel
from .workers import Gate, all_in_one_batch, all_news_is_posted


def asks(name: str) -> Any:
    return lambda state: {"a": [f"{name} {interrupt(name)}"]}


class Log(TypedDict):
    a: Annotated[list[str], operator.add]


def child(**nodes: Any) -> Any:
    """A graph of these nodes that gives back its log only."""
    graph = StateGraph(State, output_schema=Log)
    graph.add_sequence(list(nodes.items())).add_edge(START, next(iter(nodes)))
    return graph.compile()


def around(checkpointer: bool | None = None) -> StateGraph[Any]:
    """A graph in a graph, the inner one of which asks after its first node."""
    return chain("before", "inner", "after", inner=chain("x", "y", y=asks("y")).compile(checkpointer=checkpointer))


@pytest.fixture
def memory() -> Saver:
    """A saver, for what is the same on each."""
    return InMemorySaver()


@pytest.mark.parametrize("checkpointer", [None, True])
def test_the_state_of_a_subgraph_is_read_updated_and_gone_on_from(
    run: Runner, saver: Saver, thread: Thread, checkpointer: bool | None
) -> None:
    app = around(checkpointer).compile(checkpointer=saver)
    run.invoke(app, {"a": ["in"]}, thread("1"))
    (task,) = run.state(app, thread("1")).tasks
    place = task.state

    inner = run.state(app, place)
    assert (["in", "before", "x"], ("y",)) == (inner.values["a"], inner.next)
    assert inner == run.state(app, thread("1"), subgraphs=True).tasks[0].state
    assert [("loop", 1), ("loop", 0), ("input", -1)] == [
        (one.metadata["source"], one.metadata["step"]) for one in run.history(app, place)
    ]

    history = run.history(app, place)
    assert [one.parent_config for one in history] == [one.config for one in history[1:]] + [None]

    made = run.update(app, place, {"a": ["by hand"]}, as_node="y")
    assert made["configurable"] == run.state(app, place).config["configurable"]
    assert ["in", "before", "in", "before", "x", "by hand", "after"] == run.invoke(app, None, thread("1"))["a"]


def test_an_update_of_a_subgraph_is_checked_by_the_subgraph(run: Runner, memory: Saver, thread: Thread) -> None:
    app = around().compile(checkpointer=memory)
    run.invoke(app, {"a": []}, thread("1"))
    place = run.state(app, thread("1")).tasks[0].state

    with pytest.raises(InvalidUpdateError, match="x, y"):
        run.update(app, place, {"a": ["?"]}, as_node="before")


def test_the_state_of_a_called_graph_is_read_and_updated(run: Runner, thread: Thread) -> None:
    inner = chain("x", "y", y=asks("y")).compile()

    def sync(state: State) -> dict[str, Any]:
        return {"a": inner.invoke({"a": []})["a"]}

    async def awaited(state: State) -> dict[str, Any]:
        return {"a": (await inner.ainvoke({"a": []}))["a"]}

    app = chain("node", node=sync if run.name == "sync" else awaited).compile(checkpointer=InMemorySaver())
    run.invoke(app, {"a": ["in"]}, thread("1"))
    state = run.state(app, thread("1"), subgraphs=True).tasks[0].state

    assert (["x"], ("y",)) == (state.values["a"], state.next)
    run.update(app, state.config, {"a": ["by hand"]}, as_node="y")
    assert ["in", "x", "by hand"] == run.invoke(app, None, thread("1"))["a"]


def test_a_checkpoint_of_a_subgraph_resumes_and_replays_the_graph_that_it_is_in(
    run: Runner, memory: Saver, thread: Thread
) -> None:
    app = around().compile(checkpointer=memory)
    run.invoke(app, {"a": ["in"]}, thread("1"))
    place = run.state(app, thread("1"), subgraphs=True).tasks[0].state.config

    again = run.invoke(app, None, place)
    assert ["y"] == [question.value for question in again["__interrupt__"]]
    assert ["fork", "loop", "loop", "input"] == [one.metadata["source"] for one in run.history(app, thread("1"))]

    place = run.state(app, thread("1"), subgraphs=True).tasks[0].state.config
    assert "y yes" in run.invoke(app, Command(resume="yes"), place)["a"]


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("checkpointer", [None, True])
def test_the_first_question_of_a_subgraph_is_answered_where_it_was_asked_after_it_was_asked_anew(
    run: Runner, saver: Saver, thread: Thread, checkpointer: bool | None, nested: bool
) -> None:
    app = around(checkpointer).compile(checkpointer=saver)
    run.invoke(app, {"a": ["in"]}, thread("1"))
    asked = run.state(app, thread("1"), subgraphs=True)
    run.invoke(app, None, asked.config)

    ended = run.invoke(app, Command(resume="yes"), asked.tasks[0].state.config if nested else asked.config)

    assert ["in", "before", "in", "before", "x", "y yes", "after"] == ended["a"]


def remembering(saver: Saver, ran: list[str]) -> tuple[Any, Any]:
    """A graph around one that remembers over calls, and whose last node asks and writes `b`; both are finished."""
    last = lambda state: {"b": interrupt("b?")}  # noqa: E731  # one line of three
    inner = chain("x", "y", "last", x=mark("x", ran), y=mark("y", ran), last=last).compile(checkpointer=True)
    return chain("inner", inner=inner).compile(checkpointer=saver), {"thread_id": "1", "checkpoint_ns": "inner"}


def test_an_update_of_a_subgraphs_past_knows_nothing_of_what_came_later(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app, inside = remembering(saver, [])
    run.invoke(app, {"a": ["in"]}, thread("1"))
    run.invoke(app, Command(resume="late"), thread("1"))
    past = next(one for one in run.history(app, {"configurable": inside}) if one.next == ("y",))

    place = run.update(app, past.config, {"a": ["mended"]}, as_node="y")

    for config in (place, {"configurable": inside}):
        state = run.state(app, config)
        assert ({"a": ["in", "x", "mended"]}, ("last",)) == (state.values, state.next)


@pytest.mark.parametrize("mended", [False, True])
def test_a_subgraph_that_remembers_goes_on_from_its_checkpoint_that_a_call_names(
    run: Runner, saver: Saver, thread: Thread, mended: bool
) -> None:
    ran = list[str]()
    app, inside = remembering(saver, ran)
    run.invoke(app, {"a": ["in"]}, thread("1"))
    run.invoke(app, Command(resume="late"), thread("1"))
    place = next(one for one in run.history(app, {"configurable": inside}) if one.next == ("y",)).config
    if mended:
        place = run.update(app, place, {"a": ["mended"]}, as_node="y")

    (question,) = run.invoke(app, None, place)["__interrupt__"]

    assert ["x", "y"] if mended else ["x", "y", "y"] == ran
    assert (question,) == run.state(app, thread("1")).interrupts
    ended = run.invoke(app, Command(resume="again"), thread("1"))
    assert {"a": ["in", "in", "x", "mended" if mended else "y"], "b": "again"} == ended


def test_an_update_of_a_subgraph_that_is_not_there_is_refused(run: Runner, saver: Saver, thread: Thread) -> None:
    app = around().compile(checkpointer=saver)
    run.invoke(app, {"a": ["in"]}, thread("1"))
    before = run.history(app, thread("1"))

    with pytest.raises(SubgraphNotFoundError, match="inner"):
        run.update(app, {"configurable": {"thread_id": "1", "checkpoint_ns": "iner:1"}}, {"a": ["lost"]})

    assert before == run.history(app, thread("1"))


def test_graphs_are_listed_by_where_they_live() -> None:
    inner = chain("x").compile()
    middle = chain("deep", deep=inner).compile()
    hidden = chain("x").compile(checkpointer=False)

    def calls(state: State) -> dict[str, Any]:
        return {"a": inner.invoke(state)["a"]}

    app = chain("middle", "calls", "hidden", middle=middle, calls=calls, hidden=hidden).compile()

    assert [("middle", middle), ("calls", inner)] == list(app.get_subgraphs())
    assert [("middle", middle), ("middle|deep", inner), ("calls", inner)] == list(app.get_subgraphs(recurse=True))
    assert [("middle|deep", inner)] == list(app.get_subgraphs(namespace="middle:some-id|deep:another"))


def test_a_persistent_subgraph_that_runs_twice_in_a_call_goes_on_from_its_first_run(
    run: Runner, memory: Saver, thread: Thread
) -> None:
    graph = chain("s", s=chain("k").compile(checkpointer=True))
    graph.add_node("again", lambda state: Command(goto="s") if len(state["a"]) < 8 else None, destinations=("s",))
    graph.add_edge("s", "again")
    app = graph.compile(checkpointer=memory)

    ends = [
        run.invoke(app, {"a": ["in"]}, thread(durability), durability=durability)["a"]
        for durability in ("sync", "async", "exit")
    ]

    assert [ends[0]] * 3 == ends
    assert ["in", "in", "k", "in", "k", "in", "in", "k", "k"] == ends[0]


@pytest.mark.acceptance("S2-2", "S2-4")
def test_seven_of_eight_children_finish_while_one_waits_for_a_person(
    run: Runner, memory: Saver, thread: Thread
) -> None:
    posted = list[str]()

    def approve(state: State) -> dict[str, Any]:
        if state["b"] == "5":
            return {"b": interrupt("pay 5?")}
        return {}

    def post(state: State) -> dict[str, Any]:
        posted.append(state["b"])
        return {"a": [f"posted {state['b']}"]}

    graph = StateGraph(State)
    graph.add_node("child", child(approve=approve, post=post))
    graph.add_conditional_edges(
        START, lambda state: [Send("child", {"a": [], "b": str(n)}) for n in range(8)], ["child"]
    )
    app = graph.compile(checkpointer=memory)

    (question,) = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]

    assert ["0", "1", "2", "3", "4", "6", "7"] == sorted(posted)
    children = run.state(app, thread("1"), subgraphs=True).tasks
    assert 8 == len({one.id for one in children})
    (waiting,) = [one.state for one in children if one.state.next]
    assert (("approve",), [question]) == (waiting.next, list(waiting.interrupts))
    assert [4, 4, 4, 4, 4, 2, 4, 4] == [len(run.history(app, _place(one.state.config))) for one in children]

    run.invoke(app, Command(resume={question.id: "yes"}), thread("1"))
    assert ["0", "1", "2", "3", "4", "6", "7", "yes"] == sorted(posted)


def _place(config: Any) -> Any:
    return {"configurable": {k: config["configurable"][k] for k in ("thread_id", "checkpoint_ns")}}


@pytest.mark.acceptance("S2-3")
def test_a_child_that_fails_undoes_no_sibling(run: Runner, memory: Saver, thread: Thread) -> None:
    calls, trouble = list[str](), [ValueError("no")]

    def work(state: State) -> dict[str, Any]:
        calls.append(state["b"])
        if state["b"] == "0" and trouble:
            raise trouble.pop()
        return {"a": [f"did {state['b']}"]}

    graph = StateGraph(State)
    graph.add_node("child", child(work=work))
    graph.add_node("join", mark("join"))
    graph.add_conditional_edges(
        START, lambda state: [Send("child", {"a": [], "b": str(n)}) for n in range(2)], ["child"]
    )
    graph.add_edge("child", "join")
    app = graph.compile(checkpointer=memory)

    with pytest.raises(ValueError, match="no"):
        run.invoke(app, {"a": []}, thread("1"))
    again = run.invoke(app, None, thread("1"))

    assert ["did 0", "did 1", "join"] == again["a"]
    assert calls.count("1") in (1, 2)
    assert calls.count("0") == 2


def test_a_replay_takes_a_persistent_subgraph_back_with_it(run: Runner, memory: Saver, thread: Thread) -> None:
    app = chain("s", s=chain("k").compile(checkpointer=True)).compile(checkpointer=memory)
    run.invoke(app, {"a": ["1"]}, thread("1"))
    run.invoke(app, {"a": ["2"]}, thread("1"))
    first = next(one for one in run.history(app, thread("1")) if one.metadata["step"] == 0)

    assert ["1", "1", "k"] == run.invoke(app, None, first.config)["a"]
    assert ["1", "k", "1", "1", "k", "3", "k"] == run.invoke(app, {"a": ["3"]}, thread("1"))["a"][-7:]


@pytest.mark.acceptance("S1-27")
def test_commands_for_the_parent_from_several_children_all_arrive(run: Runner, memory: Saver, thread: Thread) -> None:
    def up(name: str) -> Any:
        return lambda state: Command(graph=Command.PARENT, update={"a": [name]}, goto="last")

    graph = StateGraph(State)
    graph.add_node("one", parallel("p", "q", p=up("p"), q=up("q")).compile(), destinations=("last",))
    graph.add_node("two", chain("r", r=up("r")).compile(), destinations=("last",))
    graph.add_node("last", mark("last"))
    graph.add_edge(START, "one")
    graph.add_edge(START, "two")
    app = graph.compile(checkpointer=memory)

    assert ["in", "p", "q", "r", "last"] == run.invoke(app, {"a": ["in"]}, thread("1"))["a"]


def test_a_command_names_the_node_of_a_graph_further_up(run: Runner, memory: Saver, thread: Thread) -> None:
    far = chain("x", x=lambda state: Command(graph="outer", update={"a": ["far"]}, goto="last")).compile()
    middle = chain("inner", "not reached", inner=far).compile()
    graph = StateGraph(State)
    graph.add_node("outer", middle, destinations=("last",))
    graph.add_node("last", mark("last"))
    graph.add_edge(START, "outer")

    assert ["in", "far", "last"] == run.invoke(graph.compile(checkpointer=memory), {"a": ["in"]}, thread("1"))["a"]


def test_sixty_five_children_of_one_parent_ask_and_are_answered(thread: Thread) -> None:
    graph = StateGraph(State)
    graph.add_node("child", child(ask=lambda state: {"a": [interrupt(state["b"])]}))
    graph.add_conditional_edges(
        START, lambda state: [Send("child", {"a": [], "b": str(n)}) for n in range(65)], ["child"]
    )
    app = graph.compile(checkpointer=InMemorySaver())

    asked = app.invoke({"a": []}, thread("1"))["__interrupt__"]
    end = app.invoke(Command(resume={question.id: question.value for question in asked}), thread("1"))

    assert [str(n) for n in range(65)] == end["a"]


def test_the_output_of_a_subgraph_is_not_routed_when_its_sibling_failed_in_the_meantime(
    run: Runner, memory: Saver, thread: Thread
) -> None:
    routed: list[str] = []
    gate = Gate()

    def bad(state: State) -> None:
        raise ValueError("no")

    def route(state: State) -> str:
        routed.append("sub")
        return END

    inner = parallel("x", x=gate.holds(mark("x"))).compile()
    graph = parallel("bad", "sub", sub=inner, bad=gate.shows(bad))
    graph.add_conditional_edges("sub", route)

    with pytest.raises(ValueError, match="no"):
        all_in_one_batch(run, graph.compile(checkpointer=memory), thread("1"), gate)

    all_news_is_posted()
    assert routed == []
