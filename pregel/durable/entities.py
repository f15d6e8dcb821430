"""Entities: a state per key, and operations on it that are done one after the other.

1. An entity is a thread that waits for its next operation, which is an event: nothing is held meanwhile, and what comes
   while another operation is done is kept. Workers run entities, as they run any thread.
2. An operation is delivered at least once, and an id once. It is taken by the append that says which run does it, so of
   several runs, and after a crash, it is done on the same state, and has changed it once when it has.
3. What a handler does outside is a node's work like any other: it may be done twice, unless it is an effect. Who else
   writes there is not in this line: give the destination a revision to refuse older ones by.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, Generic, TypedDict, TypeVar

from pregel.checkpoint.base import BaseCheckpointSaver
from pregel.config import RunnableConfig
from pregel.engine.starts import check_named
from pregel.engine.thread_waits import SentEvent
from pregel.errors import InvalidInputError, ThreadBusy, ThreadNotFoundError
from pregel.graph import START, StateGraph
from pregel.types import RetryPolicy
from pregel.waits import wait_for_event

S = TypeVar("S")
OPERATION = "operation"


@dataclass(frozen=True, slots=True)
class Operation:
    """What was sent to an entity. `id`: equal for each time that it was sent, and each time that it is tried."""

    key: str
    name: str
    value: Any
    id: str


class _Entity(TypedDict, total=False):
    key: str
    state: Any


class Entities(Generic[S]):
    """The entities of one kind: `handler(state, operation)` returns the new state, and may be awaited.

    - `name`: the kind. It names the graph, and leads the ids of its threads: ``name/key``.
    - `initial`: the state of an entity before its first operation.
    - `retry_policy`: how often a handler that raises is tried again; then the entity is ``failed`` until it is rewound.

    `graph` is the compiled graph, for a worker: ``Worker(entities.graph)``.
    """

    def __init__(
        self,
        handler: Callable[[S, Operation], S] | Callable[[S, Operation], Awaitable[S]],
        *,
        name: str,
        checkpointer: BaseCheckpointSaver[Any],
        initial: S,
        retry_policy: RetryPolicy | None = None,
    ) -> None:
        self.name, self.initial, self._handler = name, initial, handler
        node = self._awaited if iscoroutinefunction(handler) else self._called
        builder = StateGraph(_Entity).add_node("entity", node, retry_policy=retry_policy)
        builder.add_edge(START, "entity").add_edge("entity", "entity")
        self.graph = builder.compile(name=name, checkpointer=checkpointer)
        check_named(self.graph)

    def signal(self, key: str, operation: str, value: Any = None, *, id: str | None = None) -> SentEvent:
        """Send an operation to the entity of this key, which is made if there is none; a worker does it.

        An operation whose `id` was sent to the entity before is dropped: give one, and an operation may be sent again.
        """
        thread, told = self.thread_id(key), self._told(operation, value)
        try:
            return self.graph.threads.send_event(thread, OPERATION, told, id=id)
        except ThreadNotFoundError:
            self.graph.start(_Entity(key=key), key=thread)
        return self.graph.threads.send_event(thread, OPERATION, told, id=id)

    async def asignal(self, key: str, operation: str, value: Any = None, *, id: str | None = None) -> SentEvent:
        """Async twin of `signal`."""
        thread, told = self.thread_id(key), self._told(operation, value)
        try:
            return await self.graph.threads.asend_event(thread, OPERATION, told, id=id)
        except ThreadNotFoundError:
            await self.graph.astart(_Entity(key=key), key=thread)
        return await self.graph.threads.asend_event(thread, OPERATION, told, id=id)

    def state(self, key: str) -> S:
        """The state after the operations that were done; `initial` when there was none."""
        return self._state(self.graph.get_state(self._config(key)).values)

    async def astate(self, key: str) -> S:
        """Async twin of `state`."""
        return self._state((await self.graph.aget_state(self._config(key))).values)

    def compact(self, key: str) -> bool:
        """Remove the history of an entity, and leave its state; False while it does an operation."""
        try:
            self.graph.threads.prune([self.thread_id(key)])
        except ThreadBusy:
            return False
        return True

    async def acompact(self, key: str) -> bool:
        """Async twin of `compact`."""
        try:
            await self.graph.threads.aprune([self.thread_id(key)])
        except ThreadBusy:
            return False
        return True

    def thread_id(self, key: str) -> str:
        """The id of an entity's thread."""
        if not isinstance(key, str) or not key:
            raise InvalidInputError(f"The key of an entity is {key!r}.", fix="Give a text.")
        return f"{self.name}/{key}"

    # -- below -------------------------------------------------------------------------------------------------------

    def _called(self, entity: _Entity) -> _Entity:
        return {"state": self._handler(self._state(entity), _operation(entity))}

    async def _awaited(self, entity: _Entity) -> _Entity:
        done: Any = self._handler(self._state(entity), _operation(entity))
        return {"state": await done}

    def _state(self, entity: Any) -> S:
        state: S = entity["state"] if "state" in entity else deepcopy(self.initial)
        return state

    def _config(self, key: str) -> RunnableConfig:
        return {"configurable": {"thread_id": self.thread_id(key)}}

    def _told(self, operation: str, value: Any) -> dict[str, Any]:
        if not isinstance(operation, str) or not operation:
            raise InvalidInputError(f"An operation has a name, not {operation!r}.", fix="Give a text.")
        return {"name": operation, "value": value}


def _operation(entity: _Entity) -> Operation:
    """The next operation; what is waited for when there is none yet."""
    sent = wait_for_event(OPERATION)
    return Operation(entity["key"], sent.value["name"], sent.value["value"], sent.id)
