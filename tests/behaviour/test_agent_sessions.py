"""Sessions of an agent: they roll over at a cap, fail, are interrupted or succeed, and what came of each is known."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pregel.agents import ScriptedModel, ToolRuntime, create_agent, tool
from pregel.agents.deep import create_deep_agent
from pregel.agents.middleware import (
    BudgetMiddleware,
    HumanInTheLoopMiddleware,
    SessionFailedError,
    SessionMiddleware,
    after_agent,
    asessions_of,
    sessions_of,
)
from pregel.agents.models import call_tool
from pregel.errors import DefinitionError, OutcomeUnknownError, ThreadNotFoundError
from pregel.graph import START, MessagesState, StateGraph
from pregel.messages import AIMessage
from pregel.types import Command

from .conftest import Awaiting, Runner
from .marks import Saver, Thread
from .test_authority import has_authority

TASK = {"messages": "count to three"}


@pytest.fixture(autouse=True)
def needs_a_status(request: pytest.FixtureRequest) -> None:
    if "saver" in request.fixturenames and not has_authority(request.getfixturevalue("saver")):
        pytest.skip("no status is kept there")


@tool
def count(n: int) -> str:
    """Count."""
    return f"counted {n}"


def counting(n: int, *, tokens: int = 100) -> AIMessage:
    usage: Any = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}
    return AIMessage("", tool_calls=call_tool("count", {"n": n}, id=f"c{n}").tool_calls, usage_metadata=usage)


def saying(text: str) -> AIMessage:
    usage: Any = {"input_tokens": 100, "output_tokens": 0, "total_tokens": 100}
    return AIMessage(text, usage_metadata=usage)


class Script:
    """Answers in turn; an exception is raised. `asked` has the texts of each request."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[list[str]] = []

    def __call__(self, request: Any) -> Any:
        self.asked.append([message.text for message in request.messages])
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def agent_of(script: Script, saver: Saver | None, *others: Any, tools: Any = (count,), **options: Any) -> Any:
    given: Any = {"max_calls": 2, **options}
    middleware = [*others, SessionMiddleware(**given)]
    return create_agent(ScriptedModel(script), list(tools), middleware=middleware, checkpointer=saver)


def sessions(run: Runner, agent: Any, thread: str = "1") -> list[Any]:
    if isinstance(run, Awaiting):
        return asyncio.run(asessions_of(agent, thread))
    return sessions_of(agent, thread)


def told(found: list[Any]) -> list[tuple[int, str, int]]:
    return [(one["number"], one["outcome"], one["spent"]["calls"]) for one in found]


@pytest.mark.acceptance("S6-10", "S6-11")
def test_a_session_rolls_over_at_its_cap_and_hands_over(run: Runner, saver: Saver, thread: Thread) -> None:
    script = Script(counting(1), counting(2), counting(3), saying("one, two, three"))
    agent = agent_of(script, saver)

    result = run.invoke(agent, TASK, thread("1"))

    assert "one, two, three" == result["messages"][-1].text
    first, second = found = sessions(run, agent)
    assert [(1, "rolled_over", 2), (2, "succeeded", 2)] == told(found)
    assert ("the cap of 2 calls was reached: 2", "") == (first["reason"], second["reason"])
    task, handoff = script.asked[2]
    assert ("count to three", first["handoff"]) == (task, handoff)
    assert "count({'n': 1}): counted 1" in handoff
    assert first["started"] <= first["ended"] <= second["started"] <= second["ended"]


