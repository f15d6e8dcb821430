"""Values as two runs of one program must both end with them, whatever ids they drew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pregel.messages import AIMessage, BaseMessage


class Plain:
    """Values in which messages have no ids, and tool calls are known by the order in which they come."""

    def __init__(self) -> None:
        self.calls: dict[str, str] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, BaseMessage):
            if isinstance(value, AIMessage):
                for call in value.tool_calls:
                    if call["id"] is not None:
                        self.calls.setdefault(call["id"], f"call {len(self.calls)}")
            fields = {name: held for name, held in value.to_fields().items() if name != "id"}
            return type(value).__name__, self(fields)
        if type(value) is dict:
            return {key: self(held) for key, held in value.items()}
        if type(value) in (list, tuple):
            return type(value)(self(held) for held in value)
        return self.calls.get(value, value) if type(value) is str else value


def shown(had: Any, expected: Any) -> str:
    """Two values; of dicts only what differs."""
    if isinstance(had, dict) and isinstance(expected, dict):
        keys: Iterable[Any] = had.keys() | expected.keys()
        differ = {key for key in keys if key not in had or key not in expected or had[key] != expected[key]}
        had = {key: value for key, value in had.items() if key in differ}
        expected = {key: value for key, value in expected.items() if key in differ}
    return f"{had!r} instead of {expected!r}"
