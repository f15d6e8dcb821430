"""The spans of one run: the run, its supersteps, their tasks, in the graphs inside of it too.

1. It stands around the run's flow and hears what the flow hears: nothing in the engine knows of it, and a run that is
   not traced pays nothing.
2. A task's span lasts from when its body starts until it ends, whenever that is heard; each attempt has one of its own.
   What never ran has none.
3. A superstep's span ends with the merge: when the flow goes on and none of its tasks is out. That of a graph inside
   lies in the span of the task that runs it.
4. Whatever is open when the flow ends, or is closed, ends then, children first.
5. Only the flow's side, which is one thread at a time, adds and removes; bodies on other threads begin what is there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any

from pregel.engine.body import run_body
from pregel.engine.calls import CallTask
from pregel.engine.effects import Done, Due, Event, Failed, Gone, Paused, Result, Step, TaskEvent
from pregel.errors import GraphBubbleUp, GraphDrained, ParentCommand
from pregel.telemetry import INPUT, OUTPUT, STATUS

if TYPE_CHECKING:
    from pregel.engine.drive_async import AwaitingDriver
    from pregel.engine.drive_sync import BlockingDriver
    from pregel.engine.effects import Flow
    from pregel.engine.frame import Frame
    from pregel.engine.future import CallFuture
    from pregel.engine.pregel import Pregel
    from pregel.engine.task import Task
    from pregel.telemetry import Span, Telemetry

ENDS = (Done, Failed, Paused, Gone)
QUIET = (GraphBubbleUp, GraphDrained, ParentCommand)  # ends that are no failures


class StepSpan:
    """A superstep of one graph, and its tasks that are out or wait for another attempt."""

    def __init__(self, trail: Trail, frame: Frame, number: int, within: TaskSpan | None) -> None:
        self.trail, self.frame, self.number, self.within = trail, frame, number, within
        self.open: set[Task] = set()
        self.planned, self.began = time.time_ns(), time.perf_counter()
        self._span: Span | None = None

    @property
    def span(self) -> Span:
        """Its span, which begins with the first of its tasks."""
        if self._span is None:
            frame = self.frame
            about = {
                "pregel.step": self.number,
                "pregel.graph": frame.graph.get_name(),
                "pregel.namespace": frame.ns or None,
            }
            within = self.trail.run if self.within is None else self.within.begin()
            self._span = self.trail.telemetry.begin(f"step {self.number}", about, within=within, at=self.planned)
        return self._span

    def end(self) -> None:
        """It is over: none of its tasks is out."""
        if self._span is not None:
            self._span.end()
            elapsed = time.perf_counter() - self.began
            self.trail.telemetry.steps.record(elapsed, {"pregel.graph": self.frame.graph.get_name()})


class TaskSpan:
    """One attempt of a task; `ended` is when its body did, in unix nanoseconds."""

    def __init__(self, trail: Trail, task: Task, step: StepSpan, caller: TaskSpan | None) -> None:
        self.trail, self.task, self.step, self.caller = trail, task, step, caller
        self.ended: int | None = None
        self.began = 0
        self._span: Span | None = None

    def begin(self) -> Span:
        """Its span, from any thread: it begins when this is asked first."""
        with self.trail.lock:
            if self._span is None:
                within = self.step.span if self.caller is None else self.caller.begin()
                self._span = self.trail.telemetry.begin(*_described(self.task), within=within)
                self.began = time.time_ns()
                self.trail.telemetry.running.add(1, self._about)
            return self._span

    @property
    def _about(self) -> dict[str, Any]:
        return {"pregel.graph": self.trail.root.graph.get_name(), "pregel.node": self.task.name}

    def end(self, status: str, error: BaseException | None) -> None:
        """It is over; an error that is no failure says so by its status."""
        if self._span is not None:
            quiet = isinstance(error, QUIET)
            status = _quiet(error) if quiet else "failed" if error is not None else status
            self._span.set({STATUS: status})
            self._span.end(None if quiet else error, at=self.ended)
            took = max(0, (self.ended or time.time_ns()) - self.began) / 1e9
            self.trail.telemetry.tasks.record(took, {**self._about, STATUS: status})
            self.trail.telemetry.running.add(-1, self._about)


class Trail:
    """What of one run is under way, each with its span."""

    def __init__(self, telemetry: Telemetry, root: Frame) -> None:
        self.telemetry = telemetry
        self.root = root
        self.run: Span
        self.lock = RLock()
        self.steps: dict[tuple[Frame, int], StepSpan] = {}
        self.tasks: dict[Task, TaskSpan] = {}
        self.calls: dict[CallFuture[Any], Task] = {}

    # -- what the drivers do with it ---------------------------------------------------------------------------------

    def follow(self, flow: Flow[Result]) -> Flow[Result]:
        """The flow itself, with spans for what it wants and hears."""
        self.run = self._begin_run()
        events: list[Event] | None = None
        try:
            while True:
                try:
                    step = flow.send(events)  # type: ignore[arg-type]  # None starts a flow
                except StopIteration as stop:
                    self._close_run(stop.value.status, stop.value.error)
                    return stop.value  # type: ignore[no-any-return]  # it is a Result
                self._planned(step)
                events = yield step
                self._heard(events)
        except GeneratorExit as stop:
            cause = stop.__context__  # what the driver met, when it closes the flow for that
            self._close_run("cancelled", cause if isinstance(cause, Exception) else None)
            raise
        except BaseException as error:
            self._close_run("failed", error)
            raise
        finally:
            flow.close()

    def body(self, task: Task) -> TaskEvent:
        """Run a task's body inside its span."""
        at = self.tasks.get(task)
        if at is None:  # it was given up before it started
            return run_body(task)
        try:
            with at.begin().inside():
                self._record(task)
                return run_body(task)
        finally:
            at.ended = time.time_ns()

    async def abody(self, task: Task) -> TaskEvent:
        """The same, awaited."""
        from pregel.engine.body_async import arun_body  # it needs asyncio, which a blocking run does without

        at = self.tasks.get(task)
        if at is None:
            return await arun_body(task)
        try:
            with at.begin().inside():
                self._record(task)
                return await arun_body(task)
        finally:
            at.ended = time.time_ns()

    def _record(self, task: Task) -> None:
        """What its TracePolicy lets through of a subgraph that has ended; other nodes record by themselves."""
        if (policy := task.node.trace_policy) is not None and task.phase == "leave":
            self.telemetry.record(INPUT, task.read(), policy.process_inputs)
            self.telemetry.record(OUTPUT, task.output, policy.process_outputs)

    # -- what happens to the run -------------------------------------------------------------------------------------

    def _begin_run(self) -> Span:
        graph, run = self.root.graph, self.root.run
        about = {**_operation(graph), "gen_ai.conversation.id": run.thread or None}
        return self.telemetry.begin(f"{graph.operation} {graph.get_name()}", about)

    def _planned(self, step: Step) -> None:
        for settled in step.settle:  # a graph that was called has no other end that shows
            task = self.calls.pop(settled.future, None)
            if task in self.tasks:
                self._close_task(task, "done", settled.error)
        for _, _, event in step.after:
            if isinstance(event, Due):
                self._step_of(event.task).open.add(event.task)
                self.telemetry.retries.add(1, {"pregel.node": event.task.name})
        for task in step.start:
            if task not in self.tasks:  # else it is the other end of a subgraph task
                self._add(task)
        for key in [key for key, one in self.steps.items() if not one.open]:
            self._close_step(key)

    def _heard(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, ENDS) and event.task in self.tasks:
                error = event.error if isinstance(event, Failed) else None
                self._close_task(event.task, _STATUS.get(type(event), "done"), error)

    def _close_run(self, status: str, error: BaseException | None) -> None:
        for task in list(reversed(self.tasks)):
            self._close_task(task, status)
        for key in list(reversed(self.steps)):
            self._close_step(key)
        if self.root.run.died:
            self.run.set({"pregel.run.takeover": True})
            self.telemetry.takeovers.add(1, {"pregel.graph": self.root.graph.get_name()})
        quiet = error is None or isinstance(error, QUIET)
        self.run.set({STATUS: status if quiet or status == "exhausted" else "failed"})
        self.run.end(None if quiet else error)

    # -- supersteps and tasks ----------------------------------------------------------------------------------------

    def _step_of(self, task: Task) -> StepSpan:
        """A task's superstep. An earlier one of the same graph is over by then."""
        frame, number = task.frame, task.step
        found = self.steps.get((frame, number))
        if found is None:
            for key in [key for key in self.steps if key[0] is frame]:
                self._close_step(key)
            around: Task | None = None if frame is self.root else frame.inside  # type: ignore[assignment]  # a Task
            within = None if around is None else self.tasks.get(around) or self._add(around)
            found = self.steps[frame, number] = StepSpan(self, frame, number, within)
        return found

    def _add(self, task: Task) -> TaskSpan:
        step = self._step_of(task)
        step.open.add(task)
        caller = None
        if isinstance(task, CallTask):
            caller = self.tasks.get(task.parent)
            self.calls[task.future] = task
        found = self.tasks[task] = TaskSpan(self, task, step, caller)
        return found

    def _close_task(self, task: Task, status: str, error: BaseException | None = None) -> None:
        one = self.tasks.pop(task)
        one.step.open.discard(task)
        one.end(status, error)

    def _close_step(self, key: tuple[Frame, int]) -> None:
        step = self.steps.pop(key)
        for task in [task for task in step.open if task in self.tasks]:
            self._close_task(task, "failed")  # its graph inside did, and is tried again or handled
        step.end()


