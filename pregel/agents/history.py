"""A history as a model may be shown it: every tool call answered, every result behind its call.

1. A call without a result is answered with an error, one whose arguments could not be read too. That is written to the
   state, so that what is stored is what the model saw.
2. A result stands right behind its call, in call order; a result without a call is left out. That is done for the
   request alone.
3. A history that is well already comes back as the very same list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pregel.messages import AIMessage, BaseMessage, ToolMessage
from pregel.messages.convert import kind_of

NOT_RUN = "This tool call was not run: something else came before it could."
NOT_READ = "The arguments of this tool call could not be read{reason}. Call the tool again with valid JSON."


def last_answer(messages: Sequence[BaseMessage]) -> tuple[Any, Sequence[BaseMessage]]:
    """The last AI message and what stands behind it; None and nothing when there is none."""
    for at in range(len(messages) - 1, -1, -1):
        if kind_of(messages[at]) == "ai":
            return messages[at], messages[at + 1 :]
    return None, ()


def answered_ids(messages: Sequence[BaseMessage]) -> set[str]:
    """The ids of the calls that these messages answer."""
    return {message.tool_call_id for message in messages if kind_of(message) == "tool"}


def pending_calls(answer: Any, after: Sequence[BaseMessage]) -> list[Any]:
    """The tool calls of an AI message that nothing behind it answers."""
    answered = answered_ids(after)
    return [call for call in answer.tool_calls if call["id"] not in answered]


def malformed_calls(answer: Any, after: Sequence[BaseMessage]) -> list[Any]:
    """The calls of an AI message that nobody could read, as far as nothing behind it says so."""
    answered = answered_ids(after)
    return [bad for bad in answer.invalid_tool_calls if bad["id"] is not None and bad["id"] not in answered]


def only_malformed(answer: Any) -> bool:
    """Whether an AI message has calls, and none that can be read."""
    return bool(answer.invalid_tool_calls) and not answer.tool_calls


def with_answers(messages: list[BaseMessage]) -> list[BaseMessage]:
    """The history with an error for every call that has no result."""
    open_ids = _unanswered(messages)
    if not open_ids:
        return messages
    whole: list[BaseMessage] = []
    for message in messages:
        whole.append(message)
        if kind_of(message) == "ai":
            whole.extend(_errors(message, open_ids))
    return whole


def _unanswered(messages: Sequence[BaseMessage]) -> set[str]:
    """The ids of calls that no later message answers."""
    ids: set[str] = set()
    for message in messages:
        kind = kind_of(message)
        if kind == "ai":
            ids.update(call["id"] for call in _all_calls(message) if call["id"] is not None)
        elif kind == "tool":
            ids.discard(message.tool_call_id)
    return ids


def _all_calls(message: Any) -> list[Any]:
    return [*message.tool_calls, *message.invalid_tool_calls] if message.invalid_tool_calls else message.tool_calls


def _errors(message: Any, open_ids: set[str]) -> Iterator[ToolMessage]:
    for call in message.tool_calls:
        if call["id"] in open_ids:
            yield ToolMessage(NOT_RUN, tool_call_id=call["id"], name=call["name"], status="error")
    for bad in message.invalid_tool_calls:
        if bad["id"] in open_ids:
            yield unreadable(bad)


def unreadable(bad: Any) -> ToolMessage:
    """What the model is told of a call that could not be read."""
    text = NOT_READ.format(reason=f": {bad['error']}" if bad["error"] else "")
    return ToolMessage(text, tool_call_id=bad["id"], name=bad["name"], status="error")


def in_order(messages: list[BaseMessage]) -> list[BaseMessage]:
    """The history with results right behind their calls, in call order, and without those that have no call."""
    if _is_in_order(messages):
        return messages
    ordered: list[BaseMessage] = []
    for at, message in enumerate(messages):
        kind = kind_of(message)
        if kind != "tool":
            ordered.append(message)
        if kind == "ai" and (calls := _all_calls(message)):
            ordered.extend(_results(calls, messages[at + 1 :]))
    return ordered


def _is_in_order(messages: Sequence[BaseMessage]) -> bool:
    due: list[Any] = []  # the ids whose results come next
    for message in messages:
        kind = kind_of(message)
        if kind == "tool":
            if not due or due.pop(0) != message.tool_call_id:
                return False
        elif due:
            return False
        elif kind == "ai":
            due = [call["id"] for call in _all_calls(message)]
    return not due


def _results(calls: Sequence[Any], after: Sequence[BaseMessage]) -> Iterator[BaseMessage]:
    """For each call the first result behind it that is not another call's."""
    left = [message for message in after if kind_of(message) == "tool"]
    for call in calls:
        found = next((one for one in left if one.tool_call_id == call["id"]), None)
        if found is not None:
            left.remove(found)
            yield found


def with_call_ids(answer: AIMessage, make: Any) -> AIMessage:
    """The answer with an id for every call: a result could not name its call otherwise."""
    calls, bad = answer.tool_calls, answer.invalid_tool_calls
    if all(call["id"] for call in calls) and all(call["id"] for call in bad):
        return answer
    update: dict[str, Any] = {
        "tool_calls": [call if call["id"] else {**call, "id": make()} for call in calls],
        "invalid_tool_calls": [call if call["id"] else {**call, "id": make()} for call in bad],
    }
    return answer.model_copy(update=update)
