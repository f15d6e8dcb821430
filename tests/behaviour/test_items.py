"""Work that is done elsewhere: nodes name it, workers take what they have code for, over drivers and savers."""

from __future__ import annotations

import asyncio
import logging
import operator
import threading
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from pregel.durable import ContinueAsNew, Entities, NodeWorker, Operation, WorkItem, elsewhere
from pregel.errors import (
    AsyncOnlyError,
    InvalidInputError,
    NotAuthorisedError,
    UnregisteredWorkError,
    WorkFailedError,
)
from pregel.graph import END, START, StateGraph
from pregel.testing import FakeClock
from pregel.types import RetryPolicy, Send

from .conftest import Runner
from .marks import Saver, Thread
from .test_authority import has_authority
from .test_starts import work
from .test_thread_api import Api


class Order(TypedDict, total=False):
    item: str
    valid: bool
    shipped: str


@pytest.fixture(autouse=True)
def needs_items(saver: Saver) -> None:
    if not has_authority(saver):
        pytest.skip("no items are kept there")


def ship(order: Order) -> Order:
    return {"shipped": f"{order['item']} is on its way"}


class Shop:
    """Orders that are validated and shipped by workers, each with a clock of the shop."""

    def __init__(self, run: Runner, saver: Any, **options: Any) -> None:
        self.run, self.saver = run, saver
        self.clock = FakeClock()
        self.calls: list[WorkItem] = []
        builder = StateGraph(Order)
        builder.add_node("validate", elsewhere("ValidateOrder"))
        builder.add_node("ship", elsewhere("ShipOrder", version=options.pop("version", "1")), **options)
        self.app = (
            builder.add_edge(START, "validate").add_edge("validate", "ship").compile(name="orders", checkpointer=saver)
        )
        self.app.clock = self.clock
        self.api = Api(run, self.app)

    def order(self, thread: Thread, name: str = "1") -> Any:
        return self.run.invoke(self.app, {"item": "book"}, thread(name))

    def worker(self, codes: Any, **options: Any) -> NodeWorker:
        worker = NodeWorker(self.saver, codes, **options)
        worker.clock = self.clock
        return worker

    def works(self, worker: NodeWorker) -> int:
        return asyncio.run(worker.arun_once()) if self.run.name == "async" else worker.run_once()

    def validates(self) -> int:
        """The worker that validates does what there is, and the threads go on."""
        done = self.works(self.worker({"ValidateOrder": self.validated}))
        work(self.run, self.app)
        return done

    def validated(self, order: Order, item: WorkItem) -> Order:
        self.calls.append(item)
        return {"valid": True}

    def backlog(self) -> list[tuple[str, str, int, int]]:
        return [row[:4] for row in self.api("backlog")]

    def status(self, name: str = "1") -> str:
        return str(self.api("status", name).status)


@pytest.fixture
def shop(run: Runner, saver: Saver) -> Shop:
    return Shop(run, saver)


@pytest.mark.acceptance("S3-7")
def test_the_result_reaches_the_run_through_its_history(shop: Shop, thread: Thread) -> None:
    paused = shop.order(thread)
    assert ("waiting", "ValidateOrder") == (shop.status(), paused["__interrupt__"][0].value.work)

    assert 1 == shop.validates()
    assert 1 == shop.works(shop.worker({"ShipOrder": ship}))
    assert "waiting" == shop.status()
    assert 1 == work(shop.run, shop.app)

    values = shop.run.state(shop.app, thread("1")).values
    assert {"item": "book", "valid": True, "shipped": "book is on its way"} == values
    assert ("idle", []) == (shop.status(), shop.backlog())
    assert [("ValidateOrder", "1", 1, "1", "orders")] == [
        (item.name, item.version, item.attempt, item.thread_id, item.graph) for item in shop.calls
    ]


