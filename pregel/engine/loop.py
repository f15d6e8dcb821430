"""The superstep loop of one graph, as a flow.

1. Plan, run, apply, again; it ends when nothing is planned, when somebody asks or fails, or at the recursion limit.
2. A step's checkpoint and the start of the next step travel in one `Step`: the driver stores the one before it starts
   the other.
3. Apply runs before its checkpoint is queued: when a reducer raises, the finished writes are stored, the checkpoint is
   not, and no finished task runs again for it.
4. Errors are values here; only the public method raises.
5. The usual step, one task that ends well, needs no Barrier and is spared its cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pregel.checkpoint.records import ATTEMPT, Status
from pregel.constants import LIFECYCLE
from pregel.engine.apply import apply
from pregel.engine.barrier import Barrier, row_of, run_pure, take_in
from pregel.engine.commits import commit, commit_alone
from pregel.engine.effects import Done, Event, Flow, Result, RunStatus, Step
from pregel.engine.frame import Frame
from pregel.engine.plan import INTERRUPT_SEEN, plan
from pregel.engine.renewal import refusal, renewed_flow
from pregel.engine.resume import Entry, Opening, begin
from pregel.engine.show import interrupt_update, paused, resumed, state_values, touches
from pregel.engine.task import Task, Tries, handling
from pregel.engine.trace import show_checkpoint
from pregel.engine.waiting import release_of
from pregel.engine.watch import show_paused, show_planned, show_values
from pregel.errors import GraphRecursionError, JoinStarvedError, NoCheckpointerError, RunDisplaced, StoredError, told

if TYPE_CHECKING:
    from pregel.callbacks import GraphLifecycleStatus

THREAD_STATUS: dict[RunStatus, Status] = {
    "done": "idle",
    "interrupted": "interrupted",
    "drained": "idle",
    "cancelled": "idle",
    "parent": "idle",
    "exhausted": "failed",
    "failed": "failed",
}


def loop(frame: Frame, entry: Entry) -> Flow[Result]:
    """How the graph ended, after running it superstep by superstep."""
    opening = yield from begin(frame, entry)
    if isinstance(opening, Result):
        return opening
    step, state = opening.step, frame.state
    del opening.step  # what it starts would live as long as the run
    if (failure := _set_out(frame, opening, step)) is not None:
        return (yield from close(frame, step, "failed", error=failure))
    while True:
        if state.step > state.stop:
            return (yield from _stop(frame, step, "exhausted", error=_exhausted(frame)))
        tasks = plan(frame.plan, frame)
        if frame.traced:  # also when nothing runs: the one that was loaded
            show_checkpoint(frame, step, tasks, opening.saved)
        if not tasks:
            return (yield from _at_rest(frame, step))
        ready = tasks
        if opening.resumed or frame.answers:
            tasks, ready = _reuse(frame, tasks, opening, step)
        if ready and frame.before and _breaks(frame, frame.before, tasks):
            return (yield from _stop_at_breakpoint(frame, step, "interrupt_before"))
        if frame.shows:
            show_planned(frame, step, tasks)
        heard: Sequence[Event] | None = None
        if len(tasks) == len(ready) == 1:
            if tasks[0].node.direct:
                step.start.append(tasks[0])
                heard = yield step
                step = Step()
            elif tasks[0].node.pure:
                heard = [run_pure(tasks[0])]
        barrier: Barrier | None = None
        kept: Sequence[tuple[str, Any]] | None = None
        if heard is not None and len(heard) == 1 and heard[0].__class__ is Done and heard[0].task is tasks[0]:
            kept = take_in(frame, tasks[0], heard[0].writes, step)
        else:
            barrier = Barrier(frame, tasks, ready)
            step = yield from barrier.gather(step, heard)
            if barrier.failed or barrier.paused or barrier.is_torn or barrier.commands or barrier.anew:
                opening = yield from _unapplied(frame, step, barrier)
                if isinstance(opening, Result):
                    return opening
                step, state = opening.step, frame.state
                continue
            step.writes += barrier.unsaved
        failure = _apply(frame, step, tasks if barrier is None else barrier.in_order, kept)
        if failure is not None:
            return (yield from close(frame, step, "failed", error=failure))
        frame.tasks_fresh = True
        if opening.resumed:
            opening.forget()
        if frame.after and _breaks(frame, frame.after, tasks):
            return (yield from _stop_at_breakpoint(frame, step, "interrupt_after"))
        if barrier is not None and barrier.cancelled:  # too late for this step, which was whole
            return (yield from _stop(frame, step, "cancelled", barrier.cancelled))
        if (why := frame.drain_asked or (barrier.draining if barrier else "")) and plan(frame.plan, frame):
            return (yield from _stop(frame, step, "drained", why))


def _at_rest(frame: Frame, step: Step) -> Flow[Result]:
    """The last step of a frame that has nothing more to run."""
    starved = _starved(frame)
    return (yield from close(frame, step, "failed" if starved else "done", error=starved))


def _set_out(frame: Frame, opening: Opening, step: Step) -> Exception | None:
    """A run that goes on says so, and shows from where; one that begins applies what START has taken at once.

    The exception when that is refused.
    """
    if opening.resumed:
        frame.recalled, frame.tasks_fresh = dict(opening.pending), False
        if LIFECYCLE in frame.run.modes:
            step.emit.append(resumed(frame))
        show_values(frame, step)
    if opening.first is None:
        return None
    return _apply(frame, step, [opening.first], None)  # type: ignore[list-item]  # only a journal needs a Task


def _apply(frame: Frame, step: Step, tasks: Sequence[Task], kept: Sequence[tuple[str, Any]] | None) -> Exception | None:
    """Apply a whole step and queue its checkpoint; the exception when a reducer or a channel refused.

    `kept`: what the journal keeps of a task that was alone, which goes with the checkpoint.
    """
    try:
        applied = apply(frame.plan, frame.state, tasks)
    except Exception as error:
        if kept is not None:
            step.writes.append(row_of(frame, tasks[0], kept))
        where = f" of thread {frame.run.thread!r}" if frame.run.thread else ""
        writers = ", ".join(dict.fromkeys(task.name for task in tasks))
        with suppress(Exception):  # one that takes no note is raised as it is
            error.add_note(f"While applying step {frame.state.step}{where}, to which {writers} wrote")
        return error
    if frame.journal is None:
        frame.state.step += 1
    elif kept is not None and frame.says_alone(tasks[0]):
        commit_alone(frame, step, applied, tasks[0], kept)
    else:
        if kept is not None:
            step.writes.append(row_of(frame, tasks[0], kept))
        commit(frame, step, applied, "loop", tuple([task.path_text for task in tasks]))
    if (frame.watched or not frame.emitted) and touches(frame.output_keys, tasks):
        show_values(frame, step)
    return None


def close(
    frame: Frame,
    step: Step,
    status: RunStatus,
    *,
    asked: tuple[Any, ...] = (),
    error: BaseException | None = None,
    command: Any = None,
    reason: str = "",
) -> Flow[Result]:
    """The last step of a frame: what waits is stored and shown, the root gives the thread back.

    A graph inside leaves its last step to the family, with what it ended in.
    """
    if frame.journal is not None and frame.is_root:
        why = f"{type(error).__name__}: {told(error, str)}" if error else ""
        standing = "pending" if status == "drained" and frame.hands_back else THREAD_STATUS[status]
        step.release = release_of(standing, reason or why, asked)
    if frame.traced and step.saves:
        show_checkpoint(frame, step, plan(frame.plan, frame), None)
    last: Step | None = None
    if step.stores or step.emit:
        if frame.is_root:
            step.wait = False
            yield step
        else:
            last = step
    return Result(status, final_values(frame), asked, error, command, last)


def _stopped(frame: Frame, step: Step, status: RunStatus, why: str) -> Flow[Result]:
    """The last step of a frame that could go on. Whoever cancelled the run himself needs no error that says so."""
    error = frame.stopped(why)
    heard = error if status == "drained" or isinstance(error, RunDisplaced) else None
    return (yield from close(frame, step, status, reason=error.reason, error=heard))


def _stop(frame: Frame, step: Step, status: RunStatus, why: str = "", error: Exception | None = None) -> Flow[Result]:
    """The last step of a frame that stops between steps: at a breakpoint that comes next, since going on passes it."""
    if frame.before and _breaks(frame, frame.before, plan(frame.plan, frame)):
        return (yield from _stop_at_breakpoint(frame, step, "interrupt_before"))
    if error is not None:
        return (yield from close(frame, step, status, error=error))
    return (yield from _stopped(frame, step, status, why))


def final_values(frame: Frame) -> Any:
    """What a run returns: the last values it showed, None when it never had any."""
    if not frame.emitted:
        return None
    return frame.last_values if frame.graph.outputs_expire else state_values(frame, frame.output_keys)


def _reuse(frame: Frame, tasks: list[Task], opening: Opening, step: Step) -> tuple[list[Task], list[Task]]:
    """Give tasks their stored results, answers and attempts; all of the step's tasks, and those that must run."""
    if opening.is_bare and not frame.answers:
        return tasks, tasks
    step_tasks, ready = list(tasks), []
    for task in step_tasks:  # grows: a failure that is a handler's brings the handler's task
        task.answers = opening.answers.get(task.id, frame.answers)
        stored = opening.pending.get(task.id)
        if stored is not None:
            task.writes = [(write.channel, write.value) for write in stored if write.channel in frame.plan.channels]
            task.writes_stored = True
        elif (error := opening.handled.get(task.id)) is not None and task.node.error_handler:
            task.writes, task.writes_stored, task.handled = [], True, True
            step_tasks.append(handling(task, StoredError(error)))
        elif (waits := opening.asleep.get(task.id)) is not None:
            task.asleep = waits
        else:
            _count_attempts(frame, task, opening, step)
            ready.append(task)
    return step_tasks, ready


