"""An agent: the loop of model and tools, its routes, its errors, its structured answers."""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel

from pregel import Command, StateGraph, interrupt
from pregel.agents import (
    AgentState,
    InjectedState,
    InjectedStore,
    ScriptedModel,
    ToolException,
    ToolNode,
    ToolRuntime,
    create_agent,
    tools_condition,
)
from pregel.agents import tool as as_tool
from pregel.agents.middleware import AgentMiddleware, SummarizationMiddleware
from pregel.agents.models import ChatModel, Turn, call_tool, call_tools
from pregel.agents.structured_output import (
    MultipleStructuredOutputsError,
    ProviderStrategy,
    StructuredOutputValidationError,
    ToolStrategy,
)
from pregel.agents.tools import InjectedToolCallId
from pregel.constants import END, START
from pregel.errors import DefinitionError, GraphRecursionError, InvalidInputError
from pregel.graph import MessagesState
from pregel.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, invalid_tool_call
from pregel.types import Send

from .conftest import Blocking, Runner

HI = {"messages": "hi"}


@as_tool
def double(n: int) -> int:
    """Double a number."""
    return n * 2


@as_tool
def fail(text: str) -> str:
    """Fail."""
    raise OSError(text)


@as_tool(return_direct=True)
def final(n: int) -> int:
    """The last word."""
    return n


def told(messages: list[Any]) -> list[tuple[str, str]]:
    return [(message.type, message.text) for message in messages]


def edges(agent: Any) -> set[tuple[str, str, bool]]:
    return {(edge.source, edge.target, edge.conditional) for edge in agent.get_graph().edges}


# -- the loop --------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("S1-63")
def test_the_loop_runs_to_the_answer(run: Runner, saver: Any, thread: Callable[[str], Any]) -> None:
    model = ScriptedModel([call_tool("double", {"n": 21}), lambda request: f"answer {request.messages[-1].text}"])
    agent = create_agent(model, [double], system_prompt="be brief", checkpointer=saver)

    result = run.invoke(agent, HI, thread("t"))

    assert [("human", "hi"), ("ai", ""), ("tool", "42"), ("ai", "answer 42")] == told(result["messages"])
    assert SystemMessage("be brief") == model.requests[0].messages[0]
    assert all(message.id for message in run.state(agent, thread("t")).values["messages"])


@pytest.mark.acceptance("S1-18")
def test_an_agent_from_the_public_builder(run: Runner) -> None:
    model = ScriptedModel([call_tool("double", {"n": 21}), "answer 42"]).bind_tools([double])

    def ask(state: MessagesState) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    def route(state: MessagesState) -> Any:
        last = state["messages"][-1]
        return [Send("tools", [call]) for call in getattr(last, "tool_calls", [])] or END

    graph = StateGraph(MessagesState).add_node("model", ask).add_node("tools", ToolNode([double]))
    graph.add_edge(START, "model").add_conditional_edges("model", route, ["tools", END]).add_edge("tools", "model")

    result = run.invoke(graph.compile(), HI)

    assert [("human", "hi"), ("ai", ""), ("tool", "42"), ("ai", "answer 42")] == told(result["messages"])


@pytest.mark.acceptance("S1-19")
def test_two_calls_of_one_message_are_two_tasks_of_one_step(run: Runner) -> None:
    both = call_tools(call_tool("double", {"n": 1}, id="a"), call_tool("double", {"n": 2}, id="b"))
    agent = create_agent(ScriptedModel([both, "done"]), [double])

    updates = run.stream(agent, HI, stream_mode="updates")
    values = run.stream(create_agent(ScriptedModel([both, "done"]), [double]), HI, stream_mode="values")

    assert ["model", "tools", "tools", "model"] == [next(iter(update)) for update in updates]
    assert [1, 2, 4, 5] == [len(value["messages"]) for value in values]
    assert ["2", "4"] == [message.text for message in values[-1]["messages"] if message.type == "tool"]


