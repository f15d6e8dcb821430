"""Starts: a run is admitted here and run elsewhere.

1. An admission is one append: claim, input checkpoint and release, with the status ``pending``. The thread's row is the
   outbox: whoever goes on with the thread takes the start up, and the claim sees to it that one does.
2. A key is the id of its thread, so of many starts with one key one makes the thread, by the guard of its row. What it
   was made with stands in the metadata of the run's checkpoints, as a fingerprint.
3. What of the config a worker needs is stored beside it. What cannot be stored is refused before anything is written.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pregel.checkpoint.base import is_journal
from pregel.checkpoint.records import Page, Release, Saved
from pregel.checkpoint.standing import ThreadInfo
from pregel.config import COORDINATES, RunnableConfig
from pregel.engine.authority import ClaimMissed
from pregel.engine.call import Call
from pregel.engine.code import code_of
from pregel.engine.effects import Flow, Result, Step
from pregel.engine.fingerprint import fingerprint
from pregel.engine.frame import Frame
from pregel.engine.journal import BlockingJournal
from pregel.engine.open_step import opened_flow
from pregel.engine.resume import Entry, Opening, begin
from pregel.engine.started import STARTED_AS, STARTED_CODE, STARTED_WITH, UNNAMED
from pregel.engine.tries import adriven, awaiting_journal, driven, let_go
from pregel.engine.versions import mismatch, version_of
from pregel.errors import IdempotencyConflictError, InvalidInputError, NotBuiltError, SerializationError, ThreadBusy
from pregel.types import Command

if TYPE_CHECKING:
    from pregel.engine.pregel import Pregel

_KEPT = ("configurable", "metadata", "tags", "run_name", "recursion_limit", "max_concurrency")

admitted: set[Callable[[], object]] = set()
"""What is called after each admission in this process: the workers here need not wait until they look again."""


@dataclass(frozen=True, slots=True)
class RunHandle:
    """A run that was admitted: it is stored, and not done.

    - `existing`: it had been started before, with the same key and the same spec.
    - `url`: where a worker's status page tells how it stands; None without a `base_url`.
    """

    thread_id: str
    run_id: str
    key: str | None
    existing: bool
    url: str | None
    _graph: Pregel = field(repr=False, compare=False)

    def status(self) -> ThreadInfo:
        """How its thread stands now: ``pending`` until a worker has taken it up."""
        return self._graph.threads.status(self.thread_id)

    async def astatus(self) -> ThreadInfo:
        """Async twin of `status`."""
        return await self._graph.threads.astatus(self.thread_id)


def start(
    graph: Pregel, input: Any, config: RunnableConfig | None, *, key: str | None, base_url: str | None
) -> RunHandle:
    """The handle of a run, once it is admitted."""
    admission = Admission(graph, input, config, key, base_url)
    saver, call = graph.saver, admission.call
    while True:
        if key is not None and saver.load(call.thread, []).thread.tno:
            return admission.known(saver.page(call.thread, admission.spec))
        frame = call.frame(BlockingJournal)
        try:
            result = driven(start_flow(frame, input, anew=key is not None), frame)
        except (ClaimMissed, ThreadBusy) as error:
            if key is None:
                call.contend(error, frame.run.journal)
            continue
        return admission.done(result)


async def astart(
    graph: Pregel, input: Any, config: RunnableConfig | None, *, key: str | None, base_url: str | None
) -> RunHandle:
    """Async twin of `start`."""
    admission = Admission(graph, input, config, key, base_url)
    saver, call = graph.saver, admission.call
    while True:
        if key is not None and (await saver.aload(call.thread, [])).thread.tno:
            return admission.known(await saver.apage(call.thread, admission.spec))
        frame = call.frame(awaiting_journal())
        try:
            result = await adriven(start_flow(frame, input, anew=key is not None), frame)
        except (ClaimMissed, ThreadBusy) as error:
            if key is None:
                await call.acontend(error, frame.run.journal)
            continue
        return admission.done(result)


def start_flow(frame: Frame, input: Any, *, anew: bool) -> Flow[Result]:
    """Store an input, and leave the thread to a worker; ClaimMissed where it is to be a new one, and is there."""
    opening = yield from begin(frame, Entry(input))
    if isinstance(opening, Result):
        return opening
    if anew and frame.journal is not None and frame.journal.row.tno:
        raise ClaimMissed
    yield left_to_workers(opening)
    return Result("done")


def left_to_workers(opening: Opening) -> Step:
    """The step that stores an input, and gives the thread back for a worker to run it."""
    step = opening.step
    step.wait = False
    step.release = Release("pending")
    return step


class Admission:
    """What a start asks for, checked."""

    def __init__(
        self, graph: Pregel, input: Any, config: RunnableConfig | None, key: str | None, base_url: str | None
    ) -> None:
        check_named(graph)
        self.graph, self.key, self.base_url = graph, key, base_url
        if input is None or isinstance(input, Command):
            raise InvalidInputError(
                "A start takes an input, not an answer or a None to go on with.",
                fix="Go on with a thread by app.threads.resume(thread_id).",
            )
        _check_stored(graph, input)
        kept, thread = kept_of(config), _thread(config, key)
        self.run_id = str((config or {}).get("run_id") or uuid.uuid4())
        self.fingerprint = spec_of(graph, input, kept)
        told = {STARTED_AS: self.fingerprint, STARTED_CODE: code_of(graph)} | (
            {STARTED_WITH: json.dumps(kept)} if kept else {}
        )
        self.call = Call(graph, input, _config(kept, thread, self.run_id, told))
        self.call.nested = None

    @property
    def spec(self) -> Page:
        """The newest checkpoint that a start with this spec has made."""
        return Page("", limit=1, filter={STARTED_AS: self.fingerprint})

    def known(self, found: Any) -> RunHandle:
        """The handle of the run that is there; IdempotencyConflictError when it was started as something else."""
        if not found:
            raise IdempotencyConflictError(
                f"There is a thread {self.key!r}, and it was not started with this graph, input and config.",
                fix="Use another key; a key stands for one run, whatever became of it.",
                thread=self.call.thread,
            )
        return self._handle(str(found[0][1].metadata.get("run_id", "")), existing=True)

    def done(self, result: Result) -> RunHandle:
        """The handle of the run that was admitted."""
        if result.error is not None:
            raise let_go(result)
        for wake in tuple(admitted):
            wake()
        return self._handle(self.run_id, existing=False)

    def _handle(self, run_id: str, *, existing: bool) -> RunHandle:
        thread = self.call.thread
        url = None if self.base_url is None else status_url(self.base_url, thread)
        return RunHandle(thread, run_id, self.key, existing, url, self.graph)


class TakeUp(Call):
    """Going on with a thread as it was seen: ClaimMissed when somebody has claimed it since.

    A thread of an older version is taken up as well; a `refused` one is failed instead.
    """

    __slots__ = ("epoch", "refused")

    def __init__(
        self, graph: Pregel, thread: str, epoch: int, saved: Saved | None, *, refused: bool = False, **arguments: Any
    ) -> None:
        super().__init__(graph, None, taken_config(thread, saved), **arguments)
        self.epoch, self.refused = epoch, refused

    def start(self, kind: Any) -> Any:
        """The frame and the flow of a try."""
        frame, flow = super().start(kind)
        assert frame.run.journal is not None
        frame.run.journal.after = self.epoch
        frame.run.takes_older = True
        return frame, refused_flow(frame) if self.refused else flow


def refused_flow(frame: Frame) -> Flow[Result]:
    """Fail a thread of a version that is not this graph's: what it has done stays, and its own version can go on."""
    opened = yield from opened_flow(frame)
    error = mismatch(frame.graph, frame.run.thread, version_of(opened))
    step = Step(wait=False)
    step.claim = True
    step.release = Release("failed", f"{type(error).__name__}: {error.message}")
    yield step
    return Result("failed", error=error)


