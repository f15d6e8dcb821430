"""How a frame begins: what is loaded, what the call means (new input, resume, answer, replay), and the first records.

1. Nothing is written, and no task planned, before the whole call was understood; a call that makes no sense ends in a
   named error with the thread untouched. On a thread that another run holds nothing is understood yet: the call waits,
   or is refused, first.
2. An answer is bound to the question it answers before anything runs, and stored with the claim.
3. A call that addresses a checkpoint by id is a replay: stored results below it are not reused, and the run goes on as
   a fork, so the old branch stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pregel.channels import MISSING
from pregel.channels.overwrite import overwrite_of
from pregel.checkpoint.records import (
    EFFECT,
    ERROR_SOURCE,
    INTERRUPT,
    MEMO,
    RESUME,
    Load,
    Opened,
    Page,
    Save,
    Saved,
    TaskWrites,
    Write,
)
from pregel.engine.answers import Refused, answers_to, bind
from pregel.engine.apply import Input, apply
from pregel.engine.authority import ClaimMissed
from pregel.engine.command import BRANCH, command_writes
from pregel.engine.commits import commit
from pregel.engine.effects import Cancel, Event, Flow, Loaded, Result, Step
from pregel.engine.frame import Frame
from pregel.engine.ids import NULL_TASK, Lineage
from pregel.engine.input import empty_command, input_writes
from pregel.engine.pending import open_questions, outside_of, rewinds_of, stored_failures, stored_results
from pregel.engine.plan import INTERRUPT_SEEN, START, plan
from pregel.engine.started import BEGAN
from pregel.engine.versions import mismatch_of
from pregel.engine.waiting import asleep, outcomes_flow
from pregel.errors import (
    CheckpointNotFoundError,
    InvalidUpdateError,
    NoCheckpointerError,
    PregelError,
    ReplayMismatchError,
    ThreadBusy,
    UnknownTargetError,
)
from pregel.types import Command, Interrupt

if TYPE_CHECKING:
    from pregel.engine.journal import Journal

FINGERPRINT = "input_fingerprint"
"""Where the checkpoints of a graph that a node called say what it was called with."""
NEVER = "00000000-0000-0000-0000-000000000000"  # before every checkpoint


class Entry(NamedTuple):
    """What a frame is asked to do."""

    input: Any
    checkpoint: str | None = None  # the one that the call addresses
    answers: Mapping[str, Any] = {}  # interrupt id -> answer, handed down by a parent
    resuming: bool = False  # a parent resumes: a stored checkpoint wins over the input
    anew: bool = False  # from the very beginning, whatever is stored
    before: str | None = None  # the newest checkpoint below this one, instead of the newest of all
    fingerprint: str = ""  # of the input, where code that may change on a replay made it


class Replay:
    """What a replay of the root means for persistent subgraphs: each goes back once, to what it was at that time.

    `pinned`: namespace -> the checkpoint that it is to go on from exactly. `before`: the root's checkpoint.
    """

    __slots__ = ("before", "pinned", "visited")

    def __init__(self, pinned: Mapping[str, str]) -> None:
        self.pinned = pinned
        self.before: str | None = None  # set when the root turns out to be replayed
        self.visited: set[str] = set()

    def entry(self, ns: str, entry: Entry) -> Entry:
        """How a subgraph is entered."""
        if self.before is None or ns in self.visited:
            return entry
        self.visited.add(ns)
        if ns in self.pinned:
            return entry._replace(checkpoint=self.pinned[ns], input=None)
        return entry._replace(before=self.before)


class Opening:
    """Where a frame starts from: the records that wait, and what is stored of its tasks, by task id.

    `attempts`: how often they were tried (see `Tries`). `handled`: the failures, as text, that are an error handler's.
    `asleep`: those that wait still, and for what. `died`: the process that ran them died. `saved`: the checkpoint
    that it goes on from, where that is shown. `first`: the first superstep, START's, in place of the input, when nobody
    is told of either.
    """

    pending: Mapping[str, list[Write]] = {}
    answers: Mapping[str, dict[str, Any]] = {}
    attempts: Mapping[str, list[Any]] = {}
    handled: Mapping[str, str] = {}
    asleep: Mapping[str, tuple[Interrupt, ...]] = {}
    died = False
    first: Input | None = None

    def __init__(self, step: Step, *, resumed: bool = False, saved: Saved | None = None) -> None:
        self.step = step
        self.resumed = resumed
        self.saved = saved

    @property
    def is_bare(self) -> bool:
        """Whether nothing is known of any task."""
        return not (self.pending or self.answers or self.attempts or self.handled or self.asleep or self.died)

    def forget(self) -> None:
        """The step that these were about is over."""
        self.pending, self.answers, self.attempts, self.handled, self.died = {}, {}, {}, {}, False
        self.asleep = {}


def begin(frame: Frame, entry: Entry) -> Flow[Opening | Result]:
    """The opening of a frame, or the result when there is nothing to run."""
    saved, head = None, ""
    if frame.journal is not None and not frame.fresh:
        before = NEVER if entry.anew else entry.before
        opened = _opened((yield Step(load=[Load(frame.ns, entry.checkpoint, before)])))
        if opened is not None and frame.is_root:
            frame.journal.may_begin()
            if opened.thread.status == "pending" and (entry.checkpoint or not _goes_on(entry.input)):
                raise _left_to_a_worker(frame.run.thread)
            frame.run.died = opened.thread.run is not None
            anew = not _goes_on(entry.input)
            if other := mismatch_of(frame, opened, checkpoint=entry.checkpoint, anew=anew):
                return Result("failed", error=other)
            if opened.thread.is_rolled_back and not (_goes_on(entry.input) or entry.checkpoint or entry.anew):
                entry, opened = yield from _rolled_back(frame.journal, entry, opened)
        if opened is None:
            return Result("cancelled")
        saved, head = opened.saved[0], opened.heads.get(frame.ns, "")
        if entry.resuming and entry.checkpoint is None and saved is not None and not _is_of_this_task(frame, saved):
            saved = (yield from _of_this_task(frame)) or saved
    if frame.is_root and saved is not None and entry.checkpoint is None and _resumes(entry):
        yield from outcomes_flow(frame, saved)
    if frame.is_root and saved is not None and BEGAN in saved.metadata:
        frame.run.metadata[BEGAN] = saved.metadata[BEGAN]
        frame.metadata = {**frame.metadata, BEGAN: saved.metadata[BEGAN]}
    elif saved is not None and saved.id < frame.run.metadata.get(BEGAN, "") and not frame.is_root:
        saved, head = None, ""  # of an execution that is over
    failure: Exception
    try:
        return _open(frame, entry, saved, head)
    except PregelError as error:
        failure = error
    except Refused as refused:
        failure = refused.error
    if frame.is_root and frame.run.died:
        yield from _unmoved(frame)
    return Result("failed", error=failure)


def _opened(events: Sequence[Event]) -> Opened | None:
    """What a load found; None when the run is to be wound down."""
    opened = None
    for event in events:
        if isinstance(event, Loaded):
            opened = event.opened
        elif isinstance(event, Cancel):
            return None
    return opened


def _rolled_back(journal: Journal, entry: Entry, opened: Opened) -> Flow[tuple[Entry, Opened | None]]:
    """Where a new input begins: where the run that was rolled back had started, unless that has been removed."""
    pin, journal.after, journal.ledger = journal.row.pin, journal.row.epoch, journal.saver.ledger()
    found = _opened((yield Step(load=[Load("", pin or None, None if pin else NEVER)])))
    journal.may_begin()
    if found is not None and pin and found.saved[0] is None:
        journal.ledger.open(opened)
        return entry, opened
    return entry._replace(checkpoint=pin or None, anew=not pin), found


def _resumes(entry: Entry) -> bool:
    """Whether it goes on with the work that is pending."""
    return entry.input is None or isinstance(entry.input, Command)


def _left_to_a_worker(thread: str) -> ThreadBusy:
    """The error of a call that would give up a start which no worker has taken up yet."""
    return ThreadBusy(
        f"Thread {thread!r} was started, and waits for a worker.",
        fix="Let a worker run it, or go on with it here: app.threads.resume(thread_id).",
        reason="pending",
        thread=thread,
    )


def _goes_on(given: Any) -> bool:
    """Whether it is meant for what stands there: an answer, or a None to go on with."""
    return given is None or (isinstance(given, Command) and given.resume is not None)


def _of_this_task(frame: Frame) -> Flow[Saved | None]:
    """The newest checkpoint that a subgraph has of the task that runs it now, behind those that other branches made."""
    found = None
    for event in (yield Step(load=[Page(frame.ns, limit=1, filter={"parents": dict(frame.parents)})])):
        if isinstance(event, Loaded) and event.pages[0]:
            found = event.pages[0][0][1].id
    if found is None:
        return None
    opened = _opened((yield Step(load=[Load(frame.ns, found)])))
    return None if opened is None else opened.saved[0]


def _unmoved(frame: Frame) -> Flow[None]:
    """ClaimMissed when the thread has moved on since it was loaded with a run that holds it, and is over now.

    That run may have ended between the two looks, and left what the call was refused for the want of.
    """
    journal = frame.journal
    assert journal is not None
    seq = journal.row.seq
    opened = _opened((yield Step(load=[Load(frame.ns)])))
    if opened is not None and opened.thread.seq != seq:
        raise ClaimMissed


def _open(frame: Frame, entry: Entry, saved: Saved | None, head: str) -> Opening:
    state, command = frame.state, entry.input if isinstance(entry.input, Command) else None
    if command is not None and command.graph is not None:
        raise InvalidUpdateError(
            f"A Command for graph {command.graph!r} was given as input, and there is no parent graph.",
            fix="Leave out graph=; an input is for the graph that is called.",
            thread=frame.run.thread,
        )
    if entry.checkpoint and saved is None:
        raise CheckpointNotFoundError(
            f"Checkpoint {entry.checkpoint!r} does not exist in thread {frame.run.thread!r}.",
            fix="Take an id from get_state_history(config).",
            thread=frame.run.thread,
        )
    if entry.checkpoint and saved is not None and frame.is_root and (command is None or command.resume is None):
        frame.run.replay = frame.run.replay or Replay({})
        frame.run.replay.before = saved.parent if saved.source in ("update", "fork") and saved.parent else saved.id
    restore(frame, saved)
    state.stop = state.step + frame.run.limit + 1
    step = Step()
    step.claim = frame.journal is not None
    resuming = entry.resuming and saved is not None and _is_of_this_task(frame, saved)
    if resuming and saved is not None and saved.metadata.get(FINGERPRINT, entry.fingerprint) != entry.fingerprint:
        raise mismatch(frame.graph.get_name(), frame.run.thread)
    resumes = saved is not None and (entry.input is None or command is not None or resuming)
    if saved is not None and resumes:
        return _resume(frame, entry, command, saved, head, step)
    opening = Opening(step)
    at_head = entry.checkpoint is None and entry.before is None
    start(frame, entry, command, opening, outside_of(saved) if saved is not None and at_head else [])
    return opening


def _is_of_this_task(frame: Frame, saved: Saved) -> bool:
    """Whether a subgraph's checkpoint comes from the task that runs it now; a persistent one has older ones as well."""
    stood_on = saved.metadata.get("parents") or {}
    return all(stood_on.get(ns, checkpoint) == checkpoint for ns, checkpoint in frame.parents.items())


