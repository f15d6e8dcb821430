"""The body of a task under an event loop: the same as `engine.body`, awaiting what it calls."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

from pregel.config import current_task
from pregel.engine.body import Ask, Stopped, ended, ended_beyond, opened, routes, write_plainly
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
            return Entered(task, task.read())
        output = task.output
        if task.phase == "run":
            value = output = task.read()
            if node.bound is not None:
                output = await acall_anywhere(node.bound, value, task)
            while isinstance(output, Runnable):
                output = await acall_anywhere(output, value, task)
        if node.asks:
            await _await_all(routes(task, output), task)
        else:
            write_plainly(task, output)
        return ended(task, None) if task.asked else Done(task, task.writes)
    except (GraphInterrupt, ParentCommand, Exception) as error:
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


async def _await_all(flow: Generator[Ask, Any, None], task: Task) -> None:
    """Answer a flow's requests by awaiting."""
    try:
        runnable, value = next(flow)
        while True:
            try:
                answer = await acall_anywhere(runnable, value, task)
            except StopIteration as error:
                raise Stopped(error) from None
            runnable, value = flow.send(answer)
    except StopIteration:
        return
