"""Old tool results are left out of what the model is sent when that gets too long. The state keeps them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pregel.agents.middleware.base import AgentMiddleware
from pregel.agents.middleware.requests import ModelRequest
from pregel.messages import BaseMessage, ToolMessage, count_tokens_approximately
from pregel.messages.convert import kind_of

Counter = Callable[[list[BaseMessage]], int]


class ContextEdit(Protocol):
    """One way to make a list of messages shorter."""

    def apply(self, messages: list[BaseMessage], *, count_tokens: Counter) -> list[BaseMessage]:
        """The messages to send; the same list when there is nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearToolUsesEdit:
    """Above `trigger` tokens, replaces the tool results before the last `keep` by `placeholder`, the oldest first.

    `clear_at_least`: how many tokens that must save at least (0: all results are cleared); `clear_tool_inputs`: the
    arguments of their calls go too; `exclude_tools`: names of tools whose results stay.
    """

    trigger: int = 100_000
    clear_at_least: int = 0
    keep: int = 3
    clear_tool_inputs: bool = False
    exclude_tools: Sequence[str] = ()
    placeholder: str = "[cleared]"

    def apply(self, messages: list[BaseMessage], *, count_tokens: Counter) -> list[BaseMessage]:
        """The messages with old results cleared."""
        before = count_tokens(messages)
        if before <= self.trigger:
            return messages
        calls = {call["id"]: call["name"] for one in messages if kind_of(one) == "ai" for call in _calls(one)}
        results = [at for at, one in enumerate(messages) if kind_of(one) == "tool"]
        edited, cleared = list(messages), set[str]()
        for at in results[: -self.keep] if self.keep else results:
            result: Any = edited[at]
            name = result.name or calls.get(result.tool_call_id)
            if name in self.exclude_tools or _is_cleared(result):
                continue
            edited[at] = self._cleared(result)
            cleared.add(result.tool_call_id)
            if self.clear_at_least and before - count_tokens(edited) >= self.clear_at_least:
                break
        return [self._without_inputs(one, cleared) for one in edited] if self.clear_tool_inputs else edited

    def _cleared(self, result: BaseMessage) -> BaseMessage:
        mark = {**result.response_metadata, "context_editing": {"cleared": True, "strategy": "clear_tool_uses"}}
        return result.model_copy(update={"content": self.placeholder, "artifact": None, "response_metadata": mark})

    def _without_inputs(self, message: BaseMessage, cleared: set[str]) -> BaseMessage:
        if kind_of(message) != "ai" or not any(call["id"] in cleared for call in _calls(message)):
            return message
        calls = [{**call, "args": {}} if call["id"] in cleared else call for call in _calls(message)]
        return message.model_copy(update={"tool_calls": calls})


class ContextEditingMiddleware(AgentMiddleware):
    """Applies `edits` (default: one `ClearToolUsesEdit`) to the messages of each request, one after the other."""

    def __init__(
        self, *, edits: Sequence[ContextEdit] | None = None, token_counter: Counter = count_tokens_approximately
    ) -> None:
        self.edits = list(edits) if edits is not None else [ClearToolUsesEdit()]
        self.token_counter = token_counter

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Send the edited messages."""
        system = [request.system_message] if request.system_message is not None else []
        messages = request.messages
        for edit in self.edits:
            messages = edit.apply(messages, count_tokens=lambda some: self.token_counter([*system, *some]))
        return (yield request if messages is request.messages else request.override(messages=messages))


def _calls(message: Any) -> list[Any]:
    return list(message.tool_calls)


def _is_cleared(result: ToolMessage) -> bool:
    return bool(result.response_metadata.get("context_editing", {}).get("cleared"))
