"""What a program's first call shows as a run object, without ids and clocks."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from importlib import import_module
from typing import Any

from tests.differential.build import World, build
from tests.differential.events import anonymous
from tests.differential.play import given, plain, thread, unfinished
from tests.differential.program import Program
from tests.differential.side import Side

TOLD_HERE = re.compile(r"'namespace': \[[^]]*'\w+'|'event': 'interrupted'|updates {'__interrupt__': \(\)}")
OPTIONAL = ("Updates", "Custom")


def run_object(program: Program, side: Side, *, awaiting: bool = False) -> dict[str, Any]:
    """The multiset of its events, the lifecycles and values in order, and how it came out."""
    world = World()
    graph = build(program, side, world, side.InMemorySaver())
    config = thread(program)
    world.unfinished = unfinished(graph, config)
    stream = import_module(f"{side.package}.stream")
    options = {
        "version": "v3",
        "transformers": [getattr(stream, f"{name}Transformer") for name in OPTIONAL],
        "durability": program.durability,
    }
    arguments = (given(program.ops[0], graph, config, side), config)
    found = _shown()
    if awaiting:
        asyncio.run(_follow(graph, arguments, options, found))
    else:
        _watch(graph, arguments, options, found)
    return found


def disagreement(theirs: dict[str, Any], mine: dict[str, Any]) -> str:
    """What the reference shows and we do not, and the other way round; empty when both do the same.

    Ours tells the lifecycles of graphs with one memory for all runs, of which the reference knows nothing, and that a
    graph at a breakpoint of its own is interrupted, where the reference says that it has completed.
    """
    end, own = theirs["end"], mine["end"]
    if isinstance(end, set) and "AttributeError" in end:  # of the reference: durability without a saver
        return ""
    if isinstance(own, set) and "JoinStarvedError" in own:
        return ""
    if isinstance(end, set) and "InvalidUpdateError" in end and isinstance(own, str) and ", True, [" in own:
        return ""  # finished siblings of a node that asks conflict: raised at once there, the question first here
    agree = end <= own if isinstance(end, set) and isinstance(own, set) else end == own
    lost, added = theirs["events"] - mine["events"], mine["events"] - theirs["events"]
    lost = [one for one in lost if "'event': 'completed'" not in one]
    added = [one for one in added if not TOLD_HERE.search(one)]
    if agree and theirs["values"] == mine["values"] and not lost and not added:
        return ""
    return f"reference {end} {lost}\nours {own} {added}"


def _kinds(error: Exception) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _shown() -> dict[str, Any]:
    return {"events": Counter[str](), "values": [], "end": None}


def _watch(graph: Any, arguments: Any, options: Any, found: dict[str, Any]) -> None:
    run = graph.stream_events(*arguments, **options)
    try:
        for event in run:
            _take(event, found)
        found["end"] = _end(run.output, run.interrupted, run.interrupts)
    except Exception as error:
        found["end"] = _kinds(error)


async def _follow(graph: Any, arguments: Any, options: Any, found: dict[str, Any]) -> None:
    run = await graph.astream_events(*arguments, **options)
    try:
        async for event in run:
            _take(event, found)
        found["end"] = _end(await run.output(), await run.interrupted(), await run.interrupts())
    except Exception as error:
        found["end"] = _kinds(error)


def _take(event: Any, found: dict[str, Any]) -> None:
    params = event["params"]
    place, data = anonymous(tuple(params["namespace"])), plain(anonymous(params["data"]))
    found["events"][f"{place} {event['method']} {data!r}"] += 1
    if event["method"] == "values" and not place:
        found["values"].append(repr(data))


def _end(output: Any, interrupted: bool, interrupts: list[Any]) -> str:
    return repr((plain(output), interrupted, sorted(repr(one.value) for one in interrupts)))
