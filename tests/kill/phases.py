"""A job of three phases that tells its progress, as a program that dies, and as one that is watched from outside.

``python -m tests.kill.phases work STORE THREAD [DIE]``: begins the job, or goes on with it. With DIE it tells a part of
the second phase, waits for a line on stdin, tells one thing more and is gone.
``... watch STORE THREAD OFFSET``: follows the thread, and prints each chunk as a line of JSON.
``... hammer STORE THREAD SEED``: works with lines as fast as they come, and dies at a random moment.
"""

from __future__ import annotations

import asyncio
import json
import operator
import os
import random
import signal
import subprocess
import sys
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Annotated, Any, TypedDict

from pregel import START, StateGraph, get_stream_writer
from tests.kill.owners import saver_at

ROOT = Path(__file__).parents[2]
PHASES = ("plan", "review", "report")
LINES = 4
DURABILITIES = ("sync", "async")


class State(TypedDict, total=False):
    done: Annotated[list[str], operator.add]


def place(thread: str) -> Any:
    """The config of a thread."""
    return {"configurable": {"thread_id": thread}}


def job(saver: Any, *, dies: bool = False, lines: int = LINES, last: int = -1) -> Any:
    """The graph; `last` is the number of the line, over all phases, before which it dies."""
    told = count()

    def phase(name: str) -> Any:
        def node(state: State) -> State:
            tell = get_stream_writer()
            for number in range(lines):
                if dies and name == "review" and number == lines - 1:
                    print("told", flush=True)
                    sys.stdin.readline()
                    tell("the tail")
                    os.kill(os.getpid(), signal.SIGKILL)
                if next(told) == last:
                    os.kill(os.getpid(), signal.SIGKILL)
                tell(f"{name} {number}")
            return {"done": [name]}

        return node

    graph = StateGraph(State)
    before = START
    for name in PHASES:
        graph.add_node(name, phase(name)).add_edge(before, name)
        before = name
    return graph.compile(checkpointer=saver, journal_stream=["custom", "updates"])


def begun(app: Any, thread: str) -> Any:
    """What to give the thread: None when it has begun."""
    return {"done": []} if app.get_state(place(thread)).created_at is None else None


def work(store: str, thread: str, die: str = "") -> None:
    """Begin the job, or go on with it."""
    with saver_at(store) as saver:
        app = job(saver, dies=bool(die))
        app.invoke(begun(app, thread), place(thread))


def watch(store: str, thread: str, offset: str) -> None:
    """Print what a follower is given."""
    with saver_at(store) as saver:
        for chunk in job(saver).follow(place(thread), offset=int(offset)):
            print(json.dumps(asdict(chunk)), flush=True)


def hammer(store: str, thread: str, seed: str) -> None:
    """Go on with the job, and die at a random line, if it is not done by then."""
    chance = random.Random(seed)
    with saver_at(store) as saver:
        app = job(saver, lines=400, last=chance.randrange(1600))
        given = begun(app, thread)
        if int(seed) % 2:
            asyncio.run(app.ainvoke(given, place(thread), durability=chance.choice(DURABILITIES)))
        else:
            app.invoke(given, place(thread), durability=chance.choice(DURABILITIES))
    print("done", flush=True)


def start(program: str, *args: object) -> subprocess.Popen[str]:
    """A process that does one of these."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.kill.phases", program, *map(str, args)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
