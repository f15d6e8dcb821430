"""Calls of tasks when their caller runs again: what it caught it is told again, and no call gets another's result."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.serde.encrypted import EncryptedSerializer
from pregel.errors import ReplayMismatchError, StoredError
from pregel.func import entrypoint, task
from pregel.graph import START, StateGraph
from pregel.messages import AIMessage, HumanMessage, add_messages
from pregel.runtime import Runtime
from pregel.types import Command, RetryPolicy, interrupt

from .conftest import Runner
from .marks import Saver, State, Thread, mark
from .test_authority import has_authority

KEY = b"k" * 32


class Declined(ValueError):
    """An error with a field of its own, and a constructor that takes something else than its text."""

    def __init__(self, *, card: str) -> None:
        super().__init__(f"{card} was declined")
        self.card = card


@pytest.fixture
def memory() -> Saver:
    """A saver, for what is the same on each."""
    return InMemorySaver()


def paying(saver: Saver, paid: list[str], trouble: list[str], *, local: bool = False) -> Any:
    """A workflow that pays with one card, else with another, asks, and pays a fee."""

    class Unknown(Declined):
        """Of a class that cannot be found by its name."""

    @task
    def pay(card: str) -> str:
        if card in trouble:
            trouble.remove(card)
            raise (Unknown if local else Declined)(card=card)
        paid.append(card)
        return f"paid with {card}"

    @entrypoint(checkpointer=saver)
    def flow(cards: list[str]) -> list[str]:
        try:
            bill = pay(cards[0]).result()
        except Declined as declined:
            bill = pay(cards[1]).result() if declined.card == cards[0] else ""
        assert interrupt(bill) == "yes"
        return [bill, pay("fee").result()]

    return flow


def test_a_failure_that_was_caught_is_told_again(run: Runner, saver: Saver, thread: Thread) -> None:
    paid = list[str]()
    flow = paying(saver, paid, ["a"])

    run.invoke(flow, ["a", "b"], thread("1"))

    if not has_authority(saver):  # it keeps what is first stored of a call, so no failure; but no result goes astray
        with pytest.raises(ReplayMismatchError):
            run.invoke(flow, Command(resume="yes"), thread("1"))
        return
    assert ["paid with b", "paid with fee"] == run.invoke(flow, Command(resume="yes"), thread("1"))
    assert ["b", "fee"] == paid


def test_a_failure_whose_class_is_gone_is_told_as_its_text(run: Runner, memory: Saver, thread: Thread) -> None:
    paid = list[str]()
    flow = paying(memory, paid, ["a"], local=True)
    run.invoke(flow, ["a", "b"], thread("1"))

    with pytest.raises(StoredError, match="a was declined"):
        run.invoke(flow, Command(resume="yes"), thread("1"))
    assert ["b"] == paid


def working(saver: Saver, how: str) -> Any:
    """A workflow that fails the first time that it runs, because its task does."""
    trouble = ["x"]

    @task
    def work() -> str:
        if trouble:
            raise Declined(card=trouble.pop())
        return "done"

    @entrypoint(checkpointer=saver)
    def flow(_: str) -> str:
        called = work()
        if how == "looked at" and (failed := called.exception()) is not None:
            raise RuntimeError(str(failed))
        try:
            return called.result()
        except Declined as declined:
            if how == "let through":
                raise
            raise RuntimeError("x was declined") from declined

    return flow


@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_a_failure_that_ended_its_caller_is_tried_again(
    run: Runner, saver: Saver, thread: Thread, durability: str
) -> None:
    flow = working(saver, "let through")
    with pytest.raises(Declined, match="x was declined"):
        run.invoke(flow, "go", thread("1"), durability=durability)

    assert "done" == run.invoke(flow, None, thread("1"), durability=durability)


@pytest.mark.parametrize("how", ["raised from it", "looked at"])
def test_so_is_one_that_its_caller_made_another_of(run: Runner, memory: Saver, thread: Thread, how: str) -> None:
    flow = working(memory, how)
    with pytest.raises(RuntimeError, match="x was declined"):
        run.invoke(flow, "go", thread("1"))

    assert "done" == run.invoke(flow, None, thread("1"))


def test_a_caught_failure_stays_one_when_the_caller_is_tried_again(run: Runner, memory: Saver, thread: Thread) -> None:
    paid, trouble, later = list[str](), ["a"], ["boom"]

    @task
    def pay(card: str) -> str:
        if card in trouble:
            raise Declined(card=trouble.pop())
        paid.append(card)
        return card

    @entrypoint(checkpointer=memory, retry_policy=RetryPolicy(initial_interval=0, jitter=False, retry_on=KeyError))
    def flow(_: str) -> str:
        try:
            card = pay("a").result()
        except Declined:
            card = pay("b").result()
        if later:
            raise KeyError(later.pop())
        return card

    assert "b" == run.invoke(flow, "go", thread("1"))
    assert ["b"] == paid


@pytest.mark.parametrize("since", ["an answer", "the value of a step"])
def test_a_failure_stays_one_once_its_caller_has_had_something_more(
    run: Runner, memory: Saver, thread: Thread, since: str
) -> None:
    paid, trouble = list[str](), ["a", "fee"]

    @task
    def pay(card: str) -> str:
        if card in trouble:
            trouble.remove(card)
            raise Declined(card=card)
        paid.append(card)
        return card

    @entrypoint(checkpointer=memory)
    def flow(_: str, *, runtime: Runtime[None]) -> list[str]:
        try:
            card = pay("a").result()
        except Declined:
            card = "no card"
        had = interrupt(card) if since == "an answer" else runtime.step("had", lambda: card)
        return [card, had, pay("fee").result()]

    if since == "an answer":
        run.invoke(flow, "go", thread("1"))
    with pytest.raises(Declined, match="fee was declined"):
        run.invoke(flow, Command(resume="go on") if since == "an answer" else "go", thread("1"))

    had = "go on" if since == "an answer" else "no card"
    assert ["no card", had, "fee"] == run.invoke(flow, None, thread("1"))
    assert ["fee"] == paid


@pytest.mark.parametrize("swallows", [False, True])
def test_another_call_in_the_place_of_one_that_ended_is_an_error(
    run: Runner, saver: Saver, thread: Thread, *, swallows: bool
) -> None:
    names, done = ["first", "second"], list[str]()

    @task
    def work(name: str) -> str:
        done.append(name)
        return name

    @entrypoint(checkpointer=saver)
    def flow(_: str) -> list[Any]:
        try:
            found = work(names.pop(0)).result()
        except ReplayMismatchError:
            if not swallows:
                raise
            found = "whatever"
        return [found, interrupt("go on?")]

    run.invoke(flow, "go", thread("1"))

    with pytest.raises(ReplayMismatchError, match="calls task 'work' with other arguments"):
        run.invoke(flow, Command(resume="yes"), thread("1"))
    assert ["first"] == done


def test_arguments_that_mean_the_same_are_the_same(run: Runner, memory: Saver, thread: Thread) -> None:
    attempts = list[int]()

    @task
    def work(*given: Any, **named: Any) -> int:
        return len(given) + len(named)

    @entrypoint(checkpointer=memory)
    def flow(_: str) -> list[Any]:
        attempts.append(1)
        words = ["x", "y", "z"]
        if len(attempts) > 1:
            words.reverse()
        messages = add_messages([HumanMessage("hi")], [AIMessage("ho")])  # draws new ids each time
        found = [
            work(messages, dict.fromkeys(words, 1), set(words), **dict.fromkeys(words, 2)).result(),
            work(threading.Lock(), lambda: 1, [object()]).result(),
        ]
        return [*found, interrupt("go on?")]

    run.invoke(flow, "go", thread("1"))

    assert [6, 3, "yes"] == run.invoke(flow, Command(resume="yes"), thread("1"))
    assert 2 == len(attempts)


def test_a_cipher_that_never_writes_the_same_changes_no_call(run: Runner, thread: Thread) -> None:
    saver = InMemorySaver(serde=EncryptedSerializer.from_keys(KEY))
    calls = list[str]()

    @task
    def work(name: str) -> str:
        calls.append(name)
        return name

    inner = StateGraph(State).add_node("note", mark("noted")).add_edge(START, "note").compile()

    @entrypoint(checkpointer=saver)
    def flow(name: str) -> list[Any]:
        return [work(name).result(), inner.invoke({"a": []})["a"], interrupt("go on?")]

    run.invoke(flow, "a", thread("1"))

    assert ["a", ["noted"], "yes"] == run.invoke(flow, Command(resume="yes"), thread("1"))
    assert ["a"] == calls


def reordered(saver: Saver, done: list[str], first: list[str], then: list[str]) -> Any:
    """A workflow that calls tasks in one order the first time, in another one when it runs again."""
    orders = [then, first]

    @task
    def quote(item: str) -> str:
        done.append(f"quote {item}")
        return item

    @task
    def charge(item: str) -> str:
        done.append(f"charge {item}")
        return item

    @entrypoint(checkpointer=saver)
    def order(_: str) -> list[Any]:
        tasks = {"quote": quote, "charge": charge}
        for words in map(str.split, orders.pop()):
            tasks[words[0]](words[1]).result()
        return [interrupt("go on?")]

    return order


ORDERS: dict[str, tuple[list[str], list[str], str]] = {
    "a loop in another order": (
        ["quote tea", "quote milk"],
        ["quote milk", "quote tea"],
        r"calls task 'quote' with other arguments .* \(call 0 of 'order', the first time this was call 1\)",
    ),
    "tasks in another order": (
        ["quote tea", "charge tea"],
        ["charge tea", "quote tea"],
        r"calls task 'charge' where it had called task 'quote' .* \(call 0 of 'order', the first time .* call 1\)",
    ),
    "another task": (
        ["quote tea"],
        ["charge tea"],
        r"'charge' where it had called task 'quote' .*\(call 0 of 'order'\)",
    ),
}


@pytest.mark.acceptance("S4-6")
@pytest.mark.parametrize("case", ORDERS)
def test_calls_in_another_order_are_an_error_that_names_both(
    run: Runner, saver: Saver, thread: Thread, case: str
) -> None:
    if not has_authority(saver):
        pytest.skip("no names of calls are kept there")
    done, (first, then, said) = list[str](), ORDERS[case]
    flow = reordered(saver, done, first, then)
    run.invoke(flow, "go", thread("1"))

    with pytest.raises(ReplayMismatchError, match=said):
        run.invoke(flow, Command(resume="yes"), thread("1"))
    assert first == done


def test_another_call_in_the_place_of_a_failure_that_was_caught_is_an_error(
    run: Runner, memory: Saver, thread: Thread
) -> None:
    attempts, done = list[int](), list[str]()

    @task
    def declined() -> None:
        raise Declined(card="a")

    @task
    def other() -> None:
        done.append("other")

    @entrypoint(checkpointer=memory)
    def flow(_: str) -> Any:
        attempts.append(1)
        called = declined() if len(attempts) == 1 else other()
        with suppress(Declined):
            called.result()
        return interrupt("go on?")

    run.invoke(flow, "go", thread("1"))

    with pytest.raises(ReplayMismatchError, match="calls task 'other' where it had called task 'declined'"):
        run.invoke(flow, Command(resume="yes"), thread("1"))
    assert [] == done
