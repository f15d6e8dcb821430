"""Continue-as-new: the thread keeps its id, and begins a new execution with nothing of the old one but an input.

1. It is one append: the first checkpoint of the new execution, the run id, the events that are dropped, and with
   another version the thread's release. A process that dies before it leaves the old execution, one that
   dies after it the new one.
2. The new execution's checkpoints hang on none of the old one's, and say where it `BEGAN`: what a persistent subgraph
   stored before that is not looked at. The history of the old one stays.
3. Idempotency keys go on from the old execution's: the second cycle's payment is not the first one's, and a renewal
   that was lost is done again with the same keys.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pregel.checkpoint.labels import label
from pregel.checkpoint.records import Release
from pregel.engine.answers import Refused
from pregel.engine.effects import Flow, Result, Step
from pregel.engine.frame import NO_ANSWERS, Frame
from pregel.engine.ids import Lineage
from pregel.engine.input import input_writes
from pregel.engine.plan import START
from pregel.engine.resume import Entry, Opening, admit, start
from pregel.engine.started import BEGAN, STARTED_CODE
from pregel.engine.state import State
from pregel.engine.versions import VERSION
from pregel.errors import NoCheckpointerError, NotBuiltError

if TYPE_CHECKING:
    from pregel.errors import ContinueAsNew


def refusal(frame: Frame, asked: ContinueAsNew) -> Exception | None:
    """Why a run cannot begin anew, before anything of it was changed."""
    journal = frame.journal
    if journal is None:
        return NoCheckpointerError(
            "A node raised ContinueAsNew, but no checkpointer could keep the new execution.",
            fix="Compile the graph with InMemorySaver, SqliteSaver or PostgresSaver.",
        )
    if not hasattr(journal.saver, "events"):
        return NotBuiltError(
            "This saver has only the verbs of the reference: no execution can follow another on it.",
            fix="Use InMemorySaver, SqliteSaver or PostgresSaver.",
            thread=frame.run.thread,
        )
    try:
        writes = input_writes(frame, asked.input)
        if not _is_other(frame, asked):
            admit(frame, writes)
            for writer in () if frame.plan.start is None else frame.plan.start.writers:
                writer.write(dict(writes)[START], [])  # type: ignore[union-attr]  # a pure node asks nothing
        journal.saver.serde.dumps_typed(asked.input)
    except Refused as refused:
        return refused.error
    except Exception as error:
        return error
    return None


def renewed_flow(frame: Frame, step: Step, asked: ContinueAsNew) -> Flow[Opening | Result]:
    """Begin the new execution: its opening, or the end of this call when another version is to run it."""
    lineage = Lineage(frame.state.lineage, ("anew", str(frame.state.counter)))
    _forget(frame, asked)
    frame.state.lineage = lineage
    opening = Opening(step)
    start(frame, Entry(asked.input), None, opening, [])
    step.at_once, step.drops, step.wait = True, not asked.keep_events, False
    if _is_other(frame, asked):
        version = asked.version
        step.release = Release("pending", graph=label(frame.graph.get_name(), version))
        yield step
        return Result("done")
    yield step
    frame.journal.runs_as(frame.run.metadata["run_id"])  # type: ignore[union-attr]  # there is none without one
    opening.step = Step()
    return opening


def _is_other(frame: Frame, asked: ContinueAsNew) -> bool:
    return asked.version is not None and asked.version != frame.graph.version


def _forget(frame: Frame, asked: ContinueAsNew) -> None:
    """Let the frame be as before its first superstep, in an execution of another id."""
    run, state = frame.run, State(frame.plan)
    state.live.update(frame.plan.initially_live)
    state.updated, state.stop = [], run.limit
    frame.state, frame.stored, frame.tasks_fresh = state, False, True
    state.checkpoint = run.ids.next(-2)
    frame.recalled, frame.asked_before, frame.below = {}, NO_ANSWERS, None
    frame.seen_news, frame.changed_news = (), ()
    frame.emitted, frame.last_values, frame.traced_id = False, None, ""
    run.waits, run.outcomes, run.died, run.replay = {}, NO_ANSWERS, False, None
    news: Mapping[str, Any] = {"run_id": str(uuid.uuid4()), BEGAN: state.checkpoint}
    if _is_other(frame, asked):
        news = {**news, VERSION: asked.version}
        run.metadata.pop(STARTED_CODE, None)  # which was the old version's
    run.metadata.update(news)
    run.config = {**run.config, "run_id": news["run_id"]}
    frame.metadata = {"parents": {}, **run.metadata}
