"""Lists that grow are stored as what is new in them, and read back as if they had been stored whole."""

from __future__ import annotations

import operator
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from copy import deepcopy
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pregel.channels import DeltaChannel
from pregel.channels.batches import Batched
from pregel.channels.growth import Log
from pregel.checkpoint.flows import Many, Sql
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.ledger import Ledger
from pregel.checkpoint.logs import Stored, Tip
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.config import RunnableConfig
from pregel.errors import ReducerChanged
from pregel.flow import Flow
from pregel.graph import START, StateGraph
from pregel.graph.message import add_messages
from pregel.messages import REMOVE_ALL_MESSAGES, AIMessage, BaseMessage, RemoveMessage
from pregel.types import Overwrite

THREADS = count()


class WholeLedger(Ledger):
    """A ledger that stores every list whole."""

    def _stored(self, value: Log | Batched | Stored, tip: Tip | None) -> Stored:
        return super()._stored(value, None)


class WholeSaver(InMemorySaver):
    """The oracle."""

    def ledger(self) -> Ledger:
        return WholeLedger(self.serde, self.names)


def replaced(old: list[Any], writes: Sequence[Any]) -> list[Any]:
    """A reducer that keeps the last three items and may change type: not lawful, but deterministic."""
    return [*old, *writes][-3:]


def merged(old: dict[str, Any], writes: Sequence[dict[str, str]]) -> dict[str, Any]:
    """Entries under keys, in dicts that it changes in place."""
    for write in writes:
        for key, text in write.items():
            old.setdefault(key, {"n": 0, "texts": []})
            old[key]["n"] += 1
            old[key]["texts"].append(text)
    return old


def streamed(old: list[Any], writes: Sequence[str]) -> list[Any]:
    """The last item grows in place, and ends with a full stop."""
    for write in writes:
        if old and not old[-1]["text"].endswith("."):
            old[-1]["text"] += write
        else:
            old.append({"text": write})
    return old


def flat(old: list[Any], writes: Sequence[list[Any]]) -> list[Any]:
    return [*old, *chain.from_iterable(writes)]


def loose(old: Any, new: Any) -> Any:
    return new if isinstance(new, str) else [*(old if isinstance(old, list) else []), new]


def careful(reducer: Callable[[Any, Any], Any]) -> DeltaChannel[Any]:
    """The reducer, kept from changing in place what others see: it is asked for a preview before a branch, too."""
    return DeltaChannel(lambda old, writes: reducer(deepcopy(old), deepcopy(writes)))


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    messages: Annotated[list[BaseMessage], add_messages]
    delta: Annotated[list[Any], DeltaChannel(lambda old, writes: [*old, *writes])]
    often: Annotated[list[Any], DeltaChannel(replaced, snapshot_frequency=3)]
    keyed: Annotated[dict[str, Any], careful(merged)]
    words: Annotated[list[Any], careful(streamed)]
    text: Annotated[str, DeltaChannel(lambda old, writes: old + "".join(writes))]
    loose: Annotated[Any, loose]
    left: int


Write = dict[str, Any]


class Left(TypedDict):
    """What the branch reads: a reducer that refuses a write fails at the barrier then, not in a race of two nodes."""

    left: int


def further(state: Left) -> list[str]:
    return ["first", "second"] if state["left"] else []


def graph(saver: Any, firsts: list[Write], seconds: list[Write]) -> Any:
    """Two nodes side by side that write what their scripts say, one entry a step each, until the first is used up."""

    def first(state: State) -> Write:
        return {**(firsts.pop(0) if firsts else {}), "left": len(firsts)}

    def second(state: State) -> Write:
        return seconds.pop(0) if seconds else {}

    builder = StateGraph(State)
    builder.add_node("first", first)
    builder.add_node("second", second)
    builder.add_edge(START, "first")
    builder.add_conditional_edges("first", further)
    return builder.compile(saver)


# -- programs ----------------------------------------------------------------------------------------------------------

