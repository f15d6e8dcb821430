"""Play a program on one side and write down all that can be seen of it, in values that compare across sides."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from contextvars import Context
from dataclasses import dataclass
from typing import Any

from tests.differential.build import World, build
from tests.differential.program import Answer, Bulk, Go, Mend, Op, Program, Run, Steer, Update
from tests.differential.side import Side

MODES = ["updates", "values"]


@dataclass(frozen=True)
class Group:
    """What a superstep showed: its update chunks in any order, then the values chunk that closed it (None: open)."""

    updates: Counter[str]
    values: str | None


@dataclass(frozen=True)
class Task:
    """A task as a snapshot shows it, without its id."""

    name: str
    path: Any
    result: Any
    error: Any
    asked: tuple[Any, ...]


@dataclass(frozen=True)
class Snapshot:
    """A checkpoint as get_state and get_state_history show it; `parent` is its place in the history."""

    source: str | None
    step: int | None
    next: tuple[str, ...]
    values: Any
    tasks: tuple[Task, ...]
    asked: tuple[Any, ...]
    parent: int | None


@dataclass(frozen=True)
class Seen:
    """What one call showed. `error` holds the class names of what it raised, most special first."""

    op: Op
    error: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    asked: Counter[str] | None = None
    ran: Counter[tuple[str, int]] | None = None
    live: Snapshot | None = None
    history: tuple[Snapshot, ...] = ()


# -- playing ----------------------------------------------------------------------------------------------------------


def play(program: Program, side: Side, saver: Any = None) -> list[Seen]:
    """Make all calls of a program on one thread of a saver (default: a new in-memory one)."""
    world = World()
    graph = build(program, side, world, saver if saver is not None else side.InMemorySaver())
    if program.durability != "exit":  # nothing is stored before the end there
        world.unfinished = unfinished(graph, thread(program))
    return [call(op, graph, program, side, world) for op in program.ops]


def play_otherwise(program: Program, side: Side, *, saver: Any, awaiting: bool) -> Seen:
    """Make the first call with another saver (or none) or the awaiting driver; the stored state is not looked at."""
    world = World()
    graph = build(program, side, world, saver)
    stream = lambda: start(program.ops[0], graph, thread(program), program, side, awaiting=awaiting)  # noqa: E731
    chunks, error = collect(stream)
    groups, asked = grouped(chunks)
    return Seen(program.ops[0], error, groups, asked, Counter(world.ran))


def call(op: Op, graph: Any, program: Program, side: Side, world: World) -> Seen:
    """Make one call and look at everything."""
    if isinstance(op, Mend):
        world.mended = True
        return Seen(op)
    world.ran.clear()
    config = thread(program)
    chunks, error = collect(lambda: start(op, graph, config, program, side))
    groups, asked = grouped(chunks)
    ran = Counter(world.ran)
    history = list(graph.get_state_history(config))
    places = {checkpoint_id(entry.config): place for place, entry in enumerate(history)}
    stored = tuple(snapshot(entry, places) for entry in history)
    return Seen(op, error, groups, asked, ran, live(graph, config, places), stored)


def thread(program: Program) -> dict[str, Any]:
    """The config of every call. Failing nodes wait for their siblings: there must be threads for all of them."""
    return {"configurable": {"thread_id": "t"}, "recursion_limit": program.limit, "max_concurrency": 64}


def unfinished(graph: Any, config: Any) -> Callable[[], tuple[str, ...]]:
    """A look at the tasks that are not stored yet, from inside a node but not as its call."""

    def look() -> tuple[str, ...]:
        head = next(iter(graph.get_state_history(config, limit=1)), None)
        return () if head is None else tuple(shown.name for shown in head.tasks if shown.result is None)

    return lambda: Context().run(look)


def collect(stream: Callable[[], Iterable[tuple[str, Any]]]) -> tuple[list[tuple[str, Any]], tuple[str, ...]]:
    """The chunks of a stream, and the class names of the error that ended it."""
    chunks: list[tuple[str, Any]] = []
    try:
        for chunk in stream():
            chunks.append(chunk)
    except Exception as raised:
        kinds = type(raised).__mro__
        return chunks, tuple(kind.__name__ for kind in kinds if kind not in (Exception, BaseException, object))
    return chunks, ()


def start(
    op: Op, graph: Any, config: Any, program: Program, side: Side, *, awaiting: bool = False, **changed: Any
) -> Iterable[tuple[str, Any]]:
    """The chunks of a call, in `MODES` unless changed; an update has none."""
    if isinstance(op, Update):
        graph.update_state(addressed(graph, config, op.back), logged(op.text), as_node=op.node)
        return ()
    if isinstance(op, Bulk):
        steps = [[side.StateUpdate(logged(text), node) for text, node in step] for step in op.steps]
        graph.bulk_update_state(config, steps)
        return ()
    if isinstance(op, Run | Go):
        config = addressed(graph, config, op.back)
    options: dict[str, Any] = {"stream_mode": MODES, **changed}
    if graph.checkpointer is not None:
        options["durability"] = program.durability
    if awaiting:
        return awaited(graph.astream(given(op, graph, config, side), config, **options))
    return graph.stream(given(op, graph, config, side), config, **options)  # type: ignore[no-any-return]


def logged(text: str | None) -> dict[str, list[str]] | None:
    """One entry of the log as an update; None as none."""
    return None if text is None else {"log": [text]}


def awaited(stream: Any) -> Iterable[tuple[str, Any]]:
    """The chunks of an async stream, one by one."""
    with asyncio.Runner() as runner:
        while (chunk := runner.run(anext(stream, None))) is not None:
            yield chunk


def given(op: Op, graph: Any, config: Any, side: Side) -> Any:
    """The input of a call."""
    match op:
        case Run():
            return {"log": [op.text]}
        case Steer():
            return side.Command(update={"log": [op.text]}, goto=op.goto)
        case Answer():
            pending = graph.get_state(config).interrupts
            return side.Command(resume=answers(op.how, pending)) if pending else None
        case _:
            return None


def answers(how: str, pending: Any) -> Any:
    """The answers to what is pending."""
    if how == "plain":
        return "plain"
    chosen = pending if how == "all" else pending[:1]
    return {question.id: f"re {question.value}" for question in chosen}


def addressed(graph: Any, config: Any, back: int | None) -> Any:
    """The config of the checkpoint `back` places down the history (from the newest again when there are fewer)."""
    history = [] if back is None else list(graph.get_state_history(config))
    if not history or back is None:
        return config
    return {**config, **history[back % len(history)].config}


# -- reading what was seen --------------------------------------------------------------------------------------------


def grouped(chunks: list[tuple[str, Any]]) -> tuple[tuple[Group, ...], Counter[str]]:
    """The chunks by superstep, and the questions apart: when a question shows among its siblings depends on threads."""
    groups: list[Group] = []
    updates: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for mode, data in chunks:
        if "__interrupt__" in data:
            asked[f"{mode} {plain(data)!r}"] += 1
        elif mode == "updates":
            updates[repr(plain(data))] += 1
        else:
            groups.append(Group(updates, repr(plain(data))))
            updates = Counter()
    if updates:
        groups.append(Group(updates, None))
    return tuple(groups), asked


def snapshot(entry: Any, places: dict[str | None, int]) -> Snapshot:
    """A StateSnapshot without ids and clocks."""
    metadata = entry.metadata or {}
    parent = None if entry.parent_config is None else places.get(checkpoint_id(entry.parent_config), -1)
    return Snapshot(
        source=metadata.get("source"),
        step=metadata.get("step"),
        next=entry.next,
        values=plain(entry.values),
        tasks=tuple(task(shown) for shown in entry.tasks),
        asked=plain(entry.interrupts),
        parent=parent,
    )


def task(shown: Any) -> Task:
    """A PregelTask without its id; its error is text after it was stored."""
    error = repr(shown.error) if isinstance(shown.error, BaseException) else shown.error
    return Task(shown.name, plain(shown.path), plain(shown.result), error, plain(shown.interrupts))


def live(graph: Any, config: Any, places: dict[str | None, int]) -> Snapshot | None:
    """The newest state with what finished tasks wrote; None when it cannot be read."""
    try:
        entry = graph.get_state(config)
    except Exception:
        return None
    return snapshot(entry, places)


def checkpoint_id(config: Any) -> str | None:
    """The checkpoint that a config addresses."""
    found = config.get("configurable", {}).get("checkpoint_id")
    return None if found is None else str(found)


def plain(value: Any) -> Any:
    """A value that compares across sides: dicts in key order, questions without ids, packets as tuples."""
    match type(value).__name__:
        case "dict":
            return {key: plain(value[key]) for key in sorted(value, key=str)}
        case "list":
            return [plain(item) for item in value]
        case "tuple":
            return tuple(plain(item) for item in value)
        case "Interrupt":
            return ("asked", plain(value.value))
        case "Send":
            return ("send", value.node, plain(value.arg))
        case "Overwrite":
            return ("over", plain(value.value))
        case _:
            return value
