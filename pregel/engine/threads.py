"""`app.threads`: the threads of a graph's saver, how each stands, and what may be done with them.

Each verb is two thin ends, one that blocks and one that awaits, over the same checks. A saver with the reference's
verbs only keeps no status: there it is told from the newest checkpoint, and a verb that it lacks is a named error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pregel.channels import MISSING
from pregel.checkpoint.base import is_journal
from pregel.checkpoint.held import held_threads
from pregel.checkpoint.keys import thread_text
from pregel.checkpoint.lease import lives_here
from pregel.checkpoint.pages import checked_limit
from pregel.checkpoint.records import Saved, ThreadRow
from pregel.checkpoint.standing import STATUSES, ThreadInfo, ThreadStatus, info_of
from pregel.config import RunnableConfig
from pregel.engine.authority import ClaimMissed
from pregel.engine.call import Call
from pregel.engine.journal import BlockingJournal
from pregel.engine.rewind import rewind_flow
from pregel.engine.settle import effects_flow, settle_flow
from pregel.engine.started import STARTED_WITH, UNNAMED
from pregel.engine.thread_waits import Wakes
from pregel.engine.tries import adriven, awaiting_journal, driven, let_go
from pregel.errors import CannotResumeError, InvalidInputError, NotBuiltError, ThreadBusy, ThreadNotFoundError
from pregel.flow import on_thread
from pregel.types import Command, Effect, Rewind, StateSnapshot

if TYPE_CHECKING:
    from pregel.engine.effects import Flow, Result
    from pregel.engine.frame import Frame
    from pregel.engine.pregel import Pregel

T = TypeVar("T")


class Threads(Wakes):
    """The threads of one graph's saver. `app.threads.list()`, `app.threads.status("1")`, and so on."""

    def __init__(self, graph: Pregel) -> None:
        self._graph = graph
        self._saver: Any = graph.saver

    # -- looking -----------------------------------------------------------------------------------------------------

    def list(self, *, status: ThreadStatus | None = None, limit: int | None = None) -> list[ThreadInfo]:
        """The threads, the last written first; those with this `status` only."""
        if self._is_journal:
            return _kept([info_of(row) for row in self._saver.threads(status=_stored(status))], status, limit)
        ids = dict.fromkeys(found.config["configurable"]["thread_id"] for found in self._saver.list(None))
        return _kept([self.status(thread) for thread in ids], status, limit)

    def status(self, thread_id: str) -> ThreadInfo:
        """How a thread stands; ThreadNotFoundError when there is none of that id."""
        thread_id = thread_text(thread_id)
        if self._is_journal:
            return info_of(_found(self._saver.load(thread_id, []).thread))
        return _told(thread_id, self._graph.get_state(_config(thread_id)), self._held(thread_id))

    def can_resume(self, thread_id: str) -> bool:
        """Whether the thread has something to go on with, and nobody runs it."""
        return self.status(thread_id).can_resume

    def reason(self, thread_id: str) -> str:
        """Why the thread is where it is, in plain words."""
        return self.status(thread_id).reason

    # -- acting ------------------------------------------------------------------------------------------------------

    def resume(self, thread_id: str, answer: Any = MISSING, **arguments: Any) -> Any:
        """Go on with a thread, with the answer to its question if there is one; `arguments` are those of `invoke`.

        A thread that was started (`app.start`) goes on with the config of its start. CannotResumeError (with a
        `reason`) when there is nothing to go on with, ThreadBusy when somebody runs it. Nothing is written then.
        """
        check_resumable(self.status(thread_id))
        saved = self._saver.look(thread_text(thread_id), "") if self._may_be_started else None
        return self._graph.invoke(_input(answer), _resumed(thread_id, saved), **arguments)

    def rewind(self, thread_id: str, *, reason: str, operator: str | None = None) -> Rewind:
        """Make a thread that failed ready to go on where it failed; returns once that is recorded, and runs nothing.

        What had finished is not done again. `reason`, and who the `operator` is, are kept in the history with the
        failure. A thread that was rewound and not run since is not rewound again: the same `Rewind` comes back,
        `repeated`. CannotRewindError, and nothing is written, for a thread that has not failed.
        """
        told = _told_why(reason, operator)
        rewound: Rewind = self._performed(lambda frame: rewind_flow(frame, *told), thread_id)
        return rewound

    def effects(self, thread_id: str) -> Sequence[Effect]:
        """What the open step of a thread has begun outside, and has recorded no outcome of: it may have happened."""
        found: Sequence[Effect] = self._performed(effects_flow, thread_id)
        return found

    def settle(
        self, thread_id: str, key: str, *, result: Any = MISSING, retry: bool = False, operator: str | None = None
    ) -> Effect:
        """Say what came of an effect that was begun and has no outcome; `key` is its key, or its id.

        With a `result` it happened, and its node is given that result. With `retry` it did not, and its node does it
        anew. Nothing runs: `resume` goes on. UnknownEffectError when no effect of this name waits, or several do;
        ThreadBusy while somebody runs the thread.
        """
        told = _told_outcome(key, result, retry, operator)
        settled: Effect = self._performed(lambda frame: settle_flow(frame, *told), thread_id)
        return settled

    def delete(self, thread_id: str) -> None:
        """Erase everything about a thread. It needs no authority and wins: a live run ends with ThreadDeleted."""
        self._saver.delete_thread(thread_text(thread_id))

    def copy(self, thread_id: str, target: str) -> None:
        """Copy a thread with its history under a name that is free; ThreadNotFoundError when there is none."""
        self.status(thread_id)
        self._verb("copy_thread")(thread_text(thread_id), target and str(target))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Remove the history of threads (``keep_latest``), or all of it (``delete``); ThreadBusy where a run lives."""
        self._verb("prune")(thread_ids, strategy=strategy)

    # -- async twins -------------------------------------------------------------------------------------------------

    async def alist(self, *, status: ThreadStatus | None = None, limit: int | None = None) -> Sequence[ThreadInfo]:
        """Async twin of `list`."""
        if self._is_journal:
            rows = await self._saver.athreads(status=_stored(status))
            return _kept([info_of(row) for row in rows], status, limit)
        found = await self._awaited(_all_of, lambda saver: list(saver.list(None)))
        ids = dict.fromkeys([one.config["configurable"]["thread_id"] for one in found])
        return _kept([await self.astatus(thread) for thread in ids], status, limit)

    async def astatus(self, thread_id: str) -> ThreadInfo:
        """Async twin of `status`."""
        thread_id = thread_text(thread_id)
        if self._is_journal:
            return info_of(_found((await self._saver.aload(thread_id, [])).thread))
        return _told(thread_id, await self._graph.aget_state(_config(thread_id)), self._held(thread_id))

    async def acan_resume(self, thread_id: str) -> bool:
        """Async twin of `can_resume`."""
        return (await self.astatus(thread_id)).can_resume

    async def areason(self, thread_id: str) -> str:
        """Async twin of `reason`."""
        return (await self.astatus(thread_id)).reason

    async def aresume(self, thread_id: str, answer: Any = MISSING, **arguments: Any) -> Any:
        """Async twin of `resume`."""
        check_resumable(await self.astatus(thread_id))
        saved = (await self._saver.alook(thread_text(thread_id), "")) if self._may_be_started else None
        return await self._graph.ainvoke(_input(answer), _resumed(thread_id, saved), **arguments)

    async def arewind(self, thread_id: str, *, reason: str, operator: str | None = None) -> Rewind:
        """Async twin of `rewind`. A call that is cancelled once it was recorded does not undo it."""
        told = _told_why(reason, operator)
        rewound: Rewind = await self._aperformed(lambda frame: rewind_flow(frame, *told), thread_id)
        return rewound

    async def aeffects(self, thread_id: str) -> Sequence[Effect]:
        """Async twin of `effects`."""
        found: Sequence[Effect] = await self._aperformed(effects_flow, thread_id)
        return found

    async def asettle(
        self, thread_id: str, key: str, *, result: Any = MISSING, retry: bool = False, operator: str | None = None
    ) -> Effect:
        """Async twin of `settle`."""
        told = _told_outcome(key, result, retry, operator)
        settled: Effect = await self._aperformed(lambda frame: settle_flow(frame, *told), thread_id)
        return settled

    async def adelete(self, thread_id: str) -> None:
        """Async twin of `delete`."""
        text = thread_text(thread_id)
        await self._awaited(lambda saver: saver.adelete_thread(text), lambda saver: saver.delete_thread(text))

    async def acopy(self, thread_id: str, target: str) -> None:
        """Async twin of `copy`."""
        await self.astatus(thread_id)
        await self._verb("acopy_thread")(thread_text(thread_id), target and str(target))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Async twin of `prune`."""
        await self._verb("aprune")(thread_ids, strategy=strategy)

    # -- below -------------------------------------------------------------------------------------------------------

    def _performed(self, flow: Callable[[Frame], Flow[Result]], thread_id: str) -> Any:
        """The value of a flow about a thread, which runs no node; it starts over when the thread moves under it."""
        call = self._call(thread_id)
        while True:
            frame = call.reading(BlockingJournal)
            try:
                result = driven(flow(frame), frame)
            except ClaimMissed as error:
                call.contend(error, frame.run.journal)
                continue
            if result.error is not None:
                raise let_go(result)
            return result.values

    async def _aperformed(self, flow: Callable[[Frame], Flow[Result]], thread_id: str) -> Any:
        """The same, awaited."""
        call = self._call(thread_id)
        while True:
            frame = call.reading(awaiting_journal())
            try:
                result = await adriven(flow(frame), frame)
            except ClaimMissed as error:
                await call.acontend(error, frame.run.journal)
                continue
            if result.error is not None:
                raise let_go(result)
            return result.values

    def _call(self, thread_id: str) -> Call:
        if not self._is_journal:
            raise NotBuiltError(
                f"{type(self._saver).__name__} keeps no status of threads, and no effects.",
                fix="Use InMemorySaver, SqliteSaver or PostgresSaver; resume(thread_id) goes on with any thread.",
            )
        call = Call(self._graph, None, _config(thread_text(thread_id)))
        call.nested = None
        return call

    async def _awaited(self, twin: Callable[[Any], Awaitable[T]], verb: Callable[[Any], T]) -> T:
        """What the saver's awaiting verb gives; the blocking one's, on a thread, when it has no other."""
        try:
            return await twin(self._saver)
        except NotBuiltError:
            return await on_thread(verb, self._saver)

    @property
    def _is_journal(self) -> bool:
        return is_journal(type(self._saver))  # type: ignore[arg-type]  # a class has a hash

    @property
    def _may_be_started(self) -> bool:
        """Whether a thread may have been begun by `app.start`: with a config that goes along."""
        return self._is_journal and self._graph.get_name() != UNNAMED

    def _held(self, thread_id: str) -> ThreadRow:
        return held_threads(self._saver).row(thread_id)

    def _verb(self, name: str) -> Any:
        verb = getattr(self._saver, name, None)
        if verb is None:
            raise NotBuiltError(f"{type(self._saver).__name__} has no {name}.", fix="Define it, or use our savers.")
        return verb


