"""Work that is graded: sent back until it is good, as often as it may, by a grader that is not believed blindly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NotRequired

import pytest
from typing_extensions import TypedDict

from pregel.agents.deep import RubricEvaluation, RubricMiddleware, create_deep_agent
from pregel.agents.middleware import AgentMiddleware
from pregel.agents.models import ScriptedModel, call_tool
from pregel.agents.state import AgentState
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import DefinitionError
from pregel.messages import HumanMessage

THREAD: Any = {"configurable": {"thread_id": "1"}}


def grade(result: str, **criteria: bool) -> Any:
    found = [{"name": name, "passed": passed, "gap": "" if passed else "more"} for name, passed in criteria.items()]
    return call_tool("GraderResponse", {"result": result, "explanation": "Hm.", "criteria": found})


class Work:
    """An agent that answers with drafts, its grader, and what the grader found."""

    def __init__(self, *grades: Any, **options: Any) -> None:
        self.found: list[RubricEvaluation] = []
        self.grader = ScriptedModel(list(grades))
        self.model = ScriptedModel(lambda request: f"draft {sum(one.type == 'ai' for one in request.messages) + 1}")
        grading = RubricMiddleware(model=self.grader, on_evaluation=self.found.append, **options)
        self.agent = create_deep_agent(self.model, middleware=[grading], checkpointer=InMemorySaver())

    def results(self) -> list[str]:
        return [one["result"] for one in self.found]


@pytest.fixture(params=["sync", "async"])
def invoke(request: pytest.FixtureRequest) -> Callable[..., Any]:
    if request.param == "sync":
        return lambda agent, *args: agent.invoke(*args)
    return lambda agent, *args: asyncio.run(agent.ainvoke(*args))


def test_work_is_sent_back_with_what_is_missing_until_it_is_good(invoke: Callable[..., Any]) -> None:
    work = Work(grade("needs_revision", short=True, sources=False), grade("satisfied", short=True, sources=True))

    state = invoke(work.agent, {"messages": "write", "rubric": "short, with sources"}, THREAD)

    assert ["write", "draft 1", "The work is not done yet. Hm.\n- sources: more", "draft 2"] == [
        message.text for message in state["messages"]
    ]
    assert "rubric_grader" == state["messages"][2].name
    assert {"lc_source": "rubric_grader"} == state["messages"][2].additional_kwargs
    assert ["needs_revision", "satisfied"] == work.results()
    assert {"messages", "files", "rubric"} == set(state)
    asked = work.grader.requests[1].messages[-1].text
    assert "The criteria, by name: short, sources." in asked
    assert "[human] write" in asked
    assert "[ai] draft 2" in asked


def test_without_a_rubric_nothing_is_graded(invoke: Callable[..., Any]) -> None:
    work = Work()

    assert "draft 1" == invoke(work.agent, {"messages": "write"}, THREAD)["messages"][-1].text
    assert [] == work.grader.requests


def test_work_is_sent_back_so_often_and_a_new_input_counts_anew(invoke: Callable[..., Any]) -> None:
    bad = [grade("needs_revision", short=False)] * 4
    work = Work(*bad, max_iterations=2)

    for text in ("one", "two"):
        invoke(work.agent, {"messages": text, "rubric": "short"}, THREAD)

    assert ["needs_revision", "max_iterations_reached"] * 2 == work.results()
    assert [0, 1, 0, 1] == [one["iteration"] for one in work.found]
    assert [1, 2] == [len({one["grading_run_id"] for one in found}) for found in (work.found[:2], work.found)]


@pytest.mark.parametrize(
    "second", [grade("satisfied", short=True), grade("satisfied", short=True, sources=False), grade("satisfied")]
)
def test_a_grader_that_leaves_a_criterion_out_is_not_believed(second: Any) -> None:
    work = Work(grade("needs_revision", short=True, sources=False), second, max_iterations=2)

    work.agent.invoke({"messages": "write", "rubric": "short, with sources"}, THREAD)

    assert ["needs_revision", "max_iterations_reached"] == work.results()
    assert [False, True] == [one["unverified"] for one in work.found]


def test_work_that_cannot_be_mended_ends(invoke: Callable[..., Any]) -> None:
    work = Work(grade("failed", short=False))

    invoke(work.agent, {"messages": "write", "rubric": "short"}, THREAD)

    assert ["failed"] == work.results()


def test_a_grader_that_fails_ends_the_grading_and_not_the_run() -> None:
    def broken(request: Any) -> Any:
        raise ConnectionError("no grader today")

    grading = RubricMiddleware(model=ScriptedModel(broken))
    agent = create_deep_agent(ScriptedModel(["draft"]), middleware=[grading])

    shown = list(agent.stream({"messages": "write", "rubric": "short"}, stream_mode="custom"))

    at = {"grading_run_id": shown[0].pop("grading_run_id"), "iteration": 0}
    told = {"explanation": "ConnectionError: no grader today", "criteria": [], "unverified": False}
    assert [
        {"type": "rubric_evaluation_start", "iteration": 0},
        {"type": "rubric_evaluation_end", **at, "result": "grader_error", **told},
    ] == shown


def test_a_grading_is_not_made_again_when_its_run_goes_on(invoke: Callable[..., Any]) -> None:
    failing = iter([True, False])

    def hear(found: RubricEvaluation) -> None:
        if next(failing):
            raise ConnectionError("nobody there")

    grader = ScriptedModel([grade("satisfied", short=True)])
    grading = RubricMiddleware(model=grader, on_evaluation=hear)
    agent = create_deep_agent(ScriptedModel(["draft"]), middleware=[grading], checkpointer=InMemorySaver())
    with pytest.raises(ConnectionError):
        invoke(agent, {"messages": "write", "rubric": "short"}, THREAD)

    assert "draft" == invoke(agent, None, THREAD)["messages"][-1].text
    assert 1 == len(grader.requests)


def test_a_grader_is_shown_the_task_and_the_end() -> None:
    work = Work(grade("satisfied", short=True))
    history = [HumanMessage(f"old {number}") for number in range(40)]

    work.agent.invoke({"messages": history, "rubric": "short"}, THREAD)

    asked = work.grader.requests[0].messages[-1].text
    assert ("old 0\n" in asked, "old 5\n" in asked, "old 39" in asked, "draft 1" in asked) == (True, False, True, True)


def test_no_iteration_at_all_is_refused() -> None:
    with pytest.raises(DefinitionError, match="max_iterations"):
        RubricMiddleware(model=ScriptedModel([]), max_iterations=0)


class Looked(AgentMiddleware):
    """Notes what the grader's own middleware sees."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def before_model(self, state: Any, runtime: Any) -> None:
        self.seen.append((state.get("paths"), runtime.context))


