"""The flows of one run as one flow: a graph, the subgraphs its tasks run, and theirs.

1. It owns the live flows, merges their wishes into one `Step` and routes events to the flow they are about, so the
   drivers know one flow and nothing of subgraphs, and siblings share one transaction.
2. In one exchange each flow is asked at most once, children before parents: a flow is never told about a Step that was
   not performed yet, and a parent hears of all its children at once.
3. A subgraph task has two ends that may call user code, reading its input and writing its output; then they run as
   ordinary task bodies (`enter`, `leave`) in the driver. Where they call none they are done here.
4. At most `ROOM` children of one parent are live; the others wait in that parent's line, so a parent of thousands
   costs the memory of a few.
5. What a child leaves to be stored when it ends goes into the same Step as what its siblings want. Its parent hears of
   the end once that was performed; at once when it left nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pregel.engine.above import addressed, for_graph_of
from pregel.engine.astray import RETURN
from pregel.engine.body import leave_plainly
from pregel.engine.calls import GraphCall
from pregel.engine.effects import (
    Cancel,
    Done,
    Entered,
    Event,
    Failed,
    Flow,
    Gone,
    Loaded,
    Paused,
    Result,
    Step,
    TaskEvent,
)
from pregel.engine.frame import Frame, UnnamedFrame
from pregel.engine.loop import loop
from pregel.engine.nested import stable_namespace
from pregel.engine.resume import FINGERPRINT, Entry
from pregel.engine.task import Task
from pregel.errors import InternalError, InvalidUpdateError, ParentCommand
from pregel.types import Command

if TYPE_CHECKING:
    from pregel.engine.streamed import CallStream

ROOM = 64
ENDS = (Done, Failed, Paused, Gone)
NONE: dict[Any, Any] = {}  # the children of a member that has none; never added to


def family(frame: Frame, entry: Entry) -> Flow[Result]:
    """How the root graph ended, after running it together with all that runs inside it."""
    frame.run.multiplex = multiplexed
    if not frame.plan.has_subgraphs:
        return loop(frame, entry)
    frame.run.multiplexed = True
    return Family(Member(loop(frame, entry))).run()


def multiplexed(flow: Flow[Step], out: Iterable[Task], frame: Frame) -> Flow[Step]:
    """What a flow returns that has become a root of a family half way: `out` are its tasks that run already."""
    root: Member = Member(flow)
    family = Family(root)
    family.owners = dict.fromkeys(out, root)
    frame.run.multiplexed = True
    try:
        step: Step = yield from family.run()
        return step
    finally:
        frame.run.multiplexed = False


class Member:
    """A live flow: a frame's loop, the member whose task it runs, and the children that wait for room."""

    __slots__ = ("children", "depth", "flow", "line", "loads", "parent", "stream", "task")

    def __init__(self, flow: Flow[Any], parent: Member | None = None, task: Task | None = None) -> None:
        self.flow = flow
        self.parent = parent
        self.task = task
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.children: dict[Task, Member] = NONE if task is not None else {}  # most have none
        self.line: deque[tuple[Task, Any]] | None = None
        self.loads = 0
        self.stream: CallStream | None = parent.stream if parent is not None else None  # where its chunks go


