"""Decisions of a person: they name what they are for, are set once, and hold only while what was shown still holds."""

from __future__ import annotations

import json
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any, TypedDict
from uuid import uuid4

import pytest
from pydantic import BaseModel

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.errors import ThreadBusy, UnknownInterruptError, is_invalid_resume
from pregel.graph import START, StateGraph
from pregel.runtime import Runtime
from pregel.types import Command, interrupt
from tests.kill.owners import saver_at

from .conftest import Runner
from .marks import Saver, Thread, chain


def asks(state: Any) -> dict[str, Any]:
    return {"a": [interrupt("ship it?")]}


@pytest.mark.acceptance("S2-9")
def test_a_late_a_duplicate_and_a_conflicting_decision_are_refused_and_write_nothing(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = chain("ask", "b", ask=asks).compile(checkpointer=saver)
    (asked,) = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]
    run.invoke(app, Command(resume={asked.id: "approve"}), thread("1"))
    decided = run.history(app, thread("1"))

    for again in ({asked.id: "approve"}, {asked.id: "reject"}, "reject"):
        with pytest.raises(UnknownInterruptError):
            run.invoke(app, Command(resume=again), thread("1"))

    assert decided == run.history(app, thread("1"))
    assert ["approve", "b"] == run.state(app, thread("1")).values["a"]


@pytest.mark.acceptance("S2-9")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_of_decisions_that_come_at_once_one_is_set(
    request: pytest.FixtureRequest, tmp_path: Path, thread: Thread, store: str, durability: Any
) -> None:
    where = str(tmp_path / "threads.db") if store == "sqlite" else str(request.getfixturevalue("dsn"))
    config, deciders = thread("1"), 6
    together = threading.Barrier(deciders)
    outcomes: dict[str, str] = {}
    ran: list[str] = []

    def app(saver: JournalSaver) -> Any:
        return chain("ask", "b", ask=asks, b=lambda state: ran.append(state["a"][-1])).compile(checkpointer=saver)

    with saver_at(where) as saver:
        (asked,) = app(saver).invoke({"a": []}, config)["__interrupt__"]

    def decide(decision: str) -> None:
        with saver_at(where) as saver:
            together.wait()
            try:
                app(saver).invoke(Command(resume={asked.id: decision}), config, durability=durability)
                outcomes[decision] = "set"
            except (ThreadBusy, UnknownInterruptError) as refused:
                outcomes[decision] = type(refused).__name__

    people = [threading.Thread(target=decide, args=(f"decision {number}",)) for number in range(deciders)]
    for one in people:
        one.start()
    for one in people:
        one.join()

    (winner,) = [decision for decision, outcome in outcomes.items() if outcome == "set"]
    assert deciders == len(outcomes)
    with saver_at(where) as saver:
        assert [winner] == app(saver).get_state(config).values["a"] == ran


# -- what a decision is for --------------------------------------------------------------------------------------------


class Approval(BaseModel):
    """A person's yes to one proposal, as it was shown, under one policy."""

    proposal: str
    fingerprint: str
    policy: int


class Plan(TypedDict, total=False):
    proposal: Any
    approval: Any
    outcome: str


class Review:
    """A plan that is made, approved and carried out; the policy and the world may change meanwhile."""

    def __init__(self) -> None:
        self.policy = 1
        self.safe = True
        self.done: list[str] = []

    def propose(self, state: Plan, runtime: Runtime[Any]) -> Plan:
        proposal = runtime.step("proposal", lambda: {"id": str(uuid4()), "content": "restart the server"})
        return {"proposal": proposal}

    def review(self, state: Plan) -> Plan:
        shown = self.shown(state)
        approval = interrupt(shown, response_schema=Approval)
        return {"approval": approval.model_dump()}

    def shown(self, state: Plan) -> dict[str, Any]:
        content = json.dumps(state["proposal"]["content"]).encode()
        return {
            "proposal": state["proposal"]["id"],
            "fingerprint": sha256(content).hexdigest(),
            "policy": self.policy,
        }

    def execute(self, state: Plan) -> Command[Any]:
        if self.shown(state) != state["approval"]:
            return Command(update={"outcome": "refused: not what was approved"})
        if not self.safe:
            return Command(update={"outcome": "no longer safe"}, goto="review")
        self.done.append(state["proposal"]["id"])
        return Command(update={"outcome": "done"})

    def compile(self, saver: Saver) -> Any:
        graph = StateGraph(Plan).add_sequence([self.propose, self.review, self.execute]).add_edge(START, "propose")
        return graph.compile(checkpointer=saver, interrupt_before=["execute"])


@pytest.mark.acceptance("S2-33")
@pytest.mark.parametrize("change", ["nothing", "another proposal", "other content", "another policy"])
def test_what_is_carried_out_is_what_was_approved(run: Runner, saver: Saver, thread: Thread, change: str) -> None:
    review = Review()
    app = review.compile(saver)
    (asked,) = run.invoke(app, {}, thread("1"))["__interrupt__"]
    run.invoke(app, Command(resume={asked.id: asked.value}), thread("1"))
    proposal = run.state(app, thread("1")).values["proposal"]
    if change == "another proposal":
        run.update(app, thread("1"), {"proposal": {**proposal, "id": "another"}}, as_node="review")
    elif change == "other content":
        run.update(app, thread("1"), {"proposal": {**proposal, "content": "delete it"}}, as_node="review")
    elif change == "another policy":
        review.policy = 2

    result = run.invoke(app, None, thread("1"))

    assert asked.value.keys() == {"proposal", "fingerprint", "policy"}
    if change == "nothing":
        assert ("done", [asked.value["proposal"]]) == (result["outcome"], review.done)
    else:
        assert ("refused: not what was approved", []) == (result["outcome"], review.done)


@pytest.mark.acceptance("S2-33")
def test_an_approval_that_names_less_is_no_answer(run: Runner, saver: Saver, thread: Thread) -> None:
    review = Review()
    app = review.compile(saver)
    (asked,) = run.invoke(app, {}, thread("1"))["__interrupt__"]

    with pytest.raises(ValueError, match="fingerprint") as refused:
        run.invoke(app, Command(resume={asked.id: {"proposal": asked.value["proposal"]}}), thread("1"))

    assert is_invalid_resume(refused.value)
    assert [asked] == list(run.state(app, thread("1")).interrupts)


@pytest.mark.acceptance("S2-34")
def test_an_approved_plan_that_is_no_longer_safe_is_reviewed_anew(run: Runner, saver: Saver, thread: Thread) -> None:
    review = Review()
    app = review.compile(saver)
    (first,) = run.invoke(app, {}, thread("1"))["__interrupt__"]
    run.invoke(app, Command(resume={first.id: first.value}), thread("1"))
    review.safe = False

    (second,) = run.invoke(app, None, thread("1"))["__interrupt__"]
    assert (True, first.value, []) == (first.id != second.id, second.value, review.done)
    with pytest.raises(UnknownInterruptError):  # the yes of before is for the question of before
        run.invoke(app, Command(resume={first.id: first.value}), thread("1"))
    review.safe = True
    run.invoke(app, Command(resume={second.id: second.value}), thread("1"))

    assert "done" == run.invoke(app, None, thread("1"))["outcome"]
    assert [first.value["proposal"]] == review.done