@pytest.mark.acceptance("S3-1", "S3-3")
def test_work_waits_for_a_worker_that_has_code_for_it(shop: Shop, thread: Thread) -> None:
    shop.order(thread)
    shipping = shop.worker({"ShipOrder": ship})
    assert 0 == shop.works(shipping)

    assert [1, 0, 0] == [shop.validates() for _ in range(3)]
    assert (1, "waiting", [("ShipOrder", "1", 1, 0)]) == (len(shop.calls), shop.status(), shop.backlog())

    assert (1, 1) == (shop.works(shipping), work(shop.run, shop.app))
    assert "idle" == shop.status()


@pytest.mark.acceptance("S3-2")
def test_a_filter_advertises_less_and_names_only_what_is_registered(shop: Shop, thread: Thread) -> None:
    shop.order(thread)
    codes = {"ValidateOrder": shop.validated, "ShipOrder": ship}

    assert 0 == shop.works(shop.worker(codes, filter={"ShipOrder": ["1"]}))
    with pytest.raises(UnregisteredWorkError, match="PackOrder"):
        shop.worker(codes, filter={"PackOrder": ["1"]})
    assert 1 == shop.works(shop.worker(codes))


@pytest.mark.acceptance("S3-4")
def test_a_filter_is_of_exact_names_and_versions(shop: Shop, thread: Thread) -> None:
    shop.order(thread)
    codes = {"ValidateOrder": shop.validated}

    with pytest.raises(UnregisteredWorkError, match=r"Validate\*"):
        shop.worker(codes, filter={"Validate*": ["1"]})
    with pytest.raises(InvalidInputError, match="empty filter"):
        shop.worker(codes, filter={})
    unclear: list[Any] = ["1", []]
    for versions in unclear:
        with pytest.raises(InvalidInputError, match="versions"):
            shop.worker(codes, filter={"ValidateOrder": versions})
    assert 0 == shop.works(shop.worker({"Validate*": shop.validated, "validateorder": shop.validated}))
    assert [0, 0] == [shop.works(shop.worker(codes, filter={"ValidateOrder": [one]})) for one in ("*", "1.0")]
    assert 1 == shop.works(shop.worker(codes, filter=None))


@pytest.mark.acceptance("S3-4")
def test_entities_are_chosen_by_name_alone(run: Runner, saver: Any) -> None:
    def handle(state: int, operation: Operation) -> int:
        return state + int(operation.value)

    counts, others = (Entities(handle, name=name, checkpointer=saver, initial=0) for name in ("counts", "others"))
    if run.name == "async":
        asyncio.run(counts.asignal("a", "add", 1))
    else:
        counts.signal("a", "add", 1)

    assert (0, 1) == (work(run, others.graph), work(run, counts.graph))


@pytest.mark.acceptance("S3-5")
def test_a_filter_gives_no_right(shop: Shop, thread: Thread) -> None:
    for name in "12":
        shop.order(thread, name)
    asked: list[tuple[str, str]] = []

    def may(identity: str, item: WorkItem) -> bool:
        asked.append((identity, item.thread_id))
        return identity == "trusted" or item.thread_id == "2"

    codes = {"ValidateOrder": shop.validated}
    with pytest.raises(NotAuthorisedError, match="'guest' has no right to 'ValidateOrder'"):
        shop.works(shop.worker(codes, filter={"ValidateOrder": ["1"]}, identity="guest", authorise=may))

    assert [("guest", "1"), ("guest", "2")] == asked
    assert ["2"] == [item.thread_id for item in shop.calls]
    assert [("ValidateOrder", "1", 1, 0)] == shop.backlog()
    assert 1 == shop.works(shop.worker(codes, identity="trusted", authorise=may))


@pytest.mark.acceptance("S3-6")
def test_the_backlog_is_told_by_name_and_version(shop: Shop, thread: Thread) -> None:
    began = shop.clock.ticks / 10_000_000
    shop.order(thread, "1")
    shop.clock.advance(5)
    shop.order(thread, "2")
    seen: list[Any] = []

    def looks(order: Order) -> Order:
        seen.append(tuple(shop.saver.backlog(shop.clock.ticks / 10_000_000)[0]))
        return {}

    assert [("ValidateOrder", "1", 2, 0, pytest.approx(began))] == [tuple(row) for row in shop.api("backlog")]
    if shop.run.name == "sync":
        assert 2 == shop.works(shop.worker({"ValidateOrder": looks}))
        assert [
            ("ValidateOrder", "1", 1, 1, pytest.approx(began + 5)),
            ("ValidateOrder", "1", 0, 1, None),
        ] == seen


