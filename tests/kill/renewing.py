"""A thread that goes through its executions, and dies where it is told.

``python -m tests.kill.renewing DIRECTORY STORE VERSION...``: serves these versions of the graph until nothing is left
to do, and prints how the thread stands. The first version begins the second execution: of the version after it, and
without the events that nobody took. It dies once, at the point that KILL_AT names.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.records import Append, Receipt
from pregel.durable import ContinueAsNew, Worker
from tests.behaviour.marks import State, chain
from tests.kill.outside import Outside
from tests.kill.owners import saver_at

PLACE: Any = {"configurable": {"thread_id": "work"}}


def graph(outside: Outside, saver: Any, version: str) -> Any:
    """A graph of this version; one of `same` begins its second execution by itself."""

    def node(state: State) -> State:
        outside.note(f"{version} in execution {state['b']}")
        if state["b"] == "1":
            other = {"1": "2"}.get(version)
            raise ContinueAsNew({"b": "2"}, version=other, keep_events=False)
        return {"a": [f"by {version}"]}

    return chain("first", "node", node=node).compile(checkpointer=saver, name="renewing", version=version)


@contextmanager
def dying(outside: Outside, store: str) -> Iterator[JournalSaver]:
    """The saver, which dies before or after each of its appends: `before 3`, `after 3`."""
    with saver_at(store) as saver:
        append, count = saver.append, [0]

        def watched(record: Append) -> Receipt:
            count[0] += 1
            if record.drops:
                outside.note("renewed")
            outside.die_at(f"before {count[0]}")
            receipt = append(record)
            outside.die_at(f"after {count[0]}")
            return receipt

        saver.append = watched  # type: ignore[method-assign,assignment]  # a process that dies there
        yield saver


def main(directory: str, store: str, *versions: str) -> None:
    """Start the thread if it is not there, and serve it."""
    outside = Outside(Path(directory))
    with dying(outside, store) as saver:
        graphs = [graph(outside, saver, version) for version in versions]
        graphs[0].start({"b": "1"}, key="work")
        if not (outside.directory / "sent").exists():
            graphs[0].threads.send_event("work", "paid", 1, id="1")
            (outside.directory / "sent").touch()
        worker = Worker(graphs)
        while worker.run_once():
            pass
        history = list(graphs[-1].get_state_history(PLACE))
        info = graphs[-1].threads.status("work")
        told = {
            "values": history[0].values,
            "status": info.status,
            "version": info.version,
            "executions": sum(one.parent_config is None for one in history),
            "events": len(saver.events("work")),
        }
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
