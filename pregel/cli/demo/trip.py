"""A trip as a graph: flight, hotel and car in parallel, a review, an approval, a confirmation.

::

    flight ─┐                    ┌─ approve ── confirm
    hotel  ─┼─ review ── (guard) ┤       └──┐
    car    ─┘                    └─ not_confirmed

Every node but the approval asks the provider, which counts. A booking is an effect with a key that the provider knows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, Literal, Protocol, TypedDict, cast

from pregel.cli.demo.desk import call
from pregel.graph import END, START, StateGraph
from pregel.runtime import Runtime
from pregel.types import interrupt

TOOLS = ("flight", "hotel", "car")
Call = Callable[..., dict[str, Any]]


class Booker(Protocol):
    """A node that books one thing."""

    def __call__(self, trip: Trip, /, *, runtime: Runtime[None]) -> Trip: ...


class Request(TypedDict, total=False):
    """What the traveller wants. `approved` goes without asking back."""

    to: str
    budget: int
    approved: bool


class Booking(TypedDict, total=False):
    """What a provider says to a request: booked with a number and a price, or failed with a reason."""

    status: Literal["booked", "failed"]
    number: str
    price: int
    reason: str


class Trip(TypedDict, total=False):
    request: Request
    bookings: Annotated[dict[str, Booking], operator.or_]
    issues: list[str]
    answer: str
    status: Literal["confirmed", "not_confirmed"]
    confirmation: str
    table: str


def build_trip(call: Call, *, idempotent: bool = True) -> StateGraph[Trip]:
    """The graph, whose nodes reach the provider through `call(tool, **given)`. Nothing is called before it runs.

    `idempotent`: bookings bring a key by which the provider knows them again.
    """
    graph = StateGraph(Trip)
    for tool in TOOLS:
        graph.add_node(tool, _booking(tool, call, idempotent))
        graph.add_edge(START, tool)
    graph.add_node("review", lambda trip: call("review", request=trip["request"], bookings=trip["bookings"]))
    graph.add_node("approve", _approve)
    graph.add_node("confirm", _confirming(call))
    graph.add_node("not_confirmed", lambda trip: {"status": "not_confirmed"})
    graph.add_edge(list(TOOLS), "review")
    graph.add_conditional_edges("review", _guard, ["approve", "not_confirmed"])
    graph.add_conditional_edges("approve", _decide, ["confirm", "not_confirmed"])
    graph.add_edge("confirm", END)
    graph.add_edge("not_confirmed", END)
    return graph


def _booking(tool: str, call: Call, idempotent: bool) -> Booker:
    def book(trip: Trip, /, *, runtime: Runtime[None]) -> Trip:
        def ask(key: str) -> dict[str, Any]:
            known = {"key": key} if idempotent else {}
            return call(tool, to=trip["request"]["to"], **known)

        return {"bookings": {tool: cast(Booking, runtime.effect(tool, ask, idempotent=idempotent))}}

    return book


def _guard(trip: Trip) -> str:
    all_booked = all(trip["bookings"][tool]["status"] == "booked" for tool in TOOLS)
    return "not_confirmed" if not all_booked or trip["issues"] else "approve"


def _approve(trip: Trip) -> Trip:
    if trip["request"].get("approved"):
        return {"answer": "yes"}
    numbers = {tool: trip["bookings"][tool]["number"] for tool in TOOLS}
    return {"answer": interrupt({"question": "Confirm this trip?", "total": _total(trip), "numbers": numbers})}


def _decide(trip: Trip) -> str:
    return "confirm" if trip["answer"] == "yes" else "not_confirmed"


def _confirming(call: Call) -> Callable[[Trip], Trip]:
    def confirm(trip: Trip) -> Trip:
        number = call("confirm", bookings=trip["bookings"])["number"]
        return {"status": "confirmed", "confirmation": number, "table": _table(trip, number)}

    return confirm


def _total(trip: Trip) -> int:
    return sum(trip["bookings"][tool]["price"] for tool in TOOLS)


def _table(trip: Trip, confirmation: str) -> str:
    booked = [(tool, trip["bookings"][tool]["number"], trip["bookings"][tool]["price"]) for tool in TOOLS]
    rows = [*booked, ("confirmed", confirmation, _total(trip))]
    return "\n".join(f"{name:<11}{number:<11}{price:>5} EUR" for name, number, price in rows)


trip = build_trip(call)
