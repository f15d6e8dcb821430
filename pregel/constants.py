"""Names with a meaning of their own: the two ends of a graph, tags, and what nodes and keys may not be called."""

from __future__ import annotations

import warnings
from typing import Any, Final

from pregel.warnings import LangGraphDeprecatedSinceV10

START: Final = "__start__"
END: Final = "__end__"
ROOT = "__root__"
TASKS = "__pregel_tasks"
TAG_NOSTREAM = "nostream"
TAG_HIDDEN = "langsmith:hidden"
LIFECYCLE = "lifecycle"  # the stream mode, inside the engine, of what lifecycle callbacks hear
CONF = "configurable"
CONFIG_KEY_CHECKPOINTER = "__pregel_checkpointer"

_CONFIG_KEYS = (
    *("send", "read", "read_state", "call", "checkpointer", "stream", "cache", "resuming", "replay_state", "task_id"),
    *("node_finished", "timed_attempt_observer", "scratchpad", "runner_submit", "durability", "runtime", "resume_map"),
    *("strict_resume", "stream_messages_v2", "node_error"),
)

_PRIVATE: dict[str, Any] = {
    "INPUT": "__input__",
    "INTERRUPT": "__interrupt__",
    "RESUME": "__resume__",
    "ERROR": "__error__",
    "ERROR_SOURCE_NODE": "__error_source_node__",
    "NO_WRITES": "__no_writes__",
    "RETURN": "__return__",
    "PREVIOUS": "__previous__",
    "SNAPSHOT_BUMPS": "__snapshot_bumps__",
    "OVERWRITE": "__overwrite__",
    "CACHE_NS_WRITES": "__pregel_ns_writes",
    "PULL": "__pregel_pull",
    "PUSH": "__pregel_push",
    "NS_SEP": "|",
    "NS_END": ":",
    "NULL_TASK_ID": "00000000-0000-0000-0000-000000000000",
    "CONFIG_KEY_THREAD_ID": "thread_id",
    "CONFIG_KEY_CHECKPOINT_ID": "checkpoint_id",
    "CONFIG_KEY_CHECKPOINT_NS": "checkpoint_ns",
    "CONFIG_KEY_CHECKPOINT_MAP": "checkpoint_map",
    **{f"CONFIG_KEY_{name.upper()}": f"__pregel_{name}" for name in _CONFIG_KEYS},
}

RESERVED = frozenset(
    {
        TAG_HIDDEN,
        CONF,
        *(f"__pregel_{name}" for name in _CONFIG_KEYS),
        *("checkpoint_id", "checkpoint_ns", "checkpoint_map"),
        *("__input__", "__interrupt__", "__resume__", "__error__", "__error_source_node__"),
        *("__no_writes__", "__snapshot_bumps__", "__pregel_pull", "__pregel_push", "|", ":"),
    }
)
"""What no node, state key or managed value may be called."""


def __getattr__(name: str) -> Any:
    if name not in _PRIVATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = f"{__name__}.{name} is not public: do not rely on it"
    warnings.warn(message, LangGraphDeprecatedSinceV10, stacklevel=2)
    return _PRIVATE[name]
