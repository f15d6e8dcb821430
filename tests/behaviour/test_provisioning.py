"""Machines that are made step by step: what fails is repaired or taken down, and nothing is done too early or twice."""

from __future__ import annotations

import operator
import re
from typing import Annotated, Any, Literal, TypedDict

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import NodeError
from pregel.graph import END, START, StateGraph
from pregel.testing import assert_recovers, explore
from pregel.types import Command

from .conftest import Runner
from .marks import Saver, Thread

ORDER = ("network", "database", "storage", "app")  # each may need those before it


class Site(TypedDict, total=False):
    made: Annotated[list[str], operator.add]
    removed: Annotated[list[str], operator.add]
    kept: Annotated[list[str], operator.add]
    failure: str
    trouble: Annotated[list[str], operator.add]
    status: str


class Cloud:
    """Resources by name with their owner. What `fails` cannot be made, what is `stuck` cannot be removed, and what is
    `sold` is another's once something was removed."""

    def __init__(self, *, fails: str = "", stuck: str = "", sold: str = "") -> None:
        self.fails, self.stuck, self.sold = fails, stuck, sold
        self.calls: list[str] = []
        self.owners: dict[str, str] = {}

    def make(self, name: str) -> Any:
        def node(state: Site) -> Site:
            self.calls.append(f"make {name}")
            if name == self.fails:
                raise ValueError(f"no {name} is left")
            self.owners[name] = "us"
            return {"made": [name]}

        return node

    def remove(self, name: str) -> None:
        """Remove what is ours; what is gone already was removed by an attempt that was cut off."""
        if (owner := self.owners.get(name, "us")) != "us":
            raise PermissionError(f"{name} is of {owner}")
        if name == self.stuck:
            raise TimeoutError(f"{name} does not answer")
        self.calls.append(f"remove {name}")
        self.owners.pop(name, None)
        if self.sold:
            self.owners[self.sold] = "another"

    def give_up(self, state: Site, error: NodeError) -> Command[Literal["clean_up"]]:
        why = re.search(r"no \w+ is left", str(error.error))  # after a crash an error is known by its text
        return Command(update={"failure": why[0] if why else "unknown"}, goto="clean_up")

    def clean_up(self, state: Site) -> Command[Literal["clean_up", "__end__"]]:
        """Remove one more resource, the last one first, or keep it and say why."""
        over = [*state.get("removed", []), *state.get("kept", [])]
        left = [name for name in ORDER if name in state["made"] and name not in over]
        if not left:
            status = "needs intervention" if state.get("trouble") else "removed"
            return Command(update={"status": status}, goto=END)
        try:
            self.remove(left[-1])
        except (PermissionError, TimeoutError) as trouble:
            return Command(update={"kept": [left[-1]], "trouble": [str(trouble)]}, goto="clean_up")
        return Command(update={"removed": [left[-1]]}, goto="clean_up")

    def compile(self, saver: Saver | None = None) -> Any:
        graph = StateGraph(Site)
        for name in ORDER:
            graph.add_node(name, self.make(name), error_handler=self.give_up if name == "storage" else None)
        graph.add_node("clean_up", self.clean_up)
        graph.add_node("check", lambda state: None)
        graph.add_edge(START, "network").add_edge("network", "database").add_edge("network", "storage")
        graph.add_edge("database", "check").add_edge("storage", "check")
        graph.add_conditional_edges("check", lambda state: "app" if "storage" in state["made"] else END, ["app", END])
        return graph.compile(checkpointer=saver)


class Outer(TypedDict, total=False):
    made: Annotated[list[str], operator.add]
    status: str


@pytest.mark.acceptance("S2-17")
def test_a_failed_activation_fails_the_run_and_a_repair_does_only_that(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    cloud, activated, broken = Cloud(), list[str](), ["no licence"]

    def activate(state: Outer) -> Outer:
        activated.append("tried")
        if broken:
            raise ValueError(broken[0])
        return {"status": "active"}

    graph = StateGraph(Outer).add_node("provision", cloud.compile()).add_node("activate", activate)
    app = graph.add_edge(START, "provision").add_edge("provision", "activate").compile(checkpointer=saver)
    with pytest.raises(ValueError, match="no licence"):
        run.invoke(app, {"made": []}, thread("1"))
    calls, owners = list(cloud.calls), dict(cloud.owners)
    state = run.state(app, thread("1"))
    broken.clear()

    result = run.invoke(app, None, thread("1"))

    assert (("activate",), sorted(ORDER)) == (state.next, sorted(owners))
    assert "no licence" in str(state.tasks[0].error)
    assert (calls, owners) == (cloud.calls, cloud.owners)
    assert ("active", ["tried", "tried"]) == (result["status"], activated)


@pytest.mark.acceptance("S2-18")
def test_nothing_is_removed_before_all_that_was_begun_has_ended() -> None:
    """In every order in which the two can end, and after every death: the database is among what is removed."""
    cloud = Cloud(fails="storage")

    report = explore(cloud.compile(), {"made": []}, orders=8, faults=("crash", "cancel"))

    (end,) = report.ends
    assert (True, ["network", "database"]) == (report.exhaustive, end.values["made"])
    assert ["database", "network"] == end.values["removed"]


@pytest.mark.acceptance("S2-20")
def test_resources_are_removed_in_reverse_order_across_every_death() -> None:
    cloud = Cloud(fails="storage")
    app = cloud.compile(InMemorySaver())

    result = app.invoke({"made": []}, {"configurable": {"thread_id": "1"}})
    recovery = assert_recovers(app, {"made": []})

    assert (["database", "network"], "removed") == (result["removed"], result["status"])
    assert ["remove database", "remove network"] == cloud.calls[3:5]
    assert recovery.again["clean_up"] >= 3  # cut off before each of its records


@pytest.mark.acceptance("S2-20")
def test_whose_a_resource_is_is_looked_at_before_each_removal(run: Runner, saver: Saver, thread: Thread) -> None:
    cloud = Cloud(fails="storage", sold="network")

    result = run.invoke(cloud.compile(saver), {"made": []}, thread("1"))

    assert (["database"], ["network"]) == (result["removed"], result["kept"])
    assert {"network": "another"} == cloud.owners


@pytest.mark.acceptance("S2-21")
def test_what_cannot_be_removed_is_kept_and_every_failure_is_recorded(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    cloud = Cloud(fails="storage", stuck="database")
    app = cloud.compile(saver)

    run.invoke(app, {"made": []}, thread("1"))

    state = run.state(app, thread("1"))
    assert ("needs intervention", ()) == (state.values["status"], state.next)
    assert ("no storage is left", ["database does not answer"]) == (state.values["failure"], state.values["trouble"])
    assert {"database": "us"} == cloud.owners
