"""The body of a task: read the input, call the node, turn its output into writes, end in exactly one event.

1. `run_body` calls the node, `arun_body` awaits it; routing, which may call user code too, is a flow that yields
   ``(runnable, argument)`` to either.
2. Asked beats everything: a node that asked is paused, whatever it returned or raised after that.
3. A user's exception is passed on as it is, with a note that says where it happened and without our frames.
4. KeyboardInterrupt, SystemExit and a real cancellation are not a node's failure: they pass through.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import suppress
from types import TracebackType
from typing import Any

from pregel.config import current_task
from pregel.engine.effects import Done, Entered, Failed, Paused, TaskEvent
from pregel.engine.running import Running
from pregel.engine.task import Task
from pregel.errors import GraphInterrupt, NodeCancelledError, ParentCommand
from pregel.runnable import Runnable

Ask = tuple[Runnable, Any]


def routes(task: Task, output: Any, running: Running) -> Generator[Ask, Any, None]:
    """Write a node's output where some of its writers call user code, by yielding what they call."""
    for writer in task.node.writers:
        if writer.asks:
            running.writes.extend((yield from writer.route(output, running)))
        else:
            writer.write(output, running.writes)


def write_plainly(task: Task, output: Any, running: Running) -> None:
    """Write a node's output where no writer calls user code."""
    for writer in task.node.writers:
        writer.write(output, running.writes)


def run_body(task: Task) -> TaskEvent:
    """Run a task to its event. Sets the ambient task: give it a context of its own."""
    running = Running(task)
    current_task.set(running)
    node = task.node
    try:
        if task.phase == "enter":
            return Entered(task, task.read())
        output = task.output
        if task.phase == "run":
            value = output = task.read()
            if node.bound is not None:
                output = node.bound.call(value, running)
                while isinstance(output, Runnable):
                    output = output.call(value, running)
        if node.asks:
            _call_all(routes(task, output, running), running)
        else:
            write_plainly(task, output, running)
        return ended(running, Done(task, running.writes), None)
    except (GraphInterrupt, ParentCommand, Exception) as error:
        return ended(running, None, error)
    except BaseException as error:
        if (event := ended_beyond(running, error)) is None:
            raise
        return event
    finally:
        running.closed = True


def _call_all(flow: Generator[Ask, Any, None], running: Running) -> None:
    """Answer a flow's requests by calling; StopIteration of user code is told apart from the flow's own end."""
    try:
        runnable, value = next(flow)
        while True:
            try:
                answer = runnable.call(value, running)
            except StopIteration as error:
                raise Stopped(error) from None
            runnable, value = flow.send(answer)
    except StopIteration:
        return


class Stopped(Exception):
    """Carries a StopIteration of user code past the end of a flow."""


def ended(running: Running, event: TaskEvent | None, error: BaseException | None) -> TaskEvent:
    """The one event of an attempt; asked beats failed beats done."""
    if event is not None and not running.asked:
        return event
    if isinstance(error, Stopped):
        error = error.args[0]
    task = running.task
    asked = running.asked or asked_in(error)
    if asked:
        return Paused(task, tuple(asked))
    assert error is not None
    if not isinstance(error, ParentCommand):
        _annotate(error, task)
    return Failed(task, error)


def ended_beyond(running: Running, error: BaseException) -> TaskEvent | None:
    """The event for what a node raised beyond Exception: it asked, or says that it was cancelled when nobody did.

    None for what is not the node's: it passes through.
    """
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return None
    if running.asked or asked_in(error):
        return ended(running, None, error)
    asyncio = sys.modules.get("asyncio")  # importing it costs as much as importing this package
    if asyncio is None or not isinstance(error, asyncio.CancelledError):
        return None
    task = running.task
    mine = NodeCancelledError(f"Node {task.name!r} raised CancelledError itself.", node=task.name, step=task.step)
    return ended(running, None, mine.with_traceback(error.__traceback__))


def asked_in(error: BaseException | None) -> list[Any]:
    if isinstance(error, GraphInterrupt):
        return list(error.interrupts)
    if isinstance(error, BaseExceptionGroup):
        return [question for inner in error.exceptions for question in asked_in(inner)]
    return []


def _annotate(error: BaseException, task: Task) -> None:
    thread = task.frame.run.thread
    where = f" of thread {thread!r}" if thread else ""
    ns = f" in {task.frame.ns!r}" if task.frame.ns else ""
    note = f"During task with name {task.name!r} and id {task.id!r}, step {task.step}{where}{ns}"
    with suppress(Exception):  # an exception that takes no note, or is frozen, is raised as it is
        error.add_note(note)
        error.__traceback__ = _without_our_frames(error.__traceback__)


def _without_our_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame that is not ours; the whole one when all are."""
    tb = traceback
    while tb is not None and tb.tb_frame.f_globals.get("__name__", "").startswith("pregel."):
        tb = tb.tb_next
    return tb or traceback
