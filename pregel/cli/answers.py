"""What a person types at a question of an agent, as the answer that its run goes on with."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pregel.cli.usage import CallError

DECISIONS = ("approve", "edit", "reject", "respond")
USAGE = {
    "approve": "approve",
    "edit": "edit {new arguments as JSON}",
    "reject": "reject [why]",
    "respond": "respond TEXT",
}
OTHER_WORDS = {"y": "approve", "yes": "approve", "n": "reject", "no": "reject"}
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Approval:
    """A tool call that waits for a decision, and the decisions that it may get."""

    name: str
    args: Mapping[str, Any]
    description: str
    allowed: Sequence[str]


def visible(text: str) -> str:
    """The text without what would move the cursor, clear the screen or turn the direction of writing: a model's words
    must not be able to change what a person believes to approve.
    """
    return CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def approvals(question: Any) -> list[Approval] | None:
    """The tool calls that a question is about; None for a question of any other form."""
    if not isinstance(question, Mapping):
        return None
    if question.get("type") == "tool_approval":
        return [_approval(question, question.get("allowed_decisions"))]
    requests, configs = question.get("action_requests"), question.get("review_configs")
    if not isinstance(requests, list) or not requests:
        return None
    allowed = {one.get("action_name"): one.get("allowed_decisions") for one in configs or ()}
    return [_approval(one, allowed.get(one.get("name"))) for one in requests]


def _approval(action: Mapping[str, Any], allowed: Any) -> Approval:
    return Approval(
        str(action.get("name")), action.get("args") or {}, str(action.get("description") or ""), allowed or DECISIONS
    )


def answer_of(question: Any, decisions: Sequence[Mapping[str, Any]]) -> Any:
    """The decisions in the form that the question wants."""
    return decisions[0] if question.get("type") == "tool_approval" else {"decisions": list(decisions)}


def decision(line: str, approval: Approval) -> dict[str, Any]:
    """The decision in a line, e.g. ``reject too dear``; CallError that says what may be typed."""
    word, _, rest = line.strip().partition(" ")
    kind, rest = OTHER_WORDS.get(word.lower(), word.lower()), rest.strip()
    if kind not in approval.allowed or kind not in DECISIONS:
        raise CallError(f"{visible(word)!r} is no decision here.", f"Type one of: {choices(approval)}.")
    if kind == "edit":
        return {"type": kind, "edited_action": {"name": approval.name, "args": _arguments(rest)}}
    if kind == "respond" and not rest:
        raise CallError("A respond needs the text that the model gets.", "Type: respond TEXT.")
    return {"type": kind, "message": rest} if rest and kind != "approve" else {"type": kind}


def choices(approval: Approval) -> str:
    """What may be typed."""
    return ", ".join(USAGE[kind] for kind in DECISIONS if kind in approval.allowed)


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise CallError("An edit needs the new arguments as a JSON object.", 'Type e.g.: edit {"amount": 10}.')
    return found


def free_answer(line: str) -> Any:
    """The answer to a question of any other form: a JSON object or list, or the text as it was typed."""
    if line.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(line)
        except json.JSONDecodeError:
            return line
    return line
