"""A controller that is alone, and entities, over processes that die where they are told.

``python -m tests.kill.controlling DIRECTORY STORE start KEY``: says that it is ready, starts the controller when it has
read a line, and prints what the start gave.
``... work``: lets a minute pass twice, and works until nothing is left; prints what the controller has read.
``... signal ID NUMBER``: sends an operation to an entity. ``... serve``: works, and prints the entity's state.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

from pregel import START, StateGraph
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.records import Append, Receipt
from pregel.durable import Entities, Operation, Worker
from pregel.testing import FakeClock
from pregel.waits import wait_for_event
from tests.kill.outside import Outside
from tests.kill.owners import saver_at


class State(TypedDict, total=False):
    got: list[Any]


def alone(outside: Outside, saver: Any) -> Any:
    """Ends when it was told nothing for a minute; on its way there it is told something."""

    def read(state: State) -> State:
        told = wait_for_event("changed", timeout=60)
        return {"got": [*state.get("got", []), None if told is None else told.value]}

    def end(state: State) -> State:
        app.threads.send_event("one", "changed", "late", id="late")
        return {}

    graph = StateGraph(State).add_node("read", read).add_node("end", end).add_edge(START, "read")
    graph.add_conditional_edges("read", lambda state: "end" if state["got"][-1] is None else "read")
    app = graph.compile(checkpointer=saver, name="alone")
    return app


def entities(outside: Outside, saver: Any) -> Entities[dict[str, Any]]:
    """Adds up, and remembers what it added."""

    def handle(state: dict[str, Any], operation: Operation) -> dict[str, Any]:
        outside.die_at("in the handler")
        return {"sum": state["sum"] + operation.value, "ids": [*state["ids"], operation.id]}

    return Entities(handle, name="sums", checkpointer=saver, initial={"sum": 0, "ids": []})


@contextmanager
def dying(outside: Outside, store: str) -> Iterator[JournalSaver]:
    """The saver, which dies around the appends that take an event, store a state, end a run or start one."""
    with saver_at(store) as saver:
        append = saver.append

        def watched(record: Append) -> Receipt:
            point = point_of(record)
            outside.die_at(f"before {point}")
            receipt = append(record)
            outside.die_at(f"after {point}")
            return receipt

        saver.append = watched  # type: ignore[method-assign,assignment]  # a process that dies there
        yield saver


def point_of(record: Append) -> str:
    """What an append does."""
    if record.claim is not None and record.claim.taken:
        return "the taking"
    if record.release is not None:
        return {"idle": "the end", "pending": "the start"}.get(record.release.status, "the rest")
    return "the state" if record.checkpoints else "a claim"


def main(directory: str, store: str, name: str, *rest: str) -> None:
    """What the docstring above says."""
    outside = Outside(Path(directory))
    with dying(outside, store) as saver:
        app, sums = alone(outside, saver), entities(outside, saver)
        if name == "start":
            print("ready", flush=True)
            sys.stdin.readline()
            handle = app.start({}, key=rest[0])
            told: Any = {"thread": handle.thread_id, "run": handle.run_id, "existing": handle.existing}
        elif name == "signal":
            told = sums.signal("a", "add", int(rest[1]), id=rest[0])._asdict()
        elif name == "serve":
            while Worker(sums.graph).run_once():
                pass
            told = sums.state("a")
        else:
            app.clock = clock = FakeClock()
            for _ in range(3):
                while Worker(app, unread={"changed": {}}).run_once():
                    pass
                clock.advance(60)
            told = app.get_state({"configurable": {"thread_id": "one"}}).values["got"]
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
