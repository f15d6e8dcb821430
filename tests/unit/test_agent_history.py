"""A history as a model may be shown it, whatever it looks like: every call answered, every result behind its call."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from pregel.agents.history import in_order, with_answers, with_call_ids
from pregel.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage, invalid_tool_call

CALLS: Any = [{"name": "t", "args": {}, "id": "1"}, {"name": "t", "args": {}, "id": "2"}]
PARTS: list[BaseMessage] = [
    HumanMessage("h"),
    AIMessage("", tool_calls=CALLS, invalid_tool_calls=[invalid_tool_call(name="t", args="{", id="3")]),
    ToolMessage("r1", tool_call_id="1"),
    ToolMessage("r3", tool_call_id="3"),
    ToolMessage("gone", tool_call_id="9"),
    AIMessage("", tool_calls=[{"name": "t", "args": {}, "id": "4"}]),
]


def problems(messages: list[Any]) -> list[str]:
    """What a provider would refuse."""
    found: list[str] = []
    due: list[str] = []
    for message in messages:
        if message.type == "tool":
            if not due or due.pop(0) != message.tool_call_id:
                found.append(f"result {message.tool_call_id} is not due")
            continue
        found += [f"{id} is not answered" for id in due]
        due = [one["id"] for one in (*message.tool_calls, *message.invalid_tool_calls)] if message.type == "ai" else []
    return found + [f"{id} is not answered" for id in due]


def test_every_order_of_a_history_is_mended() -> None:
    for size in range(len(PARTS) + 1):
        for order in itertools.permutations(PARTS, size):
            mended = in_order(with_answers(list(order)))
            assert [] == problems(mended), order
            others = [message for message in order if message.type != "tool"]
            assert others == [message for message in mended if message.type != "tool"]


def test_a_history_that_is_well_stays_the_list_it_is() -> None:
    history = [PARTS[0], PARTS[5], ToolMessage("r", tool_call_id="4"), HumanMessage("h")]

    assert with_answers(history) is history
    assert in_order(history) is history


def test_two_calls_of_one_id_keep_both_results() -> None:
    twice = AIMessage("", tool_calls=[CALLS[0], CALLS[0]])
    history = [twice, ToolMessage("a", tool_call_id="1"), ToolMessage("b", tool_call_id="1")]

    assert history == in_order(with_answers(list(history)))


@pytest.mark.parametrize("bad", [None, "", "1", "4"])
def test_calls_get_ids_that_no_other_call_has(bad: Any) -> None:
    answer = AIMessage("", tool_calls=[CALLS[0], {"name": "t", "args": {}, "id": bad}])

    assert ["1", "new"] == [call["id"] for call in with_call_ids(answer, [PARTS[5]], lambda: "new").tool_calls]
    assert PARTS[5] is with_call_ids(PARTS[5], PARTS[:5], lambda: "new")  # type: ignore[arg-type]


def test_an_id_that_is_used_again_names_another_call() -> None:
    first, again = ToolMessage("first", tool_call_id="4"), ToolMessage("again", tool_call_id="4")
    call = PARTS[5]

    assert [call, first, call, again] == in_order(with_answers([call, first, call, again]))
    mended = in_order(with_answers([call, PARTS[0], call, again]))
    assert ["", "This tool call was not run", "h", "", "again"] == [one.text.partition(":")[0] for one in mended]