def mismatch(name: str, thread: str) -> ReplayMismatchError:
    """The error of a graph that a node, running again, calls with another input than the first time."""
    return ReplayMismatchError(
        f"A node runs again, and calls graph {name!r} with another input than the first time.",
        fix="Make the input from the state, or keep what changes (times, random numbers) with runtime.step.",
        thread=thread,
    )


def restore(frame: Frame, saved: Saved | None) -> None:
    """Set a frame's state to a stored checkpoint, or to the very beginning."""
    state = frame.state
    state.live.update(frame.plan.initially_live)
    if saved is None:
        state.checkpoint = frame.home or state.checkpoint or frame.run.ids.next(-2)
        state.updated = []
        return
    state.restore(saved.values, saved.counters)
    state.seen = {name: dict(seen) for name, seen in saved.seen.items()}
    state.updated = saved.updated
    state.checkpoint, state.lineage = saved.id, saved.lineage
    state.step = saved.step + 1
    frame.stored = True


# -- resuming --------------------------------------------------------------------------------------------------------


def _resume(frame: Frame, entry: Entry, command: Command[Any] | None, saved: Saved, head: str, step: Step) -> Opening:
    answering = command is not None and command.resume is not None
    if command is not None and not answering and command.update is None and not command.goto:
        raise empty_command(frame, open_questions(saved, stored_results(saved)[1]))
    _check_woken(frame, saved)
    replaying = entry.checkpoint is not None and not answering
    pending, answers = stored_results(saved)
    if replaying:
        pending, answers = {}, {}
    else:
        frame.asked_before = {write.task: write.value for write in saved.writes if write.channel == INTERRUPT}
    bound = bind(frame, saved, answers, command.resume if command is not None else None, entry.answers)
    for task, given in bound.items():
        answers[task] = {**answers.get(task, {}), **given}
        name, path = next((write.name, write.path) for write in saved.writes if write.task == task)
        step.writes.append(TaskWrites(frame.ns, saved.id, task, name, path, [(RESUME, answers[task])]))
    if replaying and not _is_fresh_branch(frame, saved, head):
        _fork(frame, saved, step)
    outside = [] if replaying else outside_of(saved)
    if command is not None and (news := command_writes(frame, command)):
        step.writes.append(TaskWrites(frame.ns, frame.state.checkpoint, NULL_TASK, "", "", news, first=len(outside)))
        outside += news
    if outside:
        _apply_outside(frame, outside)
    frame.state.seen[INTERRUPT_SEEN] = {"": frame.state.counter}
    frame.seen_news = (*frame.seen_news, INTERRUPT_SEEN)
    opening = Opening(step, resumed=True, saved=saved if frame.traced else None)
    opening.pending, opening.answers = pending, answers
    if not replaying:
        opening.asleep = asleep(saved, answers)
        opening.attempts, opening.handled = stored_failures(saved)
        opening.died = frame.run.died
        if frame.is_root and (rewinds := rewinds_of(saved)):
            _take_up(frame, rewinds[-1]["execution_id"])
    return opening