@pytest.mark.acceptance("S1-20")
def test_how_agents_are_drawn() -> None:
    def drawn(tools: Any = (), **options: Any) -> set[tuple[str, str, bool]]:
        return edges(create_agent(ScriptedModel([]), list(tools), **options)) - {(START, "model", False)}

    assert {("model", "tools", True), ("model", END, True), ("tools", "model", True)} == drawn([double])
    assert {("model", END, False)} == drawn()
    assert ("tools", END, True) in drawn([double, final])
    assert {("model", "model", True), ("model", END, True)} == drawn(response_format=ToolStrategy(Point))


def test_what_stands_in_the_input_is_taken_in_any_form(run: Runner) -> None:
    model = ScriptedModel(lambda request: f"{len(request.messages)}")

    assert "1" == run.invoke(create_agent(model), HI)["messages"][-1].text
    assert "0" == run.invoke(create_agent(model), {"messages": []})["messages"][-1].text
    asked = {"messages": [{"role": "system", "content": "s"}, ("user", "u")]}
    assert "3" == run.invoke(create_agent(model, system_prompt="p"), asked)["messages"][-1].text


def test_the_name_is_on_every_answer(run: Runner) -> None:
    assert "bob" == run.invoke(create_agent(ScriptedModel(["x"]), name="bob"), HI)["messages"][-1].name


def test_the_recursion_limit_holds_when_it_is_asked_for(run: Runner) -> None:
    agent = create_agent(ScriptedModel(lambda _: call_tool("double", {"n": 1})), [double])

    with pytest.raises(GraphRecursionError):
        run.invoke(agent, HI, {"recursion_limit": 5})


def test_a_providers_own_tool_is_bound_and_never_run(run: Runner) -> None:
    model = ScriptedModel(["found"])
    run.invoke(create_agent(model, [{"type": "web_search"}]), HI)

    assert [{"type": "web_search"}] == model.requests[0].tools


# -- tools -----------------------------------------------------------------------------------------------------------


def test_an_unknown_tool_and_bad_arguments_are_told_to_the_model(run: Runner) -> None:
    calls = call_tools(call_tool("treble", {}, id="a"), call_tool("double", {"n": "x"}, id="b"))
    result = run.invoke(create_agent(ScriptedModel([calls, "sorry"]), [double]), HI)

    unknown, bad = result["messages"][2:4]
    assert ("error", "error") == (unknown.status, bad.status)
    assert "The tools are: double." in unknown.text
    assert "- n: Input should be a valid integer" in bad.text


def test_an_error_of_one_tool_is_told_and_its_sibling_keeps_its_result(run: Runner) -> None:
    calls = call_tools(call_tool("fail", {"text": "no disk"}), call_tool("double", {"n": 4}))
    result = run.invoke(create_agent(ScriptedModel([calls, "ok"]), [double, fail]), HI)

    failed, doubled = result["messages"][2:4]
    assert ("error", "success", "8") == (failed.status, doubled.status, doubled.text)
    assert "OSError('no disk')" in failed.text


@pytest.mark.parametrize("handle", [False, "default", ValueError])
def test_an_error_that_is_not_to_be_told_is_raised(run: Runner, handle: Any) -> None:
    agent = create_agent(ScriptedModel([call_tool("fail", {"text": "x"})]), [fail], handle_tool_errors=handle)

    with pytest.raises(OSError, match="x"):
        run.invoke(agent, HI)


@pytest.mark.parametrize(
    ("handle", "text"),
    [("sorry", "sorry"), (OSError, "OSError"), ((OSError, KeyError), "OSError"), (lambda error: f"<{error}>", "<x>")],
)
def test_an_error_may_be_worded(run: Runner, handle: Any, text: str) -> None:
    agent = create_agent(ScriptedModel([call_tool("fail", {"text": "x"}), "ok"]), [fail], handle_tool_errors=handle)

    assert text in run.invoke(agent, HI)["messages"][2].text


def test_a_tool_that_runs_out_of_something_to_iterate_over_is_told_too(run: Runner) -> None:
    @as_tool
    def first() -> str:
        """The first of nothing."""
        return next(iter(()))

    result = run.invoke(create_agent(ScriptedModel([call_tool("first", {}), "done"]), [first]), HI)

    assert "StopIteration" in result["messages"][2].text
    assert "done" == result["messages"][-1].text


