"""The tasks, checkpoints and debug streams of a program, without ids and clocks."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

from tests.differential.build import World, build
from tests.differential.play import collect, plain, start, thread, unfinished
from tests.differential.program import Mend, Program
from tests.differential.side import Side

HIDDEN = {"id", "config", "parent_config", "timestamp", "checkpoint"}  # ids and clocks, or made of them

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def events(program: Program, side: Side, modes: list[str]) -> list[list[str]]:
    """What each call of a program streams in some modes; task results of a step, which come as threads end, sorted.

    NotImplementedError when a mode is not built yet.
    """
    world = World()
    graph = build(program, side, world, side.InMemorySaver())
    config = thread(program)
    world.unfinished = unfinished(graph, config)
    shown = []
    for op in program.ops:
        if isinstance(op, Mend):
            world.mended = True
            continue
        chunks, error = collect(lambda op=op: start(op, graph, config, program, side, stream_mode=modes))  # type: ignore[misc]
        if "NotBuiltError" in error:
            raise NotImplementedError(f"stream modes {modes}")
        shown.append(settled([(mode, anonymous(data)) for mode, data in chunks]))
    return shown


def anonymous(data: Any) -> Any:
    """An event without what names this very run."""
    if isinstance(data, dict):
        return {key: anonymous(value) for key, value in data.items() if key not in HIDDEN}
    if isinstance(data, list | tuple):
        return type(data)(anonymous(item) for item in data)
    if isinstance(data, str):
        return UUID.sub("*", data)
    return repr(data) if isinstance(data, BaseException) else data


def settled(chunks: list[tuple[str, Any]]) -> list[str]:
    """The events as text, each run of task results in a fixed order."""
    lines: list[str] = []
    for result, run in groupby(chunks, key=is_result):
        texts = [f"{mode} {plain(data)!r}" for mode, data in run]
        lines += sorted(texts) if result else texts
    return lines


def is_result(chunk: tuple[str, Any]) -> bool:
    """Whether a chunk is the end of a task."""
    mode, data = chunk
    return data["type"] == "task_result" if mode == "debug" else "result" in data