def _check_woken(frame: Frame, saved: Saved) -> None:
    """UnknownTargetError when a node is to run that this graph does not have: the thread would end without it."""
    for channel in saved.counters if saved.updated is None else saved.updated:
        node = channel.removeprefix(BRANCH)
        if node == channel or node in frame.plan.nodes or channel not in saved.values:
            continue
        if saved.counters.get(channel) == frame.state.counter:  # of the newest step: an older one is over
            raise UnknownTargetError(
                f"Node {node!r} is to run next, and graph {frame.graph.get_name()!r} does not have it.",
                fix="Go on with a graph that has a node of this name, or say which node's work was done instead: "
                "update_state(config, values, as_node=...). "
                f"Known nodes: {', '.join(sorted(frame.plan.nodes))}.",
                thread=frame.run.thread,
            )


def _take_up(frame: Frame, execution: str) -> None:
    """Run as the execution that a rewind has opened, unless the caller gave this run an id of its own."""
    run = frame.run
    if "run_id" not in run.metadata:
        run.metadata["run_id"] = execution
        run.config = {**run.config, "run_id": execution}
        frame.metadata = {**frame.metadata, "run_id": execution}


def _is_fresh_branch(frame: Frame, saved: Saved, head: str) -> bool:
    """Whether a replay needs no fork: it is at a fork or an update, at the head, and nothing of its step is done.

    Done is a result, an answer, what a command wrote, and a handled failure. What is stored under a task id is stored
    once, so what is done again needs ids of its own.
    """
    if saved.source not in ("update", "fork") or saved.id != head or not _is_of_this_task(frame, saved):
        return False
    return not any(
        write.child is None and (write.idx >= 0 or write.channel in (MEMO, EFFECT, RESUME, ERROR_SOURCE))
        for write in saved.writes
    )


