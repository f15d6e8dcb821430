"""Tells listeners when a class in stored bytes was refused."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NotRequired, TypedDict

logger = logging.getLogger(__name__)


class SerdeEvent(TypedDict):
    """What was refused. `kind` is ``msgpack_blocked``."""

    kind: str
    module: str
    name: str
    method: NotRequired[str]


_listeners: list[Callable[[SerdeEvent], None]] = []


def register_serde_event_listener(listener: Callable[[SerdeEvent], None]) -> Callable[[], None]:
    """A function that takes the listener off again."""
    _listeners.append(listener)

    def unregister() -> None:
        if listener in _listeners:
            _listeners.remove(listener)

    return unregister


def emit_serde_event(event: SerdeEvent) -> None:
    """Tell every listener; one that raises is logged and does not disturb the load."""
    for listener in list(_listeners):
        try:
            listener(event)
        except Exception:
            logger.exception("A serde event listener failed")
