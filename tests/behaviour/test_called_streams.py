"""The stream of a graph that a node's code calls: shown as it goes, stored with its steps, told again on a resume."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.config import RunnableConfig, get_stream_writer
from pregel.func import entrypoint, task
from pregel.testing import crash_matrix, explore
from pregel.types import Command, Overwrite, interrupt

from .conftest import Runner
from .marks import Saver, State, Thread, chain, mark


@pytest.fixture
def memory() -> Saver:
    """A saver, for what is the same on each."""
    return InMemorySaver()


def streaming(run: Runner, inner: Any, ends: Callable[[list[Any]], Any], **options: Any) -> Any:
    """A node that reads the stream of a graph, in the way of its run, and writes what `ends` makes of the chunks."""

    def sync(state: State) -> Any:
        return ends(list(inner.stream({"a": []}, **options)))

    async def awaited(state: State) -> Any:
        return ends([chunk async for chunk in inner.astream({"a": []}, **options)])

    return sync if run.name == "sync" else awaited


def names(chunks: list[Any]) -> dict[str, Any]:
    return {"a": [name for chunk in chunks for name in chunk]}


def test_a_streamed_graph_lives_under_its_caller_and_is_not_run_again(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    calls = list[str]()
    inner = chain("x", "y", x=mark("x", calls), y=mark("y", calls)).compile()

    def ends(chunks: list[Any]) -> dict[str, Any]:
        return {"a": [*names(chunks)["a"], interrupt("sure?")]}

    app = chain("node", node=streaming(run, inner, ends, stream_mode="updates")).compile(checkpointer=saver)

    run.invoke(app, {"a": []}, thread("1"))
    (waiting,) = run.state(app, thread("1"), subgraphs=True).tasks
    place = {"configurable": {"thread_id": "1", "checkpoint_ns": f"node:{waiting.id}|call:0"}}

    assert ["x", "y"] == run.state(app, place).values["a"]
    assert ["x", "y", "yes"] == run.invoke(app, Command(resume="yes"), thread("1"))["a"]
    assert ["x", "y"] == calls


@pytest.mark.parametrize("keeps", [None, True, False])
def test_what_was_shown_before_a_question_is_told_again_and_the_stream_goes_on(
    run: Runner, memory: Saver, thread: Thread, keeps: bool | None
) -> None:
    calls = list[str]()

    def ask(state: State) -> dict[str, Any]:
        return {"a": [interrupt("inner?")]}

    inner = chain("x", "ask", "y", x=mark("x", calls), ask=ask, y=mark("y", calls)).compile(checkpointer=keeps)
    app = chain("node", node=streaming(run, inner, names, stream_mode="updates")).compile(checkpointer=memory)

    (question,) = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]
    end = run.invoke(app, Command(resume="yes"), thread("1"))["a"]

    assert "inner?" == question.value
    assert ["x", "ask", "y"] == [name for name in end if name != "__interrupt__"]
    assert (["x", "y"] if keeps is not False else ["x", "x", "y"]) == calls


def test_modes_namespaces_and_live_chunks_show_as_in_a_stream_of_its_own(
    run: Runner, memory: Saver, thread: Thread
) -> None:
    def talk(state: State) -> dict[str, Any]:
        get_stream_writer()("hello")
        return {"a": ["talk"]}

    inner = chain("sub", "last", sub=chain("talk", talk=talk).compile(), last=mark("last")).compile()
    options = {"stream_mode": ["updates", "custom", "values"], "subgraphs": True}
    alone = run.stream(inner, {"a": []}, **options)
    seen = list[Any]()

    def ends(chunks: list[Any]) -> None:
        seen.extend(chunks)

    app = chain("node", node=streaming(run, inner, ends, **options)).compile(checkpointer=memory)
    run.invoke(app, {"a": []}, thread("1"))

    assert [_anonymous(chunk) for chunk in alone] == [_anonymous(chunk) for chunk in seen]


def _anonymous(chunk: Any) -> Any:
    ns, mode, data = chunk
    return tuple(part.partition(":")[0] for part in ns), mode, data


@pytest.mark.parametrize("deep", [False, True])
def test_who_streams_the_run_around_sees_the_graph_inside_when_it_wants_to(
    run: Runner, memory: Saver, thread: Thread, deep: bool
) -> None:
    inner = chain("x").compile()
    app = chain("node", node=streaming(run, inner, names, stream_mode="updates")).compile(checkpointer=memory)

    chunks = run.stream(app, {"a": []}, thread("1"), stream_mode="updates", subgraphs=deep)

    last = {"node": {"a": ["x"]}}
    if deep:
        ((ns, update), end) = chunks
        assert ("node", "call:0", {"x": {"a": ["x"]}}, ((), last)) == (ns[0][:4], ns[1], update, end)
    else:
        assert [last] == chunks


def test_a_token_shows_while_the_node_that_speaks_still_runs(run: Runner, memory: Saver, thread: Thread) -> None:
    heard: list[Any] = []
    gate = Gate()

    def talk(state: State) -> dict[str, Any]:
        get_stream_writer()("word")
        gate.wait()
        return {"a": ["talk"]}

    inner = chain("talk", talk=talk).compile()

    def sync(state: State) -> None:
        for chunk in inner.stream({"a": []}, stream_mode="custom"):
            heard.append(chunk)
            gate.open()

    async def awaited(state: State) -> None:
        async for chunk in inner.astream({"a": []}, stream_mode="custom"):
            heard.append(chunk)
            gate.open()

    app = chain("node", node=sync if run.name == "sync" else awaited).compile(checkpointer=memory)
    run.invoke(app, {"a": []}, thread("1"))

    assert ["word"] == heard


class Gate:
    """What a node waits at until its word was heard."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def open(self) -> None:
        self.event.set()

    def wait(self) -> None:
        assert self.event.wait(30)


