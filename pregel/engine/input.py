"""What an input means for a graph's channels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from pregel.engine.command import command_writes
from pregel.engine.frame import Frame
from pregel.engine.state import COPIERS, hand_out
from pregel.errors import EmptyInputError
from pregel.types import Command


def empty_command(frame: Frame, questions: Iterable[str] = ()) -> EmptyInputError:
    """The error of a Command that asks for nothing; a None in `resume` is what it has when nothing is given."""
    id = next(iter(questions), None)
    answer = "question_id" if id is None else repr(id)
    return EmptyInputError(
        "The Command is empty: it has no update, no goto and no resume value.",
        fix=f"Give it one of them. To answer a question with None: Command(resume={{{answer}: None}}).",
        thread=frame.run.thread or None,
    )


def input_writes(frame: Frame, value: Any) -> list[tuple[str, Any]]:
    """The writes that bring an input in; containers are copied one level, so the caller's stay untouched."""
    channels = frame.graph.input_channels
    if value is None:
        raise EmptyInputError(
            "The input is None and the thread has no checkpoint to continue."
            if frame.journal is not None
            else "The input is None and the graph has no checkpointer to continue from.",
            thread=frame.run.thread,
        )
    if isinstance(value, Command):
        writes = command_writes(frame, value)
        if not writes:
            raise empty_command(frame)
        return [(channels, {}), *writes] if isinstance(channels, str) else writes
    if isinstance(channels, str):
        return [(channels, _own(value))]
    if not isinstance(value, Mapping):
        raise TypeError(f"Expected a dict with the input channels {list(channels)}, got {type(value).__name__}.")
    writes = [(name, hand_out(value[name])) for name in value if name in channels]
    if not writes:
        warnings.warn(f"The input has none of the input channels {list(channels)}.", stacklevel=2)
        raise EmptyInputError(f"The input has none of the input channels {list(channels)}; it has {list(value)}.")
    return writes


def _own(value: Any) -> Any:
    if type(value) is not dict:
        return hand_out(value)
    owned = value.copy()
    if not COPIERS.keys().isdisjoint(map(type, value.values())):
        for key, item in value.items():
            if type(item) in COPIERS:
                owned[key] = COPIERS[type(item)](item)
    return owned
