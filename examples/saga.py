"""A saga: book a flight and a hotel; when the hotel fails for good, give the flight back, once, and say so.

Run it with ``python examples/saga.py``. The handler runs once even when the process dies in between.
"""

from typing import TypedDict

from pregel import END, START, Command, RetryPolicy, StateGraph
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import NodeError
from pregel.runtime import Runtime


class Trip(TypedDict, total=False):
    flight: str
    hotel: str
    outcome: str


BOOKED: dict[str, str] = {}  # what the provider has, by idempotency key


def flight(state: Trip, runtime: Runtime) -> Trip:
    key = runtime.idempotency_key  # the same after a crash or a retry: nobody is booked twice
    return {"flight": BOOKED.setdefault(key, f"flight-{len(BOOKED) + 1}")}


def hotel(state: Trip) -> Trip:
    raise ConnectionError("no rooms left")


def give_back(state: Trip, error: NodeError) -> Command:
    return Command(update={"outcome": f"{error.node} failed ({error.error})"}, goto="cancel_flight")


def cancel_flight(state: Trip) -> Trip:
    return {"outcome": f"{state['outcome']}, {state['flight']} was given back"}


builder = StateGraph(Trip)
builder.add_node("flight", flight)
builder.add_node(
    "hotel", hotel, retry_policy=RetryPolicy(max_attempts=2, initial_interval=0.01), error_handler=give_back
)
builder.add_node("cancel_flight", cancel_flight)
builder.add_edge(START, "flight")
builder.add_edge("flight", "hotel")
builder.add_edge("hotel", END)
builder.add_edge("cancel_flight", END)
graph = builder.compile(checkpointer=InMemorySaver())


def main() -> None:
    result = graph.invoke({}, {"configurable": {"thread_id": "trip"}})
    print(result["outcome"])
    print("bookings at the provider:", len(BOOKED))


if __name__ == "__main__":
    main()