class Family:
    """The live members of one run and the news that wait for them."""

    __slots__ = ("ended", "leaving", "levels", "owners", "root", "stopped")

    def __init__(self, root: Member) -> None:
        self.root = root
        self.owners: dict[Task, Member] = {}
        self.levels: dict[int, dict[Member, list[Event] | None]] = {0: {root: None}}  # depth -> news by member
        self.stopped: set[Task] = set()  # tasks that the driver was told to cancel, and has not ended yet
        self.leaving: list[Task] = []  # subgraph tasks whose child is done and whose output is to be written
        self.ended: dict[Task, tuple[Member, Event]] = {}  # what parents are to hear once the last steps are performed

    def run(self) -> Flow[Any]:
        """Turn the members' wishes into one Step at a time until the root is over."""
        while True:
            batch, answered = Step(), []
            asked: set[Member] = set()
            later: list[tuple[Member, list[Event]]] = []
            while self.levels:
                member, news = self._next()
                if member in asked:
                    later.append((member, news or []))
                    continue
                asked.add(member)
                try:
                    step = member.flow.send(news)  # type: ignore[arg-type]  # None starts a flow
                except StopIteration as stop:
                    if member is self.root:
                        return stop.value
                    self._over(member, stop.value, batch)
                    continue
                member.loads = len(step.load)
                if member.loads or not step.wait:
                    answered.append(member)
                self._take(member, step, batch)
            if self.leaving:
                batch.start += self.leaving
                self.leaving = []
            batch.wait = not (answered or later or self.ended)
            events = yield batch
            for member, news in later:
                self._tell(member, *news)
            if self.ended:
                self._tell_ends()
            self._route(answered, events)

    def _next(self) -> tuple[Member, list[Event] | None]:
        depth = max(self.levels)
        level = self.levels[depth]
        member = next(iter(level))
        news = level.pop(member)
        if not level:
            del self.levels[depth]
        return member, news

    def _tell(self, member: Member, *events: Event) -> None:
        """Queue news for a member that is still alive."""
        if member.parent is None or member.parent.children.get(member.task) is member:  # type: ignore[arg-type]
            level = self.levels.get(member.depth)
            if level is None:
                level = self.levels[member.depth] = {}
            news = level.get(member)
            if news is None:
                level[member] = list(events)
            else:
                news.extend(events)

    def _tell_ends(self) -> None:
        """What the children that ended left was performed: their parents hear of them."""
        for parent, event in self.ended.values():
            self._tell(parent, event)
        self.ended.clear()

    def _take(self, member: Member, step: Step, batch: Step) -> None:
        """Keep what concerns subgraphs, pass the rest on."""
        own: list[Task] = []
        for task in step.start:
            self.owners[task] = member
            if task.node.subgraph is None:
                own.append(task)
            elif task.node.pure_input:
                self._enter(member, task, task.read())
            else:
                task.phase = "enter"
                own.append(task)
        for _, _, event in step.after:
            if isinstance(event, TaskEvent):
                self.owners[event.task] = member
        step.start = own
        if member.stream is not None:
            member.stream.divert(step)
        if step.cancel:
            step.cancel = [pair for pair in step.cancel if not self._cancel_child(member, pair[0])]
        batch.absorb(step)

    def _entered(self, member: Member, event: Entered, *, cancelled: bool) -> None:
        if cancelled or event.task in self.stopped:  # its input was being read when the cancel came
            self.stopped.discard(event.task)
            del self.owners[event.task]
            self._tell(member, Gone(event.task))
        else:
            self._enter(member, event.task, event.value)

    def _enter(self, member: Member, task: Task, value: Any) -> None:
        if len(member.children) >= ROOM:
            if member.line is None:
                member.line = deque()
            member.line.append((task, value))
        else:
            self._admit(member, task, value)

    def _admit(self, member: Member, task: Task, value: Any) -> None:
        parent, graph = task.frame, task.node.subgraph
        call = task if isinstance(task, GraphCall) else None
        ns: str | None = None
        unnamed = call is None and parent.run.journal is None and not parent.home  # nobody looks for what it asks
        if not unnamed or graph.checkpointer is True:
            ns = task.ns if graph.checkpointer is not True else stable_namespace(task.ns)
        if graph.checkpointer is True and any(other.ns == ns for other in self._live_frames(member)):
            error = InvalidUpdateError(
                f"Two tasks run the persistent subgraph {ns!r} at once.",
                fix="Run it once a step, or compile it without checkpointer=True.",
                node=task.name,
            )
            self._tell(member, Failed(task, error))
            return
        frame = (UnnamedFrame if ns is None else Frame)(
            call.inner_run if call is not None else parent.run,
            graph,
            ns,
            is_root=False,
            fresh=task.fresh and graph.checkpointer is not True,
            around=parent,
            home="" if unnamed or not (graph.checkpointer is False or parent.journal is None) else task.id,
            answers=task.answers if graph.checkpointer is False else None,
            output_keys=call.output_keys if call is not None else None,
            caller=task.call or parent.caller,
        )
        if frame.journal is not None:
            frame.state.lineage = task.lineage_inside
        if frame.journal is not None or ns is None:  # its namespace tells its tasks from those of others
            frame.state.checkpoint = task.checkpoint  # until it has one of its own
        fingerprint = _prepare(frame, call) if call is not None else ""
        entry = Entry(value, answers=task.answers, resuming=not task.fresh, fingerprint=fingerprint)
        if parent.run.replay is not None and graph.checkpointer is True:
            entry = parent.run.replay.entry(frame.ns, entry)
        if member.children is NONE:
            member.children = {}
        child = member.children[task] = Member(loop(frame, entry), member, task)
        if call is not None and call.stream is not None:
            call.stream.outer_stream, child.stream = child.stream, call.stream
            call.stream.begin(frame)
        task.child, frame.inside = frame, task
        if parent.run.heard is not None:
            parent.run.heard.admitted(task, value)
        self.levels.setdefault(child.depth, {})[child] = None

    def _live_frames(self, member: Member) -> list[Frame]:
        return [task.child for task in member.children if task.child is not None]

    def _over(self, child: Member, result: Result, batch: Step) -> None:
        """A child ended: its output is to be written, or its parent hears how its task ended."""
        parent, task, last = child.parent, child.task, result.last
        assert parent is not None
        assert task is not None
        del parent.children[task]
        task.child = None  # its frame goes now, not when garbage is collected
        if task.frame.run.heard is not None:
            task.frame.run.heard.over(task, result)
        if last is not None:
            if child.stream is not None:
                child.stream.divert(last)
            batch.absorb(last)
        event = _end(task, result)
        if event is None:
            self.leaving.append(task)
        else:
            del self.owners[task]
            if parent.task is not None:
                parent.task.touch()
            if last is None:
                self._tell(parent, event)
            else:
                self.ended[task] = parent, event
        if parent.line:
            self._admit(parent, *parent.line.popleft())

    def _cancel_child(self, member: Member, task: Task) -> bool:
        child = member.children.get(task)
        if child is not None:
            self._tell(child, Cancel())
            return True
        if task in self.ended:  # its end is news by itself
            return True
        waiting = next((pair for pair in member.line or () if pair[0] is task), None)
        if waiting is not None:
            member.line.remove(waiting)  # type: ignore[union-attr]  # it was found there
        elif task in self.leaving:  # its child ended just now: the start that is queued would come after the cancel
            self.leaving.remove(task)
        else:
            self.stopped.add(task)
            self.owners.setdefault(task, member)  # one that was to start in this very step: its end is news as well
            return False
        del self.owners[task]
        self._tell(member, Gone(task))
        return True

    def _route(self, answered: Sequence[Member], events: Sequence[Event]) -> None:
        """Hand each event to the member it is about; members that asked for no event are answered too."""
        for member in answered:
            self._tell(member)
        loads = [member for member in answered if member.loads] if answered else []
        for event in events:
            if isinstance(event, TaskEvent):
                ended = isinstance(event, ENDS)
                owner = self.owners.pop(event.task, None) if ended else self.owners.get(event.task)
                if ended:
                    self.stopped.discard(event.task)
                    if owner is not None and owner.task is not None:
                        owner.task.touch()  # a graph whose nodes come in is not idle, nor is what it runs in
                if owner is not None and isinstance(event, Entered):
                    self._entered(owner, event, cancelled=any(isinstance(other, Cancel) for other in events))
                elif owner is not None:
                    self._tell(owner, event)
            elif isinstance(event, Loaded):
                self._split(event, loads)
            elif isinstance(event, Cancel):  # to all at once: told by its parent, a child would have gone on by then
                for member in self._live(self.root):
                    self._tell(member, event)
            else:
                self._tell(self.root, event)

    def _live(self, member: Member) -> Iterator[Member]:
        yield member
        for child in member.children.values():
            yield from self._live(child)

    def _split(self, event: Loaded, loads: Sequence[Member]) -> None:
        """One round trip answered the loads of several members, in the order they asked."""
        at = 0
        for member in loads:
            upto = at + member.loads
            opened = event.opened and replace(event.opened, saved=event.opened.saved[at:upto])
            self._tell(member, Loaded(event.requests[at:upto], opened, event.pages))
            at = upto


