"""The body of a task: read the input, call the node, turn its output into writes, end in exactly one event.

1. `run_body` calls the node, `arun_body` awaits it; the paths of branches, which are user code too, likewise.
2. Asked beats everything: a node that asked is paused, whatever it returned or raised after that.
3. A user's exception is passed on as it is, with a note that says where it happened and without our frames.
4. KeyboardInterrupt, SystemExit and a real cancellation are not a node's failure: they pass through. Under a worker,
   which has other runs as well, a SystemExit is one.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any

from pregel.config import current_task
from pregel.engine.above import for_graph_of
from pregel.engine.effects import Done, Entered, Failed, Gone, Paused, TaskEvent
from pregel.engine.task import Task
from pregel.errors import (
    CallWithdrawn,
    ContinueAsNew,
    GraphInterrupt,
    NodeCancelledError,
    NodeExitError,
    ParentCommand,
)
from pregel.runnable import Runnable


def write_plainly(task: Task, output: Any) -> None:
    """Write a node's output where no writer calls user code."""
    node, writes = task.node, task.writes
    for writer in node.changing:
        writer.write(output, writes)  # type: ignore[union-attr]  # the node asks nothing
    if node.constant:
        writes += node.constant


def opened(task: Task) -> None:
    """An attempt starts, or the second end of a subgraph task does."""
    task.writes = []
    if task.closed:
        task.closed = False


def leave_plainly(task: Task) -> Done | None:
    """The second end of a subgraph task whose output calls no user code on its way; None when it is refused.

    Its body will be refused as well, and says where.
    """
    opened(task)
    try:
        write_plainly(task, task.output)
    except Exception:
        return None
    task.closed = True
    return Done(task, task.writes)


def run_body(task: Task) -> TaskEvent:
    """Run a task to its event. Sets the ambient task: give it a context of its own."""
    current_task.set(task)
    opened(task)
    node = task.node
    try:
        if task.phase == "enter":
            value = task.read()
            if node.caching is None or not node.caching.finds(task, value):
                return Entered(task, value)
        output = task.output
        if task.phase == "run":
            value = output = task.read()
            if node.plain is not None:
                output = node.plain(value)
            elif node.bound is not None:
                output = node.bound.call(value, task)
            while isinstance(output, Runnable):
                output = output.call(value, task)
        if node.asks:
            _write_asking(task, output)
        else:
            write_plainly(task, output)
        return ended(task, None) if task.asked else Done(task, task.writes)
    except (GraphInterrupt, ParentCommand, Exception) as error:
        if isinstance(error, ParentCommand) and arrives(task, error):
            return run_body(task)
        return ended(task, error)
    except BaseException as error:
        if (event := ended_beyond(task, error)) is None:
            raise
        return event
    finally:
        task.closed = True


def _write_asking(task: Task, output: Any) -> None:
    """Write a node's output where some writers call user code."""
    writes = task.writes
    for writer in task.node.writers:
        if writer.asks:
            writes += writer.writes(writer.path.call(writer.read(output, task), task))
        else:
            writer.write(output, writes)
    if task.node.caching is not None:
        task.node.caching.keeps(task, output)


def ended(task: Task, error: BaseException | None) -> TaskEvent:
    """The event of an attempt that asked or raised; asked beats failed."""
    asked = task.asked or asked_in(error)
    if asked or isinstance(error, GraphInterrupt):  # a graph that the node called stopped at a breakpoint: asks nothing
        return Paused(task, tuple(asked))
    assert error is not None
    if not isinstance(error, ParentCommand):
        _annotate(error, task)
    return Failed(task, error)


def arrives(task: Task, error: ParentCommand) -> bool:
    """Whether commands from a graph that the node called are for the graph of this node: they become its output."""
    if task.asked or not all(for_graph_of(task, command) for command in error.commands):
        return False
    task.phase, task.output = "leave", [replace(command, graph=None) for command in error.commands]
    return True


def ended_beyond(task: Task, error: BaseException) -> TaskEvent | None:
    """The event for what a node raised beyond Exception: it asked, wants a new execution, or says that it was
    cancelled when nobody did.

    None for what is not the node's: it passes through.
    """
    control = task.frame.run.control
    if isinstance(error, SystemExit) and control is not None and control.hands_back:
        return _exited(task, error)
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return None
    if task.asked or asked_in(error):
        return ended(task, error)
    if isinstance(error, ContinueAsNew):
        return Failed(task, error)
    if isinstance(error, CallWithdrawn):
        return Gone(task)
    asyncio = sys.modules.get("asyncio")  # importing it costs as much as importing this package
    if asyncio is None or not isinstance(error, asyncio.CancelledError):
        return None
    mine = NodeCancelledError(f"Node {task.name!r} raised CancelledError itself.", node=task.name, step=task.step)
    return ended(task, mine.with_traceback(error.__traceback__))


def _exited(task: Task, error: SystemExit) -> TaskEvent:
    mine = NodeExitError(
        f"Node {task.name!r} raised SystemExit({error.code!r}).",
        fix="Raise an error instead; a command line's main() is called with standalone_mode=False, or in a subprocess.",
        node=task.name,
        step=task.step,
    )
    return ended(task, mine.with_traceback(error.__traceback__))


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
        error.__traceback__ = without_our_frames(error.__traceback__)


def without_our_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame that is not ours; the whole one when all are."""
    tb = traceback
    while tb is not None and tb.tb_frame.f_globals.get("__name__", "").startswith("pregel."):
        tb = tb.tb_next
    return tb or traceback
