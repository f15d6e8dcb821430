"""`pregel history` and `pregel show`: the checkpoints of a thread, all of them or one.

Both read the database alone and import nothing of the user's; with ``--graph`` they also say what runs next.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

from pregel.checkpoint.base import CheckpointTuple
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.cli.runs import thread_config
from pregel.cli.screen import Screen
from pregel.cli.target import compiled, load
from pregel.cli.threads import described, find_thread
from pregel.cli.usage import CallError, existing_database
from pregel.cli.values import as_json, as_lines
from pregel.config import RunnableConfig
from pregel.errors import CheckpointNotFoundError, SerializationError
from pregel.types import Interrupt, StateSnapshot

INTERNAL = ("__", "branch:", "join:")
QUESTION, ERROR = "__interrupt__", "__error__"


@dataclass(frozen=True, slots=True)
class Entry:
    """One checkpoint. `next` is None where only the graph could tell; `recorded` is what its tasks wrote so far."""

    checkpoint: str
    parent: str | None
    step: int
    source: str
    created_at: str
    next: list[str] | None
    values: Mapping[str, Any]
    recorded: Mapping[str, Any]
    questions: list[Interrupt]
    errors: list[str]

    def described(self) -> dict[str, Any]:
        """Its fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of_snapshot(cls, state: StateSnapshot) -> Entry:
        metadata = state.metadata or {}
        errors = [f"{task.name}: {task.error}" for task in state.tasks if task.error is not None]
        recorded = _labelled((task.name, task.result) for task in state.tasks if task.result is not None)
        return cls(
            checkpoint=_id(state.config),
            parent=_id(state.parent_config) if state.parent_config else None,
            step=metadata.get("step", -1),
            source=metadata.get("source", ""),
            created_at=state.created_at or "",
            next=list(state.next),
            values=state.values,
            recorded=recorded,
            questions=list(state.interrupts),
            errors=errors,
        )

    @classmethod
    def of_tuple(cls, saved: CheckpointTuple) -> Entry:
        writes = saved.pending_writes or []
        return cls(
            checkpoint=_id(saved.config),
            parent=_id(saved.parent_config) if saved.parent_config else None,
            step=saved.metadata.get("step", -1),
            source=saved.metadata.get("source", ""),
            created_at=saved.checkpoint["ts"],
            next=None,
            values=_visible(saved.checkpoint["channel_values"].items()),
            recorded=_by_task(writes),
            questions=[one for _, channel, asked in writes if channel == QUESTION for one in asked],
            errors=[str(value) for _, channel, value in writes if channel == ERROR],
        )


def _labelled(results: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Results by task name; the second and later tasks of a name are numbered."""
    found: dict[str, Any] = {}
    for name, result in results:
        label = name if name not in found else f"{name} #{sum(key.split(' #')[0] == name for key in found) + 1}"
        found[label] = result
    return found


def _by_task(writes: Iterable[tuple[str, str, Any]]) -> dict[str, Any]:
    """What each task wrote, by the start of its id: its name stands in the graph, which is not looked at."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in writes:
        found.setdefault(f"task {task[:8]}", []).append((channel, value))
    shown = {task: _visible(pairs) for task, pairs in found.items()}
    return {task: values for task, values in shown.items() if values}


class Reader:
    """Entries as they are stored."""

    def __init__(self, saver: SqliteSaver) -> None:
        self.saver = saver

    def one(self, config: RunnableConfig) -> Entry | None:
        saved = self.saver.get_tuple(config)
        return None if saved is None else Entry.of_tuple(saved)

    def all(self, config: RunnableConfig) -> Iterator[Entry]:
        return map(Entry.of_tuple, self.saver.list(config))


class GraphReader(Reader):
    """Entries as the graph understands them."""

    def __init__(self, saver: SqliteSaver, target: str) -> None:
        super().__init__(saver)
        self.graph = compiled(load(target), saver, target)

    def one(self, config: RunnableConfig) -> Entry | None:
        try:
            state = self.graph.get_state(config)
        except CheckpointNotFoundError:
            return None
        return None if state.created_at is None else Entry.of_snapshot(state)

    def all(self, config: RunnableConfig) -> Iterator[Entry]:
        return map(Entry.of_snapshot, self.graph.get_state_history(config))


def history(options: argparse.Namespace, screen: Screen) -> int:
    """Lists the checkpoints of a thread, newest first."""
    if options.limit is not None and options.limit < 1:
        raise CallError(f"--limit is {options.limit}.", "Give a positive number.")
    with _reader(options) as reader:
        entries = list(islice(reader.all(thread_config(options.thread)), options.limit))
    if not entries:
        raise _unknown_thread(options)
    if options.json:
        screen.say(as_json(entries))
    else:
        history_table(screen, entries)
    return 0


def history_table(screen: Screen, entries: Sequence[Entry]) -> None:
    """A row for each checkpoint, with what runs next where that is known, else with the keys that it holds."""
    knows_next = any(entry.next is not None for entry in entries)
    rows = []
    for entry in entries:
        names = entry.next if entry.next is not None else entry.values
        rows.append([str(entry.step), entry.source, ", ".join(names), entry.checkpoint, entry.created_at])
    screen.table(["step", "source", "next" if knows_next else "holds", "checkpoint", "written at"], rows)


def show(options: argparse.Namespace, screen: Screen) -> int:
    """Shows one checkpoint of a thread: its values, what is recorded beyond them, questions and errors."""
    with _reader(options) as reader:
        thread = find_thread(reader.saver, options.thread)
        entry = reader.one(thread_config(options.thread, options.checkpoint)) if thread else None
    if thread is None or (entry is None and not options.checkpoint):
        raise _unknown_thread(options)
    if entry is None:
        fix = "`pregel history` lists them."
        raise CallError(f"Thread {options.thread!r} has no checkpoint {options.checkpoint}.", fix)
    told = described(thread)
    if options.json:
        screen.say(as_json({**told, **entry.described()}))
    else:
        reason = f" ({told['reason']})" if told["reason"] else ""
        screen.say(f"thread {options.thread}: {told['status']}{reason}")
        _show_entry(entry, screen)
    return 0


def _show_entry(entry: Entry, screen: Screen) -> None:
    screen.say(f"checkpoint {entry.checkpoint}, step {entry.step}, {entry.source}, written at {entry.created_at}")
    if entry.next is not None:
        screen.say(f"next: {', '.join(entry.next) or 'nothing, it ended'}")
    parts = {"values": entry.values, "recorded in the step under way": entry.recorded}
    for title, part in parts.items():
        if part:
            screen.heading(title)
            for line in as_lines(part):
                screen.say(line)
    for question in entry.questions:
        screen.heading(f"question {question.id}")
        for line in as_lines(question.value):
            screen.say(line)
    for error in entry.errors:
        screen.heading("error")
        screen.say(error)


@contextmanager
def _reader(options: argparse.Namespace) -> Iterator[Reader]:
    with SqliteSaver.from_conn_string(existing_database(options.db)) as saver:
        try:
            yield GraphReader(saver, options.graph) if options.graph else Reader(saver)
        except SerializationError as error:
            raise CallError(str(error), "Name the graph, which knows its types: --graph MODULE:GRAPH.") from error


def _unknown_thread(options: argparse.Namespace) -> CallError:
    fix = f"`pregel threads --db {options.db}` lists the threads."
    return CallError(f"There is no thread {options.thread!r} in {options.db}.", fix)


def _id(config: RunnableConfig) -> str:
    return str(config["configurable"]["checkpoint_id"])


def _visible(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in items if not name.startswith(INTERNAL)}
