"""What a run shows: the payloads of the stream modes, made from tasks and state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pregel.constants import LIFECYCLE
from pregel.engine.state import COPIERS, hand_out

if TYPE_CHECKING:
    from pregel.callbacks import GraphLifecycleStatus
    from pregel.engine.effects import Chunk
    from pregel.engine.frame import Frame
    from pregel.engine.task import Task
    from pregel.types import Interrupt


def task_update(frame: Frame, task: Task, *, cached: bool = False) -> dict[str, Any]:
    """``{node: {key: value}}``; a list of single-key dicts when a key was written twice; None when nothing shows."""
    update: dict[str, Any] = {task.name: visible(frame.stream_keys, task.writes)}
    if cached:
        update["__metadata__"] = {"cached": True}
    return update


def visible(keys: str | tuple[str, ...], writes: Sequence[tuple[str, Any]]) -> Any:
    """The writes to these keys, in the shape of an update."""
    if isinstance(keys, str):
        values = [hand_out(value) for name, value in writes if name == keys]
        return (values[0] if len(values) == 1 else values) if values else None
    shown: dict[str, Any] = {}
    for name, value in writes:
        if name in keys:
            if name in shown:
                return _pieces([(name, hand_out(value)) for name, value in writes if name in keys])
            copier = COPIERS.get(type(value))
            shown[name] = value if copier is None else copier(value)
    return shown or None


def _pieces(shown: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Consecutive writes as dicts, a new one wherever a key comes again."""
    return [{name: value} for name, value in shown]


def state_values(frame: Frame, keys: str | tuple[str, ...]) -> Any:
    """The available values of these keys, or the bare value of one."""
    if isinstance(keys, str):
        channel = frame.state.channels[keys]
        return hand_out(channel.get()) if channel.is_available() else None
    values = frame.state.read(keys)
    if tuple(values) == keys:
        return values
    return {key: values[key] for key in keys if key in values}  # in the order of the schema, not of the updates


def touches(keys: str | tuple[str, ...], tasks: Iterable[Any]) -> bool:
    """Whether any of the tasks wrote one of the keys."""
    wanted = (keys,) if isinstance(keys, str) else keys
    for task in tasks:
        for name, _ in task.writes:
            if name in wanted:
                return True
    return False


def interrupt_update(questions: tuple[Interrupt, ...]) -> dict[str, Any]:
    """The update chunk of a pause; empty for a breakpoint."""
    return {"__interrupt__": questions}


def paused(frame: Frame, status: GraphLifecycleStatus, asked: tuple[Interrupt, ...] = ()) -> Chunk:
    """What lifecycle callbacks hear when a graph pauses."""
    from pregel.callbacks import GraphInterruptEvent

    return frame.ns, LIFECYCLE, GraphInterruptEvent(None, status, frame.state.checkpoint, _place(frame), asked)


def resumed(frame: Frame) -> Chunk:
    """What lifecycle callbacks hear when a graph goes on."""
    from pregel.callbacks import GraphResumeEvent

    return frame.ns, LIFECYCLE, GraphResumeEvent(None, "pending", frame.state.checkpoint, _place(frame))


def _place(frame: Frame) -> tuple[str, ...]:
    return tuple(frame.ns.split("|")) if frame.ns else ()
