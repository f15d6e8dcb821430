"""What `invoke` and `stream` take by keyword, as a type checker sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from pregel.engine.contend import Concurrency
from pregel.runtime import RunControl
from pregel.types import Durability, StreamMode


class CallOptions(TypedDict, total=False):
    """What `invoke` and `stream` take beside their own arguments."""

    output_keys: str | Sequence[str] | None
    interrupt_before: str | Sequence[str] | None
    interrupt_after: str | Sequence[str] | None
    durability: Durability | None
    control: RunControl | None
    concurrency: Concurrency | None
    wait: float | None
    journal_stream: bool | StreamMode | Sequence[StreamMode] | None
    print_mode: StreamMode | Sequence[StreamMode]
