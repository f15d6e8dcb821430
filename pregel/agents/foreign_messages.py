"""Messages of LangChain in a state: stored as they are, once their library is loaded. Nothing is loaded for it."""

from __future__ import annotations

import sys

from pregel.checkpoint.serde.registry import register_types

MODULE = "langchain_core.messages"
NAMES = ("HumanMessage", "AIMessage", "SystemMessage", "ToolMessage", "FunctionMessage", "ChatMessage", "RemoveMessage")


def store_foreign_messages() -> None:
    """Let the message classes of a loaded LangChain be stored and loaded."""
    module = sys.modules.get(MODULE)
    if module is not None:
        register_types([cls for name in NAMES if isinstance(cls := getattr(module, name, None), type)])