def taken_config(thread: str, saved: Saved | None) -> RunnableConfig:
    """The config to go on with: that of the start where its run made the newest checkpoint, and its run id."""
    metadata: Mapping[str, Any] = {} if saved is None else saved.metadata
    told = {name: metadata[name] for name in (STARTED_AS, STARTED_WITH, STARTED_CODE) if name in metadata}
    return _config(json.loads(metadata.get(STARTED_WITH, "{}")), thread, metadata.get("run_id"), told)


def resumed_config(thread: str, saved: Saved) -> RunnableConfig:
    """The config to go on with by hand: that of the start as well; not its run id, which tells the run admitted."""
    kept = saved.metadata[STARTED_WITH]
    return _config(json.loads(kept), thread, None, {STARTED_WITH: kept})


def spec_of(graph: Pregel, input: Any, kept: Mapping[str, Any]) -> str:
    """A start as one text: equal for the same graph, input and config."""
    return fingerprint(graph.saver.serde, (graph.get_name(), input, kept), {})


def status_url(base: str, thread: str) -> str:
    """Where the status of a thread is told under a base."""
    return f"{base.rstrip('/')}/threads/{quote(thread, safe='')}"


def check_named(graph: Pregel) -> None:
    """A named error for a graph that workers could not tell from others, or whose saver keeps no status."""
    saver_type: Any = type(graph.saver)  # a class has a hash
    if not is_journal(saver_type):
        raise NotBuiltError(
            f"{saver_type.__name__} keeps no status of threads, so a start would not be found.",
            fix="Use InMemorySaver, SqliteSaver or PostgresSaver.",
        )
    if graph.get_name() == UNNAMED:
        raise InvalidInputError(
            "This graph has no name, by which a worker finds what was started.",
            fix='Compile it with a name of its own: compile(name="orders", checkpointer=...).',
        )