class GraderState(AgentState):
    paths: NotRequired[list[str]]


class Context(TypedDict):
    user: str


@pytest.mark.parametrize("awaited", [False, True], ids=["plain", "awaited"])
def test_a_grader_has_a_state_and_a_context_of_its_own(awaited: bool) -> None:
    async def awaiting(state: Any) -> dict[str, Any]:
        return {"paths": sorted(state["files"])}

    looked = Looked()
    grading = RubricMiddleware(
        model=ScriptedModel([grade("satisfied", good=True)]),
        grader_middleware=[looked],
        grader_context_schema=Context,
        grader_state_schema=GraderState,
        build_grader_state=awaiting if awaited else lambda state: {"paths": sorted(state["files"])},
    )
    agent = create_deep_agent(ScriptedModel(["draft"]), middleware=[grading], context_schema=Context)
    given = {"messages": "write", "rubric": "good", "files": {"/b": "", "/a": ""}}

    if awaited:
        asyncio.run(agent.ainvoke(given, context={"user": "ann"}))
    else:
        agent.invoke(given, context={"user": "ann"})

    assert [(["/a", "/b"], {"user": "ann"})] == looked.seen


def test_a_state_that_cannot_be_built_ends_the_grading_and_not_the_run() -> None:
    work = Work(grade("satisfied", good=True), grader_state_schema=GraderState, build_grader_state=lambda state: 1 / 0)
    state = work.agent.invoke({"messages": "write", "rubric": "good"}, THREAD)

    assert "draft 1" == state["messages"][-1].text
    error = "ZeroDivisionError: division by zero"
    assert [("grader_error", error)] == [(one["result"], one["explanation"]) for one in work.found]


def test_a_graders_state_may_be_built_from_the_iteration_and_options_may_be_none() -> None:
    asked: list[int] = []

    def build(state: Any, iteration: int) -> dict[str, Any]:
        asked.append(iteration)
        return {"paths": []}

    absent: Any = dict.fromkeys(("system_prompt", "tools", "grader_middleware"))
    bad, good = grade("needs_revision", short=False), grade("satisfied", short=True)
    work = Work(bad, good, grader_state_schema=GraderState, build_grader_state=build, **absent)
    work.agent.invoke({"messages": "write", "rubric": "short"}, THREAD)

    assert [0, 1] == asked
    assert ["needs_revision", "satisfied"] == work.results()


def test_a_state_without_a_schema_is_refused() -> None:
    with pytest.raises(DefinitionError):
        Work(build_grader_state=lambda state: {})
