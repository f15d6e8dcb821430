"""What a program streams in every mode, without ids and clocks."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby, zip_longest
from typing import Any

from tests.differential.build import World, build
from tests.differential.play import collect, plain, start, thread, unfinished
from tests.differential.program import Mend, Program
from tests.differential.side import Side

HIDDEN = {"id", "config", "parent_config", "timestamp", "checkpoint"}  # ids and clocks, or made of them

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def events(program: Program, side: Side, modes: list[str]) -> list[list[str]]:
    """What each call of a program streams in some modes; task results of a step, which come as threads end, sorted."""
    world = World()
    graph = build(program, side, world, side.InMemorySaver())
    config = thread(program)
    world.unfinished = unfinished(graph, config)
    shown = []
    for op in program.ops:
        if isinstance(op, Mend):
            world.mended = True
            continue
        chunks, _ = collect(lambda op=op: start(op, graph, config, program, side, stream_mode=modes))  # type: ignore[misc]
        shown.append(settled([(mode, anonymous(data)) for mode, data in chunks]))
    return shown


def steps(program: Program, side: Side, *, awaiting: bool = False) -> list[Counter[str]]:
    """What the first call of a program streams in every mode, subgraphs and all: a multiset for each superstep."""
    world = World()
    graph = build(program, side, world, side.InMemorySaver())
    config = thread(program)
    options = {"stream_mode": ["values", "updates", "tasks", "checkpoints", "debug"], "subgraphs": True}
    chunks, _ = collect(lambda: start(program.ops[0], graph, config, program, side, awaiting=awaiting, **options))
    nested = {node.name for node in program.nodes if node.child is not None}
    found = [Counter[str]()]
    for ns, mode, data in chunks:  # type: ignore[misc]
        if mode == "checkpoints" and not ns:
            found.append(Counter())
        if "name" in (shown := data["payload"] if mode == "debug" else data) and shown["name"] in nested:
            shown.pop("input", None)  # what the subgraph takes here, all of the state there
        found[-1][f"{anonymous(ns)} {mode} {plain(anonymous(data))!r}"] += 1
    return found


def difference(expected: list[Counter[str]], actual: list[Counter[str]]) -> str:
    """What only one side shows, of the first superstep where they differ; empty when they agree."""
    for place, (theirs, mine) in enumerate(zip_longest(expected, actual, fillvalue=Counter[str]())):
        if theirs != mine:
            return f"superstep {place}\n  reference {list(theirs - mine)}\n  ours      {list(mine - theirs)}"
    return ""


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
