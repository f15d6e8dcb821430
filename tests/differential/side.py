"""One of the two implementations that a program is played on: its public names, found by import path."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True, slots=True)
class Side:
    """The public names a program needs. The values are the implementation's own classes, hence `Any`."""

    package: str
    StateGraph: Any
    START: Any
    END: Any
    Send: Any
    Command: Any
    Overwrite: Any
    StateUpdate: Any
    RetryPolicy: Any
    interrupt: Any
    InMemorySaver: Any
    channels: Any


def side(package: str) -> Side:
    """The implementation that lives in `package`: ``pregel`` or ``langgraph``."""
    graph, types = import_module(f"{package}.graph"), import_module(f"{package}.types")
    return Side(
        package=package,
        StateGraph=graph.StateGraph,
        START=graph.START,
        END=graph.END,
        Send=types.Send,
        Command=types.Command,
        Overwrite=types.Overwrite,
        StateUpdate=types.StateUpdate,
        RetryPolicy=types.RetryPolicy,
        interrupt=types.interrupt,
        InMemorySaver=import_module(f"{package}.checkpoint.memory").InMemorySaver,
        channels=import_module(f"{package}.channels"),
    )
