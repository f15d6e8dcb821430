"""`create_react_agent` and `ValidationNode`: the older shapes."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from pregel import StateGraph
from pregel.agents import (
    InjectedState,
    ScriptedModel,
    ToolNode,
    ToolRuntime,
    ValidationNode,
    create_react_agent,
    tool,
)
from pregel.agents.chat_agent_executor import AgentState, AgentStatePydantic, InvalidChatHistoryError
from pregel.agents.models import call_tool, call_tools
from pregel.constants import START
from pregel.errors import AsyncOnlyError, InvalidInputError
from pregel.graph import MessagesState
from pregel.messages import AIMessage, HumanMessage, SystemMessage

from .conftest import Runner

HI = {"messages": "hi"}


@tool
def double(n: int) -> int:
    """Double a number."""
    return n * 2


@tool(return_direct=True)
def final(n: int) -> int:
    """The last word."""
    return n


class Point(BaseModel):
    """A point."""

    x: int


def once(*answers: Any) -> ScriptedModel:
    return ScriptedModel([call_tools(call_tool("double", {"n": 1}), call_tool("double", {"n": 2})), *answers, "done"])


def kinds(result: Any) -> list[str]:
    return [message.type for message in result["messages"]]


@pytest.mark.parametrize(("version", "steps"), [("v1", 1), ("v2", 2)])
def test_the_loop(run: Runner, version: Any, steps: int) -> None:
    agent = create_react_agent(once(), [double], prompt="be brief", name="bob", version=version)

    updates = run.stream(agent, HI, stream_mode="updates")

    assert steps == sum("tools" in update for update in updates)
    assert "bob" == updates[-1]["agent"]["messages"][0].name
    assert ["human", "ai", "tool", "tool", "ai"] == kinds(
        run.invoke(create_react_agent(once(), ToolNode([double])), HI)
    )


def test_the_nodes_are_called_as_ever() -> None:
    agent = create_react_agent(
        once(), [double], pre_model_hook=lambda s: {}, post_model_hook=lambda s: {}, response_format=Point
    )

    names = {"agent", "tools", "pre_model_hook", "post_model_hook", "generate_structured_response", "__start__"}
    assert names == set(agent.nodes)
    assert {"agent", "__start__"} == set(create_react_agent(once(), []).nodes)


def test_prompts_in_every_form(run: Runner) -> None:
    class Template:
        """What a prompt function may return: a runnable that makes the messages of the state."""

        def invoke(self, state: Any, config: Any = None) -> Any:
            return [("system", "p"), *state["messages"]]

        async def ainvoke(self, state: Any, config: Any = None) -> Any:
            return self.invoke(state)

    for prompt in (
        "p",
        SystemMessage("p"),
        lambda state: [SystemMessage("p"), *state["messages"]],
        lambda state: [{"role": "system", "content": "p"}, *state["messages"]],
        lambda state: Template(),
    ):
        model = ScriptedModel(["ok"])
        run.invoke(create_react_agent(model, [], prompt=prompt), HI)
        assert ["p", "hi"] == [message.text for message in model.requests[0].messages]
    with pytest.raises(InvalidInputError, match="no prompt"):
        create_react_agent(once(), [], prompt=3)


def test_an_answer_that_replaces_an_earlier_one_ends_the_run(run: Runner) -> None:
    calls = [{"name": "double", "args": {"n": 1}, "id": "c"}]
    agent = create_react_agent(
        ScriptedModel([AIMessage("", tool_calls=calls, id="a"), AIMessage("two", id="a")]), [double]
    )

    assert ["human", "ai", "tool"] == kinds(run.invoke(agent, HI))


def test_without_tools_nothing_leads_back_to_the_model() -> None:
    agent = create_react_agent(once(), [], post_model_hook=lambda state: {})

    shown = [(edge.source, edge.target, edge.conditional) for edge in agent.get_graph().edges]
    assert [("__start__", "agent", False), ("agent", "post_model_hook", False)] == sorted(shown)[:2]
    assert ("post_model_hook", "__end__", False) in shown
    assert 3 == len(shown)


class Rated(AgentStatePydantic):  # type: ignore[misc]  # loaded on demand, so untyped
    """A state that is a model, with a default."""

    rate: int = 7


@tool
def times(n: int, state: Annotated[Rated, InjectedState], runtime: ToolRuntime) -> int:
    """Times the rate, while steps are left."""
    return n * state.rate if runtime.state.remaining_steps > 1 else 0


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_tool_sees_the_state_as_its_schema_says(run: Runner, version: Any) -> None:
    agent = create_react_agent(
        ScriptedModel([call_tool("times", {"n": 2}), "done"]), [times], state_schema=Rated, version=version
    )
    assert "14" == run.invoke(agent, HI)["messages"][2].text


def test_the_hooks_run_around_the_model(run: Runner) -> None:
    model = ScriptedModel(["a", "b"])

    def shorten(state: Any) -> Any:
        return {"llm_input_messages": [HumanMessage("short")]}

    def check(state: Any) -> Any:
        return {"messages": [HumanMessage("checked")]}

    agent = create_react_agent(model, [double], pre_model_hook=shorten, post_model_hook=check)

    assert ["hi", "a", "checked"] == [message.text for message in run.invoke(agent, HI)["messages"]]
    assert ["short"] == [message.text for message in model.requests[0].messages]


def test_the_model_may_be_chosen_at_each_call(run: Runner) -> None:
    one, two = ScriptedModel([call_tool("double", {"n": 1})]), ScriptedModel(["two"])

    def choose(state: Any, runtime: Any) -> Any:
        return one if len(state["messages"]) == 1 else two

    async def later(state: Any, runtime: Any) -> Any:
        return ScriptedModel(["later"])

    assert "two" == run.invoke(create_react_agent(choose, [double]), HI)["messages"][-1].text
    if run.name == "async":
        assert "later" == run.invoke(create_react_agent(later, []), HI)["messages"][-1].text
    else:
        with pytest.raises(AsyncOnlyError):
            run.invoke(create_react_agent(later, []), HI)


def test_a_structured_answer_is_one_more_call(run: Runner) -> None:
    model = ScriptedModel(["words", call_tool("Point", {"x": 3})])
    result = run.invoke(create_react_agent(model, [double], response_format=("as data", Point)), HI)

    assert (Point(x=3), ["human", "ai"]) == (result["structured_response"], kinds(result))
    assert "as data" == model.requests[1].messages[0].text


def test_too_few_steps_are_told(run: Runner) -> None:
    result = run.invoke(create_react_agent(once(), [double]), HI, {"recursion_limit": 2})

    assert ("ai", True) == (result["messages"][-1].type, result["messages"][-1].text.startswith("Sorry"))


def test_return_direct_ends_the_run(run: Runner) -> None:
    assert ["human", "ai", "tool"] == kinds(
        run.invoke(create_react_agent(ScriptedModel([call_tool("final", {"n": 1})]), [double, final]), HI)
    )


def test_a_history_with_open_calls_is_refused(run: Runner) -> None:
    with pytest.raises(InvalidChatHistoryError, match="double"):
        run.invoke(create_react_agent(once(), [double]), {"messages": [once().script[0], HumanMessage("x")]})


def test_states_of_ones_own(run: Runner) -> None:
    class More(AgentState):
        """One more key."""

        note: str

    assert "n" == run.invoke(create_react_agent(once(), [double], state_schema=More), {**HI, "note": "n"})["note"]
    assert "ai" == kinds(run.invoke(create_react_agent(once(), [double], state_schema=AgentStatePydantic), HI))[-1]
    with pytest.raises(InvalidInputError, match="remaining_steps"):
        create_react_agent(once(), [], state_schema=MessagesState)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'v3'"):
        create_react_agent(once(), [], version="v3")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="flavour"):
        create_react_agent(once(), [], flavour="x")  # type: ignore[call-arg]
    with pytest.raises(InvalidInputError, match="bound to the tools"):
        create_react_agent(once().bind_tools([final]), [double])


def test_tool_calls_are_checked_and_not_run(run: Runner) -> None:
    graph = (
        StateGraph(MessagesState).add_node("validation", ValidationNode([Point, double])).add_edge(START, "validation")
    )
    calls = call_tools(
        call_tool("Point", {"x": 1}), call_tool("Point", {}), call_tool("double", {"n": 1}), call_tool("no")
    )

    result = run.invoke(graph.compile(), {"messages": [calls]})

    answers = result["messages"][1:]
    assert ['{"x": 1}', '{"n": 1}'] == [answers[0].content, answers[2].content]
    assert [False, True, False, True] == ["is_error" in answer.additional_kwargs for answer in answers]
    with pytest.raises(InvalidInputError, match="no AIMessage"):
        ValidationNode([Point]).call([HumanMessage("x")], None)
    assert isinstance(ValidationNode([Point]).call([AIMessage("x")], None), list)
