"""Middleware: where its hooks run, in which order, in which form they may be written, and where they jump."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from operator import add
from typing import Annotated, Any

import pytest

from pregel import Command
from pregel.agents import AgentState, ScriptedModel, create_agent, tool
from pregel.agents.middleware import (
    AgentMiddleware,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
    after_agent,
    after_model,
    before_agent,
    before_model,
    dynamic_prompt,
    hook_config,
    pause,
    wrap_model_call,
    wrap_tool_call,
)
from pregel.agents.models import call_tool, call_tools
from pregel.errors import AsyncOnlyError, DefinitionError, InvalidInputError, InvalidUpdateError
from pregel.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pregel.runtime import Runtime

from .conftest import Awaiting, Blocking, Runner

HI = {"messages": "hi"}


@tool
def double(n: int) -> int:
    """Double a number."""
    return n * 2


def once(*answers: Any) -> ScriptedModel:
    return ScriptedModel([call_tool("double", {"n": 1}), *(answers or ("done",))])


class Log(AgentMiddleware):
    """Notes what runs."""

    def __init__(self, name: str, log: list[str]) -> None:
        self._name, self.log = name, log

    @property
    def name(self) -> str:
        return self._name

    def note(self, what: str) -> None:
        self.log.append(f"{self._name} {what}")

    def before_agent(self, state: Any, runtime: Any) -> None:
        self.note("before_agent")

    def before_model(self, state: Any, runtime: Any) -> None:
        self.note("before_model")

    def after_model(self, state: Any, runtime: Any) -> None:
        self.note("after_model")

    def after_agent(self, state: Any, runtime: Any) -> None:
        self.note("after_agent")

    def wrap_model_call(self, request: Any) -> Any:
        self.note("wrap enter")
        response = yield request
        self.note("wrap exit")
        return response

    def wrap_tool_call(self, request: Any) -> Any:
        self.note("tool enter")
        response = yield request
        self.note("tool exit")
        return response


@pytest.mark.acceptance("S1-56")
def test_the_order_of_hooks(run: Runner) -> None:
    log: list[str] = []
    agent = create_agent(once(), [double], middleware=[Log("A", log), Log("B", log)])

    run.invoke(agent, HI)

    each = ["A before_model", "B before_model", "A wrap enter", "B wrap enter", "B wrap exit", "A wrap exit"]
    each += ["B after_model", "A after_model"]
    tools = ["A tool enter", "B tool enter", "B tool exit", "A tool exit"]
    assert ["A before_agent", "B before_agent", *each, *tools, *each, "B after_agent", "A after_agent"] == log
    hooks = {f"{one}.{hook}" for one in "AB" for hook in ("before_agent", "before_model", "after_model", "after_agent")}
    assert {"__start__", "model", "tools", *hooks} == set(agent.nodes)


def test_wrap_hooks_add_no_node_and_a_tool_wrap_adds_the_tools(run: Runner) -> None:
    @wrap_model_call
    def around(request: Any, handler: Any) -> Any:
        return handler(request)

    @wrap_tool_call
    def emulated(request: Any) -> Any:
        return "made up"
        yield

    assert {"__start__", "model"} == set(create_agent(ScriptedModel([]), middleware=[around]).nodes)
    agent = create_agent(ScriptedModel([call_tool("nothing"), "done"]), middleware=[emulated])
    assert {"__start__", "model", "tools"} == set(agent.nodes)
    assert "made up" == run.invoke(agent, HI)["messages"][2].text


# -- forms -----------------------------------------------------------------------------------------------------------


def test_a_wrap_of_the_handler_form_serves_both_worlds(run: Runner) -> None:
    seen: list[str] = []

    @wrap_model_call
    def around(request: Any, handler: Callable[[Any], Any]) -> Any:
        seen.append("in")
        response = handler(request.override(messages=[*request.messages, HumanMessage("more")]))
        seen.append("out")
        return response

    agent = create_agent(ScriptedModel(lambda request: f"{len(request.messages)}"), middleware=[around])

    result = run.invoke(agent, HI)
    assert (["in", "out"], "2", 2) == (seen, result["messages"][-1].text, len(result["messages"]))


def test_many_calls_may_stand_in_a_blocking_wrap_at_once(run: Runner) -> None:
    """More than a pool has threads, each waiting for a tool that needs one as well."""

    @wrap_tool_call
    def around(request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(request)

    many = call_tools(*(call_tool("double", {"n": number}) for number in range(50)))
    result = run.invoke(create_agent(ScriptedModel([many, "done"]), [double], middleware=[around]), HI)

    assert 50 == sum(message.type == "tool" for message in result["messages"])


def test_both_forms_of_a_wrap_are_used_where_they_belong() -> None:
    class Both(AgentMiddleware):
        """Both."""

        def wrap_model_call(self, request: Any, *handler: Any) -> Any:
            return AIMessage("sync")

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            response = await handler(request)
            return AIMessage(f"async {response.result[0].text}")

    agent = create_agent(ScriptedModel(["x"]), middleware=[Both()])

    assert "sync" == Blocking().invoke(agent, HI)["messages"][-1].text
    assert "async x" == Awaiting().invoke(agent, HI)["messages"][-1].text


def test_an_async_wrap_is_refused_by_name_when_the_caller_blocks() -> None:
    @wrap_tool_call
    async def later(request: Any, handler: Any) -> Any:
        return await handler(request)

    @before_model
    async def wait_first(state: Any, runtime: Any) -> None:
        await asyncio.sleep(0)

    with pytest.raises(AsyncOnlyError, match=r"later\.wrap_tool_call"):
        Blocking().invoke(create_agent(once(), [double], middleware=[later]), HI)
    with pytest.raises(AsyncOnlyError, match=r"wait_first\.before_model"):
        Blocking().invoke(create_agent(once(), middleware=[wait_first]), HI)
    both = create_agent(once(), [double], middleware=[later, wait_first])
    assert "done" == Awaiting().invoke(both, HI)["messages"][-1].text


def test_a_flow_may_ask_twice_catch_and_wait(run: Runner) -> None:
    class Again(AgentMiddleware):
        """Asks until it gets an answer."""

        def wrap_model_call(self, request: Any, *handler: Any) -> Any:
            while True:
                try:
                    return (yield request)
                except ConnectionError:
                    yield pause(0)

    model = ScriptedModel([ConnectionError("a"), ConnectionError("b"), "ok"])
    assert "ok" == run.invoke(create_agent(model, middleware=[Again()]), HI)["messages"][-1].text


def test_a_node_hook_may_be_a_flow_and_may_name_its_parameters(run: Runner) -> None:
    class Flow(AgentMiddleware):
        """Waits."""

        def before_model(self, s: Any, r: Any) -> Any:
            yield pause(0)
            return {"messages": [HumanMessage(f"{len(s['messages'])} {r.context}")]}

        def after_model(self, state: Any, config: Any = None) -> Any:
            assert config["metadata"]["langgraph_node"] == "Flow.after_model"

    agent = create_agent(ScriptedModel(["x"]), middleware=[Flow()], context_schema=dict)

    result = run.invoke(agent, HI, context={"a": 1})
    assert ["hi", "1 {'a': 1}", "x"] == [message.text for message in result["messages"]]


def test_what_wraps_return_is_taken_or_refused(run: Runner) -> None:
    class Returns(AgentMiddleware):
        """Returns what it is told to."""

        def __init__(self, value: Any) -> None:
            self.value = value

        def wrap_model_call(self, request: Any, *handler: Any) -> Any:
            return self.value

    def result(value: Any) -> Any:
        return run.invoke(create_agent(ScriptedModel([]), middleware=[Returns(value)], state_schema=Tallied), HI)

    assert "a" == result(AIMessage("a"))["messages"][-1].text
    assert ["hi", "h", "a"] == [m.text for m in result(ModelResponse([HumanMessage("h"), AIMessage("a")]))["messages"]]
    extended = ExtendedModelResponse(ModelResponse([AIMessage("a")]), Command(update={"tally": ["x"]}))
    assert ["x"] == result(extended)["tally"]
    with pytest.raises(InvalidUpdateError, match="returned a str"):
        result("a")
    with pytest.raises(InvalidUpdateError, match="routes"):
        result(ExtendedModelResponse(ModelResponse([]), Command(goto="model")))


class Tallied(AgentState):
    """A state with a list."""

    tally: Annotated[list[str], add]


def test_commands_of_inner_wraps_come_first_and_only_those_of_the_last_call(run: Runner) -> None:
    class Inner(AgentMiddleware):
        """Tallies each call."""

        calls = 0

        def wrap_model_call(self, request: Any, *handler: Any) -> Any:
            self.calls += 1
            response = yield request
            return ExtendedModelResponse(response, Command(update={"tally": [f"inner {self.calls}"]}))

    class Outer(AgentMiddleware):
        """Calls twice."""

        def wrap_model_call(self, request: Any, *handler: Any) -> Any:
            yield request
            response = yield request
            assert isinstance(response, ModelResponse)
            return ExtendedModelResponse(response, Command(update={"tally": ["outer"]}))

    model = ScriptedModel(["a", "b"])
    agent = create_agent(model, middleware=[Outer(), Inner()], state_schema=Tallied)

    result = run.invoke(agent, HI)
    assert (["inner 2", "outer"], "b", 2) == (result["tally"], result["messages"][-1].text, len(result["messages"]))


# -- jumps -----------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("S1-57")
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("hook", [before_agent, before_model, after_model])
def test_a_jump_to_the_end_is_honoured_from_any_hook(run: Runner, hook: Any, declared: bool) -> None:
    log: list[str] = []

    def stop(state: Any, runtime: Any) -> Any:
        return {"jump_to": "end", "messages": [AIMessage("stopped")]}

    made = hook(can_jump_to=["end"])(stop) if declared else hook(stop)
    agent = create_agent(once(), [double], middleware=[made, Log("L", log)])

    result = run.invoke(agent, HI)

    assert ("stopped", 1) == (result["messages"][-1].text, log.count("L after_agent"))
    assert "L after_agent" == log[-1]
    assert "jump_to" not in result


def test_a_jump_to_the_model_runs_the_loop_again(run: Runner) -> None:
    @after_model(can_jump_to=["model"])
    def not_yet(state: Any, runtime: Any) -> Any:
        if state["messages"][-1].text == "no":
            return {"jump_to": "model", "messages": [HumanMessage("again")]}
        return None

    for tools in ([], [double]):
        agent = create_agent(ScriptedModel(["no", "yes"]), tools, middleware=[not_yet])  # each line is asked for once
        assert ["hi", "no", "again", "yes"] == [message.text for message in run.invoke(agent, HI)["messages"]]


def test_a_jump_to_the_tools_runs_what_nobody_answered_and_nothing_else(run: Runner) -> None:
    ran: list[int] = []

    @tool
    def act(n: int) -> int:
        """Act."""
        ran.append(n)
        return n

    @after_model
    def refuse_one(state: Any, runtime: Any) -> Any:
        calls = getattr(state["messages"][-1], "tool_calls", [])
        refused = [
            ToolMessage("no", tool_call_id=call["id"], status="error") for call in calls if call["args"]["n"] == 1
        ]
        return {"messages": refused}

    @after_model
    def hurry(state: Any, runtime: Any) -> Any:
        return {"jump_to": "tools"} if state["messages"][-1].type == "tool" else None

    both = call_tools(call_tool("act", {"n": 1}), call_tool("act", {"n": 2}))
    agent = create_agent(ScriptedModel([both, "done"]), [act], middleware=[hurry, refuse_one])

    assert "done" == run.invoke(agent, HI)["messages"][-1].text
    assert [2] == ran


def test_a_jump_to_nowhere_is_an_error(run: Runner) -> None:
    @before_model
    def lost(state: Any, runtime: Any) -> Any:
        return {"jump_to": "moon"}

    @before_model(can_jump_to=["end"])
    def elsewhere(state: Any, runtime: Any) -> Any:
        return Command(update={"jump_to": "model"})

    with pytest.raises(InvalidUpdateError, match="'moon'"):
        run.invoke(create_agent(once(), middleware=[lost]), HI)
    with pytest.raises(InvalidUpdateError, match="declares end"):
        run.invoke(create_agent(once(), middleware=[elsewhere]), HI)


def test_a_jump_to_tools_that_there_are_not_is_refused_at_once() -> None:
    class Jumps(AgentMiddleware):
        """Jumps."""

        @hook_config(can_jump_to=["tools"])
        def before_model(self, state: Any, runtime: Any) -> Any:
            return None

    with pytest.raises(DefinitionError, match=r"Jumps\.before_model"):
        create_agent(once(), middleware=[Jumps()])


def test_hooks_that_say_where_they_jump_are_drawn_so() -> None:
    @before_model(can_jump_to=[])
    def plain(state: Any, runtime: Any) -> None: ...

    @before_model(can_jump_to=["end"])
    def stops(state: Any, runtime: Any) -> None: ...

    agent = create_agent(once(), middleware=[plain, stops])
    edges = {(edge.source, edge.target, edge.conditional) for edge in agent.get_graph().edges}

    assert {
        ("__start__", "plain.before_model", False),
        ("plain.before_model", "stops.before_model", False),
        ("stops.before_model", "model", True),
        ("stops.before_model", "__end__", True),
        ("model", "__end__", False),
    } == edges


# -- what a middleware brings ----------------------------------------------------------------------------------------


class Counting(AgentState):
    """Keys of a middleware."""

    seen: int
    secret: Annotated[int, PrivateStateAttr]


class Count(AgentMiddleware):
    """Brings a tool and two keys."""

    state_schema = Counting
    tools = (double,)

    def before_model(self, state: Any, runtime: Any) -> Any:
        return {"seen": state.get("seen", 0) + 1, "secret": state.get("secret", 0) + 1}


@pytest.mark.acceptance("S1-58")
def test_a_middleware_brings_tools_and_state_keys(run: Runner, saver: Any, thread: Callable[[str], Any]) -> None:
    model = once()
    agent = create_agent(model, middleware=[Count()], checkpointer=saver)

    result = run.invoke(agent, {**HI, "secret": 5}, thread("t"))

    assert (2, "2") == (result["seen"], result["messages"][2].text)
    assert "secret" not in result
    assert 2 == run.state(agent, thread("t")).values["secret"]
    assert ["double"] == [spec.name for spec in model.requests[0].tools]  # type: ignore[union-attr]


def test_a_later_tool_of_the_same_name_takes_the_place(run: Runner) -> None:
    @tool("double")
    def triple(n: int) -> int:
        """Triple."""
        return n * 3

    agent = create_agent(once(), [triple], middleware=[Count()])
    assert "3" == run.invoke(agent, HI)["messages"][2].text


def test_the_prompt_the_model_and_the_tools_may_change_at_each_call(run: Runner) -> None:
    other = ScriptedModel(["from the other"])

    @dynamic_prompt
    def prompt(request: ModelRequest) -> str:
        return f"{request.system_prompt}, {len(request.messages)}"

    @wrap_model_call
    def change(request: ModelRequest) -> Any:
        return (yield request.override(model=other, tools=[], tool_choice="none", model_settings={"temperature": 0}))

    agent = create_agent(ScriptedModel([]), [double], system_prompt="base", middleware=[prompt, change])

    assert "from the other" == run.invoke(agent, HI)["messages"][-1].text
    (request,) = other.requests
    assert "base, 1" == request.messages[0].text
    assert ([], "none", {"temperature": 0}) == (list(request.tools), request.tool_choice, request.settings)
    with pytest.raises(InvalidInputError, match="system_prompt and system_message"):
        ModelRequest(model=other, messages=[]).override(system_prompt="a", system_message=None)


def test_a_request_made_by_hand_takes_the_text_of_its_system_message() -> None:
    model = ScriptedModel([])
    request: ModelRequest[Any] = ModelRequest(model=model, messages=[], system_prompt="brief", tools=None, state=None)

    assert ("brief", [], {}) == (request.system_prompt, list(request.tools), request.state)
    assert "other" == request.override(system_prompt="other").system_prompt
    with pytest.raises(InvalidInputError, match="system_prompt and system_message"):
        ModelRequest(model=model, messages=[], system_prompt="a", system_message=SystemMessage("b"))


def test_a_middleware_may_name_its_state_its_context_and_the_answer(run: Runner) -> None:
    class State(AgentState[int]):
        seen: int

    class Typed(AgentMiddleware[State, str, int]):
        state_schema = State

        def before_model(self, state: State, runtime: Runtime[str]) -> Any:
            return {"seen": len(state["messages"]) + len(runtime.context)}

        def wrap_model_call(self, request: ModelRequest[str]) -> Any:
            response: ModelResponse[int] = yield request
            return response

    agent = create_agent(ScriptedModel(["done"]), middleware=[Typed()], context_schema=str)

    assert 3 == run.invoke(agent, HI, context="ab")["seen"]


def test_a_tool_that_nobody_runs_is_refused(run: Runner) -> None:
    @wrap_model_call
    def more(request: ModelRequest) -> Any:
        return (yield request.override(tools=[double]))

    with pytest.raises(InvalidInputError, match="'double'"):
        run.invoke(create_agent(ScriptedModel(["x"]), middleware=[more]), HI)

    class Runs(AgentMiddleware):
        """Supplies the tool."""

        def wrap_tool_call(self, request: Any, *handler: Any) -> Any:
            return (yield request.override(tool=double))

    agent = create_agent(once(), middleware=[more, Runs()])
    assert "2" == run.invoke(agent, HI)["messages"][2].text


def test_a_tool_call_may_be_changed_answered_and_retried(run: Runner) -> None:
    @wrap_tool_call
    def more(request: Any) -> Any:
        call = {**request.tool_call, "args": {"n": 10}}
        first = yield request.override(tool_call=call)
        return first.model_copy(update={"content": f"{first.text}!"})

    assert "20!" == run.invoke(create_agent(once(), [double], middleware=[more]), HI)["messages"][2].text


def test_two_middleware_of_one_name_are_refused() -> None:
    with pytest.raises(DefinitionError, match="'Count'"):
        create_agent(once(), middleware=[Count(), Count()])


def test_decorators_make_middleware_of_functions(run: Runner) -> None:
    log: list[str] = []

    @before_agent(name="begin")
    def first(state: Any, runtime: Any) -> None:
        log.append("begin")

    @after_agent
    def last(state: Any, runtime: Any) -> None:
        log.append("end")

    run.invoke(create_agent(ScriptedModel(["x"]), middleware=[first, last]), HI)

    assert (["begin", "end"], "begin", "last") == (log, first.name, last.name)


def greet(state: Any, runtime: Any) -> None:
    """A function that nobody made a hook."""


BAD_MIDDLEWARE = {
    "a class": ([AgentMiddleware], "AgentMiddleware'> is a class", "Give an instance: AgentMiddleware(...)"),
    "a function": ([greet], "is no middleware", "@before_model"),
    "an object": ([object()], "is no middleware", "AgentMiddleware"),
    "no list": (AgentMiddleware(), "is no list of middleware", "in a list"),
}


@pytest.mark.parametrize("case", list(BAD_MIDDLEWARE))
def test_what_is_no_middleware_is_named(case: str) -> None:
    middleware, problem, fix = BAD_MIDDLEWARE[case]

    with pytest.raises(DefinitionError) as error:
        create_agent(once(), [double], middleware=middleware)  # type: ignore[arg-type]  # that is what is tested

    assert problem in error.value.message
    assert fix in error.value.fix