def _count_attempts(frame: Frame, task: Task, opening: Opening, step: Step) -> None:
    """Go on counting where the last run stopped: a crash gives no new allowance, and is one more delivery itself."""
    stored = opening.attempts.get(task.id)
    task.tries = Tries(*stored) if stored is not None else None
    if opening.died and not task.node.pure:
        task.tries = task.tries.delivered() if task.tries is not None else Tries(deliveries=1)
        step.writes.append(row_of(frame, task, [(ATTEMPT, list(task.tries))]))


def _breaks(frame: Frame, names: frozenset[str] | str, tasks: Sequence[Task]) -> bool:
    """Whether a static breakpoint stops here: one of its nodes, and something new since the last stop."""
    if frame.state.counter <= frame.state.seen.get(INTERRUPT_SEEN, {}).get("", 0):
        return False
    if names == "*":
        return any(task.name not in frame.plan.hidden for task in tasks)
    return any(task.name in names for task in tasks)


def _stop_at_breakpoint(frame: Frame, step: Step, where: GraphLifecycleStatus) -> Flow[Result]:
    if frame.is_root and LIFECYCLE in frame.run.modes:
        step.emit.append(paused(frame, where))
    _show_breakpoint(frame, step)
    return (yield from close(frame, step, "interrupted", reason="it stopped at a breakpoint"))


