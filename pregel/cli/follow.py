"""`pregel follow`: what the runs of a thread journaled, and what they go on to show, from any shell."""

from __future__ import annotations

import argparse
import json

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.cli.runs import thread_config
from pregel.cli.screen import Screen
from pregel.cli.target import load
from pregel.cli.usage import BUSY, DONE, FAILED, PAUSED, CallError, existing_database
from pregel.cli.values import as_lines, plain
from pregel.engine.follow import follow as followed
from pregel.errors import SerializationError, ThreadNotFoundError
from pregel.types import FollowedChunk

STOPPED = 130  # as a shell counts SIGINT
ENDS = {"idle": DONE, "interrupted": PAUSED, "waiting": PAUSED, "failed": FAILED}


def follow(options: argparse.Namespace, screen: Screen) -> int:
    """Prints chunks until the thread comes to rest; the exit code says how it stands then."""
    if options.graph:
        load(options.graph)  # its types are known then
    status, offset = "", options.offset
    with SqliteSaver.from_conn_string(existing_database(options.db)) as saver:
        try:
            config = thread_config(options.thread)
            for chunk in followed(saver, config, offset=options.offset, wait=options.wait):
                _tell(chunk, options, screen)
                offset = chunk.next_offset
                status = chunk.data["status"] if chunk.mode == "status" else ""
        except ThreadNotFoundError as error:
            fix = f"`pregel threads --db {options.db}` lists the threads."
            raise CallError(f"There is no thread {options.thread!r} in {options.db}.", fix) from error
        except SerializationError as error:
            raise CallError(str(error), "Name the graph, which knows its types: --graph MODULE:GRAPH.") from error
        except KeyboardInterrupt:
            screen.problem(f"Stopped by Ctrl-C; the run is not. To follow it from here on: --offset {offset}")
            return STOPPED
    return ENDS.get(status, BUSY)


def _tell(chunk: FollowedChunk, options: argparse.Namespace, screen: Screen) -> None:
    if options.json:
        screen.say(json.dumps(plain(chunk), ensure_ascii=False))
    elif chunk.mode == "status":
        _tell_standing(chunk, screen)
    elif chunk.mode == "attempt":
        lost = _spans(chunk.data["superseded"])
        screen.heading(f"attempt {chunk.data['attempt']}" + (f", in place of {lost}" if lost else ""))
    else:
        where = "/".join((*(part.partition(":")[0] for part in chunk.ns), *([chunk.node] if chunk.node else [])))
        first, *rest = list(as_lines(chunk.data)) or [""]
        lost = " (superseded)" if chunk.superseded else ""
        screen.say(f"{chunk.offset:>5}  {chunk.mode:<8}  {where + ': ' if where else ''}{first}{lost}")
        for line in rest:
            screen.say(f"{'':17}{line}")


def _spans(superseded: list[list[int]]) -> str:
    """Offsets as people write them: spans that touch are one."""
    joined: list[list[int]] = []
    for first, last in sorted(superseded):
        if joined and joined[-1][1] + 1 == first:
            joined[-1][1] = last
        else:
            joined.append([first, last])
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in joined)


def _tell_standing(chunk: FollowedChunk, screen: Screen) -> None:
    status, reason = chunk.data["status"], chunk.data["reason"]
    screen.heading(f"{status}: {reason}" if reason else status)
    for question in chunk.data["interrupts"]:
        screen.say(f"question {question.id}")
        for line in as_lines(question.value):
            screen.say(f"  {line}")