@pytest.mark.acceptance("S3-8")
def test_work_that_is_accepted_and_has_no_code_goes_back_to_the_queue(shop: Shop, thread: Thread) -> None:
    shop.order(thread)
    newer = {("ValidateOrder", "2"): shop.validated}

    assert 0 == shop.works(shop.worker(newer))  # a generated filter accepts what there is code for
    for filter in ({"ValidateOrder": ["1"]}, None):
        worker = shop.worker(newer, filter=filter)
        assert (1, [], "waiting") == (shop.works(worker), shop.calls, shop.status())
        assert [("ValidateOrder", "1", 1, 0)] == shop.backlog()
        assert 0 == shop.works(worker)  # it does not spin
        shop.clock.advance(0.06)
        assert (1, 0) == (shop.works(worker), shop.works(worker))
        shop.clock.advance(0.06)
        assert 0 == shop.works(worker)  # and pauses for longer
    assert 1 == shop.validates()
    assert [1] == [item.attempt for item in shop.calls]


@pytest.mark.acceptance("S3-9")
def test_older_work_is_done_by_newer_code_where_that_is_asked_for(run: Runner, saver: Saver, thread: Thread) -> None:
    shop = Shop(run, saver, version="1.9")
    shop.order(thread)
    shop.validates()
    names: list[str] = []

    def code(name: str) -> Any:
        def ships(order: Order) -> Order:
            names.append(name)
            return {}

        return ships

    older = shop.worker({("ShipOrder", "1.8"): code("1.8")}, match="current_or_older")
    strict = shop.worker({("ShipOrder", "1.10"): code("1.10")})
    versions = ("1.8", "2", "1.10")
    newer = shop.worker({("ShipOrder", v): code(v) for v in versions}, match="current_or_older")

    assert (0, 0, 1) == (shop.works(older), shop.works(strict), shop.works(newer))
    assert ["1.10"] == names


@pytest.mark.acceptance("S3-9")
def test_a_mismatch_may_fail_the_node(shop: Shop, thread: Thread) -> None:
    shop.order(thread)
    worker = shop.worker({("ValidateOrder", "2"): shop.validated}, filter=None, on_mismatch="fail")
    assert 1 == shop.works(worker)

    with pytest.raises(WorkFailedError, match="no code for version 1") as caught:
        shop.api("wake", "1")
    assert ("UnregisteredWorkError", "failed") == (caught.value.error_type, shop.status())


def test_what_raises_is_tried_again_and_then_raises_in_the_node(shop: Shop, thread: Thread) -> None:
    items: list[WorkItem] = []

    def fails(order: Order, item: WorkItem) -> Order:
        items.append(item)
        raise ValueError("no such book")

    shop.order(thread)
    policy = RetryPolicy(max_attempts=3, initial_interval=10, backoff_factor=2, retry_on=ValueError)
    worker = shop.worker({"ValidateOrder": fails}, retry_policy=policy)
    found = []
    for seconds in (0, 9, 2, 19, 2):
        shop.clock.advance(seconds)
        found.append(shop.works(worker))
    assert [1, 0, 1, 0, 1] == found
    assert ([1, 2, 3], 1) == ([item.attempt for item in items], len({item.idempotency_key for item in items}))

    with pytest.raises(WorkFailedError) as caught:
        shop.api("wake", "1")
    assert ("ValueError", "no such book") == (caught.value.error_type, caught.value.error_message)
    assert ("failed", []) == (shop.status(), shop.backlog())

    shop.api("resume", "1")  # somebody has mended it
    assert ("waiting", [("ValidateOrder", "1", 1, 0)]) == (shop.status(), shop.backlog())
    assert 1 == shop.validates()
    assert shop.calls[0].idempotency_key != items[0].idempotency_key


