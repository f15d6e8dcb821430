"""What a call is configured with, and how it reaches code deep inside a node.

1. Merging: tags append, metadata and configurable merge one level, a later value wins, falsy values are ignored.
2. Unknown top-level keys of a config move into ``configurable``.
3. The task that runs right now is found through one context variable, `current_task`; `get_config` and `interrupt`
   read it, nothing else is ambient.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from typing_extensions import TypedDict

from pregel.errors import InvalidInputError, OutsideRunError
from pregel.text import checked_text

DEFAULT_RECURSION_LIMIT = int(os.environ.get("LANGGRAPH_DEFAULT_RECURSION_LIMIT") or 10_007)
COORDINATES = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")


class RunnableConfig(TypedDict, total=False):
    """How one call runs. All keys are optional."""

    tags: list[str]
    metadata: dict[str, Any]
    callbacks: Any
    run_name: str
    max_concurrency: int | None
    recursion_limit: int
    configurable: dict[str, Any]
    run_id: Any


class RunningTask(Protocol):
    """What ambient functions may ask the running task for."""

    @property
    def config(self) -> RunnableConfig: ...

    @property
    def runtime(self) -> Any: ...

    @property
    def is_replaying(self) -> bool: ...

    def ask(self, value: Any, response_schema: Any = None) -> Any: ...

    def write(self, channel: str, value: Any) -> None: ...

    def write_chunk(self, chunk: Any) -> None: ...

    def listens(self, mode: str) -> bool: ...

    def show(self, mode: str, data: Any) -> None: ...

    def push_message(self, message: Any, channel: str | None) -> None: ...

    def token_sink(self, tags: Sequence[str], metadata: Mapping[str, Any] | None) -> Callable[[Any], None] | None: ...


current_task: ContextVar[RunningTask | None] = ContextVar("pregel_task", default=None)

question_scope: ContextVar[str] = ContextVar("pregel_question_scope", default="")
"""What part of a task asks, where parts run side by side: questions are counted by scope, so that the order in which
the parts get to ask does not matter. Empty in the body of a node."""


def scoped(key: str) -> str:
    """What a key names: in a part of a task that has questions of its own (a tool call) something of its own."""
    checked_text(key, "The key of a step or an effect")
    scope = question_scope.get()
    return f"{scope}{_SCOPED}{key}" if scope else key


def unscoped(key: str) -> str:
    """A key as the code gave it."""
    return key.rpartition(_SCOPED)[2]


_SCOPED = "\x1f"

_KEYS = frozenset(RunnableConfig.__annotations__)


def inside(config: RunnableConfig) -> RunnableConfig:
    """The config for what a run calls: `run_name` and `run_id` are that run's own."""
    inner: Any = {key: value for key, value in config.items() if key not in ("run_name", "run_id")}
    return inner  # type: ignore[no-any-return]  # it has the keys of one


def merge_configs(*configs: Mapping[str, Any] | None) -> RunnableConfig:
    """One config from several, the later ones stronger; InvalidInputError for a value that no config can have."""
    merged: dict[str, Any] = {}
    try:
        for config in configs:
            for key, value in (config or {}).items():
                if key not in _KEYS:
                    merged.setdefault("configurable", {})
                    merged["configurable"] = {**merged["configurable"], key: value}
                elif key in ("metadata", "configurable") and value:
                    merged[key] = {**merged.get(key, {}), **value}
                elif key == "tags" and value:
                    merged[key] = [*merged.get(key, []), *_listed(value)]
                elif key == "callbacks" and value is not None and merged.get(key) is not None:
                    merged[key] = merge_callbacks(merged[key], value)
                elif value is not None and (value or key == "recursion_limit"):
                    merged[key] = value
    except (AttributeError, TypeError):
        for config in configs:
            check_config(config)
        raise
    return merged  # type: ignore[return-value]


def _listed(tags: Any) -> Any:
    """Tags, which a single text is not: it would be taken for a list of letters."""
    if isinstance(tags, str):
        raise TypeError(tags)
    return tags


def check_config(config: Any) -> None:
    """InvalidInputError that names what in a config cannot be."""
    if config and not isinstance(config, Mapping):
        raise InvalidInputError(f"The config is {config!r}.", fix="Give a dict, such as {'tags': ['mine']}.") from None
    for key, kind, needed in (
        ("tags", list | tuple | set | frozenset, "a list of text"),
        ("metadata", Mapping, "a dict"),
        ("configurable", Mapping, "a dict"),
    ):
        value = (config or {}).get(key)
        if value and not isinstance(value, kind):
            raise InvalidInputError(f"{key} of the config is {value!r}.", fix=f"Give {needed}.") from None


def merge_callbacks(base: Any, more: Any) -> Any:
    """The handlers of both; a manager of LangChain's keeps its parent run, and hands those that are added on."""
    if base is more:
        return base
    if hasattr(base, "add_handler") and hasattr(more, "add_handler"):
        return base.merge(more)
    if hasattr(more, "add_handler"):
        base, more = more, base
    handlers = more if isinstance(more, Sequence) else [more]
    if not hasattr(base, "add_handler"):
        return [*(base if isinstance(base, Sequence) else [base]), *handlers]
    merged = base.copy()
    for handler in handlers:
        merged.add_handler(handler, inherit=True)
    return merged


def configurable_of(base: Mapping[str, Any] | None, config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The ``configurable`` of what `merge_configs` makes of these two; not to be changed."""
    if config and not base and isinstance(config, Mapping) and config.keys() <= _KEYS:
        place = config.get("configurable") or {}
        if isinstance(place, dict):
            return place
    return merge_configs(base, config).get("configurable") or {}


def running_task() -> RunningTask:
    """The task that this code runs in; OutsideRunError when there is none."""
    task = current_task.get()
    if task is None:
        raise OutsideRunError("Called outside of a running node.", fix="Call it from a node, tool or task.")
    return task


def get_config() -> RunnableConfig:
    """The config of the running node; OutsideRunError outside of a run."""
    return running_task().config


def get_store() -> Any:
    """The store of the running graph, None when it was compiled without one; OutsideRunError outside of a run."""
    return running_task().runtime.store


def get_stream_writer() -> Any:
    """A function that streams one value in mode ``custom``; it does nothing when nobody listens."""
    return running_task().write_chunk
