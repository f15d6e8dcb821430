"""`runtime.effect`: work outside that is declared; its intent is stored before it, its outcome after it."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

from pregel.checkpoint.first_tier import FirstTier
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import (
    InvalidInputError,
    NoCheckpointerError,
    NotBuiltError,
    OutcomeUnknownError,
    SerializationError,
    UnknownEffectError,
)
from pregel.func import entrypoint, task
from pregel.graph import START, StateGraph
from pregel.runtime import Runtime
from pregel.testing import FakeClock, aassert_recovers, assert_recovers
from pregel.types import RetryPolicy, Send
from pregel.waits import sleep
from pregel.warnings import PregelWarning

from .conftest import Runner
from .marks import Saver, State, Thread, mark
from .savers.third_party import FiveVerbs
from .test_authority import has_authority, row_of
from .test_thread_api import Api

DURABILITIES = ("sync", "async", "exit")


@pytest.fixture(autouse=True)
def needs_appends(request: pytest.FixtureRequest) -> None:
    if "saver" in request.fixturenames and not has_authority(request.getfixturevalue("saver")):
        pytest.skip("this saver takes no appends")


class Marks(TypedDict, total=False):
    a: Annotated[list[str], operator.add]


class Lost(ConnectionError):
    """The provider was asked, and its answer did not come."""


class Refused(Exception):
    """The provider says that it did not do it."""


class Provider:
    """Accepts calls, and knows the keys of those that it accepted; `trouble` is raised after it accepted one."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.accepted: list[str] = []
        self.trouble: list[Exception] = []
        self.seen: Callable[[], None] | None = None  # looks at the store while a call is under way

    def book(self, key: str) -> str:
        if self.seen is not None:
            self.seen()
        self.keys.append(key)
        if self.trouble and isinstance(self.trouble[0], Refused):
            raise self.trouble.pop(0)
        if key not in self.accepted:
            self.accepted.append(key)
        if self.trouble:
            raise self.trouble.pop(0)
        return f"booking {self.accepted.index(key)}"


@pytest.fixture
def provider() -> Provider:
    return Provider()


