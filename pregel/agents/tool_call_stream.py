"""The tool calls of a run as a projection: each call as it goes, with what its tool puts out on the way."""

from __future__ import annotations

from typing import Any

from pregel.stream.channel import StreamChannel
from pregel.stream.message import AwaitingPieces, BlockingPieces
from pregel.stream.protocol import ProtocolEvent
from pregel.stream.transformers import ModeTransformer

__all__ = ["ToolCallStream", "ToolCallTransformer"]


class ToolCallStream:
    """A tool call of a run: `output_deltas` are what its tool emits; once `completed`, `output` or `error` is there.

    `output` is the content of the message that the tool answers with, or what else it returned; `error` a text.
    """

    def __init__(self, tool_call_id: str, tool_name: str, input: Any, output_deltas: Any) -> None:
        self.tool_call_id, self.tool_name, self.input = tool_call_id, tool_name, input
        self.output_deltas: BlockingPieces[Any] | AwaitingPieces[Any] = output_deltas
        self.output: Any = None
        self.error: str | None = None
        self.completed = False

    def end(self, output: Any = None, error: str | None = None) -> None:
        """The call is over."""
        self.output, self.error, self.completed = output, error, True
        self.output_deltas.end(list(self.output_deltas.items))


class ToolCallTransformer(ModeTransformer):
    """The projection `tool_calls`: a ToolCallStream for each call that the graph of its scope makes."""

    mode = "tools"

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self.channel: StreamChannel[ToolCallStream] = StreamChannel()
        self._open: dict[str, ToolCallStream] = {}

    def init(self) -> dict[str, Any]:
        return {"tool_calls": self.channel}

    def take(self, event: ProtocolEvent) -> None:
        match event["params"]["data"]:
            case {"event": "tool-started", "tool_call_id": id, "tool_name": name, "input": given}:
                kind = AwaitingPieces if self.mux.pump.awaits else BlockingPieces
                self._open[id] = call = ToolCallStream(id, name, given, kind(self.mux.pump))
                self.channel.push(call)
            case {"event": "tool-output-delta", "tool_call_id": id, "delta": delta} if id in self._open:
                self._open[id].output_deltas.push(delta)
            case {"event": "tool-finished", "tool_call_id": id, "output": output} if id in self._open:
                self._open.pop(id).end(_content(output))
            case {"event": "tool-error", "tool_call_id": id, "message": message} if id in self._open:
                self._open.pop(id).end(error=message)

    def finalize(self) -> None:
        for call in self._open.values():  # it asked something, or the run is paused for another reason
            call.output_deltas.end(list(call.output_deltas.items))

    def fail(self, err: BaseException) -> None:
        for call in self._open.values():
            call.output_deltas.end(error=err)


def _content(output: Any) -> Any:
    return output.content if getattr(output, "type", None) == "tool" else output