texts = st.builds(lambda letter, n: letter * n, st.sampled_from("abc"), st.sampled_from([3, 90, 400, 2500]))
items = st.one_of(texts, st.integers(0, 1), st.booleans(), st.builds(lambda t: {"t": t}, texts))
message = st.builds(lambda i, t: AIMessage(t, id=f"m{i}"), st.integers(0, 9), texts)
said = st.one_of(
    st.lists(message, min_size=1, max_size=3),
    st.builds(lambda t: [RemoveMessage(id=REMOVE_ALL_MESSAGES), AIMessage(t, id="m0")], texts),
    st.builds(lambda gone, new: [*new, RemoveMessage(id=gone)], st.sampled_from(["m0", "m1"]), st.lists(message)),
)
writes: st.SearchStrategy[Write] = st.fixed_dictionaries(
    {},
    optional={
        "log": st.one_of(
            st.lists(items, min_size=1, max_size=3), st.builds(Overwrite, st.lists(items, min_size=1, max_size=2))
        ),
        "messages": said,
        "delta": items,
        "often": items,
        "keyed": st.one_of(
            st.dictionaries(st.sampled_from("kl"), texts, min_size=1),
            st.builds(Overwrite, st.builds(lambda t: {"k": {"n": 1, "texts": [t]}}, texts)),
        ),
        "words": st.one_of(texts, texts.map("{}.".format)),
        "text": st.one_of(texts, st.just(Overwrite(None))),
        "loose": st.one_of(texts, items),
    },
)
place = st.integers(0, 30)
durability = st.sampled_from(["sync", "async", "exit"])
script = st.lists(writes, min_size=2, max_size=10)
start = st.tuples(st.just("run"), writes, script, durability)
later = st.lists(
    st.one_of(
        start,
        st.tuples(st.just("replay"), place, script, durability),
        st.tuples(st.just("update"), writes),
        st.tuples(st.just("fork"), place, writes),
        st.tuples(st.just("remove"), place),
        st.tuples(st.just("prune")),
        st.tuples(st.just("copy")),
        st.tuples(st.just("begin_anew")),
    ),
    min_size=2,
    max_size=7,
)
programs = st.builds(lambda first, rest: [first, *rest], start, later)


class Side:
    """A program on one saver."""

    def __init__(self, saver: JournalSaver) -> None:
        self.saver = saver
        self.thread = f"t{next(THREADS)}"
        self.firsts: list[Write] = []
        self.seconds: list[Write] = []  # of its own: nodes side by side take turns in any order
        self.app = graph(saver, self.firsts, self.seconds)

    @property
    def config(self) -> dict[str, Any]:
        return {"configurable": {"thread_id": self.thread}, "recursion_limit": 50}

    def history(self) -> list[Any]:
        return list(self.app.get_state_history(self.config))

    def reads(self, script: list[Write]) -> None:
        self.firsts[:], self.seconds[:] = script[::2], script[1::2]

    def do(self, what: str, *args: Any) -> object:
        """Perform a step of the program; what can be seen of it comes back."""
        done: Callable[..., object] = getattr(self, f"do_{what}")
        try:
            return done(*args)
        except Exception as error:  # both sides fail alike
            return type(error).__name__

    def do_run(self, first: Write, script: list[Write], durability: str) -> object:
        self.reads(script)
        return self.app.invoke(dict(first) or {"left": 0}, self.config, durability=durability)

    def do_replay(self, place: int, script: list[Write], durability: str) -> object:
        history = self.history()
        self.reads(script)
        return self.app.invoke(None, history[place % len(history)].config, durability=durability)

    def do_update(self, write: Write) -> object:
        self.app.update_state(self.config, write, as_node="second")
        return None

    def do_fork(self, place: int, write: Write) -> object:
        history = self.history()
        self.app.update_state(history[place % len(history)].config, write, as_node="second")
        return None

    def do_remove(self, place: int) -> object:
        messages = self.app.get_state(self.config).values["messages"]
        gone = messages[place % len(messages)].id
        return self.do_update({"messages": [RemoveMessage(id=gone)]})

    def do_prune(self) -> object:
        self.saver.prune([self.thread])
        return None

    def do_copy(self) -> object:
        copied = f"t{next(THREADS)}"
        self.saver.copy_thread(self.thread, copied)
        self.thread = copied
        return None

    def do_begin_anew(self) -> object:
        self.saver.delete_thread(self.thread)
        return None

    def seen(self) -> list[Any]:
        """All that there is to read."""
        entries = [(entry.values, entry.next, entry.metadata["step"]) for entry in self.history()]
        alone = [self.app.get_state(entry.config).values for entry in self.history()[:3]]
        return [*entries, *alone, self.saver.verify(self.thread, channels=self.app.channels)]


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of what a program stores
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=programs)
def test_any_program_reads_back_as_with_whole_values(saver: JournalSaver, program: list[tuple[Any, ...]]) -> None:
    ours, oracle = Side(saver), Side(WholeSaver())
    saver.recent.smallest = 0
    oracle.saver.recent.largest = 0

    for what, *args in program:
        assert oracle.do(what, *args) == ours.do(what, *args)

    assert oracle.seen() == ours.seen()


