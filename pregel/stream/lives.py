"""When the graphs inside of a run start and end, told from the tasks that run them.

1. A graph has started when something of it shows for the first time, and ends with the task that runs it.
2. A graph that a node's code calls is a graph of that node: it ends when the node does.
3. What is left when the run ends has not ended by itself: it is interrupted, drained or failed, as the run is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pregel.errors import GraphDrained, told
from pregel.stream.protocol import LifecycleCause, LifecyclePayload, ProtocolEvent, SubgraphStatus

Path = tuple[str, ...]
_COUNT = re.compile(r"(call:)?\d+")  # the part of a namespace that tells several graphs of one task apart


@dataclass(slots=True)
class Life:
    """A graph that runs. `path`: its namespace."""

    path: Path
    graph_name: str
    trigger_call_id: str | None
    cause: LifecycleCause | None
    status: SubgraphStatus = "started"
    error: BaseException | None = None

    @property
    def payload(self) -> LifecyclePayload:
        """What is told of it now."""
        told_now: LifecyclePayload = {"event": self.status, "namespace": list(self.path)}
        if self.status == "started":
            told_now["graph_name"] = self.graph_name
            if self.trigger_call_id is not None:
                told_now["trigger_call_id"] = self.trigger_call_id
            if self.cause is not None:
                told_now["cause"] = self.cause
        if self.error is not None:
            told_now["error"] = told(self.error, str)
        return told_now


class Lives:
    """The graphs that run below a scope."""

    __slots__ = ("_causes", "_open", "scope")

    def __init__(self, scope: Path) -> None:
        self.scope = scope
        self._open: dict[Path, Life] = {}
        self._causes: dict[Path, LifecycleCause] = {}  # of tasks that run a tool

    def read(self, event: ProtocolEvent) -> list[Life]:
        """The graphs that an event starts or ends, outermost first when they start."""
        params = event["params"]
        path = tuple(params["namespace"])
        changed: list[Life] = []
        if len(path) > len(self.scope) and path not in self._open:
            changed = self._started(path)
        if event["method"] == "tasks":
            changed += self._task(path, params["data"])
        return changed

    def rest(self, error: BaseException | None) -> list[Life]:
        """Those that are left when the run ends, innermost first."""
        if not self._open:
            return []
        status: SubgraphStatus = (
            "interrupted" if error is None else "drained" if isinstance(error, GraphDrained) else "failed"
        )
        left = [self._ended(path, status, error if status == "failed" else None) for path in reversed([*self._open])]
        self._causes.clear()
        return left

    def _started(self, path: Path) -> list[Life]:
        started = []
        start = len(self.scope)
        while start < len(path):
            end = hop(path, start)
            if (inner := path[:end]) not in self._open:
                name, _, id = path[start].partition(":")
                life = self._open[inner] = Life(inner, name, id or None, self._causes.get(path[: start + 1]))
                started.append(life)
            start = end
        return started

    def _task(self, path: Path, data: Mapping[str, Any]) -> list[Life]:
        """A task started or ended."""
        if "result" not in data:
            given = data.get("input")
            if isinstance(given, Mapping) and isinstance(call := given.get("tool_call"), Mapping) and call.get("id"):
                self._causes[(*path, f"{data['name']}:{data['id']}")] = {"type": "toolCall", "tool_call_id": call["id"]}
            return []
        if not self._open and not self._causes:
            return []
        names = (f"{data['name']}:{data['id']}", data["name"])  # a graph with one memory for all runs has no id
        self._causes.pop((*path, names[0]), None)
        status: SubgraphStatus = "failed" if data["error"] else "interrupted" if data["interrupts"] else "completed"
        size = len(path)
        inside = [one for one in self._open if len(one) > size and one[:size] == path and one[size] in names]
        return [self._ended(one, status, data["error"]) for one in reversed(inside)]

    def _ended(self, path: Path, status: SubgraphStatus, error: BaseException | None) -> Life:
        life = self._open.pop(path)
        life.status, life.error = status, error
        return life


def hop(path: Path, start: int) -> int:
    """Where the graph that begins at a place of a namespace ends: behind its task, and its count if it has one."""
    end = start + 1
    return end + 1 if end < len(path) and _COUNT.fullmatch(path[end]) else end