def test_a_retry_policy_of_the_node_asks_for_the_work_anew(run: Runner, saver: Saver, thread: Thread) -> None:
    shop = Shop(run, saver, retry_policy=RetryPolicy(max_attempts=2, retry_on=WorkFailedError, initial_interval=0))
    shop.order(thread)
    shop.validates()
    keys: list[str] = []

    def fails_once(order: Order, item: WorkItem) -> Order:
        keys.append(item.idempotency_key)
        if len(keys) == 1:
            raise ValueError("broken")
        return ship(order)

    worker = shop.worker({"ShipOrder": fails_once})
    for _ in range(2):
        assert (1, 1) == (shop.works(worker), work(shop.run, shop.app))
    assert ("idle", 2) == (shop.status(), len(set(keys)))


def test_an_item_is_another_s_once_its_lease_is_over_and_the_late_result_is_dropped(
    shop: Shop, thread: Thread, caplog: pytest.LogCaptureFixture
) -> None:
    shop.order(thread)
    second = shop.worker({"ValidateOrder": shop.validated})

    def slow(order: Order, item: WorkItem) -> Order:
        shop.calls.append(item)
        if len(shop.calls) == 1:
            shop.clock.advance(31)  # nobody has heard of it for its lease
            assert 1 == second.run_once()
        return {"valid": False}

    async def aslow(order: Order, item: WorkItem) -> Order:
        shop.calls.append(item)
        shop.clock.advance(31)
        assert 1 == await second.arun_once()
        return {"valid": False}

    with caplog.at_level(logging.WARNING, "pregel.durable.node_worker"):
        shop.works(shop.worker({"ValidateOrder": aslow if shop.run.name == "async" else slow}))
    work(shop.run, shop.app)

    assert [1, 2] == [item.attempt for item in shop.calls]
    assert 1 == len({item.idempotency_key for item in shop.calls})
    assert shop.run.state(shop.app, thread("1")).values["valid"] is True
    assert "dropped" in caplog.text


def test_a_run_that_goes_another_way_takes_its_work_back(shop: Shop, thread: Thread) -> None:
    for name in "123":
        shop.order(thread, name)
    assert [("ValidateOrder", "1", 3, 0)] == shop.backlog()

    shop.api("delete", "1")
    assert [("ValidateOrder", "1", 2, 0)] == shop.backlog()
    shop.run.invoke(shop.app, {"item": "lamp"}, thread("2"))
    assert [("ValidateOrder", "1", 2, 0)] == shop.backlog()
    shop.run.update(shop.app, thread("3"), {"valid": True}, as_node="validate")
    assert [("ValidateOrder", "1", 1, 0)] == shop.backlog()
    assert 1 == shop.validates()
    assert {"item": "lamp", "valid": True} == shop.run.state(shop.app, thread("2")).values


def test_a_copy_waits_and_nobody_works_for_it_and_pruning_leaves_the_work(shop: Shop, thread: Thread) -> None:
    shop.order(thread)
    shop.api("copy", "1", "copy")
    shop.api("prune", ["1"])

    assert ("waiting", [("ValidateOrder", "1", 1, 0)]) == (shop.status("copy"), shop.backlog())
    assert (1, 0) == (shop.validates(), shop.validates())
    assert [("waiting", "ShipOrder"), ("waiting", "ValidateOrder")] == [
        (shop.status(name), shop.run.state(shop.app, thread(name)).interrupts[0].value.work) for name in ("1", "copy")
    ]


