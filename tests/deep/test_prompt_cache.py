"""Marks for Anthropic's prompt cache: in the requests of its models, never in what is stored."""

from __future__ import annotations

from typing import Any

from pregel.agents.deep import create_deep_agent
from pregel.agents.models import ScriptedModel, call_tool

MARK = {"type": "ephemeral"}
SCRIPT: list[Any] = [call_tool("ls", {"path": "/"}), "Nothing is there."]


class Anthropic(ScriptedModel):
    """A script in the place of a model of Anthropic."""

    provider = "anthropic"


def marked(messages: Any) -> list[int]:
    """The places of the messages whose last block bears the mark."""
    return [
        at
        for at, message in enumerate(messages)
        if isinstance(message.content, list) and message.content[-1].get("cache_control") == MARK
    ]


def test_the_system_message_and_the_last_one_are_marked_in_each_request_and_nothing_is_stored() -> None:
    model = Anthropic(SCRIPT)
    values = create_deep_agent(model, system_prompt="Look.").invoke({"messages": "What is there?"})

    assert [[0, 1], [0, 3]] == [marked(request.messages) for request in model.requests]
    assert [] == marked(values["messages"])


def test_requests_of_other_models_bear_no_marks() -> None:
    model = ScriptedModel(SCRIPT)
    create_deep_agent(model, system_prompt="Look.").invoke({"messages": "What is there?"})

    assert [[], []] == [marked(request.messages) for request in model.requests]