def test_a_blocking_step_that_raises_stop_iteration_ends_an_awaited_run(run: Runner) -> None:
    class Exhausted(ChatModel):
        def generate(self, request: Any) -> AIMessage:
            return next(iter(()))

    class Nosy(AgentMiddleware):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return next(iter(()))

    for agent in (create_agent(Exhausted()), create_agent(ScriptedModel(["x"]), middleware=[Nosy()])):
        with pytest.raises((RuntimeError, StopIteration), match=r"StopIteration|^$"):
            run.invoke(agent, HI)


def test_a_tool_exception_never_ends_a_run(run: Runner) -> None:
    def refuse() -> str:
        """Refuse."""
        raise ToolException("not today")

    graph = StateGraph(MessagesState).add_node("tools", ToolNode([refuse])).add_edge(START, "tools").compile()

    result = run.invoke(graph, {"messages": [call_tool("refuse")]})

    assert ("error", True) == (result["messages"][-1].status, "not today" in result["messages"][-1].text)


def test_a_fault_of_the_program_is_raised_whatever_the_policy(run: Runner) -> None:
    @as_tool
    def silent() -> Command[Any]:
        """Say nothing."""
        return Command(update={"messages": []})

    with pytest.raises(InvalidInputError, match="not one ToolMessage"):
        run.invoke(create_agent(ScriptedModel([call_tool("silent")]), [silent]), HI)


def test_a_result_for_another_call_is_refused_and_never_taken_for_none(run: Runner) -> None:
    def astray() -> ToolMessage:
        """Answer some other call."""
        return ToolMessage("paid", tool_call_id="other")

    with pytest.raises(InvalidInputError, match="not one ToolMessage for the call"):
        run.invoke(create_agent(ScriptedModel([call_tool("astray", {}), "done"]), [astray]), HI)


def test_return_direct_ends_the_run_only_when_all_is_well(run: Runner) -> None:
    def last(*answers: Any) -> str:
        return str(
            run.invoke(create_agent(ScriptedModel([*answers, "again"]), [double, final]), HI)["messages"][-1].type
        )

    assert "tool" == last(call_tool("final", {"n": 1}))
    assert "ai" == last(call_tool("final", {"n": "x"}))
    assert "ai" == last(call_tools(call_tool("final", {"n": 1}), call_tool("double", {"n": 1})))


def test_calls_without_an_id_are_given_one(run: Runner) -> None:
    bare = AIMessage("", tool_calls=[{"name": "double", "args": {"n": 1}, "id": None}])
    result = run.invoke(create_agent(ScriptedModel([bare, "ok"]), [double]), HI)

    _, asked, answered, _ = result["messages"]
    assert asked.tool_calls[0]["id"] == answered.tool_call_id


@pytest.mark.acceptance("S1-59")
def test_calls_that_were_never_answered_are_before_the_model_is_asked(run: Runner) -> None:
    model = ScriptedModel(["ok"])
    history = [
        HumanMessage("a"),
        call_tools(call_tool("double", {"n": 1}, id="x"), call_tool("double", {"n": 2}, id="y")),
        ToolMessage("4", tool_call_id="y"),
        HumanMessage("b"),
    ]

    result = run.invoke(create_agent(model, [double]), {"messages": history})

    seen = model.requests[0].messages
    assert ["human", "ai", "tool", "tool", "human"] == [message.type for message in seen]
    assert ["x", "y"] == [message.tool_call_id for message in seen[2:4]]
    assert "was not run" in seen[2].text
    assert ["human", "ai", "tool", "tool", "human", "ai"] == [message.type for message in result["messages"]]


def test_a_result_without_its_call_is_not_shown_to_the_model(run: Runner) -> None:
    model = ScriptedModel(["ok"])
    result = run.invoke(create_agent(model), {"messages": [ToolMessage("1", tool_call_id="gone"), HumanMessage("a")]})

    assert ["human"] == [message.type for message in model.requests[0].messages]
    assert ["tool", "human", "ai"] == [message.type for message in result["messages"]]


def test_calls_that_cannot_be_read_are_told_to_the_model(run: Runner) -> None:
    bad = AIMessage("", invalid_tool_calls=[invalid_tool_call(name="double", args="{n", id="i", error="cut off")])
    result = run.invoke(create_agent(ScriptedModel([bad, "ok"]), [double]), HI)

    assert ["human", "ai", "tool", "ai"] == [message.type for message in result["messages"]]
    assert "cut off" in result["messages"][2].text
    hopeless = ScriptedModel(lambda _: bad.model_copy(update={"id": None}))
    run.invoke(create_agent(hopeless, [double]), HI)
    assert 3 == hopeless.calls