def _show_breakpoint(frame: Frame, step: Step) -> None:
    """The empty interrupt of a run that stops and asks nothing: once, at the root, wherever inside it stopped."""
    if frame.is_root and "updates" in frame.shows:
        step.emit.append((frame.ns, "updates", interrupt_update(())))


def _unapplied(frame: Frame, step: Step, barrier: Barrier) -> Flow[Opening | Result]:
    """How a run ends with a step of which nothing is applied: its rows are stored, for whoever goes on.

    Or how it goes on, with nothing of it.
    """
    if barrier.anew is not None and not (barrier.failed or barrier.cancelled):
        anew = barrier.anew[1]
        if (failure := refusal(frame, anew) if frame.is_root else anew) is not None:
            return (yield from close(frame, step, "failed", error=failure))
        return (yield from renewed_flow(frame, step, anew))
    if barrier.failed and step.claim:  # an input that is none: nothing of this call was stored yet, nothing is
        return Result("failed", error=barrier.first_error)
    if not (barrier.failed or barrier.paused or barrier.is_torn):  # it came in whole, and goes on further up
        return (yield from close(frame, step, "parent", command=barrier.told))
    step.writes.extend(barrier.unsaved)
    if barrier.cancelled:
        return (yield from _stopped(frame, step, "cancelled", barrier.cancelled))
    if barrier.failed:
        return (yield from close(frame, step, "failed", error=barrier.first_error))
    if not barrier.paused:
        return (yield from _stopped(frame, step, "drained", barrier.draining or frame.drain_asked))
    if not frame.keeps_questions:
        return (yield from close(frame, step, "failed", error=_unanswerable(barrier)))
    _fold_finished(frame, barrier.in_order, step)
    asked = tuple(question for questions in barrier.asked for question in questions)
    for task, questions in barrier.paused:
        if task.asleep:
            show_paused(frame, step, task, questions)
    if frame.is_root and LIFECYCLE in frame.run.modes:
        step.emit.append(paused(frame, "pending", asked))
    if not asked:
        _show_breakpoint(frame, step)
    if frame.is_root and not barrier.ready and not step.writes and not step.saves:  # it waits still: all is stored
        step.claim = step.wait = False
        yield step
        return Result("interrupted", final_values(frame), asked)
    return (yield from close(frame, step, "interrupted", asked=asked))


