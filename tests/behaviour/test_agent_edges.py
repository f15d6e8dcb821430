"""What agents do at the edges of the reference's behaviour: each one small, none of them silent."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from pregel import Command
from pregel.agents import AgentState, ScriptedModel, Tool, ToolRuntime, create_agent, tool
from pregel.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelResponse,
    PIIMiddleware,
    PrivateStateAttr,
    after_model,
    before_model,
    dynamic_prompt,
    wrap_model_call,
    wrap_tool_call,
)
from pregel.agents.models import call_tool, call_tools
from pregel.agents.structured_output import ToolStrategy
from pregel.agents.tool_node import InjectedState
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import AmbiguousResumeError, InvalidInputError, NoCheckpointerError
from pregel.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from pregel.types import interrupt

from .conftest import Runner
from .marks import Thread

HI = {"messages": "hi"}


@tool
def double(n: int) -> int:
    """Double a number."""
    return n * 2


def doubling(n: Any = 1) -> AIMessage:
    return call_tool("double", {"n": n})


def kinds(result: Any) -> list[tuple[str, str]]:
    return [(message.type, message.text) for message in result["messages"]]


@pytest.mark.parametrize("where", ["tool", "hook"])
def test_a_command_to_the_end_leaves_the_edges_as_they_are(run: Runner, where: str) -> None:
    @tool
    def leave(runtime: ToolRuntime) -> Command[Any]:
        """Leave."""
        told = ToolMessage("left", tool_call_id=str(runtime.tool_call_id))
        return Command(goto="__end__", update={"messages": [told]})

    @before_model
    def leaving(state: Any, runtime: Any) -> Command[Any]:
        return Command(goto="__end__")

    model = ScriptedModel([call_tool("leave"), "done"] if where == "tool" else ["done"])
    app = create_agent(model, [leave], middleware=[leaving] if where == "hook" else [])

    assert ("ai", "done") == kinds(run.invoke(app, HI))[-1]


def test_a_long_loop_of_tools_is_not_stopped_on_the_way(run: Runner) -> None:
    app = create_agent(ScriptedModel([*[doubling()] * 30, "done"]), [double])

    assert 62 == len(run.invoke(app, HI)["messages"])


def test_an_input_without_messages_asks_the_model_with_none(run: Runner) -> None:
    model = ScriptedModel(["hello"])

    assert [("ai", "hello")] == kinds(run.invoke(create_agent(model), {}))
    assert [] == list(model.requests[0].messages)


def test_what_a_node_hook_adds_is_stored_each_time_and_what_a_wrap_adds_is_not(run: Runner) -> None:
    @before_model
    def noting(state: Any, runtime: Any) -> Any:
        return {"messages": [HumanMessage("note")]}

    @wrap_model_call
    def whispering(request: Any, handler: Any) -> Any:
        return handler(request.override(messages=[*request.messages, HumanMessage("whisper")]))

    model = ScriptedModel([doubling(), "done"])
    result = run.invoke(create_agent(model, [double], middleware=[noting, whispering]), HI)

    assert ["hi", "note", "", "2", "note", "done"] == [text for _, text in kinds(result)]
    assert ["whisper", "whisper"] == [request.messages[-1].text for request in model.requests]


def test_messages_beside_the_answer_are_stored_in_their_order(run: Runner) -> None:
    @wrap_model_call
    def more(request: Any, handler: Any) -> Any:
        return ModelResponse([HumanMessage("before"), *handler(request).result, HumanMessage("after")])

    result = run.invoke(create_agent(ScriptedModel(["said"]), middleware=[more]), HI)

    assert ["hi", "before", "said", "after"] == [text for _, text in kinds(result)]


def test_a_prompt_stands_before_a_system_message_of_the_input_and_is_not_stored(run: Runner) -> None:
    @dynamic_prompt
    def other(request: Any) -> str:
        return "OTHER"

    given = {"messages": [SystemMessage("given"), HumanMessage("hi")]}
    for middleware, prompt in (([], "PROMPT"), ([other], "OTHER")):
        model = ScriptedModel(["done"])
        result = run.invoke(create_agent(model, system_prompt="PROMPT", middleware=middleware), given)

        assert [prompt, "given", "hi"] == [message.text for message in model.requests[0].messages]
        assert ["given", "hi", "done"] == [text for _, text in kinds(result)]


def test_a_breakpoint_before_the_tools_shows_one_task_for_each_call(run: Runner, thread: Thread) -> None:
    model = ScriptedModel([call_tools(doubling(1), doubling(2)), "done"])
    app = create_agent(model, [double], checkpointer=InMemorySaver(), interrupt_before=["tools"])

    run.invoke(app, HI, thread("1"))
    assert ("tools", "tools") == run.state(app, thread("1")).next

    assert ["2", "4"] == [text for kind, text in kinds(run.invoke(app, None, thread("1"))) if kind == "tool"]


def test_several_questions_need_an_answer_each(run: Runner, thread: Thread) -> None:
    @tool
    def ask(n: int) -> str:
        """Ask."""
        return str(interrupt(f"{n}?"))

    calls = call_tools(call_tool("ask", {"n": 1}), call_tool("ask", {"n": 2}))
    app = create_agent(ScriptedModel([calls, "done"]), [ask], checkpointer=InMemorySaver())
    asked = run.invoke(app, HI, thread("1"))["__interrupt__"]

    with pytest.raises(AmbiguousResumeError):
        run.invoke(app, Command(resume="yes"), thread("1"))
    result = run.invoke(app, Command(resume={one.id: f"{one.value} yes" for one in asked}), thread("1"))

    assert ["1? yes", "2? yes"] == [text for kind, text in kinds(result) if kind == "tool"]


def test_hooks_that_have_run_do_not_run_again_when_a_later_one_was_answered(run: Runner, thread: Thread) -> None:
    ran: list[str] = []

    class First(AgentMiddleware):
        def before_agent(self, state: Any, runtime: Any) -> None:
            ran.append("before")

        def after_model(self, state: Any, runtime: Any) -> None:
            ran.append("first")

    class Last(AgentMiddleware):
        def after_model(self, state: Any, runtime: Any) -> None:
            ran.append("last")

    @after_model
    def asking(state: Any, runtime: Any) -> None:
        interrupt("well?")
        ran.append("answered")

    app = create_agent(ScriptedModel(["done"]), middleware=[First(), asking, Last()], checkpointer=InMemorySaver())
    run.invoke(app, HI, thread("1"))
    run.invoke(app, Command(resume="yes"), thread("1"))

    assert ["before", "last", "answered", "first"] == ran


def test_what_a_json_schema_requires_and_a_call_lacks_is_told_to_the_model(run: Runner) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "by": {}}, "required": ["n"]}
    times = Tool(lambda n, by=2: n * by, name="times", description="Multiply.", args_schema=schema)
    model = ScriptedModel([call_tool("times", {"by": 3}), call_tool("times", {"n": 3}), "done"])

    told, answered = (one for one in run.invoke(create_agent(model, [times]), HI)["messages"] if one.type == "tool")

    assert ("error", True) == (told.status, "n: Field required" in told.text)
    assert ("success", "6") == (answered.status, answered.text)


def test_an_answer_by_a_json_schema_is_given_back_as_it_came(run: Runner) -> None:
    schema = {"title": "Point", "type": "object", "properties": {"x": {"type": "integer"}}}
    app = create_agent(ScriptedModel([call_tool("Point", {"x": "one"})]), response_format=ToolStrategy(schema))

    assert {"x": "one"} == run.invoke(app, HI)["structured_response"]


def test_a_text_in_the_place_of_a_structured_answer_ends_an_agent_with_tools_alone(run: Runner) -> None:
    class Point(BaseModel):
        x: int

    with_tools = create_agent(ScriptedModel(["text"]), [double], response_format=ToolStrategy(Point))
    without = create_agent(ScriptedModel(["text", call_tool("Point", {"x": 1})]), response_format=ToolStrategy(Point))

    assert run.invoke(with_tools, HI)["structured_response"] is None
    assert Point(x=1) == run.invoke(without, HI)["structured_response"]


@pytest.mark.parametrize("optional", [False, True])
def test_a_state_key_that_is_not_set_is_a_fault_of_the_program(run: Runner, optional: bool) -> None:
    class Cart(AgentState):
        cart: list[str]

    def count(cart: Annotated[list[str], InjectedState("cart")]) -> int:
        """Count."""
        return len(cart)

    def count_any(cart: Annotated[list[str] | None, InjectedState("cart")] = None) -> int:
        """Count."""
        return len(cart or ())

    made = tool("count")(count_any if optional else count)
    app = create_agent(ScriptedModel([call_tool("count"), "done"]), [made], state_schema=Cart)

    if optional:
        assert ("tool", "0") in kinds(run.invoke(app, HI))
        return
    with pytest.raises(KeyError, match="'cart' in 'cart', which is not set") as raised:
        run.invoke(app, HI)
    assert isinstance(raised.value, InvalidInputError)


def test_a_parameter_called_runtime_is_injected_hidden_and_cannot_be_forged(run: Runner) -> None:
    @tool
    def peek(x: int, runtime) -> str:  # type: ignore[no-untyped-def]
        """Peek."""
        return type(runtime).__name__

    app = create_agent(ScriptedModel([call_tool("peek", {"x": 1, "runtime": "forged"}), "done"]), [peek])

    assert ["x"] == list(peek.args)
    assert ("tool", "ToolRuntime") in kinds(run.invoke(app, HI))


def test_private_keys_are_neither_taken_nor_given(run: Runner) -> None:
    seen: list[Any] = []

    class Private(AgentState):
        secret: Annotated[str, PrivateStateAttr]

    class Keeping(AgentMiddleware):
        state_schema = Private

        def before_model(self, state: Any, runtime: Any) -> Any:
            seen.append(state.get("secret"))
            return {"secret": "kept"}

    result = run.invoke(create_agent(ScriptedModel(["done"]), middleware=[Keeping()]), HI)

    assert [None] == seen
    assert "secret" not in result


def test_an_approval_needs_a_checkpointer_and_says_so(run: Runner) -> None:
    app = create_agent(ScriptedModel([doubling()]), [double], middleware=[HumanInTheLoopMiddleware({"double": True})])

    with pytest.raises(NoCheckpointerError):
        run.invoke(app, HI)


def test_a_reviewed_call_holds_its_siblings_until_the_decision(run: Runner, thread: Thread) -> None:
    ran: list[int] = []

    @tool
    def other(n: int) -> str:
        """Run."""
        ran.append(n)
        return "ran"

    calls = call_tools(doubling(), call_tool("other", {"n": 1}))
    app = create_agent(
        ScriptedModel([calls, "done"]),
        [double, other],
        middleware=[HumanInTheLoopMiddleware({"double": True})],
        checkpointer=InMemorySaver(),
    )

    run.invoke(app, HI, thread("1"))
    assert [] == ran
    run.invoke(app, Command(resume={"decisions": [{"type": "approve"}]}), thread("1"))
    assert [1] == ran


def test_only_the_last_message_of_a_person_is_looked_through_and_keeps_its_id(run: Runner) -> None:
    given = {"messages": [HumanMessage("a@b.org", id="1"), HumanMessage("c@d.org", id="2")]}

    result = run.invoke(create_agent(ScriptedModel(["ok"]), middleware=[PIIMiddleware("email")]), given)

    assert [("1", "a@b.org"), ("2", "[REDACTED_EMAIL]")] == [(m.id, m.text) for m in result["messages"][:2]]


def test_an_error_of_a_tool_wrap_is_told_to_the_model(run: Runner) -> None:
    @wrap_tool_call
    def broken(request: Any, handler: Any) -> Any:
        raise ValueError("away")

    result = run.invoke(create_agent(ScriptedModel([doubling(), "done"]), [double], middleware=[broken]), HI)

    answered: BaseMessage = result["messages"][2]
    assert ("error", "done") == (getattr(answered, "status", None), result["messages"][-1].text)
    assert "away" in answered.text