def _prepare(frame: Frame, call: GraphCall) -> str:
    """Give the frame of a called graph what only a call has; the fingerprint of its input."""
    run = call.inner_run
    run.multiplexed = True
    frame.before = frame.before if run.before is None else run.before
    frame.after = frame.after if run.after is None else run.after
    if call.fingerprint:
        frame.metadata = {**frame.metadata, FINGERPRINT: call.fingerprint}  # others share it
    return call.fingerprint


def _end(task: Task, result: Result) -> Event | None:
    """What its parent hears of a task whose child ended; None when its output is still to be written by its body."""
    status = result.status
    if status == "parent" and (at := _commands(task, result)) is not None:
        return Failed(task, ParentCommand(*at))
    if status == "done" and isinstance(task, GraphCall):
        return Done(task, [(RETURN, _handed_over(task, result.values))])
    if status not in ("done", "parent"):
        return _news(task, result)
    task.phase, task.output = "leave", _output(result)
    if status == "done" and task.node.pure_output and task.clock is None and not task.frame.run.bodies_heard:
        return leave_plainly(task)
    return None


def _handed_over(call: GraphCall, values: Any) -> Any:
    """What the caller of a graph gets of its values, and what is stored for it."""
    if call.stream is not None:
        return call.stream.result
    hand_over = call.node.subgraph.hand_over
    return values if hand_over is None else hand_over(call.arg, values)


def _commands(task: Task, result: Result) -> list[Command[Any]] | None:
    """The commands that go on to the code that called the graph, or to a graph further up; None when there are none."""
    if isinstance(task, GraphCall):
        return addressed(task.parent, result.command)
    return [one for one in addressed(task, result.command) if not for_graph_of(task, one)] or None


def _output(result: Result) -> Any:
    """What a child's end means as the output of its node: its values, or its commands for this graph."""
    if result.status == "done":
        return result.values
    commands = [replace(command, graph=None) for command in result.command]
    return commands[0] if len(commands) == 1 else commands


def _news(task: Task, result: Result) -> Event:
    if result.status == "interrupted":
        return Paused(task, result.asked)
    if result.status == "cancelled":
        return Gone(task)
    return Failed(task, result.error or InternalError(f"A subgraph ended as {result.status} and said nothing."))
