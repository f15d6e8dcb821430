"""A trip whose bookings another engine makes, in a process that is killed while one of them is held.

``python -m tests.kill.dispatching DIRECTORY``: begins the trip, or goes on with it, and prints what it came to. A
booking leaves a line in ``DIRECTORY/booked``; that of the car says so in the pipe ``begun``, and waits for a word in
the pipe ``go``.
"""

from __future__ import annotations

import json
import operator
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

from pregel import START, StateGraph
from pregel.checkpoint.sqlite import SqliteSaver
from tests.kill.engine import Engine

PLACE: Any = {"configurable": {"thread_id": "trip"}}


class Trip(TypedDict, total=False):
    directory: str
    booked: Annotated[list[str], operator.add]


def book(trip: Trip, what: str) -> Trip:
    with (Path(trip["directory"]) / "booked").open("a") as log:
        log.write(f"{what}\n")
    return {"booked": [what]}


def flight(trip: Trip) -> Trip:
    return book(trip, "flight")


def car(trip: Trip) -> Trip:
    directory = Path(trip["directory"])
    booked = book(trip, "car")
    (directory / "begun").write_text("begun")  # opens when the other end is there
    (directory / "go").read_text()
    return booked


def review(trip: Trip) -> Trip:
    return {"booked": [f"reviewed {len(trip['booked'])}"]}


def main(directory: Path) -> None:
    from tests.kill import dispatching as found  # under the name by which the engine finds it, not as __main__

    graph = (
        StateGraph(Trip).add_node("flight", found.flight).add_node("car", found.car).add_node("review", found.review)
    )
    for name in ("flight", "car"):
        graph.add_edge(START, name).add_edge(name, "review")
    with SqliteSaver.from_conn_string(directory / "threads.db") as saver:
        app = graph.compile(checkpointer=saver, executor=Engine(directory))
        given: Any = None if app.get_state(PLACE).created_at else {"directory": str(directory)}
        print(json.dumps(app.invoke(given, PLACE)["booked"]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
