"""A shop whose orders are started in one process and run in another, and which dies where it is told.

``python -m tests.kill.starting DIRECTORY STORE start KEY``: admits an order, and prints what the start gave.
``... work``: a worker that looks once, and prints how many runs it took up.
``... stall``: the same with a lease of 0.4 s; it tells that it ships, and ships when it has read a line.
``... serve``: a worker that runs until every order is at rest, and prints nothing but how they stand.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

from pregel import START, StateGraph
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.records import Append, Receipt
from pregel.durable import Worker
from tests.kill.outside import Outside
from tests.kill.owners import saver_at

LEASE = 0.4  # seconds, of a worker whose lease is to lapse


class Order(TypedDict, total=False):
    item: str
    done: list[str]


def shop(outside: Outside, saver: Any, *, stalls: bool = False) -> Any:
    """Packs and ships."""

    def pack(order: Order) -> Order:
        outside.note("packed")
        return {"done": ["packed"]}

    def ship(order: Order) -> Order:
        outside.die_at("in a node")
        if stalls:
            print("shipping", flush=True)
            sys.stdin.readline()
        outside.note("shipped")
        return {"done": [*order["done"], "shipped"]}

    graph = StateGraph(Order).add_node("pack", pack).add_node("ship", ship)
    return graph.add_edge(START, "pack").add_edge("pack", "ship").compile(checkpointer=saver, name="orders")


@contextmanager
def dying(outside: Outside, store: str, lease: float) -> Iterator[JournalSaver]:
    """The saver, which dies before or after the append that admits a run, and before or after the claim of one."""
    with saver_at(store, lease) as saver:
        append = saver.append

        def watched(record: Append) -> Receipt:
            admits = record.release is not None and record.release.status == "pending"
            if admits:
                outside.die_at("before the admission")
            elif record.claim is not None:
                outside.die_at("before the claim")
            receipt = append(record)
            if admits:
                outside.die_at("after the admission")
            elif record.claim is not None:
                outside.die_at("after the claim")
            return receipt

        saver.append = watched  # type: ignore[method-assign,assignment]  # a process that dies there
        yield saver


def main(directory: str, store: str, name: str, *rest: str) -> None:
    """Start, or work."""
    outside = Outside(Path(directory))
    stalls = name == "stall"
    with dying(outside, store, LEASE if stalls else 30.0) as saver:
        app = shop(outside, saver, stalls=stalls)
        if name == "start":
            handle = app.start({"item": "book"}, key=rest[0])
            told: Any = {"thread": handle.thread_id, "run": handle.run_id, "existing": handle.existing}
        elif name in ("work", "stall"):
            told = Worker(app).run_once()
        else:
            told = serve(app)
    print(json.dumps(told), flush=True)


def serve(app: Any) -> dict[str, str]:
    """How the orders stand once all of them are at rest, with nobody asking this worker for anything."""
    worker = Worker(app, poll_interval=0.05)
    thread = threading.Thread(target=worker.run)
    thread.start()
    while any(info.status not in ("idle", "failed") for info in app.threads.list()):
        pass  # each look is a read of the store
    worker.stop()
    thread.join()
    return {info.thread_id: info.status for info in app.threads.list()}


if __name__ == "__main__":
    main(*sys.argv[1:])
