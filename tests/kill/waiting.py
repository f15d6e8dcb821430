"""Workflows that wait, and die where they are told.

``python -m tests.kill.waiting DIRECTORY STORE WORKFLOW [SECONDS]``: begins the workflow on its thread, or moves its
clock on by so many seconds and wakes what is due, and prints how it stands. It dies once, at the point that KILL_AT
names.
``... DIRECTORY STORE send ID VALUE``: sends an event to the thread.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

from pregel import START, Runtime, StateGraph
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.records import Append, Receipt
from pregel.errors import OutcomeUnknownError
from pregel.testing import FakeClock
from pregel.waits import sleep_until, wait_for_event
from tests.kill.outside import Outside
from tests.kill.owners import saver_at

NOON = 1_796_126_400.0
PLACE: Any = {"configurable": {"thread_id": "work"}}


class State(TypedDict, total=False):
    got: list[Any]


def review(outside: Outside, saver: Any) -> Any:
    """Takes two events, or a minute each."""

    def node(state: State) -> State:
        got = []
        for _ in range(2):
            found = wait_for_event("reviewed", timeout=60)
            got.append(found and found.value)
            outside.note(f"got {got[-1]}")
            outside.die_at(f"got {len(got)}")
        return {"got": got}

    return StateGraph(State).add_node("node", node).add_edge(START, "node").compile(checkpointer=saver)


def reminder(outside: Outside, saver: Any) -> Any:
    """Sends a mail an hour after noon, if the payment is declined still."""

    def remind(state: State, runtime: Runtime[Any]) -> State:
        sleep_until(datetime.fromtimestamp(NOON + 3600, UTC))
        outside.die_at("woken")
        if (outside.directory / "status").read_text() != "Declined":
            return {"got": ["nothing to remind of"]}

        def send(offered: str) -> str:
            outside.die_at("before the mail")
            outside.note("sent cycle:reminder-1")
            outside.die_at("after the mail")
            return "sent"

        return {"got": [runtime.effect("cycle:reminder-1", send)]}

    return StateGraph(State).add_node("remind", remind).add_edge(START, "remind").compile(checkpointer=saver)


@contextmanager
def dying(outside: Outside, store: str) -> Iterator[JournalSaver]:
    """The saver, which dies before or after an append that takes an event, or lets the thread rest."""
    with saver_at(store) as saver:
        append = saver.append

        def watched(record: Append) -> Receipt:
            point = "the taking" if record.claim and record.claim.taken else "the rest"
            counts = point == "the taking" or (record.release is not None and record.release.waits)
            if counts:
                outside.die_at(f"before {point}")
            receipt = append(record)
            if counts:
                outside.die_at(f"after {point}")
            return receipt

        saver.append = watched  # type: ignore[method-assign,assignment]  # a process that dies there
        yield saver


def main(directory: str, store: str, name: str, *rest: str) -> None:
    """Begin or go on, or send an event."""
    outside = Outside(Path(directory))
    hands = outside.directory / "clock"
    now = float(hands.read_text()) if hands.exists() else NOON
    with dying(outside, store) as saver:
        app = {"reminder": reminder}.get(name, review)(outside, saver)
        app.clock = clock = FakeClock(now)
        if name == "send":
            print(json.dumps(app.threads.send_event("work", "reviewed", rest[1], id=rest[0])._asdict()), flush=True)
            return
        clock.advance(float(rest[0]) if rest else 0.0)
        hands.write_text(str(clock.ticks / 10_000_000))
        if app.get_state(PLACE).created_at is None:
            app.invoke({"got": []}, PLACE)
        else:
            info = app.threads.status("work")
            try:
                if info.status != "waiting" and info.can_resume:
                    app.threads.resume("work")
                while app.threads.due():
                    for woken in app.threads.wake_due():
                        if woken.error is not None:
                            raise woken.error
            except OutcomeUnknownError:
                outside.note("outcome unknown")
        state, info = app.get_state(PLACE), app.threads.status("work")
        due = [asked.value.due.timestamp() for asked in state.interrupts]
        print(json.dumps({"got": state.values.get("got"), "status": info.status, "due": due}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
