"""One try of a call: the driver that runs it, and what comes of it.

A call is tried again when another run took the thread meanwhile (`engine.contend`), each time with a new driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from pregel.engine.above import above
from pregel.engine.call import Call
from pregel.engine.drive_sync import BlockingDriver
from pregel.engine.effects import Flow, Result
from pregel.engine.frame import Frame
from pregel.engine.journal import BlockingJournal
from pregel.engine.parked import Parked
from pregel.errors import GraphInterrupt
from pregel.telemetry import active
from pregel.types import GraphOutput

if TYPE_CHECKING:
    from pregel.engine.drive_async import AwaitingDriver
    from pregel.engine.journal_async import AwaitingJournal
    from pregel.engine.recording import RecordingJournal
    from pregel.engine.recording_async import AwaitingRecordingJournal
    from pregel.telemetry import Telemetry


def output_of(call: Call, result: Result) -> Any:
    """What `invoke` returns for a result; inside a node the questions go up through that node."""
    if result.status == "parent":
        raise above(call.nested, result.command)
    if result.asked and call.nested is not None:
        call.nested.asked = (*call.nested.asked, *result.asked)
        raise GraphInterrupt(result.asked)
    if call.version == "v2":
        return GraphOutput(call.graph.typed_output(result.values), result.asked)
    if not result.asked:
        return result.values
    values = result.values if isinstance(result.values, dict) else {}
    return {**values, "__interrupt__": list(result.asked)}


def let_go(result: Result) -> BaseException:
    """The error of a result, which then holds it no longer: raising it makes no cycle through the result's frame."""
    error, result.error = result.error, None
    assert error is not None
    return error


def blocking_driver(call: Call) -> BlockingDriver:
    """The driver of one try of a call, which hears what nodes show while they run."""
    frame, flow = call.start(BlockingJournal if not call.recorded else _recording_journal())
    driver = BlockingDriver(flow, frame.run.journal, live=frame.run.live, room=call.room)  # type: ignore[arg-type]
    frame.run.post, frame.run.host = driver.post, driver
    if call.recorded:
        _record(call, frame)
    if driver.journal is not None:
        driver.journal.driven_by = ref(driver)
    if (telemetry := active()) is not None:
        _traced(driver, frame, telemetry)
    if call.heard is not None:
        call.heard.attach(driver, frame)
    return driver


def awaiting_driver(call: Call) -> AwaitingDriver:
    """The same, awaiting."""
    from pregel.engine.drive_async import AwaitingDriver

    frame, flow = call.start(awaiting_journal() if not call.recorded else _awaiting_recording_journal())
    driver = AwaitingDriver(flow, frame.run.journal, live=frame.run.live, room=call.room)  # type: ignore[arg-type]
    frame.run.post, frame.run.host = driver.post_chunk, driver
    if call.recorded:
        _record(call, frame)
    if driver.journal is not None:
        driver.journal.driven_by = ref(driver)
    if (telemetry := active()) is not None:
        _traced(driver, frame, telemetry)
    if call.heard is not None:
        call.heard.attach(driver, frame)
    return driver


def _record(call: Call, frame: Frame) -> None:
    """Let the journal keep what is shown, in the modes that were asked for."""
    run = frame.run
    run_id = run.metadata.get("run_id")
    run.journal.records(call.recorded, run_id)  # type: ignore[union-attr]  # it was made to record
    run.post = run.journal.tapped(run.post, call.yields | call.printed)  # type: ignore[union-attr]


def _recording_journal() -> type[RecordingJournal]:
    from pregel.engine.recording import RecordingJournal  # few runs are followed

    return RecordingJournal


def _awaiting_recording_journal() -> type[AwaitingRecordingJournal]:
    from pregel.engine.recording_async import AwaitingRecordingJournal

    return AwaitingRecordingJournal


def _traced(driver: BlockingDriver | AwaitingDriver, frame: Frame, telemetry: Telemetry) -> None:
    from pregel.engine.spans import traced  # few programs trace

    traced(driver, frame, telemetry)


def driven(flow: Flow[Any], frame: Frame) -> Any:
    """The value of a flow that shows nothing."""
    return BlockingDriver(flow, frame.run.journal).run()  # type: ignore[arg-type]


async def adriven(flow: Flow[Any], frame: Frame) -> Any:
    """The same, awaited."""
    from pregel.engine.drive_async import AwaitingDriver

    return await AwaitingDriver(flow, frame.run.journal).run()  # type: ignore[arg-type]


def awaiting_journal() -> type[AwaitingJournal]:
    """The journal for an awaiting driver; loaded here because asyncio costs as much to import as this package."""
    from pregel.engine.journal_async import AwaitingJournal

    return AwaitingJournal


def parked_at(driver: BlockingDriver | AwaitingDriver, chunks: Any) -> Parked | None:
    """Let other runs of this process see whether a stream goes on; nobody looks where no thread is held."""
    journal = driver.journal
    if journal is None:
        return None
    parked = journal.parked = Parked(chunks, driver.jobs, journal.caller)
    return parked


def unparked(driver: BlockingDriver | AwaitingDriver) -> None:
    """The stream of this driver stands nowhere any more."""
    if driver.journal is not None:
        driver.journal.parked = None  # it holds what holds the journal