# -- single behaviours -------------------------------------------------------------------------------------------------


class Logs(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    messages: Annotated[list[BaseMessage], add_messages]
    n: int


def loop(saver: Any, reducer: Any = operator.add, typ: Any = list, until: int = 40, size: int = 300) -> Any:
    """One node that adds to a log until there are so many entries."""

    def node(state: dict[str, Any]) -> dict[str, Any]:
        return {"log": [f"{state['n']:0{size}}"], "n": state["n"] + 1}

    builder = StateGraph(TypedDict("Loop", {"log": Annotated[typ, reducer], "n": int}))  # type: ignore[operator]
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_conditional_edges("node", lambda state: ["node"] if state["n"] < until else [])
    return builder.compile(saver)


def place_of(thread: str = "1", **more: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, **more}, "recursion_limit": 1000}


def kinds(saver: JournalSaver, thread: str = "1") -> list[str]:
    """The kinds of the rows of the root namespace."""

    def flow() -> Flow[list[str]]:
        tno = (yield Sql("lock_thread", (thread,)))[0][0]
        return [row[2] for row in (yield Sql("value_keys", (tno, 0)))]

    return saver.write(flow())


def entries(n: int, size: int = 300) -> list[str]:
    return [f"{number:0{size}}" for number in range(n)]


@pytest.mark.acceptance("S1-52", "S1-53")
@pytest.mark.parametrize("reducer", [operator.add, DeltaChannel(flat)])
def test_steps_store_deltas_and_every_checkpoint_reads_whole(saver: JournalSaver, reducer: Any) -> None:
    app = loop(saver, reducer)

    app.invoke({"log": [], "n": 0}, place_of())

    found = kinds(saver)
    assert found.count("delta") >= 35 > 8 >= len(found) - found.count("delta")
    assert [entries(n) for n in range(40, -1, -1)] == [s.values["log"] for s in app.get_state_history(place_of())][:41]


def test_a_list_of_ours_is_whole_in_every_checkpoint_and_a_delta_channel_only_in_snapshots(saver: JournalSaver) -> None:
    loop(saver).invoke({"log": [], "n": 0}, place_of())
    loop(saver, DeltaChannel(flat)).invoke({"log": [], "n": 0}, place_of("2"))

    ours, delta = (saver.get_tuple(place_of(thread)) for thread in "12")
    assert ours is not None
    assert delta is not None
    assert entries(40) == ours.checkpoint["channel_values"]["log"]
    assert "log" not in delta.checkpoint["channel_values"]
    assert "log" in delta.checkpoint["channel_versions"]


@pytest.mark.acceptance("S1-53")
@pytest.mark.filterwarnings("ignore:.*law of batches")
def test_a_reducer_that_breaks_every_law_reads_back_as_it_ran(saver: JournalSaver) -> None:
    unlawful = DeltaChannel(lambda old, writes: [*old, len(old), len(writes)] + ["x" * 300] * len(old))
    app = loop(saver, unlawful, until=7)

    live = app.invoke({"log": [], "n": 0}, place_of())

    assert live == app.get_state(place_of()).values
    assert [] == saver.verify("1", channels=app.channels)


def test_a_renamed_reducer_is_refused(saver: JournalSaver) -> None:
    loop(saver, DeltaChannel(flat, name="old")).invoke({"log": [], "n": 0}, place_of())
    renamed = loop(saver, DeltaChannel(lambda old, writes: [*chain.from_iterable(writes), *old], name="new"), until=42)

    with pytest.raises(ReducerChanged, match=r"'log' was stored as what 'old' was given.* 'new'"):
        renamed.get_state(place_of())
    with pytest.raises(ReducerChanged):
        renamed.invoke({"log": ["y"]}, place_of())

    moved = loop(saver, DeltaChannel(lambda old, writes: flat(old, writes), name="old"), until=42)
    assert entries(42) == moved.invoke({"log": []}, place_of())["log"]


