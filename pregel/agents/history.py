"""A history as a model may be shown it: every tool call answered, every result behind its call.

1. A call without a result is answered with an error, one whose arguments could not be read too. That is written to the
   state, so that what is stored is what the model saw.
2. A result stands right behind its call, in call order; a result without a call is left out. That is done for the
   request alone.
3. A history that is well already comes back as the very same list.
4. A call is told from others by its id up to the next call that has it: histories from elsewhere use ids again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pregel.messages import AIMessage, BaseMessage, ToolMessage
from pregel.messages.convert import KINDS, kind_of

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
    if _is_in_order(messages):
        return messages
    unanswered = _unanswered(messages)
    if not unanswered:
        return messages
    whole: list[BaseMessage] = []
    for at, message in enumerate(messages):
        whole.append(message)
        if at in unanswered:
            whole.extend(_errors(message, unanswered[at]))
    return whole


def _unanswered(messages: Sequence[BaseMessage]) -> dict[int, set[str]]:
    """Where calls are that nothing answers before their id is used again: index of the AI message -> their ids."""
    due: dict[str, int] = {}
    found: dict[int, set[str]] = {}
    for at, message in enumerate(messages):
        kind = kind_of(message)
        if kind == "ai":
            for call in _all_calls(message):
                id = call["id"]
                if due.get(id, at) != at:
                    found.setdefault(due[id], set()).add(id)
                if id is not None:
                    due[id] = at
        elif kind == "tool":
            due.pop(message.tool_call_id, None)
    for id, at in due.items():
        found.setdefault(at, set()).add(id)
    return found


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
    """Whether each call is answered right behind it. A model is called with thousands of messages again and again."""
    due: list[Any] = []  # the ids whose results come next, the last one first
    for message in messages:
        kind = KINDS.get(message.__class__) or kind_of(message)
        if kind == "tool":
            if not due or due.pop() != message.tool_call_id:
                return False
        elif due:
            return False
        elif kind == "ai" and (calls := _all_calls(message)):
            due = [call["id"] for call in reversed(calls)]
    return not due


def _results(calls: Sequence[Any], after: Sequence[BaseMessage]) -> Iterator[BaseMessage]:
    """For each call the first result behind it that is not another call's."""
    left: dict[str, deque[Any]] = {}
    for one in _results_of({call["id"] for call in calls}, after):
        left.setdefault(one.tool_call_id, deque()).append(one)
    for call in calls:
        if found := left.get(call["id"]):
            yield found.popleft()


def _results_of(ids: set[str], after: Sequence[BaseMessage]) -> list[Any]:
    """The results under these ids, each as far as the next call that has its id."""
    found: list[Any] = []
    for message in after:
        kind = kind_of(message)
        if kind == "tool" and message.tool_call_id in ids:
            found.append(message)
        elif kind == "ai":
            ids -= {call["id"] for call in _all_calls(message)}
    return found


def with_call_ids(answer: AIMessage, history: Sequence[BaseMessage], make: Callable[[], str]) -> AIMessage:
    """The answer with an id for every call that no call has, here or in the history: a result could not name its call
    otherwise. Some servers give none, or begin to count in each answer.
    """
    given = [call["id"] for call in _all_calls(answer)]
    if not given:
        return answer
    answers = [one for one in history if (KINDS.get(one.__class__) or kind_of(one)) == "ai"]
    taken = {call["id"] for one in answers for call in _all_calls(one)}
    ids: list[str] = []
    for id in given:
        ids.append(id if id and id not in taken else make())
        taken.add(ids[-1])
    if ids == given:
        return answer
    new = iter(ids)
    update: dict[str, Any] = {
        "tool_calls": [{**call, "id": next(new)} for call in answer.tool_calls],
        "invalid_tool_calls": [{**call, "id": next(new)} for call in answer.invalid_tool_calls],
    }
    return answer.model_copy(update=update)
