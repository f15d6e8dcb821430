"""Typed state graphs whose runs survive anything that happens to their process."""

import importlib
from typing import Any

_HOMES = {
    "pregel.graph": ("END", "START", "CompiledStateGraph", "MessagesState", "StateGraph", "add_messages"),
    "pregel.engine.pregel": ("Pregel",),
    "pregel.engine.node": ("NodeBuilder",),
    "pregel.config": ("RunnableConfig", "get_config", "get_store", "get_stream_writer"),
    "pregel.replay_log": ("get_logger",),
    "pregel.runtime": ("Runtime", "get_runtime"),
    "pregel.types": (
        "CachePolicy",
        "Command",
        "Interrupt",
        "Overwrite",
        "RetryPolicy",
        "Send",
        "StateSnapshot",
        "StateUpdate",
        "TimeoutPolicy",
        "interrupt",
    ),
    "pregel.errors": (
        "GraphInterrupt",
        "GraphRecursionError",
        "InvalidUpdateError",
        "PregelError",
        "ThreadBusy",
    ),
    "pregel.version": ("__version__",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]  # the stub beside this file lists them


def __getattr__(name: str) -> Any:
    """Names are loaded when they are first used, so importing the package stays cheap."""
    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