def _apply_outside(frame: Frame, writes: list[tuple[str, Any]]) -> None:
    """Bring a command's writes in beside what is pending; the next checkpoint carries what they changed."""
    state, woken = frame.state, frame.state.updated
    frame.note(apply(frame.plan, state, [Input(writes)]))
    state.updated = None if woken is None else list(dict.fromkeys([*woken, *(state.updated or ())]))


def _fork(frame: Frame, saved: Saved, step: Step) -> None:
    """Go on as a new branch: a checkpoint that says the same and hangs on the addressed one."""
    state = frame.state
    state.checkpoint = frame.run.ids.next(state.step)
    state.lineage = Lineage(state.lineage, ("fork", str(state.counter)))
    step.saves.append(
        Save(
            ns=frame.ns,
            id=state.checkpoint,
            parent=saved.id,
            step=state.step,
            source="fork",
            metadata=frame.metadata,
            lineage=state.lineage,
            changed={},
            seen={},
            updated=state.updated,
        )
    )
    state.step += 1


# -- starting --------------------------------------------------------------------------------------------------------


def start(
    frame: Frame, entry: Entry, command: Command[Any] | None, opening: Opening, outside: list[tuple[str, Any]]
) -> None:
    """Apply a new input: what commands wrote `outside` stays, work that was pending is given up, the input goes in."""
    if command is not None and command.resume is not None:
        if frame.journal is None:
            raise NoCheckpointerError("Cannot resume: the graph has no checkpointer, so no question was kept.")
        answers_to(frame, {}, command.resume)
    writes = input_writes(frame, entry.input)
    admit(frame, writes)
    if frame.journal is None and command is None:
        opening.first = _through_start(frame, writes)
        if opening.first is not None:
            frame.state.step += 1
            return
    if outside:
        _apply_outside(frame, outside)
    given_up = plan(frame.plan, frame) if frame.stored else []
    applied = apply(frame.plan, frame.state, [*given_up, Input(writes)])
    commit(frame, opening.step, applied, "input", [])


def _through_start(frame: Frame, writes: Sequence[tuple[str, Any]]) -> Input | None:
    """What START makes of an input, to be applied at once where nobody is told of the input itself; else None."""
    node, (name, value) = frame.plan.start, writes[0]
    if node is None or name != START or frame.shows or frame.before or frame.after or frame.drain_asked:
        return None
    through: list[tuple[str, Any]] = []
    try:
        if overwrite_of(value) is not MISSING:
            return None
        for writer in node.writers:
            writer.write(value, through)  # type: ignore[union-attr]  # a pure node asks nothing
    except Exception:
        return None  # START will raise it, in its own step
    return Input(through, START, (START,))


def admit(frame: Frame, writes: Sequence[tuple[str, Any]]) -> None:
    """Have START's check look at the input before anything is written; Refused where it raises."""
    start = frame.plan.nodes.get(START)
    if start is not None and start.admit is not None:
        try:
            start.admit(dict(writes)[START])
        except Exception as error:
            raise Refused(error) from error