def check_resumable(info: ThreadInfo) -> None:
    """A named error with a reason code when a thread has nothing to go on with."""
    if info.can_resume:
        return
    if info.status == "running":
        raise ThreadBusy(f"Thread {info.thread_id!r} cannot be resumed: {info.reason}.", thread=info.thread_id)
    if info.status == "idle":
        raise CannotResumeError(
            f"Thread {info.thread_id!r} has come to its end; there is nothing to go on with.",
            fix="Give it a new input with invoke(input, config), or fork one of its checkpoints.",
            reason="finished",
            thread=info.thread_id,
        )
    if info.status == "abandoned":
        raise CannotResumeError(
            f"Thread {info.thread_id!r} has nothing to go on with: {info.reason}.",
            fix="Give it its input again. With durability 'sync' or 'async' an input is stored before anything runs.",
            reason="lost",
            thread=info.thread_id,
        )
    raise CannotResumeError(
        f"Thread {info.thread_id!r} cannot go on: {info.reason}",
        fix="Put it right with update_state(config, ...), give it a new input, or fork an earlier checkpoint.",
        reason="stuck",
        thread=info.thread_id,
    )


def _found(row: ThreadRow) -> ThreadRow:
    if not row.tno:
        raise _missing(row.thread)
    return row


def _missing(thread_id: str) -> ThreadNotFoundError:
    return ThreadNotFoundError(
        f"There is no thread {thread_id!r}.", fix="app.threads.list() shows those that are there.", thread=thread_id
    )


