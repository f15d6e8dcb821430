"""The typed parts of a stream (``version="v2"``): what each mode's chunks hold. `pregel.types` exports them."""

from __future__ import annotations

from typing import Any, Generic, Literal, NotRequired, TypeAlias

from typing_extensions import (
    TypedDict,  # pydantic reads no other one before Python 3.12
    TypeVar,
)

from pregel.config import RunnableConfig
from pregel.question import Interrupt

StateT = TypeVar("StateT", default=Any)
OutputT = TypeVar("OutputT", default=Any)


class TaskPayload(TypedDict):
    """A task starts. `input` is what its node is given; `metadata`: what the caller and the node attached."""

    id: str
    name: str
    input: Any
    triggers: tuple[str, ...]
    metadata: NotRequired[dict[str, Any]]


class TaskResultPayload(TypedDict):
    """A task ended: with what it wrote (several writes of a key as ``{"$writes": [...]}``), an error, or questions."""

    id: str
    name: str
    error: BaseException | None
    interrupts: list[dict[str, Any]]
    result: Any


class CheckpointTask(TypedDict):
    """A task of a checkpoint: `error` when it failed, `result` when it finished, else it is to run."""

    id: str
    name: str
    error: NotRequired[Any]
    result: NotRequired[Any]
    interrupts: NotRequired[tuple[dict[str, Any], ...]]
    state: RunnableConfig | None


class CheckpointPayload(TypedDict, Generic[StateT]):
    """A checkpoint that is stored, and what runs next from it."""

    config: RunnableConfig
    parent_config: RunnableConfig | None
    values: StateT
    metadata: dict[str, Any]
    next: list[str]
    tasks: list[CheckpointTask]


class DebugPayload(TypedDict, Generic[StateT]):
    """A payload of the other two with its step, kind and ISO time."""

    step: int
    timestamp: str
    type: Literal["checkpoint", "task", "task_result"]
    payload: CheckpointPayload[StateT] | TaskPayload | TaskResultPayload


class ValuesStreamPart(TypedDict, Generic[OutputT]):
    """The values after a superstep, and the questions that are pending with them."""

    type: Literal["values"]
    ns: tuple[str, ...]
    data: OutputT
    interrupts: tuple[Interrupt, ...]


class UpdatesStreamPart(TypedDict):
    """What a node returned, by its name."""

    type: Literal["updates"]
    ns: tuple[str, ...]
    data: dict[str, Any]


class MessagesStreamPart(TypedDict):
    """A token chunk or a message, and where it comes from."""

    type: Literal["messages"]
    ns: tuple[str, ...]
    data: tuple[Any, dict[str, Any]]


class CustomStreamPart(TypedDict):
    """What a node gave its stream writer."""

    type: Literal["custom"]
    ns: tuple[str, ...]
    data: Any


class ToolsStreamPart(TypedDict):
    """What a tool call does; `data["event"]` says which of the four events it is."""

    type: Literal["tools"]
    ns: tuple[str, ...]
    data: dict[str, Any]


class CheckpointStreamPart(TypedDict, Generic[StateT]):
    """A checkpoint."""

    type: Literal["checkpoints"]
    ns: tuple[str, ...]
    data: CheckpointPayload[StateT]


class TasksStreamPart(TypedDict):
    """The start or the end of a task."""

    type: Literal["tasks"]
    ns: tuple[str, ...]
    data: TaskPayload | TaskResultPayload


class DebugStreamPart(TypedDict, Generic[StateT]):
    """A checkpoint, a task's start or its end."""

    type: Literal["debug"]
    ns: tuple[str, ...]
    data: DebugPayload[StateT]


StreamPart: TypeAlias = (
    ValuesStreamPart[OutputT]
    | UpdatesStreamPart
    | MessagesStreamPart
    | CustomStreamPart
    | ToolsStreamPart
    | CheckpointStreamPart[StateT]
    | TasksStreamPart
    | DebugStreamPart[StateT]
)