def _unanswerable(barrier: Barrier) -> NoCheckpointerError:
    """A question that nobody could keep: neither this graph nor one around it has a saver."""
    task, asked = barrier.paused[0]
    return NoCheckpointerError(
        f"Node {task.name!r} asked {asked[0].value!r}, but no checkpointer could keep the question for an answer."
        if asked
        else f"Node {task.name!r} paused, but no checkpointer could keep the run.",
        node=task.name,
        task=task.id,
    )


def _fold_finished(frame: Frame, tasks: Sequence[Task], step: Step) -> None:
    """Bring finished siblings into what is returned; the state is dropped after this, nothing of it is stored."""
    if tasks and frame.is_root and touches(frame.output_keys, tasks):
        try:
            apply(frame.plan, frame.state, tasks)
        except Exception as error:  # the barrier will raise it when the step is whole; the question comes first
            error.add_note("met while showing an interrupted step")
            return
        show_values(frame, step)


def _exhausted(frame: Frame) -> GraphRecursionError:
    limit = frame.run.limit
    return GraphRecursionError(
        f"Recursion limit of {limit} reached without hitting a stop condition.",
        fix="Raise it with the `recursion_limit` config key, or end the loop earlier.",
        thread=frame.run.thread,
        step=frame.state.step,
    )


def _starved(frame: Frame) -> JoinStarvedError | None:
    """A join that got some but not all of its nodes, and has never fired on this thread."""
    for channel, node in frame.plan.joins.items():
        if channel not in frame.state.channels or channel in frame.state.seen.get(node, {}):
            continue
        join = frame.state.channels[channel]
        arrived, expected = set(getattr(join, "seen", ())), set(getattr(join, "names", ()))
        if arrived and arrived < expected:
            missing = ", ".join(sorted(expected - arrived))
            return JoinStarvedError(
                f"Node {node!r} waits for {missing}, which can no longer arrive: the run has come to rest.",
                fix="Join only nodes that always run, or route to the node directly. The state was saved.",
                thread=frame.run.thread,
                node=node,
                channel=channel,
            )
    return None
