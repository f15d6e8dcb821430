"""What `add_node` takes by keyword, as a type checker sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypedDict

from pregel.runnable import Runnable
from pregel.types import CachePolicy, RetryPolicy, TimeoutPolicy, TracePolicy


class NodeOptions(TypedDict, total=False):
    """What `StateGraph.add_node` takes beside a name and an action."""

    defer: bool
    metadata: dict[str, Any] | None
    input_schema: type | None
    retry_policy: RetryPolicy | Sequence[RetryPolicy] | None
    cache_policy: CachePolicy | None
    error_handler: Callable[..., object] | Runnable | None
    destinations: dict[str, str] | Sequence[str] | None
    timeout: float | timedelta | TimeoutPolicy | None
    trace_policy: TracePolicy | None
