"""`pregel run` and `pregel resume`: one run of a graph on a thread, and how it came out."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
import traceback
from collections.abc import AsyncIterator, Mapping
from typing import Any

from pregel.checkpoint.records import ThreadRow
from pregel.checkpoint.standing import ThreadInfo, info_of
from pregel.cli.progress import MODES, Progress
from pregel.cli.questions import Questions, json_or_text
from pregel.cli.screen import Screen
from pregel.cli.target import Graph, is_async, open_graph
from pregel.cli.usage import DONE, FAILED, PAUSED, CallError, existing_database, read_json, writable_database
from pregel.cli.values import as_json, as_lines
from pregel.config import RunnableConfig
from pregel.engine.threads import check_resumable
from pregel.errors import CannotResumeError, GraphDrained, InternalError, PregelError, StoreError, ThreadBusy
from pregel.runtime import RunControl
from pregel.signals import drain_on_signals
from pregel.types import Command, Interrupt, StateSnapshot

QUESTIONS = "__interrupt__"


def run(options: argparse.Namespace, screen: Screen) -> int:
    """Gives a thread an input and runs it until it ends, fails or asks."""
    given = read_json(options.input, "--input")
    with open_graph(options.graph, writable_database(options.db), options.journal_stream) as graph:
        return _go(graph, given, options, screen)


def resume(options: argparse.Namespace, screen: Screen) -> int:
    """Goes on with a thread where it stands: after a crash, a failure, or with the answer to its question."""
    answer = None if options.answer is None else read_json(options.answer, "--answer")
    with open_graph(options.graph, existing_database(options.db), options.journal_stream) as graph:
        state = graph.get_state(thread_config(options.thread))
        if state.created_at is None:
            raise CallError(f"There is no thread {options.thread!r} in {options.db}.", "`pregel threads` lists them.")
        if options.answer is None:
            try:
                check_resumable(info_of(_row(graph, options.thread)))
            except CannotResumeError as error:
                if error.reason != "finished":
                    raise CallError(error.message, error.fix) from error
                return _ended_before(state, graph, options, screen)
            return _go(graph, None, options, screen)
        if not state.interrupts:
            raise CallError(f"Thread {options.thread!r} waits for no answer.", "Leave --answer out to go on with it.")
        return _go(graph, Command(resume=answer), options, screen)


def thread_config(thread: str, checkpoint: str | None = None) -> RunnableConfig:
    """The config that addresses a thread, or one checkpoint of it."""
    address = {"thread_id": thread, "checkpoint_ns": ""}
    return {"configurable": address if checkpoint is None else {**address, "checkpoint_id": checkpoint}}


def _go(graph: Graph, given: object, options: argparse.Namespace, screen: Screen) -> int:
    watched = not options.json and sys.stdin.isatty() and sys.stdout.isatty()
    asked: tuple[Interrupt, ...] = ()
    values: object = None
    drained = ""
    while True:
        row = _row(graph, options.thread)
        try:
            values = _run(graph, given, options, screen if watched else None)
        except ThreadBusy:
            raise
        except GraphDrained as error:  # a signal asked for it: the thread stands between two steps
            drained = str(error)
        except Exception as error:
            if not asked or not _still(asked, graph, options):
                return _failed(error, row, graph, options, screen)
            screen.problem(explained(error))  # the answer was refused: the question is open as before
        state = graph.get_state(thread_config(options.thread))
        asked = state.interrupts if watched and not drained else ()
        command = Questions(screen, json_or_text).answers(asked) if asked else None
        if command is not None:
            given = command
            continue
        if drained:
            values = _values(state, graph)
            screen.problem(f"{drained}. What it did is kept: `{_to_go_on(state, options)}` goes on from there.")
        return _end(values, state, graph, options, screen)


def _run(graph: Graph, given: object, options: argparse.Namespace, screen: Screen | None) -> object:
    """The output of one run, which shows itself on a screen while it goes."""
    config = thread_config(options.thread)
    with drain_on_signals() as control:
        if screen is not None:
            return _watched(graph, given, config, control, screen)
        if is_async(graph):
            return asyncio.run(graph.ainvoke(given, config, control=control))
        return graph.invoke(given, config, control=control)


def _watched(graph: Graph, given: object, config: RunnableConfig, control: RunControl, screen: Screen) -> object:
    view = screen.view()
    progress = Progress(view)
    shown: Any = {"stream_mode": MODES, "output_keys": graph.output_channels, "subgraphs": True, "control": control}
    try:
        if is_async(graph):
            asyncio.run(_followed(graph.astream(given, config, **shown), progress))
        else:
            for chunk in graph.stream(given, config, **shown):
                progress.take(chunk)
    finally:
        view.close()
    return progress.values


async def _followed(chunks: AsyncIterator[Any], progress: Progress) -> None:
    async for chunk in chunks:
        progress.take(chunk)


def _still(asked: tuple[Interrupt, ...], graph: Graph, options: argparse.Namespace) -> bool:
    """Whether the thread waits for the same answers as before."""
    open_now = graph.get_state(thread_config(options.thread)).interrupts
    return [one.id for one in open_now] == [one.id for one in asked]


def _failed(error: Exception, row: ThreadRow, graph: Graph, options: argparse.Namespace, screen: Screen) -> int:
    ours = isinstance(error, StoreError | InternalError)
    if not ours and _row(graph, options.thread).seq == row.seq:  # nothing ran, nothing was written
        raise CallError(explained(error)) from error
    _tell_failure(error, options, screen)
    return FAILED


def _ended_before(state: StateSnapshot, graph: Graph, options: argparse.Namespace, screen: Screen) -> int:
    """What has ended is resumed to the same values, for scripts that may come twice; nothing runs."""
    screen.problem(f"Thread {options.thread!r} had ended before: nothing ran. `pregel run` gives it a new input.")
    return _end(_values(state, graph), state, graph, options, screen, ran=False)


def _values(state: StateSnapshot, graph: Graph) -> object:
    """What a run that came no further would have given: the output as it stands."""
    output, values = graph.output_channels, state.values
    if isinstance(graph.stream_channels_asis, str):
        return values
    return values.get(output) if isinstance(output, str) else {key: values[key] for key in output if key in values}


def _end(
    values: object, state: StateSnapshot, graph: Graph, options: argparse.Namespace, screen: Screen, ran: bool = True
) -> int:
    if isinstance(values, Mapping):
        values = {key: value for key, value in values.items() if key != QUESTIONS}
    if options.json:
        told = _outcome(values, state, info_of(_row(graph, options.thread)), options)
        screen.say(as_json({**told, "ran": ran}))
    else:
        _tell_outcome(values, state, options, screen)
    return PAUSED if state.next else DONE


def _row(graph: Graph, thread: str) -> ThreadRow:
    row: ThreadRow = graph.checkpointer.load(thread, []).thread
    return row


def _outcome(values: object, state: StateSnapshot, info: ThreadInfo, options: argparse.Namespace) -> dict[str, object]:
    """How the run came out, for scripts; status and reason are those that `pregel threads` shows."""
    questions = [{"id": one.id, "value": one.value} for one in state.interrupts]
    told = {"thread": options.thread, "status": info.status, "reason": info.reason, "can_resume": info.can_resume}
    return {**told, "values": values, "next": state.next, "interrupts": questions}


def _tell_outcome(values: object, state: StateSnapshot, options: argparse.Namespace, screen: Screen) -> None:
    if values is not None or not state.next:  # before its end an entrypoint has no value
        for line in as_lines(values):
            screen.say(line)
    if state.next:
        _tell_pause(state, options, screen)


def _tell_pause(state: StateSnapshot, options: argparse.Namespace, screen: Screen) -> None:
    screen.say()
    if state.interrupts:
        screen.say("It waits for an answer:")
        for question in state.interrupts:
            screen.say(f"  {question.id}")
            for line in as_lines(question.value):
                screen.say(f"    {line}")
    else:
        screen.say(f"It is paused before {', '.join(state.next)}.")
    screen.say(f"Go on with: {_to_go_on(state, options)}")


def _to_go_on(state: StateSnapshot, options: argparse.Namespace) -> str:
    """The command line that goes on with the thread."""
    command = ["pregel", "resume", options.graph, "--thread", options.thread]
    if options.db != "pregel.db":
        command += ["--db", options.db]
    return shlex.join([*command, "--answer", "JSON"] if state.interrupts else command)


def _tell_failure(error: Exception, options: argparse.Namespace, screen: Screen) -> None:
    end = ": " if isinstance(error, PregelError) else ".\n"
    screen.problem(f"The run failed{end}{explained(error)}")
    if options.json:
        told = {"type": type(error).__name__, "message": str(error)}
        screen.say(as_json({"thread": options.thread, "status": "failed", "error": told}))


def explained(error: Exception) -> str:
    """An error of ours in its own words; one of the user's with the traceback that leads to it."""
    if not isinstance(error, PregelError):
        return _traceback(error)
    return "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])


def _traceback(error: Exception) -> str:
    return "".join(traceback.format_exception(error)).rstrip()
