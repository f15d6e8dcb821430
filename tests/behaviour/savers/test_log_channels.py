"""Lists that grow are stored as what is new in them, and read back as if they had been stored whole."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import count
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pregel.channels import DeltaChannel
from pregel.channels.growth import Log
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.ledger import Ledger
from pregel.checkpoint.logs import Stored, Tip, stored
from pregel.checkpoint.memory import InMemorySaver
from pregel.graph import START, StateGraph
from pregel.graph.message import add_messages
from pregel.messages import REMOVE_ALL_MESSAGES, AIMessage, BaseMessage, RemoveMessage
from pregel.types import Overwrite

THREADS = count()


class WholeLedger(Ledger):
    """A ledger that stores every list whole."""

    def _stored(self, value: Log | Stored, tip: Tip | None) -> Stored:
        assert isinstance(value, Log)
        return stored(value, None, self._encode)


class WholeSaver(InMemorySaver):
    """The oracle."""

    def ledger(self) -> Ledger:
        return WholeLedger(self.serde, self.names)


def replaced(old: list[Any], writes: Sequence[Any]) -> list[Any]:
    """A reducer that keeps the last three items and may change type: not lawful, but deterministic."""
    return [*old, *writes][-3:]


def loose(old: Any, new: Any) -> Any:
    return new if isinstance(new, str) else [*(old if isinstance(old, list) else []), new]


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    messages: Annotated[list[BaseMessage], add_messages]
    delta: Annotated[list[Any], DeltaChannel(lambda old, writes: [*old, *writes])]
    often: Annotated[list[Any], DeltaChannel(replaced, snapshot_frequency=3)]
    loose: Annotated[Any, loose]
    left: int


Write = dict[str, Any]


def graph(saver: Any, script: list[Write]) -> Any:
    """Two nodes side by side that write what the script says, one entry a step each, until it is used up."""

    def first(state: State) -> Write:
        return {**(script.pop(0) if script else {}), "left": len(script)}

    def second(state: State) -> Write:
        return script.pop(0) if script else {}

    builder = StateGraph(State)
    builder.add_node("first", first)
    builder.add_node("second", second)
    builder.add_edge(START, "first")
    builder.add_conditional_edges("first", lambda state: ["first", "second"] if state["left"] else [])
    return builder.compile(saver)


# -- programs ----------------------------------------------------------------------------------------------------------

texts = st.builds(lambda letter, n: letter * n, st.sampled_from("abc"), st.sampled_from([3, 90, 400, 2500]))
items = st.one_of(texts, st.integers(0, 1), st.booleans(), st.builds(lambda t: {"t": t}, texts))
message = st.builds(lambda i, t: AIMessage(t, id=f"m{i}"), st.integers(0, 9), texts)
said = st.one_of(
    st.lists(message, min_size=1, max_size=3),
    st.builds(lambda t: [RemoveMessage(id=REMOVE_ALL_MESSAGES), AIMessage(t, id="m0")], texts),
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
        self.script: list[Write] = []
        self.app = graph(saver, self.script)

    @property
    def config(self) -> dict[str, Any]:
        return {"configurable": {"thread_id": self.thread}, "recursion_limit": 50}

    def history(self) -> list[Any]:
        return list(self.app.get_state_history(self.config))

    def do(self, what: str, *args: Any) -> object:
        """Perform a step of the program; what can be seen of it comes back."""
        done: Callable[..., object] = getattr(self, f"do_{what}")
        try:
            return done(*args)
        except Exception as error:  # both sides fail alike
            return type(error).__name__

    def do_run(self, first: Write, script: list[Write], durability: str) -> object:
        self.script[:] = script
        return self.app.invoke(dict(first) or {"left": 0}, self.config, durability=durability)

    def do_replay(self, place: int, script: list[Write], durability: str) -> object:
        history = self.history()
        self.script[:] = script
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

    def seen(self) -> list[Any]:
        """All that there is to read."""
        entries = [(entry.values, entry.next, entry.metadata["step"]) for entry in self.history()]
        alone = [self.app.get_state(entry.config).values for entry in self.history()[:3]]
        return [*entries, *alone, self.saver.verify(self.thread)]


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of what a program stores
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=programs)
def test_any_program_reads_back_as_with_whole_values(saver: JournalSaver, program: list[tuple[Any, ...]]) -> None:
    ours, oracle = Side(saver), Side(WholeSaver())

    for what, *args in program:
        assert oracle.do(what, *args) == ours.do(what, *args)

    assert oracle.seen() == ours.seen()
