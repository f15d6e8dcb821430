"""A person decides about tool calls: what is asked, what each decision does, and that nothing leads around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pregel import Command
from pregel.agents import ScriptedModel, create_agent, tool
from pregel.agents.middleware import HumanInTheLoopMiddleware, after_model
from pregel.agents.models import call_tool, call_tools
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import DefinitionError
from pregel.warnings import PregelWarning

from .conftest import Runner

HI = {"messages": "hi"}
Thread = Callable[[str], Any]


@pytest.fixture
def saver() -> InMemorySaver:
    """What is stored is the same on every saver; `test_agents` shows it."""
    return InMemorySaver()


class Desk:
    """Tools that note what they did, and an agent over them."""

    def __init__(self, saver: Any, *answers: Any, before: Any = (), others: Any = (), **options: Any) -> None:
        self.done: list[str] = []

        @tool
        def send(to: str) -> str:
            """Send."""
            self.done.append(f"sent to {to}")
            return f"sent to {to}"

        @tool
        def look() -> str:
            """Look."""
            self.done.append("looked")
            return "looked"

        self.model = ScriptedModel([*answers, "done"])
        self.human = HumanInTheLoopMiddleware(options.pop("interrupt_on", {"send": True}), **options)
        self.agent = create_agent(
            self.model, [send, look], middleware=[*before, self.human, *others], checkpointer=saver
        )


def send(to: str, id: str | None = None) -> Any:
    return call_tool("send", {"to": to}, id=id)


def results(result: Any) -> list[tuple[str, str]]:
    return [(message.status, message.text) for message in result["messages"] if message.type == "tool"]


def decide(*decisions: Any) -> Command[Any]:
    return Command(resume={"decisions": list(decisions)})


def test_the_question_shows_every_call_that_needs_a_decision(run: Runner, saver: Any, thread: Thread) -> None:
    desk = Desk(saver, call_tools(send("ann"), call_tool("look"), send("bob")))

    paused = run.invoke(desk.agent, HI, thread("t"))

    (question,) = paused["__interrupt__"]
    shown = [(one["name"], one["args"]) for one in question.value["action_requests"]]
    assert [("send", {"to": "ann"}), ("send", {"to": "bob"})] == shown
    assert ["approve", "edit", "reject", "respond"] == question.value["review_configs"][0]["allowed_decisions"]
    assert ([], ("HumanInTheLoopMiddleware.after_model",)) == (desk.done, run.state(desk.agent, thread("t")).next)


def test_every_decision_does_what_it_says(run: Runner, saver: Any, thread: Thread) -> None:
    calls = call_tools(send("ann"), send("bob"), send("cat"), send("dan"), call_tool("look"))
    desk = Desk(saver, calls)
    run.invoke(desk.agent, HI, thread("t"))

    edit = {"type": "edit", "edited_action": {"name": "send", "args": {"to": "BOB"}}}
    refuse, respond = {"type": "reject", "message": "not her"}, {"type": "respond", "message": "did it by hand"}
    result = run.invoke(desk.agent, decide({"type": "approve"}, edit, refuse, respond), thread("t"))

    assert {"sent to ann", "sent to BOB", "looked"} == set(desk.done)
    answers = {
        message.tool_call_id: (message.status, message.text) for message in result["messages"] if message.type == "tool"
    }
    ann, bob, cat, dan, look = (answers[call["id"]] for call in result["messages"][1].tool_calls)
    assert [("success", "sent to ann"), ("error", "not her"), ("success", "did it by hand"), ("success", "looked")] == [
        ann,
        cat,
        dan,
        look,
    ]
    assert ("A person changed this call", "sent to BOB") == (bob[1][:26], bob[1][-11:])
    assert {"to": "bob"} == result["messages"][1].tool_calls[1]["args"]
    assert "done" == result["messages"][-1].text


def test_when_all_calls_were_answered_the_model_is_asked_again(run: Runner, saver: Any, thread: Thread) -> None:
    desk = Desk(saver, send("ann"))
    run.invoke(desk.agent, HI, thread("t"))

    result = run.invoke(desk.agent, decide({"type": "reject"}), thread("t"))

    assert ([], "done", 2) == (desk.done, result["messages"][-1].text, desk.model.calls)


@pytest.mark.parametrize(
    "bad",
    [
        {"decisions": []},
        "yes",
        {"decisions": [{"type": "maybe"}]},
        {"decisions": [{"type": "edit"}]},
        {"decisions": [{"type": "respond"}]},
    ],
)
def test_an_answer_that_does_not_fit_is_asked_again_and_poisons_nothing(
    run: Runner, saver: Any, thread: Thread, bad: Any
) -> None:
    desk = Desk(saver, send("ann"))
    run.invoke(desk.agent, HI, thread("t"))

    paused = run.invoke(desk.agent, Command(resume=bad), thread("t"))
    assert paused["__interrupt__"][0].value["error"]
    result = run.invoke(desk.agent, decide({"type": "approve"}), thread("t"))

    assert (["sent to ann"], "done") == (desk.done, result["messages"][-1].text)


def test_a_decision_that_is_not_allowed_is_not_taken(run: Runner, saver: Any, thread: Thread) -> None:
    desk = Desk(saver, send("ann"), interrupt_on={"send": {"allowed_decisions": ["reject"], "description": "Look!"}})
    asked = run.invoke(desk.agent, HI, thread("t"))
    paused = run.invoke(desk.agent, decide({"type": "approve"}), thread("t"))

    assert "Look!" == asked["__interrupt__"][0].value["action_requests"][0]["description"]
    assert "the decisions are reject" in paused["__interrupt__"][0].value["error"]
    assert [] == desk.done


@pytest.mark.parametrize("last", [True, False])
def test_a_rejected_call_never_runs_whatever_jumps(run: Runner, saver: Any, thread: Thread, last: bool) -> None:
    @after_model
    def hurry(state: Any, runtime: Any) -> Any:
        answer = next(message for message in reversed(state["messages"]) if message.type == "ai")
        return {"jump_to": "tools"} if answer.tool_calls else None

    desk = Desk(
        saver, call_tools(send("ann"), call_tool("look")), before=[hurry] if last else [], others=[hurry][last:]
    )
    run.invoke(desk.agent, HI, thread("t"))
    for _ in range(3):
        pending = run.state(desk.agent, thread("t")).interrupts
        if not pending:
            break
        value = pending[0].value
        answer = {"type": "reject"} if value.get("type") == "tool_approval" else {"decisions": [{"type": "reject"}]}
        run.invoke(desk.agent, Command(resume=answer), thread("t"))

    assert ["looked"] == desk.done


def test_a_call_that_was_changed_after_its_approval_is_shown_again(run: Runner, saver: Any, thread: Thread) -> None:
    desk = Desk(saver, send("ann", id="c"))
    agent = desk.agent.copy({"interrupt_before_nodes": ["tools"]})
    run.invoke(agent, HI, thread("t"))
    run.invoke(agent, decide({"type": "approve"}), thread("t"))
    answer = run.state(agent, thread("t")).values["messages"][1]
    forged = answer.model_copy(update={"tool_calls": [{**answer.tool_calls[0], "args": {"to": "eve"}}]})
    run.update(agent, thread("t"), {"messages": [forged]}, as_node="HumanInTheLoopMiddleware.after_model")

    paused = run.invoke(agent, None, thread("t"))

    assert ([], {"to": "eve"}) == (desk.done, paused["__interrupt__"][0].value["args"])


def test_each_call_may_ask_for_itself(run: Runner, saver: Any, thread: Thread) -> None:
    desk = Desk(saver, call_tools(send("ann"), send("bob"), call_tool("look")), interrupt_mode="per_call")

    paused = run.invoke(desk.agent, HI, thread("t"))
    ids = {one.value["args"]["to"]: one.id for one in paused["__interrupt__"]}
    assert ["looked"] == desk.done
    answers: Any = {ids["ann"]: {"type": "approve"}, ids["bob"]: {"type": "reject"}}
    result = run.invoke(desk.agent, Command(resume=answers), thread("t"))

    assert ["looked", "sent to ann"] == desk.done
    assert ["success", "error", "success"] == [status for status, _ in results(result)]


def test_an_edit_may_take_another_tool_of_the_agent(run: Runner, saver: Any, thread: Thread) -> None:
    def edited(name: str) -> Any:
        desk = Desk(saver, send("ann"))
        run.invoke(desk.agent, HI, thread(name))
        edit = {"type": "edit", "edited_action": {"name": name, "args": {}}}
        run.invoke(desk.agent, decide(edit), thread(name))
        return desk.done

    assert ["looked"] == edited("look")


def test_an_edit_to_a_tool_that_is_not_there_is_asked_again(run: Runner, saver: Any, thread: Thread) -> None:
    desk, fly = Desk(saver, send("ann")), {"type": "edit", "edited_action": {"name": "fly", "args": {}}}
    run.invoke(desk.agent, HI, thread("t"))

    for answer in (decide(fly), Command(resume=fly)):  # the second question is about the one call that is about to run
        (again,) = run.invoke(desk.agent, answer, thread("t"))["__interrupt__"]
        assert "no tool of this agent. Its tools: " in again.value["error"]
    run.invoke(desk.agent, Command(resume={"type": "approve"}), thread("t"))

    assert ["sent to ann"] == desk.done


def test_only_some_calls_may_need_a_decision(run: Runner, saver: Any, thread: Thread) -> None:
    when = {"allowed_decisions": ["approve"], "when": lambda request: request.tool_call["args"]["to"] == "bob"}
    desk = Desk(saver, call_tools(send("ann")), send("bob"), interrupt_on={"send": when, "look": False})

    paused = run.invoke(desk.agent, HI, thread("t"))

    assert ["sent to ann"] == desk.done
    assert {"to": "bob"} == paused["__interrupt__"][0].value["action_requests"][0]["args"]


def test_a_review_without_decisions_is_refused() -> None:
    with pytest.raises(DefinitionError, match="allowed_decisions"):
        HumanInTheLoopMiddleware({"a": {"allowed_decisions": []}})


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def test_a_misspelt_tool_is_warned_of_where_the_agent_is_made() -> None:
    with pytest.warns(PregelWarning, match="'pays', .* 'pay' is there, and runs unasked") as warned:
        create_agent(ScriptedModel([]), [pay], middleware=[HumanInTheLoopMiddleware({"pays": True})])

    assert [__file__] == [one.filename for one in warned]


@pytest.mark.parametrize("names", [{"pay": True}, {"pays": True, "pay": False}, {"send_mail": True}])
def test_names_that_are_meant_are_not_warned_of(names: dict[str, Any]) -> None:
    create_agent(ScriptedModel([]), [pay], middleware=[HumanInTheLoopMiddleware(names)])