def test_nodes_of_a_graph_inside_and_of_many_sends_run_elsewhere(run: Runner, saver: Any, thread: Thread) -> None:
    class Many(TypedDict, total=False):
        numbers: list[int]
        squares: Annotated[list[int], operator.add]

    def square(task: dict[str, int]) -> dict[str, list[int]]:
        return {"squares": [task["n"] ** 2]}

    inner = StateGraph(Many).add_node("square", elsewhere("Square"))
    inner.add_conditional_edges(START, lambda state: [Send("square", {"n": n}) for n in state["numbers"]], ["square"])
    builder = StateGraph(Many).add_node("inner", inner.compile()).add_edge(START, "inner")
    app = builder.compile(name="many", checkpointer=saver)
    run.invoke(app, {"numbers": list(range(40))}, thread("1"))
    worker = NodeWorker(saver, {"Square": square})

    assert [("Square", "1", 40, 0)] == [row[:4] for row in Api(run, app)("backlog")]
    assert 40 == (asyncio.run(worker.arun_once()) if run.name == "async" else worker.run_once())
    assert 1 == work(run, app)
    assert [n**2 for n in range(40)] == run.state(app, thread("1")).values["squares"]


@pytest.mark.parametrize("again", ["input", "loop", "execution", "delete"])
def test_the_same_work_of_the_same_thread_is_another_item_each_time(
    run: Runner, saver: Saver, thread: Thread, again: str
) -> None:
    class Count(TypedDict, total=False):
        n: int

    def ends(state: Count) -> Count:
        if again == "execution" and len(keys) < 2:
            raise ContinueAsNew({"n": 0})
        return {}

    keys: list[str] = []
    builder = StateGraph(Count).add_node("work", elsewhere("Work")).add_node("ends", ends)
    builder.add_edge(START, "work").add_edge("work", "ends")
    if again == "loop":
        builder.add_conditional_edges("ends", lambda state: "work" if len(keys) < 2 else END, ["work", END])
    app = builder.compile(name="again", checkpointer=saver)
    api = Api(run, app)

    def done(state: Count, item: WorkItem) -> Count:
        keys.append(item.idempotency_key)
        return {"n": 1}

    worker = NodeWorker(saver, {"Work": done})
    for _ in range(2):
        if again in ("input", "delete") or not keys:
            run.invoke(app, {"n": 0}, thread("1"))
        assert 1 == (asyncio.run(worker.arun_once()) if run.name == "async" else worker.run_once())
        assert 1 == work(run, app)
        if again == "delete":
            api("delete", "1")
    if again != "delete":
        assert ("idle", 2) == (api("status", "1").status, len(set(keys)))
    assert 2 == len(keys)


def test_each_kind_of_work_has_its_turn(shop: Shop, thread: Thread) -> None:
    for name in "123":
        shop.order(thread, name)
    shop.validates()
    for name in "456":
        shop.order(thread, name)
    names: list[str] = []

    def code(name: str) -> Any:
        def done(order: Order) -> Order:
            names.append(name)
            return {}

        return done

    shop.works(shop.worker({"ValidateOrder": code("validate"), "ShipOrder": code("ship")}))
    assert ["validate", "ship"] * 3 == names


def test_a_look_too_early_leaves_the_work_as_it_is(shop: Shop, thread: Thread) -> None:
    shop.order(thread)
    for _ in range(2):
        shop.run.invoke(shop.app, None, thread("1"))
    assert [("ValidateOrder", "1", 1, 0)] == shop.backlog()


def test_two_nodes_that_run_elsewhere_at_once_end_one_after_the_other(run: Runner, saver: Any, thread: Thread) -> None:
    builder = StateGraph(Order)
    builder.add_node("validate", elsewhere("ValidateOrder")).add_node("ship", elsewhere("ShipOrder"))
    app = builder.add_edge(START, "validate").add_edge(START, "ship").compile(name="orders", checkpointer=saver)
    shop = Shop(run, saver)
    shop.app, shop.api = app, Api(run, app)
    app.clock = shop.clock
    shop.order(thread)

    assert 1 == shop.validates()
    assert [("ShipOrder", "1", 1, 0)] == shop.backlog()
    assert (1, 1) == (shop.works(shop.worker({"ShipOrder": ship})), work(run, app))
    assert {"item": "book", "valid": True, "shipped": "book is on its way"} == run.state(app, thread("1")).values