def booking(run: Runner, provider: Provider, key: Any = "book", **options: Any) -> Any:
    """A node that books, in the manner of the driver."""

    def node(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        return {"a": [runtime.effect(key if isinstance(key, str) else key(state), provider.book, **options)]}

    async def anode(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        async def book(offered: str) -> str:
            return provider.book(offered)

        return {"a": [await runtime.aeffect(key if isinstance(key, str) else key(state), book, **options)]}

    return node if run.name == "sync" else anode


def built(
    run: Runner, provider: Provider, *, retry: Any = None, handler: Any = None, **options: Any
) -> StateGraph[Any]:
    """A graph that books once."""
    return StateGraph(State).add_node("car", booking(run, provider, **options)).add_edge(START, "car")


def lost(run: Runner, app: Any, provider: Provider, thread: Thread, **arguments: Any) -> Api:
    """A thread whose provider accepted, and whose answer was lost."""
    provider.trouble = [Lost()]
    with pytest.raises(Lost):
        run.invoke(app, {"a": []}, thread("1"), **arguments)
    return Api(run, app)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_an_intent_is_stored_before_the_call_and_the_result_before_it_is_used(
    run: Runner, saver: Saver, thread: Thread, provider: Provider, durability: Any
) -> None:
    first, second = booking(run, provider, "first"), booking(run, provider, "second")

    def node(state: State, runtime: Runtime[Any]) -> Any:
        made = first(state, runtime)["a"] + second(state, runtime)["a"]
        look()
        return {"a": made}

    async def anode(state: State, runtime: Runtime[Any]) -> Any:
        made = (await first(state, runtime))["a"] + (await second(state, runtime))["a"]
        look()
        return {"a": made}

    seen: list[Any] = []

    def look() -> None:
        found = saver.get_tuple(thread("1"))
        assert found is not None
        rows = [(channel, value) for _, channel, value in found.pending_writes or ()]
        intents = {value["key"]: value["state"] for channel, value in rows if channel == "__effect__"}
        results = [value for channel, value in rows if channel == "__memo__"]
        seen.append((found.checkpoint["channel_values"]["a"], intents, sorted(results)))

    provider.seen = look
    graph = StateGraph(State).add_node("before", mark("before")).add_node("car", node if run.name == "sync" else anode)
    app = graph.add_edge(START, "before").add_edge("before", "car").compile(checkpointer=saver)

    result = run.invoke(app, {"a": []}, thread("1"), durability=durability)

    assert {"a": ["before", "booking 0", "booking 1"]} == result
    assert [
        (["before"], {"first": "begun"}, []),
        (["before"], {"first": "begun", "second": "begun"}, ["booking 0"]),
        (["before"], {"first": "begun", "second": "begun"}, ["booking 0", "booking 1"]),
    ] == seen


@pytest.mark.parametrize("durability", DURABILITIES)
def test_what_may_have_happened_is_not_done_again_blindly(
    run: Runner, saver: Saver, thread: Thread, provider: Provider, durability: Any
) -> None:
    app = built(run, provider).compile(checkpointer=saver)
    api = lost(run, app, provider, thread, durability=durability)

    with pytest.raises(OutcomeUnknownError, match="'book' of node 'car'") as unknown:
        run.invoke(app, None, thread("1"), durability=durability)

    info = api("status", "1")
    (effect,) = api("effects", "1")
    assert ("failed", True) == (info.status, info.can_resume)
    assert "OutcomeUnknownError" in info.reason
    assert "'book'" in info.reason
    assert ("book", "car", False, provider.keys[0]) == (
        effect.key,
        effect.node,
        effect.idempotent,
        effect.idempotency_key,
    )
    assert (unknown.value.key, unknown.value.effect_id) == (effect.key, effect.id)
    assert 1 == len(provider.keys)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_an_idempotent_effect_is_done_again_with_the_same_key(
    run: Runner, saver: Saver, thread: Thread, provider: Provider, durability: Any
) -> None:
    app = built(run, provider, idempotent=True).compile(checkpointer=saver)
    api = lost(run, app, provider, thread, durability=durability)
    assert ["book"] == [effect.key for effect in api("effects", "1")]

    result = run.invoke(app, None, thread("1"), durability=durability)

    assert (["booking 0"], 2, 1) == (result["a"], len(provider.keys), len(provider.accepted))
    assert [] == api("effects", "1")


def test_a_result_that_was_recorded_is_read_by_the_next_attempt(
    run: Runner, saver: Saver, thread: Thread, provider: Provider
) -> None:
    trouble: list[Exception] = [ValueError("after it"), ValueError("in another run")]
    book = booking(run, provider)

    def node(state: State, runtime: Runtime[Any]) -> Any:
        made = book(state, runtime)
        if trouble:
            raise trouble.pop(0)
        return made

    async def anode(state: State, runtime: Runtime[Any]) -> Any:
        made = await book(state, runtime)
        if trouble:
            raise trouble.pop(0)
        return made

    retry = RetryPolicy(max_attempts=2, initial_interval=0.0, jitter=False, retry_on=ValueError)
    graph = StateGraph(State).add_node("car", node if run.name == "sync" else anode, retry_policy=retry)
    app = graph.add_edge(START, "car").compile(checkpointer=saver)
    with pytest.raises(ValueError, match="in another run"):
        run.invoke(app, {"a": []}, thread("1"))

    assert ["booking 0"] == run.invoke(app, None, thread("1"))["a"]
    assert 1 == len(provider.keys)


def test_an_effect_that_happened_is_settled_with_its_result(
    run: Runner, saver: Saver, thread: Thread, provider: Provider
) -> None:
    app = built(run, provider).compile(checkpointer=saver)
    api = lost(run, app, provider, thread)
    with pytest.raises(OutcomeUnknownError):
        api("resume", "1")

    settled = api("settle", "1", "book", result="booking 7", operator="ann")
    info = api("status", "1")

    assert "book" == settled.key
    assert ("failed", "effect 'book' was settled, and nothing has run since") == (info.status, info.reason)
    assert [] == api("effects", "1")
    assert ["booking 7"] == api("resume", "1")["a"]
    assert 1 == len(provider.keys)


def test_an_effect_that_did_not_happen_is_done_anew(
    run: Runner, saver: Saver, thread: Thread, provider: Provider
) -> None:
    app = built(run, provider).compile(checkpointer=saver)
    api = lost(run, app, provider, thread)

    api("settle", "1", "book", retry=True)

    assert ["booking 0"] == api("resume", "1")["a"]
    assert 2 == len(provider.keys)


def test_a_thread_that_waits_goes_on_waiting_when_an_effect_of_it_is_settled(
    run: Runner, saver: Saver, thread: Thread, provider: Provider
) -> None:
    book = booking(run, provider)

    def node(state: State, runtime: Runtime[Any]) -> Any:
        try:
            return book(state, runtime)
        except Lost:
            sleep(60)

    async def anode(state: State, runtime: Runtime[Any]) -> Any:
        try:
            return await book(state, runtime)
        except Lost:
            sleep(60)

    graph = StateGraph(State).add_node("car", node if run.name == "sync" else anode).add_edge(START, "car")
    app = graph.compile(checkpointer=saver)
    app.clock = clock = FakeClock(1e9)
    provider.trouble = [Lost()]
    run.invoke(app, {"a": []}, thread("1"))
    api = Api(run, app)

    api("settle", "1", "book", result="found")

    assert ("waiting", []) == (api("status", "1").status, list(api("due")))
    clock.advance(60)
    assert ["1"] == list(api("due"))
    assert ["found"] == api("wake", "1")["a"]
    assert 1 == len(provider.keys)


def test_what_a_provider_refused_did_not_happen(run: Runner, saver: Saver, thread: Thread, provider: Provider) -> None:
    app = built(run, provider, refused=Refused).compile(checkpointer=saver)
    provider.trouble = [Refused()]
    with pytest.raises(Refused):
        run.invoke(app, {"a": []}, thread("1"))

    assert [] == Api(run, app)("effects", "1")
    assert ["booking 0"] == run.invoke(app, None, thread("1"))["a"]


@pytest.mark.parametrize("stored", [True, False])
def test_neither_a_retry_nor_a_handler_nor_an_except_passes_an_unknown_outcome(
    run: Runner, thread: Thread, provider: Provider, stored: bool
) -> None:
    handled: list[Any] = []
    careless = booking(run, provider)

    def swallow(state: State, runtime: Runtime[Any]) -> Any:
        try:
            return careless(state, runtime)
        except OutcomeUnknownError:
            return {"a": ["who cares"]}

    async def aswallow(state: State, runtime: Runtime[Any]) -> Any:
        try:
            return await careless(state, runtime)
        except OutcomeUnknownError:
            return {"a": ["who cares"]}

    provider.trouble = [Lost()]
    retry = RetryPolicy(max_attempts=5, initial_interval=0.0, jitter=False, retry_on=Exception)

    def handler(state: State) -> State:
        handled.append(1)
        return {"a": ["handled"]}

    node = swallow if run.name == "sync" else aswallow
    graph = StateGraph(State).add_node("car", node, retry_policy=retry, error_handler=handler).add_edge(START, "car")
    app = graph.compile(checkpointer=InMemorySaver() if stored else None)

    with pytest.raises(OutcomeUnknownError):
        run.invoke(app, {"a": []}, thread("1"))

    assert ([], 1) == (handled, len(provider.keys))


@pytest.mark.acceptance("S3-22")
def test_a_rewind_lists_what_the_failed_step_may_have_done_and_undoes_nothing(
    run: Runner, saver: Saver, thread: Thread, provider: Provider
) -> None:
    """Of a graph inside, beside one that ended well: whose effect is known."""
    child = StateGraph(State, output_schema=Marks).add_node(
        "book", booking(run, provider, key=lambda state: state["b"])
    )
    child.add_edge(START, "book")
    graph = StateGraph(State).add_node("child", child.compile())
    graph.add_conditional_edges(START, lambda _: [Send("child", {"a": [], "b": kind}) for kind in "xy"], ["child"])
    app = graph.compile(checkpointer=saver)
    api = Api(run, app)
    order: list[str] = []

    def second_is_lost() -> None:
        order.append("asked")
        provider.trouble = [Lost()] if len(order) == 2 else []

    provider.seen = second_is_lost
    with pytest.raises(Lost):
        run.invoke(app, {"a": []}, {**thread("1"), "max_concurrency": 1})

    rewound = api("rewind", "1", reason="the provider is back")

    (effect,) = rewound.effects
    assert list(rewound.effects) == list(api("effects", "1")) == list(api("rewind", "1", reason="?").effects)
    assert (provider.keys[1], "book", "child") == (effect.idempotency_key, effect.node, effect.ns.split(":")[0])
    assert 2 == len(provider.accepted)
    with pytest.raises(OutcomeUnknownError):
        api("resume", "1")
    assert 2 == len(provider.keys)
    api("settle", "1", effect.id, result="found")
    assert {"booking 0", "found"} == set(api("resume", "1")["a"])


def test_effects_of_tasks_are_kept_as_well(run: Runner, saver: Saver, thread: Thread, provider: Provider) -> None:
    book: Any = booking(run, provider)

    def call(runtime: Runtime[Any]) -> Any:
        return book({}, runtime)["a"]

    async def acall(runtime: Runtime[Any]) -> Any:
        return (await book({}, runtime))["a"]

    called: Any = task(call if run.name == "sync" else acall)

    def flow(given: Any) -> Any:
        try:
            return called().result()
        except OutcomeUnknownError:
            return "swallowed"

    async def aflow(given: Any) -> Any:
        try:
            return await called()
        except OutcomeUnknownError:
            return "swallowed"

    app: Any = entrypoint(checkpointer=saver)(flow if run.name == "sync" else aflow)
    api = lost(run, app, provider, thread)

    with pytest.raises(OutcomeUnknownError):
        api("resume", "1")
    api("settle", "1", "book", result="found")

    assert ["found"] == api("resume", "1")
    assert 1 == len(provider.keys)


def test_a_settlement_that_makes_no_sense_is_refused(
    run: Runner, saver: Saver, thread: Thread, provider: Provider
) -> None:
    graph = StateGraph(State)
    for name in ("one", "two"):
        graph.add_node(name, booking(run, provider)).add_edge(START, name)
    app = graph.compile(checkpointer=saver)
    api = Api(run, app)
    provider.trouble = [Lost(), Lost()]
    with pytest.raises(Lost):
        run.invoke(app, {"a": []}, {**thread("1"), "max_concurrency": 1})
    with pytest.raises((OutcomeUnknownError, Lost)):
        api("resume", "1")
    row = row_of(saver)

    with pytest.raises(UnknownEffectError, match="No effect 'other'") as other:
        api("settle", "1", "other", retry=True)
    with pytest.raises(InvalidInputError, match="either"):
        api("settle", "1", "book")
    with pytest.raises(InvalidInputError, match="either"):
        api("settle", "1", "book", result=1, retry=True)
    with pytest.raises(SerializationError):
        api("settle", "1", other.value.effect_ids[0], result=object())

    assert [effect.id for effect in api("effects", "1")] == list(other.value.effect_ids)
    assert (row.seq, row.status) == (row_of(saver).seq, row_of(saver).status)


def test_without_a_saver_an_effect_just_happens(run: Runner, provider: Provider) -> None:
    app = built(run, provider).compile()

    assert ["booking 0"] == run.invoke(app, {"a": []})["a"]
    assert "booking 1" == Runtime().effect("book", provider.book)
    assert "booking 2" == asyncio.run(Runtime().aeffect("book", provider.book))


def test_a_graph_that_keeps_nothing_inside_of_one_that_does_is_told(
    run: Runner, thread: Thread, provider: Provider
) -> None:
    inner = built(run, provider).compile(checkpointer=False)
    app = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile(checkpointer=InMemorySaver())

    with pytest.raises(NoCheckpointerError, match="checkpointer=False"):
        run.invoke(app, {"a": []}, thread("1"))
    assert [] == provider.keys


def test_a_saver_with_the_reference_s_verbs_keeps_no_intents(run: Runner, thread: Thread, provider: Provider) -> None:
    saver = FiveVerbs()
    with pytest.warns(PregelWarning, match="no guarded append"):
        FirstTier(saver, {})
    app = built(run, provider).compile(checkpointer=saver)

    with pytest.raises(NotBuiltError, match="cannot be kept"):
        run.invoke(app, {"a": []}, thread("1"))
    with pytest.raises(NotBuiltError, match="no status"):
        Api(run, app)("rewind", "1", reason="mended")
    assert [] == provider.keys


@pytest.mark.parametrize("durability", DURABILITIES)
def test_an_idempotent_effect_happens_once_whenever_its_process_dies(run: Runner, durability: Any) -> None:
    """Beside another one, in a graph inside, and after a step that an intent has to bring along."""
    keys: set[str] = set()  # what a provider that knows its keys did

    def book(key: str) -> str:
        keys.add(key)
        done[:] = ["booked"] * len(keys)
        return "booked"

    done = Booked(keys)
    node: Any = effect_of(run, book)
    inner = StateGraph(State).add_node("inside", node).add_node("more", node).add_edge(START, "inside")
    graph = StateGraph(State).add_node("before", mark("before")).add_node("car", node)
    graph.add_node("inner", inner.add_edge("inside", "more").compile()).add_edge(START, "before")
    app = graph.add_edge("before", "car").add_edge("before", "inner").compile()

    if run.name == "sync":
        recovery = assert_recovers(app, {"a": []}, durability=durability, effects=done)
    else:
        recovery = asyncio.run(aassert_recovers(app, {"a": []}, durability=durability, effects=done))

    assert recovery.deaths > 10


class Booked(list[str]):
    """How much was booked; keys differ from thread to thread."""

    def __init__(self, keys: set[str]) -> None:
        super().__init__()
        self.keys = keys

    def clear(self) -> None:
        super().clear()
        self.keys.clear()


def effect_of(run: Runner, producer: Callable[[str], str]) -> Any:
    """A node that does one thing outside, in the manner of the driver."""

    def node(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        return {"a": [runtime.effect("book", producer, idempotent=True)]}

    async def anode(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        return {"a": [await runtime.aeffect("book", producer, idempotent=True)]}

    return node if run.name == "sync" else anode