def _config(kept: Mapping[str, Any], thread: str, run_id: Any, told: Mapping[str, Any]) -> RunnableConfig:
    config: Any = {
        **kept,
        "configurable": {**kept.get("configurable", {}), "thread_id": thread},
        "metadata": {**kept.get("metadata", {}), **told},
    }
    if run_id:
        config["run_id"] = run_id
    return config  # type: ignore[no-any-return]  # it has the keys of one


def _thread(config: RunnableConfig | None, key: str | None) -> str:
    named = ((config or {}).get("configurable") or {}).get("thread_id")
    if key is None:
        return str(named) if named else str(uuid.uuid4())
    if not isinstance(key, str) or not key:
        raise InvalidInputError(f"The key of a start is {key!r}.", fix="Give a text, or leave it out.")
    if named and str(named) != key:
        raise InvalidInputError(
            f"The key {key!r} names a thread, and the config names another, {named!r}.",
            fix="Leave thread_id out: a start with a key is the run of a thread of that id.",
        )
    return key


def kept_of(config: RunnableConfig | None) -> dict[str, Any]:
    """What of a config goes to the worker; InvalidInputError for what could not be stored."""
    given: dict[str, Any] = {name: value for name, value in (config or {}).items() if value}
    given.pop("run_id", None)
    place = {name: value for name, value in given.get("configurable", {}).items() if name != "thread_id"}
    if lost := [*(given.keys() - set(_KEPT)), *(place.keys() & set(COORDINATES))]:
        raise InvalidInputError(
            f"A start cannot keep {', '.join(sorted(lost))} of its config for the worker that runs it.",
            fix="Leave it out; a worker has callbacks and context of its own.",
        )
    given.pop("configurable", None)
    kept = {**given, "configurable": place} if place else given
    try:
        same = json.loads(json.dumps(kept)) == kept
    except (TypeError, ValueError):
        same = False
    if not same:
        raise InvalidInputError(
            "The config of a start holds what is no JSON.", fix="Give texts, numbers, lists and dicts with text keys."
        )
    return kept


def _check_stored(graph: Pregel, input: Any) -> None:
    try:
        graph.saver.serde.dumps_typed(input)
    except SerializationError:
        raise
    except Exception as error:
        raise SerializationError(f"The input cannot be stored: {error}") from error