def test_a_reducer_that_changes_items_in_place_reads_back_as_it_ran(saver: JournalSaver) -> None:
    builder = StateGraph(TypedDict("Words", {"words": Annotated[list[Any], DeltaChannel(streamed)]}))  # type: ignore[operator]
    for name in "abcd":
        builder.add_node(name, lambda state, name=name: {"words": name * 100})
    builder.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c").add_edge("c", "d")
    app = builder.compile(saver)

    live = app.invoke({"words": "start" * 30}, place_of())

    assert [{"text": "start" * 30 + "".join(name * 100 for name in "abcd")}] == live["words"]
    assert live == app.get_state(place_of()).values
    assert kinds(saver).count("delta") == 4


def test_a_log_that_becomes_plain_and_a_log_again_reads_back(saver: JournalSaver) -> None:
    def last(old: Any, new: Any) -> Any:
        return new

    loop(saver).invoke({"log": [], "n": 0}, place_of())
    plain = loop(saver, last)
    plain.update_state(place_of(), {"log": "text"}, as_node="node")
    assert "text" == plain.get_state(place_of()).values["log"]
    plain.update_state(place_of(), {"log": entries(30)}, as_node="node")
    app = loop(saver)
    app.update_state(place_of(), {"log": ["end"]}, as_node="node")

    assert [[*entries(30), "end"], entries(30), "text", entries(40)] == [
        entry.values["log"] for entry in app.get_state_history(place_of(), limit=4)
    ]
    assert [] == saver.verify("1")


def test_a_message_that_a_node_changed_in_place_and_returned_is_stored(saver: JournalSaver) -> None:
    def change(state: Logs) -> Logs:
        message = state["messages"][1]
        message.content = "changed"
        return {"messages": [message]}

    builder = StateGraph(Logs).add_node("change", change).add_edge(START, "change")
    app = builder.compile(saver)

    app.invoke({"messages": [AIMessage("x" * 400, id=f"m{n}") for n in range(4)]}, place_of())

    assert "changed" == app.get_state(place_of()).values["messages"][1].content


def test_the_history_of_a_channel_is_that_of_its_own_branch(saver: JournalSaver) -> None:
    app = loop(saver, DeltaChannel(flat), until=6)
    app.invoke({"log": ["x" * 300], "n": 0}, place_of())
    middle = list(app.get_state_history(place_of()))[3].config
    fork = app.update_state(middle, {"log": ["fork"]}, as_node="node")

    for where in (place_of(), middle, fork):
        found = saver.get_delta_channel_history(config=where, channels=["log", "n", "other"])
        channel = DeltaChannel(flat).from_checkpoint(found["log"].get("seed"))
        channel.replay_writes(found["log"]["writes"])
        state = app.get_state(where).values
        assert state["log"] == channel.get()
        assert {"writes": [], "seed": state["n"]} == found["n"]
        assert {"writes": []} == found["other"]


def test_a_cache_that_is_not_what_its_deltas_make_is_found(tmp_path: Path) -> None:
    path = str(tmp_path / "threads.db")
    with SqliteSaver.from_conn_string(path, synchronous="NORMAL") as saver:
        loop(saver, until=120, size=60).invoke({"log": [], "n": 0}, place_of())
        assert [] == saver.verify("1")
    with closing(sqlite3.connect(path)) as connection, connection:
        caches = connection.execute("SELECT at, blob FROM pregel_channel_values WHERE kind = 'cache'").fetchall()
        for at, blob in caches:
            wrong = blob[:-1] + bytes([blob[-1] ^ 1])  # the last entry ends with another character
            connection.execute("UPDATE pregel_channel_values SET blob = ? WHERE kind = 'cache' AND at = ?", (wrong, at))

    with SqliteSaver.from_conn_string(path, synchronous="NORMAL") as saver:
        found = saver.verify("1")

    assert caches
    assert {"the cache of 'log' is not what its deltas make"} == {finding.what for finding in found}


@pytest.mark.acceptance("S6-2")
def test_caches_can_be_deleted(saver: JournalSaver) -> None:
    app = loop(saver, until=120, size=60)
    app.invoke({"log": [], "n": 0}, place_of())
    assert "cache" in kinds(saver)

    def flow() -> Flow[None]:
        tno = (yield Sql("lock_thread", ("1",)))[0][0]
        rows = yield Sql("value_keys", (tno, 0))
        yield Many("delete_value", [(tno, 0, *row[:3]) for row in rows if row[2] == "cache"])

    saver.write(flow())

    assert [entries(n, 60) for n in range(120, -1, -1)] == [s.values["log"] for s in app.get_state_history(place_of())][
        :121
    ]
    assert [] == saver.verify("1")
    app.update_state(place_of(), {"log": ["end"]}, as_node="node")
    assert [*entries(120, 60), "end"] == app.get_state(place_of()).values["log"]


