"""The trip as an agent: a scripted model calls flight, hotel and car at once, then asks to confirm what it found.

It needs no network and no key. The tools ask the provider, which counts; a person decides about the confirmation.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pregel.agents import ScriptedModel, create_agent, tool
from pregel.agents.middleware import HumanInTheLoopMiddleware
from pregel.agents.models import ChatRequest, call_tool, call_tools
from pregel.cli.demo.desk import call

Call = Callable[..., dict[str, Any]]
TOOLS = ("flight", "hotel", "car")


def build_agent(call: Call) -> Any:
    """The agent, whose tools reach the provider through `call`. Nothing is called before it runs."""

    @tool
    def flight(to: str) -> dict[str, Any]:
        """Book a flight."""
        return call("flight", to=to)

    @tool
    def hotel(to: str) -> dict[str, Any]:
        """Book a hotel."""
        return call("hotel", to=to)

    @tool
    def car(to: str) -> dict[str, Any]:
        """Book a car."""
        return call("car", to=to)

    @tool
    def confirm(numbers: dict[str, str], total: int) -> str:
        """Confirm the trip."""
        return str(call("confirm", bookings=numbers)["number"])

    approval = HumanInTheLoopMiddleware({"confirm": {"allowed_decisions": ["approve", "reject"]}})
    return create_agent(ScriptedModel(_say), [flight, hotel, car, confirm], middleware=[approval])


def _say(request: ChatRequest) -> Any:
    """What the model says at each turn of the conversation."""
    answered = [message for message in request.messages if message.type == "tool"]
    if not answered:
        return call_tools(*(call_tool(name, {"to": "Lisbon"}) for name in TOOLS))
    if len(answered) == len(TOOLS):
        booked = {message.name: json.loads(message.text) for message in answered}
        numbers = {name: booking["number"] for name, booking in booked.items()}
        return call_tool("confirm", {"numbers": numbers, "total": sum(one["price"] for one in booked.values())})
    return f"Your trip is confirmed: {answered[-1].text}."


agent = build_agent(call)
