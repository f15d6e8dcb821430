"""Three agents that book side by side, as a program that dies where it is told.

``python -m tests.kill.bookings DIRECTORY``: goes on with the thread, or begins it, and prints the results. Each request
to a model and each booking leaves a line in ``DIRECTORY/log``. It dies once, at the point that KILL_AT names.
"""

from __future__ import annotations

import json
import operator
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from pydantic import BaseModel

from pregel import START, StateGraph
from pregel.agents import ScriptedModel, ToolRuntime, create_agent, tool
from pregel.agents.models import ChatRequest, call_tool
from pregel.checkpoint.sqlite import SqliteSaver
from tests.kill.outside import Outside

KINDS = ("flight", "hotel", "car")
POINTS = ("flight asked", "hotel booked", "car answering", "flight recorded")
CONFIG: Any = {"configurable": {"thread_id": "trip"}}


class Booking(BaseModel):
    """What became of a booking."""

    status: Literal["booked", "needs_input", "failed"]
    number: str = ""
    reason: str = ""


ANSWERS: dict[str, dict[str, str]] = {
    "flight": {"status": "booked"},
    "hotel": {"status": "needs_input", "reason": "one bed or two?"},
    "car": {"status": "failed", "reason": "no car is left"},
}


class Trip(TypedDict, total=False):
    """What the agents came to."""

    bookings: Annotated[list[Booking], operator.add]


def booked(outside: Outside, kind: str, key: str) -> str:
    """The number of what was booked under this key; it is booked once."""
    outside.once(key, f"booked {kind}")
    return f"{kind}-{key[:8]}"


def agent_of(kind: str, outside: Outside) -> Any:
    """The agent that books one kind of thing."""

    @tool
    def book(runtime: ToolRuntime) -> str:
        """Book it."""
        number = booked(outside, kind, runtime.idempotency_key)
        outside.die_at(f"{kind} booked")
        return number

    def script(request: ChatRequest) -> Any:
        turn = sum(message.type == "ai" for message in request.messages)
        outside.note(f"asked {kind} {turn}")
        outside.die_at(f"{kind} {'answering' if turn else 'asked'}")
        if turn == 0:
            return call_tool("book")
        return call_tool("Booking", {**ANSWERS[kind], "number": request.messages[-1].text})

    return create_agent(ScriptedModel(script), [book], response_format=Booking)


def build(outside: Outside, saver: Any) -> Any:
    """The graph: the agents side by side, and a last node that sees all results."""
    graph: Any = StateGraph(Trip)

    def booking(kind: str) -> Any:
        agent = agent_of(kind, outside)

        def node(state: Trip) -> Trip:
            told = agent.invoke({"messages": f"a {kind}, please"})
            return {"bookings": [told["structured_response"]]}

        return node

    def look(state: Trip) -> Trip:
        outside.die_at("flight recorded")
        return {}

    for kind in KINDS:
        graph.add_node(kind, booking(kind)).add_edge(START, kind)
    return graph.add_node("look", look).add_edge(list(KINDS), "look").compile(checkpointer=saver)


def main(directory: str) -> None:
    with SqliteSaver.from_conn_string(f"{directory}/threads.db") as saver:
        app = build(Outside(Path(directory)), saver)
        begun = app.get_state(CONFIG).created_at is not None
        result = app.invoke(None if begun else {}, CONFIG)
        assert all(isinstance(one, Booking) for one in result["bookings"])
        print(json.dumps([one.model_dump() for one in result["bookings"]]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