@pytest.mark.acceptance("S1-55")
def test_prune_keeps_what_the_newest_checkpoint_stands_on_and_little_more(saver: JournalSaver) -> None:
    app = loop(saver, until=120, size=60)
    app.invoke({"log": [], "n": 0}, place_of())
    before = kinds(saver)

    saver.prune(["1"])

    after = kinds(saver)
    assert (1, 0) == (after.count("value"), after.count("cache"))
    assert after.count("delta") < before.count("delta")
    assert entries(120, 60) == app.get_state(place_of()).values["log"]
    app.update_state(place_of(), {"log": ["end"]}, as_node="node")
    assert [*entries(120, 60), "end"] == app.get_state(place_of()).values["log"]
    assert [] == saver.verify("1")


def test_deleting_runs_keeps_what_others_stand_on(saver: JournalSaver) -> None:
    app = loop(saver, until=20)
    for run, until in (("a", 20), ("b", 40), ("c", 60)):
        app = loop(saver, until=until)
        given = {"log": [], "n": 0} if run == "a" else {"log": []}
        app.invoke(given, {**place_of(), "metadata": {"run_id": run}})

    saver.delete_for_runs(["b"])

    lengths = {len(entry.values["log"]) for entry in app.get_state_history(place_of()) if "log" in entry.values}
    assert entries(60) == app.get_state(place_of()).values["log"]
    assert {*range(21), *range(41, 61)} <= lengths
    assert [] == saver.verify("1")


@pytest.mark.acceptance("S1-43")
def test_exit_stores_one_delta_for_all_its_steps(saver: JournalSaver) -> None:
    app = loop(saver, until=20)
    app.invoke({"log": [], "n": 0}, place_of(), durability="exit")
    app = loop(saver, until=25)
    app.invoke({"log": ["again"]}, place_of(), durability="exit")

    assert ["delta", "value"] == sorted(kinds(saver))
    assert [*entries(20), "again", *entries(25)[20:]] == app.get_state(place_of()).values["log"]
    assert [] == saver.verify("1")


@pytest.mark.filterwarnings("ignore:.*law of batches")
def test_exit_keeps_the_batches_of_its_supersteps_apart(saver: JournalSaver) -> None:
    counted = DeltaChannel(lambda old, writes: [*old, f"{len(writes)}" * 100, *chain.from_iterable(writes)])
    loop(saver, counted, until=3).invoke({"log": ["x" * 2000], "n": 0}, place_of())
    app = loop(saver, counted, until=8)

    live = app.invoke({"log": ["again"]}, place_of(), durability="exit")

    assert "delta" in kinds(saver)
    assert live == app.get_state(place_of()).values


def test_writes_that_a_delta_holds_read_back(saver: JournalSaver) -> None:
    builder = StateGraph(Logs)
    for name in "abc":
        builder.add_node(name, lambda state, name=name: {"log": [name * 300]})
        builder.add_edge(START, name)
        builder.add_edge(name, "end")
    builder.add_node("end", lambda state: {"log": ["e" * 300]})
    builder.compile(saver).invoke({"log": ["x" * 3000]}, place_of())

    found = [
        value
        for entry in saver.list(place_of())
        for _, channel, value in entry.pending_writes or ()
        if channel == "log"
    ]

    assert [["x" * 3000], *([name * 300] for name in "abce")] == sorted(
        found, key=lambda items: (items[0] < "x", items)
    )
    assert [] == saver.verify("1")


@pytest.mark.acceptance("S1-54")
def test_two_hundred_entries_of_a_kilobyte_cost_little_more_than_they_are(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver.from_conn_string(str(path), synchronous="NORMAL") as saver:
        app = loop(saver, DeltaChannel(flat), until=200, size=1000)
        app.invoke({"log": [], "n": 0}, place_of())
        assert entries(200, 1000) == app.get_state(place_of()).values["log"]

    assert path.stat().st_size <= 600_000