def test_a_call_without_tools_ends_the_run(run: Runner) -> None:
    assert "ai" == run.invoke(create_agent(ScriptedModel([call_tool("x")])), HI)["messages"][-1].type


class Counted(AgentState):
    """An agent's state with a key of its own."""

    count: Annotated[int, add]


def test_tools_see_and_write_the_state(run: Runner) -> None:
    @as_tool
    def count(by: int, state: Annotated[Any, InjectedState], id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Count."""
        seen = f"{len(state['messages'])} messages, {state['count']}"
        return Command(update={"count": by, "messages": [ToolMessage(seen, tool_call_id=id)]})

    @as_tool
    def peek(runtime: ToolRuntime, count: Annotated[int, InjectedState("count")] = 0) -> str:
        """Peek."""
        return f"{count} {runtime.context} {runtime.attempt} {runtime.tool_call_id} {len(runtime.tools)}"

    model = ScriptedModel([call_tool("count", {"by": 2, "state": "forged"}), call_tool("peek", id="p"), "done"])
    agent = create_agent(model, [count, peek], state_schema=Counted, context_schema=dict)

    result = run.invoke(agent, {**HI, "count": 1}, context={"user": "u"})

    assert 3 == result["count"]
    assert ["2 messages, 1", "3 {'user': 'u'} 1 p 2"] == [m.text for m in result["messages"] if m.type == "tool"]
    assert "count" == result["messages"][2].name


def test_tools_need_a_store_that_is_there(run: Runner) -> None:
    @as_tool
    def keep(store: Annotated[Any, InjectedStore()]) -> str:
        """Keep."""
        return str(store)

    with pytest.raises(InvalidInputError, match="wants the store"):
        run.invoke(create_agent(ScriptedModel([call_tool("keep")]), [keep]), HI)
    kept = create_agent(ScriptedModel([call_tool("keep"), "x"]), [keep], store="the store")
    assert "the store" == run.invoke(kept, HI)["messages"][2].text


def test_a_stream_tells_what_tools_do(run: Runner) -> None:
    @as_tool
    def work(n: int, runtime: ToolRuntime) -> str:
        """Work."""
        runtime.emit_output_delta(f"{n}...")
        if n > 1:
            raise OSError("too much")
        return "done"

    model = ScriptedModel([call_tool("work", {"n": 1}, id="a"), call_tool("work", {"n": 2}, id="b"), "ok"])
    events = run.stream(create_agent(model, [work]), HI, stream_mode="tools")

    assert [
        "tool-started",
        "tool-output-delta",
        "tool-finished",
        "tool-started",
        "tool-output-delta",
        "tool-error",
    ] == [event["event"] for event in events]
    assert ("a", "work", {"n": 1}) == tuple(events[0][key] for key in ("tool_call_id", "tool_name", "input"))
    assert ("1...", "done", "too much") == (events[1]["delta"], events[2]["output"].text, events[5]["message"])


def test_a_stream_shows_the_words_of_the_agents_model_and_of_no_other(run: Runner) -> None:
    summary = SummarizationMiddleware(ScriptedModel(["a summary"]), trigger=("messages", 2), keep=("messages", 1))
    agent = create_agent(ScriptedModel(["one two three"]), middleware=[summary])

    chunks = run.stream(agent, {"messages": ["a", "b"]}, stream_mode="messages")

    said = [chunk for chunk, metadata in chunks if metadata["langgraph_node"] == "model"]
    assert ["one", " two", " three"] == [chunk.text for chunk in said if chunk.text]
    assert "a summary" not in [chunk.text for chunk, _ in chunks]


# -- questions and parents -------------------------------------------------------------------------------------------


@as_tool
def ask(what: str) -> str:
    """Ask a person."""
    return f"{what}: {interrupt(what)}"


def test_questions_of_several_calls_all_surface(run: Runner, saver: Any, thread: Callable[[str], Any]) -> None:
    both = call_tools(call_tool("ask", {"what": "a"}), call_tool("ask", {"what": "b"}), call_tool("double", {"n": 1}))
    agent = create_agent(ScriptedModel([both, "done"]), [ask, double], checkpointer=saver)

    paused = run.invoke(agent, HI, thread("t"))
    ids = {question.value: question.id for question in paused["__interrupt__"]}
    result = run.invoke(agent, Command(resume={ids["a"]: "yes", ids["b"]: "no"}), thread("t"))

    assert ["a: yes", "b: no", "2"] == [m.text for m in result["messages"] if m.type == "tool"]


def test_questions_of_several_calls_in_one_task_all_surface(
    run: Runner, saver: Any, thread: Callable[[str], Any]
) -> None:
    graph = StateGraph(MessagesState).add_node("tools", ToolNode([ask])).add_edge(START, "tools")
    app = graph.compile(checkpointer=saver)
    both = call_tools(call_tool("ask", {"what": "a"}, id="1"), call_tool("ask", {"what": "b"}, id="2"))

    paused = run.invoke(app, {"messages": [both]}, thread("t"))
    ids = {question.value: question.id for question in paused["__interrupt__"]}
    assert {"a", "b"} == set(ids)
    run.invoke(app, Command(resume={ids["b"]: "no"}), thread("t"))
    result = run.invoke(app, Command(resume={ids["a"]: "yes"}), thread("t"))

    assert ["a: yes", "b: no"] == [m.text for m in result["messages"] if m.type == "tool"]


class Shared(TypedDict):
    """A parent's state."""

    messages: Annotated[list[Any], add]
    seen: Annotated[list[str], add]


def test_commands_to_the_parent_all_arrive(run: Runner) -> None:
    @as_tool
    def hand_over(to: str, id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Hand over."""
        return Command(graph=Command.PARENT, goto=to, update={"seen": [to], "messages": [ToolMessage(to, id)]})

    both = call_tools(call_tool("hand_over", {"to": "x"}), call_tool("hand_over", {"to": "y"}))
    agent = create_agent(ScriptedModel([both]), [hand_over])
    graph = StateGraph(Shared).add_node("agent", agent, destinations=("x", "y")).add_edge(START, "agent")
    graph.add_node("x", lambda state: {"seen": ["at x"]}).add_node("y", lambda state: {"seen": ["at y"]})

    result = run.invoke(graph.compile(), {"messages": [HumanMessage("hi")], "seen": []})

    assert ["x", "y", "at x", "at y"] == result["seen"]
    assert ["x", "y"] == [message.text for message in result["messages"] if message.type == "tool"]


def test_an_agent_is_a_node_of_another_graph(run: Runner) -> None:
    agent = create_agent(ScriptedModel([call_tool("double", {"n": 2}), "4"]), [double], name="calc")
    graph = StateGraph(MessagesState).add_node("calc", agent).add_edge(START, "calc")

    assert ["human", "ai", "tool", "ai"] == [m.type for m in run.invoke(graph.compile(), HI)["messages"]]


def test_tools_condition_and_tool_node_over_the_whole_state(run: Runner) -> None:
    model = ScriptedModel([call_tools(call_tool("double", {"n": 1}), call_tool("double", {"n": 2})), "done"])
    graph = StateGraph(MessagesState).add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([double])).add_edge(START, "model").add_edge("tools", "model")
    graph.add_conditional_edges("model", tools_condition)

    assert ["2", "4"] == [m.text for m in run.invoke(graph.compile(), HI)["messages"] if m.type == "tool"]
    with pytest.raises(InvalidInputError, match="No messages"):
        tools_condition([])


# -- structured answers ----------------------------------------------------------------------------------------------


class Point(BaseModel):
    """A point."""

    x: int


class Nothing(BaseModel):
    """No point."""

    why: str


def structured(run: Runner, answers: list[Any], response_format: Any, tools: Any = (), **options: Any) -> Any:
    model = ScriptedModel(answers, **options)
    return run.invoke(create_agent(model, list(tools), response_format=response_format), HI), model


def test_a_structured_answer_through_a_tool(run: Runner) -> None:
    result, model = structured(run, [call_tool("Point", {"x": 1})], ToolStrategy(Point, tool_message_content="taken"))

    assert (Point(x=1), "taken") == (result["structured_response"], result["messages"][-1].text)
    assert "any" == model.requests[0].tool_choice


def test_a_bad_structured_answer_is_given_again(run: Runner) -> None:
    answers = ["words", call_tool("Point", {"x": "no"}), call_tool("Point", {"x": 2})]
    result, _ = structured(run, answers, ToolStrategy(Point))

    assert Point(x=2) == result["structured_response"]
    assert ["human", "ai", "ai", "tool", "ai", "tool"] == [message.type for message in result["messages"]]


def test_a_bad_structured_answer_beside_a_call_is_given_again(run: Runner) -> None:
    first = call_tools(call_tool("Point", {"x": "no"}), call_tool("double", {"n": 1}))
    result, _ = structured(run, [first, call_tool("Point", {"x": 2})], ToolStrategy(Point), [double])

    assert Point(x=2) == result["structured_response"]
    assert ["error", "success", "success"] == [m.status for m in result["messages"] if m.type == "tool"]


def test_a_structured_answer_beside_a_call_ends_when_the_call_has_run(run: Runner) -> None:
    first = call_tools(call_tool("Point", {"x": 1}), call_tool("double", {"n": 1}))
    result, model = structured(run, [first], Point, [double])

    assert (Point(x=1), 1, "2") == (result["structured_response"], model.calls, result["messages"][-1].text)


def test_several_schemas_are_several_tools(run: Runner) -> None:
    both = call_tools(call_tool("Point", {"x": 1}), call_tool("Nothing", {"why": "w"}))
    result, _ = structured(run, [both, call_tool("Nothing", {"why": "w"})], Point | Nothing)

    assert Nothing(why="w") == result["structured_response"]
    with pytest.raises(MultipleStructuredOutputsError):
        structured(run, [both], ToolStrategy(Point | Nothing, handle_errors=False))


@pytest.mark.parametrize(
    ("handle", "text"),
    [("again", "again"), (ValueError, "Error"), ((KeyError, StructuredOutputValidationError), "Error"), (str, "Point")],
)
def test_bad_structured_answers_may_be_worded(run: Runner, handle: Any, text: str) -> None:
    answers = [call_tool("Point", {}), call_tool("Point", {"x": 1})]
    handle = (lambda error: str(error)) if handle is str else handle
    result, _ = structured(run, answers, ToolStrategy(Point, handle_errors=handle))

    assert text in result["messages"][2].text
    with pytest.raises(StructuredOutputValidationError):
        structured(run, answers, ToolStrategy(Point, handle_errors=KeyError))


def test_the_provider_may_give_the_structured_answer(run: Runner) -> None:
    result, model = structured(run, ['{"x": 3}'], Point, profile={"structured_output": True})

    assert (Point(x=3), "Point") == (result["structured_response"], model.requests[0].output.name)
    with pytest.raises(StructuredOutputValidationError):
        structured(run, ["words"], ProviderStrategy(Point))
    strict, model = structured(run, ['{"x": 3}'], ProviderStrategy({"title": "P", "type": "object"}, strict=True))
    assert ({"x": 3}, True) == (strict["structured_response"], model.requests[0].output.strict)


def test_a_structured_answer_does_not_outlive_its_turn(run: Runner, saver: Any, thread: Callable[[str], Any]) -> None:
    agent = create_agent(
        ScriptedModel([call_tool("Point", {"x": 1}), "words"]), [double], response_format=Point, checkpointer=saver
    )

    assert Point(x=1) == run.invoke(agent, HI, thread("t"))["structured_response"]
    assert run.invoke(agent, HI, thread("t"))["structured_response"] is None


def test_what_is_no_agent_is_refused() -> None:
    with pytest.raises(DefinitionError, match="no chat model"):
        create_agent(object())
    with pytest.raises(DefinitionError, match="no tool"):
        create_agent(ScriptedModel([]), [3])


def test_a_delay_of_the_model_holds_nobody_up() -> None:
    agent = create_agent(ScriptedModel([Turn(answer="x", delay=0.01)]))

    assert "x" == Blocking().invoke(agent, HI)["messages"][-1].text
