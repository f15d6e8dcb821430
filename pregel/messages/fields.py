"""The keyword arguments that every message constructor takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

GivenBlocks: TypeAlias = Sequence[str | Mapping[str, object]]


class MessageFields(TypedDict, total=False):
    """Any other keyword is kept in `extra`."""

    content_blocks: GivenBlocks | None
    additional_kwargs: Mapping[str, Any] | None
    response_metadata: Mapping[str, Any] | None
    name: str | None
    id: str | float | None