@pytest.mark.acceptance("S6-10")
def test_a_roll_over_burns_no_attempt_runs_no_gate_and_advances_no_step(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    gates: list[str] = []
    attempts: list[int] = []

    @after_agent
    def gate(state: Any, runtime: Any) -> None:
        gates.append("after the agent")

    @tool
    def count(n: int, runtime: ToolRuntime) -> str:
        """Count."""
        attempts.append(runtime.attempt)
        return f"counted {n}"

    asks = HumanInTheLoopMiddleware(interrupt_on={"forbidden": True})
    script = Script(*[counting(n) for n in range(1, 6)], saying("done"))
    agent = create_agent(
        ScriptedModel(script), [count], middleware=[asks, gate, SessionMiddleware(max_calls=1)], name="counter"
    )
    steps: list[str] = []
    graph = StateGraph(MessagesState).add_node("agent", agent).add_edge(START, "agent").add_edge("agent", "next")
    graph.add_node("next", lambda state: steps.append("next"))
    app = graph.compile(checkpointer=saver)

    run.invoke(app, TASK, thread("1"))

    assert (["after the agent"], ["next"], [1] * 5) == (gates, steps, attempts)
    assert 6 == len(script.asked)


@pytest.mark.acceptance("S6-11")
def test_the_facts_of_a_session_are_recorded(run: Runner, saver: Saver, thread: Thread) -> None:
    commits: list[str] = []

    @tool
    def count(n: int) -> str:
        """Count."""
        commits.append(f"commit {n}")
        return f"counted {n}"

    agent = agent_of(
        Script(AIMessage("I begin.", tool_calls=counting(1).tool_calls), counting(2), saying("done")),
        saver,
        tools=[count],
        max_calls=None,
        max_money=0.0001,
        prices={"scripted": (1.0, 1.0)},
        facts=lambda state: {"commits": list(commits), "messages": len(state["messages"])},
        handoff=lambda messages, session: f"from {session['number']}: {session['output']}",
    )

    run.invoke(agent, TASK, thread("1"))

    first, second = sessions(run, agent)
    assert ("rolled_over", "I begin.", "from 1: I begin.") == (first["outcome"], first["output"], first["handoff"])
    assert {"commits": ["commit 1", "commit 2"], "messages": 5} == first["facts"]
    assert first["spent"]["money"] > second["spent"]["money"] == pytest.approx(0.0001)


@pytest.mark.acceptance("S6-11")
def test_no_board_shows_a_thread_as_idle_that_has_rolled_over(run: Runner, saver: Saver, thread: Thread) -> None:
    shown: list[Any] = []

    def looked(n: int) -> str:
        """Count."""
        shown.append((agent.threads.list()[0].status, told(sessions_of(agent, "1"))))
        return f"counted {n}"

    async def alooked(n: int) -> str:
        """Count."""
        shown.append(((await agent.threads.alist())[0].status, told(await asessions_of(agent, "1"))))
        return f"counted {n}"

    looks = tool("count")(alooked if isinstance(run, Awaiting) else looked)
    agent = agent_of(Script(counting(1), counting(2), saying("done")), saver, tools=[looks], max_calls=1)

    run.invoke(agent, TASK, thread("1"))

    assert [
        ("running", [(1, "running", 1)]),
        ("running", [(1, "rolled_over", 1), (2, "running", 1)]),
    ] == shown
    assert [(1, "rolled_over", 1), (2, "rolled_over", 1), (3, "succeeded", 1)] == told(sessions(run, agent))


@pytest.mark.acceptance("S6-12")
@pytest.mark.parametrize("where", ["model", "tool"])
def test_a_failed_session_is_followed_by_another_while_there_is_patience(
    run: Runner, saver: Saver, thread: Thread, where: str
) -> None:
    @tool
    def count(n: int) -> str:
        """Count."""
        if n < 0:
            raise OSError("the counter is broken")
        return f"counted {n}"

    broken = OSError("the counter is broken") if where == "model" else counting(-1)
    script = Script(counting(1), broken, counting(2), saying("done"))
    agent = agent_of(script, saver, tools=[count], max_calls=9, patience=1)

    assert "done" == run.invoke(agent, TASK, thread("1"))["messages"][-1].text

    failed, done = sessions(run, agent)
    assert ("failed", "OSError: the counter is broken", "succeeded") == (
        failed["outcome"],
        failed["reason"],
        done["outcome"],
    )
    assert "OSError: the counter is broken" in script.asked[2][1]


@pytest.mark.acceptance("S6-12")
def test_four_outcomes_and_only_failure_takes_of_the_patience(run: Runner, saver: Saver, thread: Thread) -> None:
    dies = KeyboardInterrupt()
    script = Script(
        counting(1),  # rolls over at each call
        dies,
        counting(2),
        OSError("broken"),  # the only one that there is patience for
        counting(3),
        dies,
        counting(4),
        OSError("broken again"),
        saying("after all"),
        dies,
        saying("another input"),
    )
    agent = agent_of(script, saver, max_calls=1, patience=1)

    with pytest.raises(KeyboardInterrupt):
        run.invoke(agent, TASK, thread("1"))
    assert [(1, "rolled_over", 1), (2, "interrupted", 0)] == told(sessions(run, agent))
    with pytest.raises(KeyboardInterrupt):
        run.invoke(agent, None, thread("1"))
    before = [(1, "rolled_over", 1), (2, "rolled_over", 1), (3, "failed", 0), (4, "rolled_over", 1)]
    assert [*before, (5, "interrupted", 0)] == told(sessions(run, agent))
    with pytest.raises(SessionFailedError, match="Session 6 failed: OSError: broken again") as caught:
        run.invoke(agent, None, thread("1"))
    assert ("OSError", "broken again") == (caught.value.error_type, caught.value.error_message)
    before += [(5, "rolled_over", 1)]
    assert [*before, (6, "failed", 0)] == told(sessions(run, agent))

    assert "after all" == run.invoke(agent, None, thread("1"))["messages"][-1].text  # somebody goes on with it
    before += [(6, "failed", 0), (7, "succeeded", 1)]
    assert before == told(sessions(run, agent))

    with pytest.raises(KeyboardInterrupt):
        run.invoke(agent, {"messages": "again"}, thread("1"))
    assert [*before, (8, "interrupted", 0)] == told(sessions(run, agent))
    run.invoke(agent, {"messages": "something else"}, thread("1"))
    before += [(8, "interrupted", 0), (9, "succeeded", 1)]
    assert before == told(sessions(run, agent))


@pytest.mark.acceptance("S6-12")
def test_an_input_after_a_failure_finds_it_recorded(run: Runner, saver: Saver, thread: Thread) -> None:
    agent = agent_of(Script(OSError("broken"), saying("done")), saver)
    with pytest.raises(SessionFailedError):
        run.invoke(agent, TASK, thread("1"))

    run.invoke(agent, {"messages": "again"}, thread("1"))

    failed, done = sessions(run, agent)
    assert ("failed", "OSError: broken", "succeeded") == (failed["outcome"], failed["reason"], done["outcome"])


def test_a_session_that_waits_for_a_person_goes_on_as_the_same(run: Runner, saver: Saver, thread: Thread) -> None:
    asks = HumanInTheLoopMiddleware(interrupt_on={"count": True})
    agent = agent_of(Script(counting(1), saying("done")), saver, asks, max_calls=9)

    assert run.invoke(agent, TASK, thread("1"))["__interrupt__"]
    assert [(1, "interrupted", 1)] == told(sessions(run, agent))
    run.invoke(agent, Command(resume={"decisions": [{"type": "approve"}]}), thread("1"))

    assert [(1, "succeeded", 2)] == told(sessions(run, agent))


def test_what_nobody_knows_the_outcome_of_is_no_failure(run: Runner, saver: Saver, thread: Thread) -> None:
    agent = agent_of(Script(OutcomeUnknownError("was it paid?")), saver, patience=9)

    with pytest.raises(OutcomeUnknownError):
        run.invoke(agent, TASK, thread("1"))


def test_the_budget_of_a_thread_goes_on_over_its_sessions(run: Runner, saver: Saver, thread: Thread) -> None:
    agent = agent_of(Script(*[counting(n) for n in range(9)]), saver, BudgetMiddleware(max_calls=5))

    result = run.invoke(agent, TASK, thread("1"))

    assert 5 == result["budget_spent"]["calls"]
    assert [2, 2, 1] == [one["spent"]["calls"] for one in sessions(run, agent)]


def test_a_deep_agent_rolls_over_as_any(run: Runner, saver: Saver, thread: Thread) -> None:
    script = Script(counting(1), counting(2), saying("done"))
    agent = create_deep_agent(
        ScriptedModel(script), [count], middleware=[SessionMiddleware(max_calls=1)], checkpointer=saver
    )

    run.invoke(agent, TASK, thread("1"))

    assert ["rolled_over", "rolled_over", "succeeded"] == [one["outcome"] for one in sessions(run, agent)]


def test_an_agent_without_a_saver_rolls_over_too(run: Runner) -> None:
    result = run.invoke(agent_of(Script(counting(1), counting(2), saying("done")), None, max_tokens=150), TASK)

    assert [(1, "rolled_over", 2), (2, "succeeded", 1)] == told(result["sessions"])


def test_a_hand_over_tells_what_came_before_it(run: Runner) -> None:
    script = Script(*[counting(n) for n in range(30)], saying("done"))
    result = run.invoke(agent_of(script, None, max_calls=25), TASK)

    (handoff,) = [one["handoff"] for one in result["sessions"] if one["handoff"]]
    assert "'n': 4}" not in handoff
    assert "'n': 5}" in handoff


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "A session needs a limit"),
        ({"max_calls": 0}, "limit of 0"),
        ({"max_calls": 1, "patience": -1}, "patience is -1"),
        ({"max_money": 1.0}, "no model has a price"),
    ],
)
def test_what_makes_no_session_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        SessionMiddleware(**options)


def test_sessions_of_no_thread(saver: Saver) -> None:
    handoff: Callable[..., Any] = lambda messages, session: 3  # noqa: E731
    agent = agent_of(Script(counting(1)), saver, max_calls=1, handoff=handoff)
    with pytest.raises(ThreadNotFoundError):
        sessions_of(agent, "1")
    with pytest.raises(TypeError, match="handoff returned a int"):
        agent.invoke(TASK, {"configurable": {"thread_id": "1"}})
