"""A node's input and output in its span, as far as the node's TracePolicy lets them."""

from __future__ import annotations

from typing import Any

from pregel.runnable import Runnable, acall_anywhere
from pregel.telemetry import INPUT, OUTPUT, Telemetry, active
from pregel.types import TracePolicy


class Recorded(Runnable):
    """A runnable that leaves what it got and gave in the span around it, where runs are traced."""

    def __init__(self, bound: Runnable, policy: TracePolicy) -> None:
        self.bound, self.policy = bound, policy
        self.name = bound.get_name()
        self.has_sync, self.has_async = bound.has_sync, bound.has_async

    def call(self, value: Any, running: Any) -> Any:
        telemetry = self._began(value)
        return self._ended(telemetry, self.bound.call(value, running))

    async def acall(self, value: Any, running: Any) -> Any:
        telemetry = self._began(value)
        return self._ended(telemetry, await acall_anywhere(self.bound, value, running))

    def _began(self, value: Any) -> Telemetry | None:
        telemetry = active()
        if telemetry is not None:
            telemetry.record(INPUT, value, self.policy.process_inputs)
        return telemetry

    def _ended(self, telemetry: Telemetry | None, output: Any) -> Any:
        if telemetry is not None:
            telemetry.record(OUTPUT, output, self.policy.process_outputs)
        return output
