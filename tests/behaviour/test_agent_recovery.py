"""An agent whose run was cut off: what was recorded is used, not made again."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import BaseModel

from pregel import START, Command, StateGraph, interrupt
from pregel.agents import ScriptedModel, ToolRuntime, create_agent, tool
from pregel.agents.middleware import ModelFallbackMiddleware, ModelRetryMiddleware, wrap_model_call
from pregel.agents.models import ChatRequest, call_tool, call_tools
from pregel.agents.structured_output import StructuredOutputValidationError, ToolStrategy

from .conftest import Runner

HI = {"messages": "hi"}


class World:
    """What was done outside, and where the process dies next."""

    def __init__(self, dies_at: str) -> None:
        self.dies_at, self.log = dies_at, list[str]()

    def note(self, line: str) -> None:
        self.log.append(line)

    def die_at(self, point: str) -> None:
        if point == self.dies_at:
            self.dies_at = ""
            raise KeyboardInterrupt

    def agent(self, saver: Any) -> Any:
        @tool
        def pay(amount: int, runtime: ToolRuntime) -> str:
            """Pay."""
            key = runtime.idempotency_key
            self.note(f"pay {amount} {key}")
            self.die_at(f"paid {amount}")
            assert key == runtime.idempotency_key
            return f"receipt {amount}"

        def script(request: ChatRequest) -> Any:
            turn = sum(message.type == "ai" for message in request.messages)
            self.note(f"ask {turn}")
            self.die_at(f"asked {turn}")
            if turn:
                return "done"
            calls = len([line for line in self.log if line == "ask 0"])
            return call_tools(*(call_tool("pay", {"amount": number}, id=f"{calls}-{number}") for number in (1, 2)))

        return create_agent(ScriptedModel(script), [pay], checkpointer=saver)


@pytest.mark.acceptance("S2-32")
def test_a_recorded_answer_is_never_asked_for_again(run: Runner, saver: Any, thread: Callable[[str], Any]) -> None:
    world = World(dies_at="asked 1")
    with pytest.raises(KeyboardInterrupt):
        run.invoke(world.agent(saver), HI, thread("t"))

    result = run.invoke(world.agent(saver), None, thread("t"))

    told = [line[:5] for line in world.log]
    assert ["ask 0", "ask 1", "ask 1"] == [line for line in told if line.startswith("ask")]
    assert ["pay 1", "pay 2"] == sorted(line for line in told if line.startswith("pay"))
    assert ["1-1", "1-2"] == [message.tool_call_id for message in result["messages"] if message.type == "tool"]


@pytest.mark.acceptance("S5-4")
def test_a_tool_that_was_cut_off_runs_again_under_the_same_key(
    run: Runner, saver: Any, thread: Callable[[str], Any]
) -> None:
    world = World(dies_at="paid 1")
    with pytest.raises(KeyboardInterrupt):
        run.invoke(world.agent(saver), HI, thread("t"))

    result = run.invoke(world.agent(saver), None, thread("t"))

    keys = {line for line in world.log if line.startswith("pay 1")}
    assert (1, 2) == (len(keys), sum(line.startswith("pay 1") for line in world.log))
    assert ["receipt 1", "receipt 2"] == [message.text for message in result["messages"] if message.type == "tool"]
    assert 1 == world.log.count("ask 0")
    assert 2 == len({line.split()[2] for line in world.log if line.startswith("pay")})


# -- answers inside of wrap hooks --------------------------------------------------------------------------------------


class Counted:
    """A model that answers with the number of the call, and what its agent is cut off by afterwards, once."""

    def __init__(self, *script: Any) -> None:
        self.script, self.asked = list(script), 0

    def model(self) -> ScriptedModel:
        def answer(_: ChatRequest) -> Any:
            self.asked += 1
            line = self.script.pop(0) if self.script else None
            return line if isinstance(line, BaseException) else f"answer {self.asked}"

        return ScriptedModel(answer)


def stopping(after: int, error: BaseException) -> Any:
    """A middleware that asks so many times, raises an error once, and gives back the last answer."""
    raised = list[BaseException]()

    @wrap_model_call
    def stop(request: Any) -> Any:
        for _ in range(after):
            response = yield request
        if not raised:
            raised.append(error)
            raise error
        return response

    return stop


def agent_with(middleware: list[Any], saver: Any, counted: Counted) -> Any:
    return create_agent(counted.model(), middleware=middleware, checkpointer=saver)


@pytest.mark.acceptance("S2-32")
@pytest.mark.parametrize("script", [(), (ConnectionError(),)], ids=["at once", "after a retry"])
def test_an_answer_inside_of_a_hook_is_recorded_before_it_is_used(
    run: Runner, saver: Any, thread: Callable[[str], Any], script: Any
) -> None:
    counted = Counted(*script)
    retry = ModelRetryMiddleware(initial_delay=0, jitter=False, retry_on=(ConnectionError,))
    agent = agent_with([stopping(2, KeyboardInterrupt()), retry], saver, counted)
    with pytest.raises(KeyboardInterrupt):
        run.invoke(agent, HI, thread("t"))
    asked = counted.asked

    result = run.invoke(agent, None, thread("t"))

    assert (asked, f"answer {asked}") == (counted.asked, result["messages"][-1].text)


def test_the_answer_of_a_fallback_is_used_again(run: Runner, saver: Any, thread: Callable[[str], Any]) -> None:
    broken, other = Counted(ConnectionError(), ConnectionError()), Counted()
    fallback = ModelFallbackMiddleware(other.model())
    agent = agent_with([stopping(1, KeyboardInterrupt()), fallback], saver, broken)
    with pytest.raises(KeyboardInterrupt):
        run.invoke(agent, HI, thread("t"))

    result = run.invoke(agent, None, thread("t"))

    assert (1, 1, "answer 1") == (broken.asked, other.asked, result["messages"][-1].text)


def test_a_hook_that_asks_a_person_about_an_answer_goes_on_with_that_answer(
    run: Runner, saver: Any, thread: Callable[[str], Any]
) -> None:
    @wrap_model_call
    def reviewed(request: Any) -> Any:
        response = yield request
        said = interrupt(response.result[0].text)
        return response if said == "yes" else (yield request)

    counted = Counted()
    agent = agent_with([reviewed], saver, counted)
    (asked,) = run.invoke(agent, HI, thread("t"))["__interrupt__"]
    told = run.invoke(agent, Command(resume="yes"), thread("t"))

    assert ("answer 1", "answer 1", 1) == (asked.value, told["messages"][-1].text, counted.asked)


def test_an_answer_that_made_the_agent_fail_is_asked_for_again(
    run: Runner, saver: Any, thread: Callable[[str], Any]
) -> None:
    counted = Counted()
    agent = agent_with([stopping(1, ValueError("not this one"))], saver, counted)
    with pytest.raises(ValueError, match="not this one"):
        run.invoke(agent, HI, thread("t"))

    assert "answer 2" == run.invoke(agent, None, thread("t"))["messages"][-1].text


# -- agents side by side -----------------------------------------------------------------------------------------------


class Booking(BaseModel):
    """What became of a booking."""

    status: Literal["booked", "needs_input", "failed"]


class Trip(TypedDict, total=False):
    bookings: Annotated[list[Booking], operator.add]


@pytest.mark.acceptance("S0-14")
def test_parallel_agents_give_checked_results_and_a_violation_is_a_typed_failure(
    run: Runner, saver: Any, thread: Callable[[str], Any]
) -> None:
    answers: dict[str, list[Any]] = {"flight": ["booked"], "hotel": ["needs_input"], "car": ["perhaps", "failed"]}
    asked = list[str]()

    def node(kind: str) -> Any:
        def script(_: ChatRequest) -> Any:
            asked.append(kind)
            said = answers[kind]
            return call_tool("Booking", {"status": said.pop(0) if len(said) > 1 else said[0]})

        agent = create_agent(ScriptedModel(script), response_format=ToolStrategy(Booking, handle_errors=False))
        return lambda state: {"bookings": [agent.invoke({"messages": "go"})["structured_response"]]}

    graph: Any = StateGraph(Trip)
    for kind in answers:
        graph.add_node(kind, node(kind)).add_edge(START, kind)
    app = graph.compile(checkpointer=saver)
    with pytest.raises(StructuredOutputValidationError, match="does not fit the schema 'Booking'") as raised:
        run.invoke(app, {}, thread("t"))
    result = run.invoke(app, None, thread("t"))

    assert ("Booking", "perhaps") == (raised.value.tool_name, raised.value.ai_message.tool_calls[0]["args"]["status"])
    assert [Booking(status="failed"), Booking(status="booked"), Booking(status="needs_input")] == result["bookings"]
    assert 2 == asked.count("car")
