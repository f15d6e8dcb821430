"""What a superstep shows as it goes: its tasks when they are planned, each one when it ends, the values it makes.

Each function adds chunks to the `Step` that is under way. The driver performs a Step in field order, so a chunk shows
after what it tells of is stored, and before anything else starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pregel.engine.show import interrupt_update, state_values, task_update
from pregel.engine.spoken import note_inputs, show_messages
from pregel.engine.trace import show_end, show_starts
from pregel.tokens import connect
from pregel.types import Interrupt

if TYPE_CHECKING:
    from pregel.engine.effects import Step
    from pregel.engine.frame import Frame
    from pregel.engine.task import Task


def show_planned(frame: Frame, step: Step, tasks: Sequence[Task]) -> None:
    """The tasks of a superstep before they start, and what those among them that are stored already had wrote."""
    if frame.traced:
        show_starts(frame, step, tasks)
    if "messages" in frame.shows:
        connect()  # a library that an earlier node has loaded
        note_inputs(frame, tasks)
    if "updates" in frame.shows:
        for task in tasks:
            if task.writes_stored and not task.handled and task.name not in frame.plan.hidden:
                step.emit.append((frame.ns, "updates", task_update(frame, task, cached=True)))


def show_finished(frame: Frame, step: Step, task: Task) -> None:
    """A task that came in: its messages, its update, its end."""
    if task.name in frame.plan.hidden:
        return
    if "messages" in frame.shows:
        show_messages(frame, step, task)
    if "updates" in frame.shows:
        step.emit.append((frame.ns, "updates", task_update(frame, task, cached=task.cached)))
    if frame.traced and not task.cached:
        show_end(frame, step, task)


def show_paused(frame: Frame, step: Step, task: Task, asked: tuple[Interrupt, ...]) -> None:
    """A task that paused, at once: its siblings may take long. A subgraph that stopped at a breakpoint asks nothing."""
    if not asked or not frame.keeps_questions:
        return
    if "updates" in frame.shows:
        step.emit.append((frame.ns, "updates", interrupt_update(asked)))
    show_values(frame, step, __interrupt__=asked)
    if frame.traced:
        show_end(frame, step, task, asked=asked)


def show_values(frame: Frame, step: Step, **extra: Any) -> None:
    """Note that there is a value to return, and stream it when somebody listens."""
    frame.emitted = True
    if "values" in frame.shows:
        values = state_values(frame, frame.output_keys)
        step.emit.append((frame.ns, "values", {**values, **extra} if isinstance(values, dict) else extra or values))
    elif frame.graph.outputs_expire:
        frame.last_values = state_values(frame, frame.output_keys)