def test_what_a_reader_does_to_a_live_chunk_is_not_told_again(memory: Saver, thread: Thread) -> None:
    def talk(state: State) -> dict[str, Any]:
        get_stream_writer()(["word"])
        return {}

    inner = chain("talk", talk=talk).compile()
    heard: list[Any] = []

    def node(state: State) -> dict[str, Any]:
        for chunk in inner.stream({"a": []}, stream_mode="custom"):
            heard.append(list(chunk))
            chunk.clear()
        return {"a": [interrupt("?")]}

    app = chain("node", node=node).compile(checkpointer=memory)
    app.invoke({"a": []}, thread("1"))
    app.invoke(Command(resume="yes"), thread("1"))

    assert [["word"], ["word"]] == heard


def test_a_stream_that_is_left_early_cancels_the_graph_and_is_told_the_same_again(
    run: Runner, memory: Saver, thread: Thread
) -> None:
    inner = chain("x", "y", "z").compile()

    def sync(state: State) -> dict[str, Any]:
        for chunk in inner.stream({"a": []}, stream_mode="updates"):
            if "x" in chunk:
                break
        return {"a": [next(iter(chunk)), interrupt("sure?")]}

    async def awaited(state: State) -> dict[str, Any]:
        async for chunk in inner.astream({"a": []}, stream_mode="updates"):
            if "x" in chunk:
                break
        return {"a": [next(iter(chunk)), interrupt("sure?")]}

    app = chain("node", node=sync if run.name == "sync" else awaited).compile(checkpointer=memory)

    run.invoke(app, {"a": []}, thread("1"))

    assert ["x", "yes"] == run.invoke(app, Command(resume="yes"), thread("1"))["a"]


