"""`pregel demo agent`: an agent's process is killed while its tools run; the next one goes on, and asks a person."""

from __future__ import annotations

import argparse
import json

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.cli.demo.agent import TOOLS, build_agent
from pregel.cli.demo.stage import DemoFailed, Stage, open_stage
from pregel.cli.demo.trip_story import check_counts
from pregel.cli.runs import thread_config
from pregel.cli.screen import Screen
from pregel.cli.target import Graph, compiled
from pregel.cli.usage import DONE, FAILED, PAUSED

GRAPH = "pregel.cli.demo.agent:agent"
THREAD = "trip-1"
COUNTED = (*TOOLS, "confirm")
APPROVE = {"decisions": [{"type": "approve"}]}


def tell(options: argparse.Namespace, screen: Screen) -> int:
    """Plays the demo. 0 when the provider counted one call of each tool, 1 when anything else was seen."""
    with open_stage(screen, keep=options.keep) as stage, SqliteSaver.from_conn_string(stage.path) as saver:
        graph = compiled(build_agent(stage.desk.call), saver, GRAPH)
        try:
            _play(stage, graph)
        except DemoFailed as failure:
            screen.problem(f"The demo failed. {failure}")
            return FAILED
        if options.keep:
            screen.say(f"\nKept: cd {stage.directory} && pregel history --db {stage.database} --thread {THREAD}")
    return DONE


def _play(stage: Stage, graph: Graph) -> None:
    stage.screen.heading("1. The model calls three tools at once. The provider holds the car; the process is killed.")
    run_until_held(stage, graph)
    stage.screen.heading("2. The next process goes on: the model's answer and two results are recorded already.")
    asked = stage.finish("resume", GRAPH, "--thread", THREAD, code=PAUSED)["interrupts"][0]["value"]
    stage.screen.say(f"It asks: {json.dumps(asked['action_requests'][0]['args'])}")
    stage.screen.heading("3. A third process brings the approval.")
    told = stage.finish("resume", GRAPH, "--thread", THREAD, "--answer", json.dumps(APPROVE), code=DONE)
    for message in told["values"]["messages"]:
        calls = ", ".join(call["name"] for call in message.get("tool_calls", ()))
        stage.screen.say(f"{message['type']:<6}{message['content'] or f'calls {calls}'}")
    counts = stage.desk.accepted(*COUNTED)
    stage.screen.heading("4. What the provider counted, over all processes.")
    stage.screen.table(["provider", *counts], [["calls", *map(str, counts.values())]])
    check_counts(counts)


def run_until_held(stage: Stage, graph: Graph) -> None:
    """Runs the agent in a child, kills it once flight and hotel are recorded, and lets go of the car."""
    stage.desk.hold("car")
    given = json.dumps({"messages": "Book me a trip to Lisbon."})
    child = stage.start("run", GRAPH, "--thread", THREAD, "--input", given)
    stage.until(lambda: stage.desk.held("car") == 1, "the car request is held", child)
    stage.until(lambda: recorded(graph) == 2, "flight and hotel are recorded", child)
    stage.kill(child)
    stage.until(lambda: stage.desk.dropped("car") == 1, "the provider drops the request of the dead process")
    stage.desk.release("car")


def recorded(graph: Graph) -> int:
    """How many tasks of the step under way have a stored result."""
    return sum(task.result is not None for task in graph.get_state(thread_config(THREAD)).tasks)