def test_code_that_is_awaited_needs_a_worker_that_awaits(shop: Shop) -> None:
    async def awaited(order: Order) -> Order:
        return order

    with pytest.raises(AsyncOnlyError, match="ValidateOrder"):
        shop.worker({"ValidateOrder": awaited}).run_once()


def test_a_worker_works_until_it_is_stopped(shop: Shop, thread: Thread) -> None:
    for name in "12":
        shop.order(thread, name)

    def validated(order: Order) -> Order:
        shop.calls.append(WorkItem("", "", "", 0, "", ""))
        if len(shop.calls) == 2:
            worker.stop()
        return {"valid": True}

    worker = shop.worker({"ValidateOrder": validated}, poll_interval=0.05)
    if shop.run.name == "async":
        asyncio.run(worker.arun())
    else:
        worker.run()
    assert (2, 2) == (len(shop.calls), work(shop.run, shop.app))


def test_a_lease_is_renewed_while_the_work_goes_on(shop: Shop, thread: Thread, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.order(thread)
    renewed, until = threading.Event(), [0.0]
    renew, arenew = shop.saver.renew_items, shop.saver.arenew_items

    def watched(holds: Any, expires: float) -> Any:
        held = renew(holds, expires)
        if held and expires >= until[0]:
            renewed.set()
        return held

    async def awatched(holds: Any, expires: float) -> Any:
        held = await arenew(holds, expires)
        if held and expires >= until[0]:
            renewed.set()
        return held

    monkeypatch.setattr(shop.saver, "renew_items", watched)
    monkeypatch.setattr(shop.saver, "arenew_items", awatched)
    other = shop.worker({"ValidateOrder": shop.validated})

    def begins() -> None:
        shop.clock.advance(0.25)
        until[0] = shop.clock.ticks / 10_000_000 + 0.3

    def long(order: Order) -> Order:
        begins()
        assert renewed.wait(60)
        shop.clock.advance(0.2)  # its first lease is over
        assert 0 == other.run_once()
        return {"valid": True}

    async def along(order: Order) -> Order:
        begins()
        assert await asyncio.to_thread(renewed.wait, 60)
        shop.clock.advance(0.2)
        assert 0 == await other.arun_once()
        return {"valid": True}

    code = along if shop.run.name == "async" else long
    assert 1 == shop.works(shop.worker({"ValidateOrder": code}, lease=0.3))
    assert (1, []) == (work(shop.run, shop.app), shop.calls)


def test_a_claim_that_is_under_way_when_its_worker_is_cancelled_is_given_back(
    run: Runner, saver: Any, thread: Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(run, saver)
    shop.order(thread)

    async def broken_off() -> None:
        begun, goes_on = asyncio.Event(), asyncio.Event()
        take = saver.atake_item

        async def slow(asked: Any) -> Any:
            begun.set()
            await goes_on.wait()
            return await take(asked)

        with monkeypatch.context() as patch:
            patch.setattr(saver, "atake_item", slow)
            worker = asyncio.create_task(shop.worker({"ValidateOrder": shop.validated}).arun_once())
            await begun.wait()
            worker.cancel()
            asyncio.get_running_loop().call_soon(goes_on.set)
            with pytest.raises(asyncio.CancelledError):
                await worker

    asyncio.run(broken_off())
    assert [("ValidateOrder", "1", 1, 0)] == shop.backlog()
    assert (1, 1) == (shop.validates(), shop.calls[0].attempt)


def test_what_a_cancelled_worker_was_doing_is_another_s_at_once(run: Runner, saver: Any, thread: Thread) -> None:
    shop = Shop(run, saver)
    shop.order(thread)

    async def broken_off() -> None:
        begun = asyncio.Event()

        async def never(order: Order) -> Order:
            begun.set()
            await asyncio.Event().wait()
            return {}

        worker = asyncio.create_task(shop.worker({"ValidateOrder": never}).arun())
        await begun.wait()
        worker.cancel()
        with pytest.raises(asyncio.CancelledError):
            await worker

    asyncio.run(broken_off())
    assert (1, 2) == (shop.validates(), shop.calls[0].attempt)
