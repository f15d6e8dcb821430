"""What a tool does outside, or makes once, belongs to its call: calls of one answer run side by side in one task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pregel.agents import ToolNode, ToolRuntime, tool
from pregel.errors import OutcomeUnknownError, UnknownEffectError
from pregel.graph import START, MessagesState, StateGraph
from pregel.messages import AIMessage
from pregel.runtime import get_runtime

from .conftest import Runner
from .marks import Saver, Thread
from .test_authority import has_authority
from .test_thread_api import Api


@pytest.fixture(autouse=True)
def needs_appends(saver: Saver) -> None:
    if not has_authority(saver):
        pytest.skip("this saver takes no appends")


done: list[int] = []
lost: set[int] = set()


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()
    lost.clear()


def provider(order: int) -> Callable[[str], str]:
    def pay(key: str) -> str:
        done.append(order)
        if order in lost:
            raise ConnectionError(f"the answer about {order} was lost")
        return f"{order} paid"

    return pay


@tool
def pay(order: int, runtime: ToolRuntime) -> str:
    """Pays."""
    draw = runtime.step("draw", lambda: str(order))
    return f"{draw}: {runtime.effect('pay', provider(order))}"


@tool
async def pay_awaited(order: int, runtime: ToolRuntime) -> str:
    """Pays."""
    draw = await runtime.astep("draw", lambda: str(order))
    return f"{draw}: {await runtime.aeffect('pay', provider(order))}"


@tool
def pay_ambient(order: int) -> str:
    """Pays."""
    draw = get_runtime().step("draw", lambda: str(order))
    return f"{draw}: {get_runtime().effect('pay', provider(order))}"


def world(run: Runner, saver: Saver, used: Any) -> Any:
    node = ToolNode([used], handle_tool_errors=False)
    return StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile(checkpointer=saver)


def answer(name: str, *orders: int) -> Any:
    calls: Any = [{"name": name, "args": {"order": n}, "id": f"call {n}", "type": "tool_call"} for n in orders]
    return {"messages": [AIMessage(content="", tool_calls=calls)]}


def told(values: Any) -> list[str]:
    return [message.content for message in values["messages"][1:]]


def tools_of(run: Runner) -> list[Any]:
    return [pay, pay_ambient] if run.name == "sync" else [pay, pay_ambient, pay_awaited]


def test_calls_of_one_answer_share_no_effect_and_no_step(run: Runner, saver: Saver, thread: Thread) -> None:
    for used in tools_of(run):
        done.clear()
        app = world(run, saver, used)
        values = run.invoke(app, answer(used.name, 1, 2, 3), thread(used.name))

        assert ["1: 1 paid", "2: 2 paid", "3: 3 paid"] == told(values)
        assert [1, 2, 3] == sorted(done)


def test_the_effect_of_each_call_is_settled_by_itself(run: Runner, saver: Saver, thread: Thread) -> None:
    lost.update((1, 3))
    app = world(run, saver, pay)
    api = Api(run, app)
    with pytest.raises(ConnectionError):
        run.invoke(app, answer("pay", 1, 2, 3), thread("1"))
    with pytest.raises(OutcomeUnknownError, match="'pay'"):
        run.invoke(app, None, thread("1"))
    assert [1, 2, 3] == sorted(done)

    first, second = api("effects", "1")
    assert ("pay", "pay") == (first.key, second.key)
    with pytest.raises(UnknownEffectError):
        api("settle", "1", "pay", result="?")
    for effect in (first, second):
        api("settle", "1", effect.id, result="settled")
    assert ["1: settled", "2: 2 paid", "3: settled"] == told(api("resume", "1"))
    assert [1, 2, 3] == sorted(done)


def test_the_key_of_a_call_does_not_depend_on_who_asks_first(run: Runner, saver: Saver, thread: Thread) -> None:
    offered: list[tuple[int, str, str]] = []

    @tool
    def keyed(order: int, runtime: ToolRuntime) -> str:
        """Keyed."""
        if order in lost:
            return "later"
        offered.append((order, get_runtime().idempotency_key, runtime.idempotency_key))
        raise ConnectionError

    app = world(run, saver, keyed)
    for absent in (1, 2):
        lost.clear()
        lost.add(absent)
        with pytest.raises(ConnectionError):
            run.invoke(app, answer("keyed", 1, 2) if absent == 1 else None, thread("1"))
    lost.clear()
    with pytest.raises(ConnectionError):
        run.invoke(app, None, thread("1"))

    assert 2 == len(set(offered))


def test_a_tool_that_is_called_by_hand_just_does_it() -> None:
    runtime: ToolRuntime[Any, Any] = ToolRuntime()

    assert ("7 paid", 7) == (runtime.effect("pay", provider(7)), runtime.step("seven", lambda: 7))