_STATUS: dict[type[TaskEvent], str] = {Paused: "interrupted", Gone: "cancelled"}


def _quiet(error: BaseException | None) -> str:
    """What to call an end that is an exception and no failure."""
    if isinstance(error, ParentCommand):
        return "parent"
    return "drained" if isinstance(error, GraphDrained) else "interrupted"


def _described(task: Task) -> tuple[str, dict[str, Any]]:
    """The name and the attributes of a task's span."""
    about = {
        "pregel.node": task.name,
        "pregel.step": task.step,
        "pregel.task.id": task.id,
        "pregel.task.attempt": task.attempt,
        "pregel.namespace": task.frame.ns or None,
    }
    graph = task.node.subgraph
    if graph is not None:
        return f"{graph.operation} {graph.get_name()}", {**about, **_operation(graph)}
    return f"{'task' if isinstance(task, CallTask) else 'node'} {task.name}", about


def _operation(graph: Pregel) -> dict[str, Any]:
    """What kind of graph it is and what it is called, as the conventions say."""
    subject = "agent" if graph.operation == "invoke_agent" else "workflow"
    return {"gen_ai.operation.name": graph.operation, f"gen_ai.{subject}.name": graph.get_name()}


def traced(driver: BlockingDriver | AwaitingDriver, frame: Frame, telemetry: Telemetry) -> None:
    """Have a run that starts now leave spans."""
    trail = Trail(telemetry, frame)
    frame.run.bodies_heard = True
    driver.flow = trail.follow(driver.flow)
    driver.body = trail.body
    if driver.loop_body is not None:
        driver.loop_body = trail.abody
