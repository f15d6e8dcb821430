"""Lifecycle callbacks: handlers in a config's ``callbacks`` that hear when a graph pauses and when it goes on.

1. A handler is called after what it hears of was stored, and before anything that follows starts.
2. A handler that raises does not stop the run, unless its `raise_error` is set; what it raised is logged.
3. The root graph tells of pauses; it and the subgraphs that go on tell of resumes.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID, uuid4

from pregel.errors import InvalidInputError
from pregel.question import Interrupt

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())

GraphLifecycleStatus = Literal["input", "pending", "done", "interrupt_before", "interrupt_after", "out_of_steps"]


@dataclass(frozen=True, slots=True)
class GraphInterruptEvent:
    """The graph paused: on questions (`status` pending), or before or after a node."""

    run_id: UUID | None
    status: GraphLifecycleStatus
    checkpoint_id: str
    checkpoint_ns: tuple[str, ...]
    interrupts: tuple[Interrupt, ...]


@dataclass(frozen=True, slots=True)
class GraphResumeEvent:
    """A graph goes on from a checkpoint."""

    run_id: UUID | None
    status: GraphLifecycleStatus
    checkpoint_id: str
    checkpoint_ns: tuple[str, ...]


GraphLifecycleEvent = GraphInterruptEvent | GraphResumeEvent


class GraphCallbackHandler:
    """Subclass it and put an instance into ``config["callbacks"]``. Under the async methods both may be coroutines."""

    raise_error = False

    def on_interrupt(self, event: GraphInterruptEvent) -> Any:
        """The graph paused."""

    def on_resume(self, event: GraphResumeEvent) -> Any:
        """A graph goes on."""


class GraphCallbacks:
    """The lifecycle handlers of one call, told one after the other."""

    def __init__(self, handlers: Sequence[Any], run_id: UUID | None = None) -> None:
        self.handlers = list(handlers)
        self.run_id = run_id or uuid4()

    def tell(self, event: GraphLifecycleEvent) -> None:
        """Call the handlers of a blocking run."""
        for handler, call in self._calls(event):
            with _Guard(handler, call):
                if inspect.iscoroutine(made := call(replace(event, run_id=self.run_id))):
                    made.close()
                    raise InvalidInputError(
                        f"{call.__qualname__} is a coroutine function, and this run blocks.",
                        fix="Use ainvoke or astream, or make it a function.",
                    )

    async def atell(self, event: GraphLifecycleEvent) -> None:
        """Call the handlers of an awaited run, and await what they return."""
        for handler, call in self._calls(event):
            with _Guard(handler, call):
                if inspect.isawaitable(made := call(replace(event, run_id=self.run_id))):
                    await made

    def _calls(self, event: GraphLifecycleEvent) -> Iterator[tuple[Any, Any]]:
        name = "on_interrupt" if isinstance(event, GraphInterruptEvent) else "on_resume"
        for handler in self.handlers:
            if (call := getattr(handler, name, None)) is not None:
                yield handler, call


class _Guard:
    """Keeps what a handler raises from the run, and logs it."""

    def __init__(self, handler: Any, call: Any) -> None:
        self.handler, self.call = handler, call

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception) or getattr(self.handler, "raise_error", False):
            return False
        log.error("%s failed: %r", getattr(self.call, "__qualname__", self.call), error, exc_info=error)
        return True


def lifecycle_callbacks(config: Mapping[str, Any]) -> GraphCallbacks | None:
    """The handlers of a config that hear of pauses or resumes; None when there are none."""
    callbacks = config.get("callbacks")
    if not callbacks:
        return None
    found = callbacks if isinstance(callbacks, Sequence) else getattr(callbacks, "handlers", None) or [callbacks]
    handlers = [one for one in found if hasattr(one, "on_interrupt") or hasattr(one, "on_resume")]
    if not handlers:
        return None
    run_id = config.get("run_id")
    return GraphCallbacks(handlers, run_id if isinstance(run_id, UUID | None) else UUID(str(run_id)))


def get_sync_graph_callback_manager_for_config(
    config: Mapping[str, Any], *, run_id: UUID | None = None
) -> GraphCallbacks:
    """The lifecycle handlers of a config, for a blocking run."""
    found = lifecycle_callbacks(config)
    return GraphCallbacks(found.handlers if found is not None else (), run_id)


def get_async_graph_callback_manager_for_config(
    config: Mapping[str, Any], *, run_id: UUID | None = None
) -> GraphCallbacks:
    """The lifecycle handlers of a config, for an awaited run."""
    return get_sync_graph_callback_manager_for_config(config, run_id=run_id)
