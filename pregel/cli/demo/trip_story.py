"""`pregel demo`: a trip is booked, its process is killed in the middle of it, and the next process goes on."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.checkpoint.standing import standing
from pregel.cli.demo.stage import DemoFailed, Stage, open_stage
from pregel.cli.demo.trip import TOOLS, Request, build_trip
from pregel.cli.history import Entry, history_table
from pregel.cli.runs import thread_config
from pregel.cli.screen import Screen
from pregel.cli.target import Graph, compiled
from pregel.cli.threads import find_thread
from pregel.cli.usage import DONE, FAILED, PAUSED
from pregel.types import StateSnapshot

GRAPH = "pregel.cli.demo.trip:trip"
THREAD = "trip-1"
CONFIG = thread_config(THREAD)
REQUEST: Request = {"to": "Lisbon", "budget": 1500}
COUNTED = (*TOOLS, "review", "confirm")


def tell(options: argparse.Namespace, screen: Screen) -> int:
    """Plays the demo. 0 when each provider counted one call, 1 when anything else was seen."""
    with open_stage(screen, keep=options.keep) as stage, SqliteSaver.from_conn_string(stage.path) as saver:
        graph = compiled(build_trip(stage.desk.call), saver, GRAPH)
        try:
            _play(stage, graph)
        except DemoFailed as failure:
            screen.problem(f"The demo failed. {failure}")
            return FAILED
        if options.keep:
            screen.say(f"\nKept: cd {stage.directory} && pregel history --db {stage.database} --thread {THREAD}")
    return DONE


def _play(stage: Stage, graph: Graph) -> None:
    stage.screen.heading("1. A process books flight, hotel and car in parallel. The provider holds the car request.")
    book_until_held(stage, graph)
    stage.screen.heading("2. The next process goes on with the thread: nobody repairs anything.")
    asked = stage.finish("resume", GRAPH, "--thread", THREAD, code=PAUSED)["interrupts"][0]
    _show_counts(stage)
    stage.screen.say(f"It asks: {json.dumps(asked['value'])}")
    stage.screen.heading('3. A third process brings the answer: Command(resume="yes").')
    told = stage.finish("resume", GRAPH, "--thread", THREAD, "--answer", '"yes"', code=DONE)
    stage.screen.say(told["values"]["table"])
    check_counts(stage.desk.accepted(*COUNTED))
    stage.screen.heading("4. What was recorded, newest first.")
    history = list(graph.get_state_history(CONFIG))
    history_table(stage.screen, [Entry.of_snapshot(state) for state in history])
    stage.screen.heading("5. A fork from before the approval, in which the review finds a problem.")
    _fork(stage, graph, history)
    stage.screen.heading("6. What the provider counted, over all processes.")
    _show_counts(stage)
    check_counts(stage.desk.accepted(*COUNTED))


def book_until_held(stage: Stage, graph: Graph) -> None:
    """Runs the trip in a child, kills it once flight and hotel are recorded, and lets go of the car."""
    stage.desk.hold("car")
    given = json.dumps({"request": REQUEST})
    child = stage.start("run", GRAPH, "--thread", THREAD, "--input", given)
    stage.until(lambda: stage.desk.held("car") == 1, "the car request is held", child)
    stage.until(lambda: recorded(graph) == {"flight", "hotel"}, "flight and hotel are recorded", child)
    stage.screen.say("flight and hotel are recorded, the car request is held")
    stage.kill(child)
    if thread := find_thread(graph.checkpointer, THREAD):
        stage.screen.say(f"thread {THREAD} is {standing(thread)}")
    stage.until(lambda: stage.desk.dropped("car") == 1, "the provider drops the request of the dead process")
    _show_counts(stage)
    stage.desk.release("car")


def recorded(graph: Graph) -> set[str]:
    """The tasks of the step under way whose results are stored."""
    return {task.name for task in graph.get_state(CONFIG).tasks if task.result is not None}


def _fork(stage: Stage, graph: Graph, history: list[StateSnapshot]) -> None:
    before = next(state for state in history if state.next == ("approve",))
    found = {"issues": ["the hotel has closed down"]}
    fork = graph.update_state(before.config, found, as_node="review")
    ended: dict[str, Any] = graph.invoke(None, fork)
    stage.screen.say(f"{ended['status']}, with the bookings {', '.join(_numbers(ended))}")
    kept = graph.get_state(history[0].config)
    if ended["status"] != "not_confirmed" or kept.values["status"] != "confirmed":
        raise DemoFailed("The fork did not go its own way.")
    stage.screen.say(f"the confirmed trip is still there: checkpoint {kept.config['configurable']['checkpoint_id']}")


def _numbers(trip: Mapping[str, Any]) -> list[str]:
    return [trip["bookings"][tool]["number"] for tool in TOOLS]


def _show_counts(stage: Stage) -> None:
    counts = stage.desk.accepted(*COUNTED)
    stage.screen.table(["provider", *counts], [["calls", *map(str, counts.values())]])


def check_counts(counts: Mapping[str, int]) -> None:
    """DemoFailed unless each tool was called once."""
    if wrong := {tool: count for tool, count in counts.items() if count != 1}:
        told = ", ".join(f"{tool} was called {count} times" for tool, count in wrong.items())
        raise DemoFailed(f"Each tool must be called once, but {told}.")
