"""The body of a task under an event loop: the same as `engine.body`, awaiting what it calls."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from pregel.config import current_task
from pregel.engine.body import arrives, ended, ended_beyond, opened, write_plainly
from pregel.engine.effects import Done, Entered, TaskEvent
from pregel.engine.task import Task
from pregel.errors import GraphInterrupt, ParentCommand
from pregel.runnable import Runnable, acall_anywhere


async def arun_body(task: Task) -> TaskEvent:
    """Run a task to its event, awaiting what it calls."""
    token = current_task.set(task)
    opened(task)
    node = task.node
    try:
        if task.phase == "enter":
            value = task.read()
            if node.caching is None or not await node.caching.afinds(task, value):
                return Entered(task, value)
        output = task.output
        if task.phase == "run":
            value = output = task.read()
            if node.bound is not None:
                output = await acall_anywhere(node.bound, value, task)
            while isinstance(output, Runnable):
                output = await acall_anywhere(output, value, task)
        if node.asks:
            await _write_asking(task, output)
        else:
            write_plainly(task, output)
        return ended(task, None) if task.asked else Done(task, task.writes)
    except (GraphInterrupt, ParentCommand, Exception) as error:
        if isinstance(error, ParentCommand) and arrives(task, error):
            return await arun_body(task)
        return ended(task, error)
    except BaseException as error:
        if _cancelled(error) or (event := ended_beyond(task, error)) is None:
            raise
        return event
    finally:
        task.closed = True
        current_task.reset(token)


def _cancelled(error: BaseException) -> bool:
    """Whether somebody cancels the task that this runs in; a CancelledError of the node's own is none."""
    own = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and own is not None and own.cancelling() > 0


async def _write_asking(task: Task, output: Any) -> None:
    """Write a node's output where some writers call user code."""
    writes = task.writes
    for writer in task.node.writers:
        if writer.asks:
            writes += writer.writes(await acall_anywhere(writer.path, writer.read(output, task), task))
        else:
            writer.write(output, writes)
    if task.node.caching is not None:
        await task.node.caching.akeeps(task, output)


def awaits(task: Task) -> bool:
    """Whether a task's code has anything to await; the others run on a thread, in one hop."""
    node: Any = task.node
    if task.phase == "run" and node.bound is not None and node.bound.has_async:
        return True
    return task.phase != "enter" and any(getattr(writer, "has_async", False) for writer in node.writers)


def never_begins(job: asyncio.Task[None]) -> bool:
    """Cancel an asyncio task; whether it had not begun: then nothing of it runs, also not what posts its end.

    One that has begun swallows its cancellation; one that is cancelled was so before, as by the end of its loop.
    """
    if job.cancelled():
        return True
    job.cancel()
    body: Any = job.get_coro()
    return body is not None and inspect.getcoroutinestate(body) == inspect.CORO_CREATED
