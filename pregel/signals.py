"""SIGTERM and Ctrl-C as a request to stop between two steps, for programs that ask for it.

1. Nothing is installed unless a program says so, and the program's own handlers are back when the block ends.
2. The first signal asks the runs that were given the control to drain: they end with GraphDrained after the step that
   runs now, and the thread can be resumed. The second one is as abrupt as it would have been: KeyboardInterrupt for
   Ctrl-C, SystemExit for all others; what has ended by then is stored on the way out.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pregel.errors import InvalidInputError
from pregel.runtime import RunControl

USUAL = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def drain_on_signals(*signals: int, control: RunControl | None = None) -> Iterator[RunControl]:
    """A control for the `control=` of runs, which SIGTERM and Ctrl-C (or these `signals`) ask to drain.

    For the main thread only, since Python hears signals nowhere else: InvalidInputError on another one.
    """
    if threading.current_thread() is not threading.main_thread():
        raise InvalidInputError(
            "Signals can be handled on the main thread only.",
            fix="Enter drain_on_signals() on the main thread, and hand its control to the runs.",
        )
    asked = control or RunControl()

    def handle(number: int, frame: FrameType | None) -> None:
        if not asked.drain_requested:
            asked.request_drain(signal.Signals(number).name)
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            raise SystemExit(128 + number)

    before = {number: signal.signal(number, handle) for number in signals or USUAL}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
