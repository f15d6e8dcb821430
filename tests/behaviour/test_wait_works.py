"""Workflows that wait: an invoice review, an operation that is polled, a payment whose outcome is not known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import TypedDict

from pregel.graph import END, START, StateGraph
from pregel.runtime import Runtime
from pregel.store.memory import InMemoryStore
from pregel.store.sqlite import SqliteStore
from pregel.testing import FakeClock
from pregel.waits import sleep, sleep_until, wait_for_event

from .conftest import Runner
from .marks import Saver, Thread
from .test_authority import has_authority
from .test_thread_api import Api

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
MINUTE, HOUR = 60.0, 3600.0


@pytest.fixture(autouse=True)
def needs_waits(saver: Saver) -> None:
    if not has_authority(saver):
        pytest.skip("no waits are kept there")


class Time:
    """A clock, and what is due by it."""

    def __init__(self, run: Runner, app: Any) -> None:
        self.run, self.app = run, app
        self.clock = app.clock = FakeClock(NOON.timestamp())
        self.api = Api(run, app)

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.ticks / 10_000_000, UTC)

    def wakes(self, seconds: float = 0.0) -> list[Any]:
        """What those come to that are due after so many seconds."""
        self.clock.advance(seconds)
        for woken in (found := self.api("wake_due")):
            assert woken.error is None
        return [woken.output for woken in found]


# -- an invoice that somebody approves ---------------------------------------------------------------------------------


class Review(TypedDict, total=False):
    review: str
    outcome: str


@dataclass
class Approvals:
    """The database that says who approved what, and when."""

    rows: dict[str, datetime] = field(default_factory=dict)


def reviewed(approvals: Approvals, saver: Any) -> Any:
    """Waits for two hours; what counts is what the database says of that time, not who woke it."""
    deadline = NOON + timedelta(hours=2)

    def review(state: Review) -> Review:
        while True:
            hint = wait_for_event("reviewed", key=state["review"], deadline=deadline)
            approved_at = approvals.rows.get(state["review"])
            if approved_at is not None and approved_at < deadline:
                return {"outcome": "approved"}
            if hint is None:
                return {"outcome": "expired"}

    return StateGraph(Review).add_node("review", review).add_edge(START, "review").compile(checkpointer=saver)


@pytest.mark.acceptance("S2-6")
@pytest.mark.parametrize("woken_by", ["event", "timer", "an early hint", "a late approval"])
def test_an_event_is_a_hint_and_the_database_decides(run: Runner, saver: Saver, thread: Thread, woken_by: str) -> None:
    approvals = Approvals()
    time = Time(run, reviewed(approvals, saver))
    run.invoke(time.app, {"review": "r-7"}, thread("1"))
    assert [] == time.wakes(HOUR)

    if woken_by == "an early hint":  # nobody has approved yet: it waits on
        time.api("send_event", "1", "reviewed", "approved, believe me", key="r-7")
        (still,) = time.wakes()
        assert "outcome" not in still
    if woken_by == "a late approval":
        assert [{"review": "r-7", "outcome": "expired"}] == time.wakes(HOUR)
        return
    time.clock.advance(HOUR - 1)
    approvals.rows["r-7"] = time.now  # a second before the deadline
    if woken_by == "event":
        time.api("send_event", "1", "reviewed", key="r-7")
        (done,) = time.wakes()
    else:
        time.clock.advance(2)
        time.api("send_event", "1", "reviewed", key="r-7")  # too late for the wait
        (done,) = time.wakes()
    assert {"review": "r-7", "outcome": "approved"} == done


# -- an operation that is polled ---------------------------------------------------------------------------------------


@dataclass
class PollingDeadlineExceeded:
    """Nobody polls any more; the operation goes on as it did."""

    operation: str
    last_seen: str


class Polled(TypedDict, total=False):
    operation: str
    result: PollingDeadlineExceeded | str
    until: float


@dataclass
class Provider:
    """Makes databases, in its own time."""

    calls: list[str] = field(default_factory=list)
    status: str = "running"

    def poll(self) -> str:
        self.calls.append("poll")
        return self.status


def polling(provider: Provider, saver: Any, now: Callable[[], float]) -> Any:
    """Polls every five minutes, for 45 minutes at most."""

    def submit(state: Polled) -> Polled:
        provider.calls.append("submit")
        return {"operation": "op-1", "until": now() + 45 * MINUTE}

    def poll(state: Polled) -> Polled:
        sleep(5 * MINUTE)
        status = provider.poll()
        if status == "running" and now() < state["until"]:
            return {}
        if status == "running":
            return {"result": PollingDeadlineExceeded(state["operation"], status)}
        return {"result": status}

    graph = StateGraph(Polled).add_node("submit", submit).add_node("poll", poll)
    graph.add_edge(START, "submit").add_edge("submit", "poll")
    graph.add_conditional_edges("poll", lambda state: END if "result" in state else "poll", ["poll", END])
    return graph.compile(checkpointer=saver)


@pytest.mark.acceptance("S2-15")
def test_a_budget_limits_polls_and_says_nothing_of_the_operation(run: Runner, saver: Saver, thread: Thread) -> None:
    provider = Provider()
    time = Time(run, polling(provider, saver, lambda: time.now.timestamp()))
    run.invoke(time.app, {}, thread("1"))

    for _ in range(8):
        (still,) = time.wakes(5 * MINUTE)
        assert "result" not in still
    (done,) = time.wakes(5 * MINUTE)

    assert PollingDeadlineExceeded("op-1", "running") == done["result"]
    assert ["submit", *["poll"] * 9] == provider.calls
    assert ("running", []) == (provider.status, time.wakes(24 * HOUR))
    assert "idle" == time.api("status", "1").status


def test_an_operation_that_ends_in_time_is_polled_no_more(run: Runner, saver: Saver, thread: Thread) -> None:
    provider = Provider()
    time = Time(run, polling(provider, saver, lambda: time.now.timestamp()))
    run.invoke(time.app, {}, thread("1"))
    time.wakes(5 * MINUTE)
    provider.status = "ready"

    (done,) = time.wakes(5 * MINUTE)

    assert ("ready", 2) == (done["result"], provider.calls.count("poll"))
    assert [] == time.wakes(HOUR)


# -- a payment whose outcome is not known ------------------------------------------------------------------------------


class Cycle(TypedDict, total=False):
    cycle: str
    due: datetime
    payment: str
    snapshots: int
    outcome: str


@dataclass
class Bank:
    """Takes money, and may not say whether it did."""

    charges: list[str] = field(default_factory=list)
    snapshots: int = 0
    status: str = "Unknown"
    silent: bool = True

    def charge(self, key: str) -> str:
        self.charges.append(key)
        if self.silent:
            raise TimeoutError(key)
        return self.status

    def look(self, key: str) -> str:
        self.snapshots += 1
        return self.status


def subscription(bank: Bank, mails: list[str], saver: Any, store: Any) -> Any:
    """One cycle: charge, find out, remind who was declined, and leave what is unresolved to people."""

    def charge(state: Cycle, runtime: Runtime[Any]) -> Cycle:
        def once(offered: str) -> str:
            try:
                return bank.charge(state["cycle"])
            except TimeoutError:
                return "Unknown"

        return {"payment": runtime.effect("charge", once), "snapshots": 0}

    def find_out(state: Cycle) -> Cycle:
        wait_for_event("payment", key=state["cycle"], timeout=6 * HOUR)
        return {"payment": bank.look(state["cycle"]), "snapshots": state["snapshots"] + 1}

    def remind(state: Cycle, runtime: Runtime[Any]) -> Cycle:
        sleep_until(state["due"] + timedelta(hours=6))
        if bank.look(state["cycle"]) == "Declined":
            runtime.effect("reminder-1", lambda offered: mails.append(f"{state['cycle']}:reminder-1"))
        return {"outcome": "Reminded"}

    def give_up(state: Cycle, runtime: Runtime[Any]) -> Cycle:
        runtime.store.put(("recovery",), state["cycle"], {"reason": "NeedsReconciliation"})
        return {"outcome": "NeedsReconciliation"}

    def route(state: Cycle) -> str:
        if state["payment"] == "Unknown":
            return "find_out" if state["snapshots"] < 16 else "give_up"
        return "remind" if state["payment"] == "Declined" else END

    graph = StateGraph(Cycle).add_node("charge", charge).add_node("find_out", find_out)
    graph.add_node("remind", remind).add_node("give_up", give_up).add_edge(START, "charge")
    graph.add_conditional_edges("charge", route, ["find_out", "give_up", "remind", END])
    graph.add_conditional_edges("find_out", route, ["find_out", "give_up", "remind", END])
    return graph.compile(checkpointer=saver, store=store)


class Month:
    """A cycle under way, which is due at noon."""

    def __init__(self, run: Runner, saver: Saver, thread: Thread, store: Any = None, **bank: Any) -> None:
        self.bank, self.mails, self.store = Bank(**bank), list[str](), store or InMemoryStore()
        self.time = Time(run, subscription(self.bank, self.mails, saver, self.store))
        self.begun = run.invoke(self.time.app, {"cycle": "2026-12", "due": NOON}, thread("1"))

    @property
    def queue(self) -> list[str]:
        """What waits for people."""
        return queued(self.store)


def queued(store: Any) -> list[str]:
    return [item.key for item in store.search(("recovery",))]


@pytest.mark.acceptance("S2-22")
def test_a_payment_that_timed_out_is_unknown_and_is_looked_at_again(run: Runner, saver: Saver, thread: Thread) -> None:
    month = Month(run, saver, thread)
    assert "Unknown" == month.begun["payment"]

    month.time.api("send_event", "1", "payment", key="2026-12")
    (hinted,) = month.time.wakes()
    assert ("Unknown", 1) == (hinted["payment"], hinted["snapshots"])
    assert [] == month.time.wakes(6 * HOUR - 1)
    for number in range(2, 17):
        (last,) = month.time.wakes(6 * HOUR)
        assert number == last["snapshots"]

    assert [] == month.time.wakes(1000 * HOUR)
    assert (16, ["2026-12"], []) == (month.bank.snapshots, month.bank.charges, month.mails)


def test_a_payment_that_came_through_after_all_ends_the_cycle(run: Runner, saver: Saver, thread: Thread) -> None:
    month = Month(run, saver, thread)
    month.bank.status = "Paid"

    (paid,) = month.time.wakes(6 * HOUR)

    assert ("Paid", ["2026-12"], [], []) == (paid["payment"], month.bank.charges, month.mails, month.queue)


@pytest.mark.acceptance("S2-25")
def test_what_stays_unresolved_is_put_into_a_durable_queue(
    run: Runner, saver: Saver, thread: Thread, tmp_path: Path
) -> None:
    path = tmp_path / "recovery.db"
    with SqliteStore.from_conn_string(path) as store:
        month = Month(run, saver, thread, store=store)
        for _ in range(16):
            assert [] == month.queue
            (last,) = month.time.wakes(6 * HOUR)

    assert ("NeedsReconciliation", "Unknown") == (last["outcome"], last["payment"])
    assert ("idle", [], ["2026-12"]) == (month.time.api("status", "1").status, month.mails, month.bank.charges)
    with SqliteStore.from_conn_string(path) as again:
        assert ["2026-12"] == queued(again)


def test_a_reminder_goes_to_who_is_still_declined_six_hours_after_it_was_due(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    month = Month(run, saver, thread, silent=False, status="Declined")

    assert ([], []) == (month.time.wakes(6 * HOUR - 1), month.mails)
    month.time.wakes(1)
    assert (["2026-12:reminder-1"], []) == (month.mails, month.time.wakes(1000 * HOUR))


def test_nobody_is_reminded_who_has_paid_meanwhile(run: Runner, saver: Saver, thread: Thread) -> None:
    month = Month(run, saver, thread, silent=False, status="Declined")
    month.bank.status = "Paid"

    month.time.wakes(6 * HOUR)

    assert [] == month.mails
