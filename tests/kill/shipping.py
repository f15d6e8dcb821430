"""A shop whose orders are shipped elsewhere, and which dies where it is told.

``python -m tests.kill.shipping DIRECTORY STORE order``: begins the order, unless it was begun.
``... ship``: a worker that ships what there is, once; ``... refuse``: one whose code raises.
``... go``: a worker that goes on with the thread. Each prints how the thread stands, and the backlog.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

from pregel import START, StateGraph
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.records import Append, Receipt
from pregel.durable import NodeWorker, Worker, WorkItem, elsewhere
from pregel.errors import ThreadNotFoundError, WorkFailedError
from tests.kill.outside import Outside
from tests.kill.owners import saver_at

PLACE: Any = {"configurable": {"thread_id": "order"}}


class Order(TypedDict, total=False):
    item: str
    shipped: str


@contextmanager
def dying(outside: Outside, store: str) -> Iterator[JournalSaver]:
    """The saver, which dies before or after what hands an item over, takes it, ends it, and takes its result."""

    def watched(verb: Callable[..., Any], point: str) -> Callable[..., Any]:
        def told(*args: Any) -> Any:
            outside.die_at(f"before {point}")
            result = verb(*args)
            outside.die_at(f"after {point}")
            return result

        return told

    with saver_at(store) as saver:
        append = saver.append

        def appended(record: Append) -> Receipt:
            if record.release is not None and record.release.items:
                point = "the rest"
            elif record.claim is not None and record.claim.taken:
                point = "the taking"
            else:
                return append(record)
            return watched(append, point)(record)  # type: ignore[no-any-return]

        saver.append = appended  # type: ignore[method-assign,assignment]  # a process that dies there
        saver.take_item = watched(saver.take_item, "the claim")  # type: ignore[method-assign]
        saver.end_item = watched(saver.end_item, "the end")  # type: ignore[method-assign]
        yield saver


def main(directory: str, store: str, name: str) -> None:
    """Do one step."""
    outside = Outside(Path(directory))

    def ship(order: Order, item: WorkItem) -> Order:
        outside.note(f"shipping {item.idempotency_key}")
        if name == "refuse":
            raise ValueError("no such book")
        outside.once(item.idempotency_key, f"shipped {order['item']}")
        outside.die_at("in the code")
        return {"shipped": order["item"]}

    with dying(outside, store) as saver:
        graph = StateGraph(Order).add_node("ship", elsewhere("ShipOrder")).add_edge(START, "ship")
        app = graph.compile(checkpointer=saver, name="orders")
        if name == "order":
            order(app)
        elif name == "go":
            Worker(app).run_once()
        else:
            NodeWorker(saver, {"ShipOrder": ship}).run_once()
        info, values = app.threads.status("order"), app.get_state(PLACE).values
        backlog = [row[:4] for row in app.threads.backlog()]
    print(json.dumps({"status": info.status, "shipped": values.get("shipped"), "backlog": backlog}), flush=True)


def order(app: Any) -> None:
    """Begin, or go on with what died."""
    try:
        info = app.threads.status("order")
    except ThreadNotFoundError:
        app.invoke({"item": "book"}, PLACE)
        return
    try:
        if info.can_resume:
            app.threads.resume("order")
    except WorkFailedError:
        pass  # its thread says so


if __name__ == "__main__":
    main(*sys.argv[1:])