def test_a_failure_inside_is_raised_where_the_stream_is_read_and_goes_on_there(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    calls, trouble = list[str](), [ValueError("once")]

    def fragile(state: State) -> dict[str, Any]:
        if trouble:
            raise trouble.pop()
        return {"a": ["end"]}

    inner = chain("x", "end", x=mark("x", calls), end=fragile).compile()
    app = chain("node", node=streaming(run, inner, names, stream_mode="updates")).compile(checkpointer=saver)

    with pytest.raises(ValueError, match="once"):
        run.invoke(app, {"a": []}, thread("1"))

    assert ["x", "end"] == run.invoke(app, None, thread("1"))["a"]
    assert ["x"] == calls


def test_streams_in_streams_and_in_tasks_go_to_who_reads_them(memory: Saver, thread: Thread) -> None:
    deepest = chain("z").compile()
    inner = chain("x", "y", y=lambda state: {"a": list(names([*deepest.stream({"a": []})])["a"])}).compile()

    @task
    def read(name: str) -> list[Any]:
        return [{name: data} for data in inner.stream({"a": []}, stream_mode="updates")]

    @entrypoint(checkpointer=memory)
    def flow(_: Any) -> Any:
        return [future.result() for future in [read("p"), read("q")]]

    wanted = [[{name: {"x": {"a": ["x"]}}}, {name: {"y": {"a": ["z"]}}}] for name in "pq"]
    assert wanted == flow.invoke(1, thread("1"))


def test_a_coroutine_reads_a_stream_beside_another(thread: Thread) -> None:
    inner = chain("x", "y").compile()

    async def node(state: State) -> dict[str, Any]:
        async def read() -> list[Any]:
            return [chunk async for chunk in inner.astream({"a": []}, stream_mode="updates")]

        return {"a": [str(len(chunks)) for chunks in await asyncio.gather(read(), read())]}

    app = chain("node", node=node).compile(checkpointer=InMemorySaver())

    assert ["2", "2"] == asyncio.run(app.ainvoke({"a": []}, thread("1")))["a"]


def test_who_hands_a_nodes_config_on_streams_values(memory: Saver, thread: Thread) -> None:
    inner = chain("x").compile()
    seen = list[Any]()

    def node(state: State, config: RunnableConfig) -> None:
        seen.extend(inner.stream({"a": []}, config))

    chain("node", node=node).compile(checkpointer=memory).invoke({"a": []}, thread("1"))

    assert [{"a": []}, {"a": ["x"]}] == seen


def test_a_blocking_node_of_an_awaited_run_reads_a_stream(thread: Thread) -> None:
    inner = chain("x", "y").compile()
    app = chain("node", node=lambda state: names(list(inner.stream({"a": []})))).compile(checkpointer=InMemorySaver())

    assert ["x", "y"] == asyncio.run(app.ainvoke({"a": []}, thread("1")))["a"]


def reading() -> Any:
    """A node that reads a stream and asks, the graph that it streams asks as well."""
    inner = chain("x", "ask", "y", ask=lambda state: {"a": [interrupt("inner?")]}).compile()

    def node(state: State) -> dict[str, Any]:
        chunks = [chunk for chunk in inner.stream({"a": []}, stream_mode="updates") if "__interrupt__" not in chunk]
        return {"a": Overwrite([*names(chunks)["a"], interrupt("outer?")])}

    return chain("node", "after", node=node).compile()


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_every_death_ends_in_the_same_state(durability: Any) -> None:
    turns = [{"a": ["in"]}, Command(resume="one"), Command(resume="two")]

    report = crash_matrix(reading(), *turns, durability=durability)

    assert [("inner?",), ("outer?",), ()] == [end.asked for end in report.ends]
    assert ["x", "ask", "y", "two", "after"] == report.ends[2].values["a"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_death_in_every_order_ends_in_the_same_state() -> None:
    report = explore(reading(), {"a": ["in"]}, Command(resume="one"), Command(resume="two"), orders=20)

    assert ["x", "ask", "y", "two", "after"] == report.ends[2].values["a"]
