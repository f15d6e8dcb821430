"""The events of a run as its projections see them: one dict for each thing that a part of its stream says."""

from __future__ import annotations

import time
from typing import Any, Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

from pregel.question import Interrupt

SubgraphStatus: TypeAlias = Literal["started", "completed", "failed", "interrupted", "drained"]
"""What became of a graph inside of a run."""


class EventParams(TypedDict):
    """`namespace`: the tasks that lead to the graph the event is of, () for the run's own. `timestamp`: Unix ms."""

    namespace: list[str]
    timestamp: int
    data: Any
    interrupts: NotRequired[tuple[Interrupt, ...]]


class ProtocolEvent(TypedDict):
    """Something that happened. `method`: a stream mode, "lifecycle", or "custom:" and the name of a projection.

    `seq` counts the events of the run object that shows them, from 1.
    """

    type: Literal["event"]
    event_id: NotRequired[str]
    seq: NotRequired[int]
    method: str
    params: EventParams


class LifecycleCause(TypedDict):
    """Why a graph inside of a run was started: a tool call of a model."""

    type: Literal["toolCall"]
    tool_call_id: str


class LifecyclePayload(TypedDict):
    """The start or the end of a graph inside of a run.

    `namespace` says where, `graph_name` which node, `trigger_call_id` which task; `error` is that of a failed one.
    """

    event: SubgraphStatus
    namespace: list[str]
    graph_name: NotRequired[str]
    trigger_call_id: NotRequired[str]
    cause: NotRequired[LifecycleCause]
    error: NotRequired[str]


def made_event(method: str, namespace: tuple[str, ...], data: Any) -> ProtocolEvent:
    """An event that happens now."""
    params: EventParams = {"namespace": list(namespace), "timestamp": time.time_ns() // 1_000_000, "data": data}
    return {"type": "event", "method": method, "params": params}
