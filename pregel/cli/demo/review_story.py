"""`pregel demo review FILE FILE`: two files are reviewed, with a SIGKILL between the first review and the second."""

from __future__ import annotations

import argparse
import json
from hashlib import sha256
from pathlib import Path

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.cli.demo.review import SourceFile, build_review
from pregel.cli.demo.stage import DemoFailed, Stage, open_stage
from pregel.cli.runs import thread_config
from pregel.cli.screen import Screen
from pregel.cli.target import Graph, compiled
from pregel.cli.usage import DONE, FAILED, CallError

GRAPH = "pregel.cli.demo.review:review"
THREAD = "review-1"
CONFIG = thread_config(THREAD)


def tell(options: argparse.Namespace, screen: Screen) -> int:
    """Plays the demo on two files of the user. 0 when two reviews ran and the first was reused unchanged."""
    files = [source_file(name) for name in options.files]
    with open_stage(screen, keep=options.keep) as stage, SqliteSaver.from_conn_string(stage.path) as saver:
        graph = compiled(build_review(stage.desk.call), saver, GRAPH)
        try:
            _play(stage, graph, files)
        except DemoFailed as failure:
            screen.problem(f"The demo failed. {failure}")
            return FAILED
        if options.keep:
            screen.say(f"\nKept: cd {stage.directory} && pregel history --db {stage.database} --thread {THREAD}")
    return DONE


def source_file(name: str) -> SourceFile:
    """A file that can be read, under the name that the user gave it."""
    try:
        Path(name).read_bytes()
    except OSError as error:
        raise CallError(f"Cannot read {name}: {error.strerror}.") from error
    return {"name": name, "path": str(Path(name).absolute())}


def _play(stage: Stage, graph: Graph, files: list[SourceFile]) -> None:
    screen = stage.screen
    screen.heading(f"1. A process reviews {files[0]['name']}, and is killed before it gets to {files[1]['name']}.")
    before = review_until_killed(stage, graph, files)
    screen.say(f"recorded: {_fingerprint(before)}")
    screen.heading("2. The next process goes on with the thread.")
    told = stage.finish("resume", GRAPH, "--thread", THREAD, code=DONE)["values"]
    after = stored_review(graph)
    screen.say(f"reused:   {_fingerprint(after)}")
    runs = stage.desk.accepted("reviewer")["reviewer"]
    screen.say(f"reviews run in total: {runs}")
    screen.heading("3. The reviews.")
    screen.say(told["first_review"])
    screen.say(told["second_review"])
    if after != before or told["first_review"].encode() != before:
        raise DemoFailed("The first review was not reused as it was recorded.")
    if runs != 2:
        raise DemoFailed(f"{runs} reviews ran in place of 2.")


def review_until_killed(stage: Stage, graph: Graph, files: list[SourceFile]) -> bytes:
    """The first review as it is stored when its process is killed before the second one."""
    stage.desk.hold("reviewer", after=1)
    child = stage.start("run", GRAPH, "--thread", THREAD, "--input", json.dumps({"files": files}))
    stage.until(lambda: stage.desk.held("reviewer") == 1, "the second review is held", child)
    stage.until(lambda: graph.get_state(CONFIG).next == ("review_second",), "the first review is recorded", child)
    stage.kill(child)
    stage.until(lambda: stage.desk.dropped("reviewer") == 1, "the request of the dead process is dropped")
    stage.desk.release("reviewer")
    return stored_review(graph)


def stored_review(graph: Graph) -> bytes:
    """The first review, byte for byte as it is stored."""
    review: str = graph.get_state(CONFIG).values["first_review"]
    return review.encode()


def _fingerprint(review: bytes) -> str:
    return f"{len(review)} bytes, sha256 {sha256(review).hexdigest()}"