def _told(thread_id: str, state: StateSnapshot, held: ThreadRow) -> ThreadInfo:
    """How a thread stands whose saver keeps no status: who of this process holds it, and what its state waits for."""
    if state.created_at is None:
        raise _missing(thread_id)
    errors = [task.error for task in state.tasks if task.error]
    if lives_here(held.owner, held.run):
        return ThreadInfo(thread_id, "running", "a run of this process holds it", False)
    if state.interrupts:
        return ThreadInfo(thread_id, "interrupted", "it waits for an answer", True)
    if errors:
        return ThreadInfo(thread_id, "failed", str(errors[0]), True)
    if state.next:
        return ThreadInfo(thread_id, "idle", f"stopped before {', '.join(state.next)}", True)
    return ThreadInfo(thread_id, "idle", "it is at rest", False)


def _told_why(reason: str, operator: str | None) -> tuple[str, str | None]:
    """Who rewinds and why, as a store takes it; InvalidInputError when there is no reason."""
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidInputError("A rewind needs a reason.", fix='Say what was repaired: reason="the host is back".')
    return _plain(reason), operator and _plain(str(operator))


def _told_outcome(key: str, result: Any, retry: bool, operator: str | None) -> tuple[str, Any, str | None]:
    """What came of an effect; InvalidInputError unless it either has a result or is to be retried."""
    if (result is MISSING) != retry:
        raise InvalidInputError(
            "An effect either happened or did not.", fix="Give result=, or retry=True for one that did not happen."
        )
    return key, result, operator


def _plain(text: str) -> str:
    return text.replace("\0", "").encode(errors="replace").decode()


async def _all_of(saver: Any) -> list[Any]:
    return [found async for found in saver.alist(None)]


def _stored(status: ThreadStatus | None) -> str | None:
    if status is not None and status not in STATUSES:
        raise InvalidInputError(f"No thread has the status {status!r}.", fix=f"Use one of {', '.join(STATUSES)}.")
    return "running" if status == "abandoned" else status


def _kept(found: list[ThreadInfo], status: ThreadStatus | None, limit: int | None) -> list[ThreadInfo]:
    _stored(status)
    checked_limit(limit)
    return [info for info in found if status is None or info.status == status][:limit]


def _config(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id}}


def _resumed(thread_id: str, saved: Saved | None) -> RunnableConfig:
    """The config to go on with by hand: also what the thread was started with, if it was."""
    config = _config(thread_id)
    if saved is None or STARTED_WITH not in saved.metadata:
        return config
    from pregel.engine.starts import resumed_config  # few programs start runs elsewhere

    return resumed_config(thread_id, saved)


def _input(answer: Any) -> Command[Any] | None:
    return None if answer is MISSING else Command(resume=answer)
