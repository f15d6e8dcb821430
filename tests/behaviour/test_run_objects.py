"""Run objects (`stream_events`, version 3): projections of one run, each read alone or beside others."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pregel import interrupt
from pregel.agents import ScriptedModel, ToolRuntime, create_agent, tool
from pregel.agents.models import call_tool, call_tools
from pregel.errors import GraphDrained, NotBuiltError, StreamUseError
from pregel.graph import START, MessagesState, StateGraph
from pregel.messages import AIMessage, ToolMessage
from pregel.runtime import RunControl
from pregel.stream import (
    CheckpointsTransformer,
    CustomTransformer,
    DebugTransformer,
    TasksTransformer,
    UpdatesTransformer,
)
from pregel.types import Command, StreamWriter

from .conftest import Runner
from .marks import Saver, State, Thread, chain, mark, parallel
from .run_objects import read

MODES = {
    "updates": UpdatesTransformer,
    "custom": CustomTransformer,
    "tasks": TasksTransformer,
    "checkpoints": CheckpointsTransformer,
    "debug": DebugTransformer,
}


def writing(state: State, writer: StreamWriter) -> State:
    writer("half way")
    return {"a": ["x"]}


def known(chunk: Any) -> Any:
    """A chunk without what is another in each run."""
    if not isinstance(chunk, dict):
        return chunk
    own = ("id", "timestamp", "config", "parent_config", "tasks", "metadata")
    return {key: known(value) for key, value in chunk.items() if key not in own}


@pytest.mark.acceptance("S1-45")
def test_all_projections_at_once_show_what_a_stream_shows(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", x=writing).compile(checkpointer=saver)

    shown = read(run, app, f"values {' '.join(MODES)}", {"a": ["i"]}, thread("1"), transformers=[*MODES.values()])
    chunks = run.stream(app, {"a": ["i"]}, thread("2"), stream_mode=["values", *MODES])

    for mode in shown:
        assert [known(data) for name, data in chunks if name == mode] == [known(data) for data in shown[mode]]
    assert shown["custom"] == ["half way"]


@pytest.mark.parametrize("name", ["values", "updates", "events", "lifecycle", "subgraphs", "output"])
def test_each_projection_moves_the_run_by_itself(run: Runner, name: str) -> None:
    calls: list[str] = []
    app = chain("x", "y", x=mark("x", calls), y=mark("y", calls)).compile()

    read(run, app, name, {"a": []}, transformers=[UpdatesTransformer])

    assert ["x", "y"] == calls


def test_events_are_counted_and_say_where_they_are_from(run: Runner) -> None:
    app = chain("x", "child", child=chain("y").compile()).compile()

    events = read(run, app, "events", {"a": []})

    assert [one["seq"] for one in events] == list(range(1, len(events) + 1))
    told = [(one["method"], [place.split(":")[0] for place in one["params"]["namespace"]]) for one in events]
    own, inner, lifecycle = ("values", list[str]()), ("values", ["child"]), ("lifecycle", list[str]())
    assert told == [own, own, lifecycle, inner, inner, lifecycle, own]
    assert {one["type"] for one in events} == {"event"}
    assert events[0]["params"]["interrupts"] == ()


def test_a_graph_inside_has_a_run_object_that_misses_nothing(run: Runner) -> None:
    leaf = chain("z").compile()
    app = chain("x", "child", child=chain("y", "leaf", leaf=leaf).compile()).compile()

    found = read(run, app, "subgraphs lifecycle values", {"a": ["i"]})

    ended = {"a": ["i", "x", "y", "i", "x", "y", "z"]}
    assert found["subgraphs"] == [("child", [{"a": ["i", "x"]}, {"a": ["i", "x", "y"]}, ended], ended, "completed")]
    assert [(one["event"], len(one["namespace"])) for one in found["lifecycle"]] == [
        ("started", 1),
        ("started", 2),
        ("completed", 2),
        ("completed", 1),
    ]
    assert [one.get("graph_name") for one in found["lifecycle"]] == ["child", "leaf", None, None]
    assert found["lifecycle"][0]["namespace"] == [f"child:{found['lifecycle'][0]['trigger_call_id']}"]


def test_graphs_that_one_node_calls_are_told_apart(run: Runner) -> None:
    inner = chain("y").compile()

    def twice(state: State) -> State:
        return {"a": [*inner.invoke({"a": ["1"]})["a"], *inner.invoke({"a": ["2"]})["a"]]}

    found = read(run, chain("x", x=twice).compile(), "subgraphs", {"a": []})

    assert [(name, values[0], status) for name, values, _, status in found] == [
        ("x", {"a": ["1"]}, "completed"),
        ("x", {"a": ["2"]}, "completed"),
    ]


def test_an_error_reaches_every_projection_after_what_there_is(run: Runner) -> None:
    error = ValueError("boom")

    def fail(state: State) -> State:
        raise error

    app = chain("x", "child", child=chain("y", "fail", fail=fail).compile()).compile()

    found = read(run, app, "values lifecycle subgraphs events output interrupted interrupts", {"a": []})

    assert [found[name][1] for name in ("values", "lifecycle", "subgraphs", "events")] == [error] * 4
    assert [found[name] for name in ("output", "interrupted", "interrupts")] == [error] * 3
    assert found["values"][0] == [{"a": []}, {"a": ["x"]}]
    assert [one["event"] for one in found["lifecycle"][0]] == ["started", "failed"]
    assert found["lifecycle"][0][1]["error"] == "boom"
    assert found["subgraphs"][0] == [("child", [{"a": ["x"]}, {"a": ["x", "y"]}, error], error, "failed")]


def test_a_run_that_asks_is_paused_and_says_at_what(run: Runner, saver: Saver, thread: Thread) -> None:
    asking = chain("y", y=lambda state: {"a": [interrupt("?")]}).compile()
    app = parallel("x", "child", child=asking).compile(checkpointer=saver)
    names = "output interrupted interrupts subgraphs lifecycle"

    paused = read(run, app, names, {"a": []}, thread("1"))
    (question,) = paused["interrupts"]
    ended = read(run, app, names, Command(resume="!"), thread("1"))

    assert (paused["output"], paused["interrupted"], question.value) == ({"a": ["x"]}, True, "?")
    assert paused["subgraphs"] == [("child", [{"a": []}, {"a": []}], {"a": []}, "interrupted")]
    assert [one["event"] for one in paused["lifecycle"]] == ["started", "interrupted"]
    assert (ended["output"], ended["interrupted"], ended["interrupts"]) == ({"a": ["!", "x"]}, False, [])


def test_a_graph_that_is_drained_says_so(run: Runner, saver: Saver, thread: Thread) -> None:
    control = RunControl()

    def drain(state: State) -> State:
        control.request_drain("enough")
        return {"a": ["x"]}

    app = chain("child", child=chain("x", "y", x=drain).compile()).compile(checkpointer=saver)

    found = read(run, app, "lifecycle output", {"a": []}, thread("1"), control=control)

    assert isinstance(found["output"], GraphDrained)
    assert [one["event"] for one in found["lifecycle"][0]] == ["started", "drained"]


@pytest.mark.acceptance("S1-46")
def test_words_of_a_message_come_before_its_node_ends(run: Runner) -> None:
    may_end = threading.Event()
    model = ScriptedModel(["one two"])

    def talk(state: Any) -> Any:
        answer = model.invoke(state["messages"])
        assert may_end.wait(30)
        return {"messages": [answer]}

    class Hearing(UpdatesTransformer):
        def process(self, event: Any) -> bool:
            said = event["params"]["data"][0] if event["method"] == "messages" else {}
            if said.get("delta", {}).get("text") == " two":
                may_end.set()
            return super().process(event)

    app = StateGraph(MessagesState).add_node("talk", talk).add_edge(START, "talk").compile()

    found = read(run, app, "messages updates", {"messages": "hi"}, transformers=[Hearing])

    assert found["messages"] == [("one two", ["one", " two"])]
    assert [[*update] for update in found["updates"]] == [["talk"]]


def test_messages_of_models_and_of_nodes_show_where_they_are_from(run: Runner) -> None:
    model = ScriptedModel(["the model"])
    own = [AIMessage("of the node", id="n"), ToolMessage("of a tool", tool_call_id="t", id="t")]
    inner = StateGraph(MessagesState).add_node("say", lambda state: {"messages": own}).add_edge(START, "say")
    graph = StateGraph(MessagesState).add_node("ask", lambda state: {"messages": [model.invoke("hi")]})
    app = graph.add_node("inner", inner.compile()).add_edge(START, "ask").add_edge("ask", "inner").compile()

    events = read(run, app, "events", {"messages": "hi"})

    said = [one for one in events if one["method"] == "messages"]
    assert [one["params"]["data"][0]["event"] for one in said[:-1]] == [
        "message-start",
        "content-block-start",
        "content-block-delta",
        "content-block-delta",
        "content-block-finish",
        "message-finish",
    ]
    assert said[4]["params"]["data"][0]["content"] == {"type": "text", "text": "the model"}
    assert said[-1]["params"]["data"][0] == own[0]
    assert [place.split(":")[0] for place in said[-1]["params"]["namespace"]] == ["inner"]
    assert {one["params"]["data"][1]["langgraph_node"] for one in said[:-1]} == {"ask"}


def test_a_message_that_is_cut_off_fails_with_its_run() -> None:
    class Cut(ScriptedModel):
        def chunks(self, request: Any) -> Any:
            yield next(iter(super().chunks(request)))
            raise ConnectionError("cut")

    app = StateGraph(MessagesState).add_node("talk", lambda state: {"messages": [Cut(["one two"]).invoke("hi")]})
    run = app.add_edge(START, "talk").compile().stream_events({"messages": "hi"}, version="v3")

    message = next(iter(run.messages))

    assert next(iter(message.text)) == "one"
    with pytest.raises(ConnectionError):
        str(message.text)
    with pytest.raises(ConnectionError):
        assert message.output


@tool
def add(left: int, right: int, runtime: ToolRuntime) -> int:
    """Add."""
    runtime.emit_output_delta("adding")
    return left + right


@tool
def fail() -> str:
    """Fail."""
    raise ValueError("no")


def test_an_agents_tool_calls_are_a_projection() -> None:
    model = ScriptedModel([call_tools(call_tool("add", {"left": 1, "right": 2}), call_tool("fail")), "done"])
    run = create_agent(model, [add, fail]).stream_events({"messages": "hi"}, version="v3")

    calls = {call.tool_name: (list(call.output_deltas), call.output, bool(call.error)) for call in run.tool_calls}

    assert calls == {"add": (["adding"], "3", False), "fail": ([], None, True)}
    assert run.output["messages"][-1].text == "done"


def test_a_call_that_asks_something_stays_open() -> None:
    @tool
    def ask() -> str:
        """Ask."""
        return str(interrupt("?"))

    from pregel.checkpoint.memory import InMemorySaver

    agent = create_agent(ScriptedModel([call_tool("ask"), "done"]), [ask], checkpointer=InMemorySaver())
    run = agent.stream_events({"messages": "hi"}, {"configurable": {"thread_id": "1"}}, version="v3")

    (call,) = run.tool_calls

    assert (call.completed, list(call.output_deltas), run.interrupted) == (False, [], True)


@pytest.mark.parametrize("options", [{"stream_mode": "values"}, {"subgraphs": True}])
def test_what_the_projections_decide_is_no_option(run: Runner, options: Any) -> None:
    with pytest.raises(StreamUseError, match="does not accept"):
        read(run, chain("x").compile(), "output", {"a": []}, **options)


def test_the_events_of_langchain_are_not_ours() -> None:
    app = chain("x").compile()

    with pytest.raises(NotBuiltError, match="v3"):
        app.stream_events({"a": []})
    with pytest.raises(NotBuiltError, match="v3"):
        app.astream_events({"a": []}, version="v1")
