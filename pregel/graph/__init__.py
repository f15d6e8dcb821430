"""Building graphs: nodes and edges over a typed state, compiled to what the engine runs."""

import importlib
from typing import TYPE_CHECKING, Any

from pregel.constants import END, START
from pregel.graph.compiled import CompiledStateGraph
from pregel.graph.state import StateGraph

if TYPE_CHECKING:
    from pregel.graph.message import MessageGraph, MessagesState, add_messages

__all__ = ["END", "START", "CompiledStateGraph", "MessageGraph", "MessagesState", "StateGraph", "add_messages"]


def __getattr__(name: str) -> Any:
    """What concerns messages is loaded when it is first used: most graphs need none of it."""
    if name in ("MessageGraph", "MessagesState", "add_messages"):
        return getattr(importlib.import_module("pregel.graph.message"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
