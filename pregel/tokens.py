"""The hook by which chat models and tools tell the run around them what they are producing, while they do.

How a chat model uses it::

    sink = token_sink(tags=self.tags, metadata={"ls_provider": "openai", "ls_model_name": self.model})
    if sink is None:  # nobody listens: one plain request will do
        return self.request(messages)
    for chunk in self.request_stream(messages):
        sink(chunk)
    return the whole message

1. `token_sink` is asked once a model call, in the context of the node (a thread that the model starts itself needs
   ``contextvars.copy_context().run``). It is None outside of a run, in a run that does not stream ``messages``, and
   under the tag ``nostream``.
2. A sink takes message chunks (of a class whose name ends in ``Chunk``) as they come, or one whole message of a call
   that could not be streamed. It may be called from any thread and raises nothing.
3. All chunks of a call, and the message that the call returns, carry one id. By it the message is shown once: a node
   that returns it shows nothing again.
4. A sink may block a thread while the consumer is behind; on an event loop it never blocks, the node's next ``await``
   waits instead. What comes after the node has ended is dropped.
5. Nothing that is stored depends on whether somebody listens, except that the model streamed.
6. Code around a model call may put a screen before the sinks of all calls inside of it (`screening`).

A tool, or whatever runs tools, does the same with `tool_sink` and the events ``{"event": "tool-started",
"tool_call_id", "tool_name", "input"}``, ``{"event": "tool-output-delta", "tool_call_id", "delta"}``, ``{"event":
"tool-finished", "tool_call_id", "output"}`` and ``{"event": "tool-error", "tool_call_id", "message"}``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pregel.config import current_task

Sink = Callable[[Any], None]

adapters: dict[str, Callable[[], type]] = {}
"""Library -> what connects its chat models to runs, and returns the class of its messages; called once, when the
library is loaded and a run streams messages."""

_foreign: list[type] = []
_screens: ContextVar[tuple[Callable[[Sink], Sink], ...]] = ContextVar("pregel_screens", default=())


def token_sink(*, tags: Sequence[str] = (), metadata: Mapping[str, Any] | None = None) -> Sink | None:
    """Where a model call of the running node reports its chunks; None when nobody listens."""
    task = current_task.get()
    sink = task.token_sink(tags, metadata) if task is not None else None
    if sink is not None:
        for screen in _screens.get():  # the innermost is the first to hear
            sink = screen(sink)
    return sink


@contextmanager
def screening(screen: Callable[[Sink], Sink]) -> Iterator[None]:
    """Within it, what model calls report goes through `screen`, which is asked for a sink before that of each call."""
    before = _screens.get()
    _screens.set((*before, screen))
    try:
        yield
    finally:
        _screens.set(before)  # not by a token: what is given up half-way may be closed in another context


def screened(message: Any) -> Any:
    """A whole message as the screens around this call let it through; None where one does not."""
    shown: list[Any] = []
    sink: Sink = shown.append
    for screen in _screens.get():
        sink = screen(sink)
    sink(message)
    return shown[-1] if shown else None


def tool_sink() -> Sink | None:
    """Where a tool call of the running node reports its events; None when nobody listens."""
    task = current_task.get()
    if task is None or not task.listens("tools"):
        return None
    return lambda event: task.show("tools", event)


_NEVER = frozenset((type(None), bool, int, float, str, bytes, list, tuple, dict))  # most of what states hold


def connect() -> None:
    """Connect the models of other libraries that are loaded by now."""
    for library in [name for name in adapters if name in sys.modules]:
        _foreign.append(adapters.pop(library)())


def is_message(value: Any) -> bool:
    """Whether a value is a message of ours, or of a library that is connected."""
    if type(value) in _NEVER:
        return False
    from pregel.messages import BaseMessage  # loaded with the first messages

    return isinstance(value, (BaseMessage, *_foreign))
