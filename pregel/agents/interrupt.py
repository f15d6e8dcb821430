"""The shapes of questions and answers that older inboxes for agents use."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict


class HumanInterruptConfig(TypedDict):
    """Which answers a person may give."""

    allow_ignore: bool
    allow_respond: bool
    allow_edit: bool
    allow_accept: bool


class ActionRequest(TypedDict):
    """What the agent wants to do."""

    action: str
    args: dict[str, Any]


class HumanInterrupt(TypedDict):
    """The question: what is to be done, which answers there are, and a text for the person."""

    action_request: ActionRequest
    config: HumanInterruptConfig
    description: str | None


class HumanResponse(TypedDict):
    """The answer; `args` is a text for "response", an ActionRequest for "edit" and "accept", None for "ignore"."""

    type: Literal["accept", "ignore", "response", "edit"]
    args: str | ActionRequest | None
