"""What a Command from outside means for a graph's channels: updates and routes, checked before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pregel.engine.plan import END, TASKS
from pregel.errors import InvalidUpdateError, RouteTypeError, UnknownTargetError
from pregel.types import Command, Send

if TYPE_CHECKING:
    from pregel.engine.frame import Frame

BRANCH = "branch:to:"


def command_writes(frame: Frame, command: Command[Any]) -> list[tuple[str, Any]]:
    """The writes of a Command's update and goto; InvalidUpdateError for keys and targets that do not exist."""
    return [*_routes(frame, command.goto), *update_writes(frame, command.update)]


def update_writes(frame: Frame, update: Any) -> list[tuple[str, Any]]:
    """An update as writes: a dict, (key, value) pairs, or an instance of an annotated class."""
    if update is None:
        return []
    pairs = _pairs(update)
    known = frame.plan.channels
    unknown = [key for key, _ in pairs if key not in known]
    if unknown and frame.graph.unknown_keys == "error":
        raise InvalidUpdateError(
            f"The Command updates unknown keys: {', '.join(map(repr, unknown))}.",
            fix=f"Known keys: {', '.join(sorted(frame.graph.stream_channels_list))}.",
        )
    return frame.graph.checked([(key, value) for key, value in pairs if key in known])  # type: ignore[no-any-return]


def _pairs(update: Any) -> list[tuple[str, Any]]:
    if isinstance(update, Mapping):
        return list(update.items())
    if isinstance(update, list | tuple) and all(isinstance(p, tuple) and len(p) == 2 for p in update):
        return list(update)
    keys = [key for cls in reversed(type(update).__mro__) for key in getattr(cls, "__annotations__", {})]
    if keys:
        return [(key, getattr(update, key)) for key in dict.fromkeys(keys) if hasattr(update, key)]
    return [("__root__", update)]


def _routes(frame: Frame, goto: Any) -> list[tuple[str, Any]]:
    writes: list[tuple[str, Any]] = []
    items: Iterable[Any] = goto or () if isinstance(goto, list | tuple | None) else (goto,)
    for target in items:
        if target == END:
            continue
        name = target.node if isinstance(target, Send) else target
        if not isinstance(name, str):
            raise RouteTypeError(
                f"In Command.goto, expected a node name or a Send, got {type(target).__name__}: {target!r}."
            )
        if name not in frame.plan.nodes:
            raise UnknownTargetError(
                f"Command.goto names the unknown node {name!r}.",
                fix=f"Known nodes: {', '.join(n for n in frame.plan.nodes if n != '__start__')}.",
            )
        writes.append((TASKS, target) if isinstance(target, Send) else (f"{BRANCH}{name}", "__start__"))
    return writes
