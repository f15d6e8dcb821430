"""How many tokens a model call took, and how the counts of streamed pieces add up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, cast

from typing_extensions import TypedDict


class InputTokenDetails(TypedDict, total=False):
    """Parts of the input tokens. Providers add their own keys."""

    audio: int
    cache_creation: int
    cache_read: int


class OutputTokenDetails(TypedDict, total=False):
    """Parts of the output tokens. Providers add their own keys."""

    audio: int
    reasoning: int


class UsageMetadata(TypedDict):
    """Token counts of one model call; `input_tokens` includes what came from a cache."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_token_details: NotRequired[InputTokenDetails]
    output_token_details: NotRequired[OutputTokenDetails]


def add_usage(left: UsageMetadata | None, right: UsageMetadata | None) -> UsageMetadata | None:
    """The sum of two counts, details included; None when both are."""
    if not left or not right:
        return left or right
    return cast(UsageMetadata, _sum(left, right))


def _sum(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    total = dict(left)
    for key, count in right.items():
        if isinstance(count, Mapping):
            total[key] = _sum(total.get(key) or {}, count)
        else:
            total[key] = (total.get(key) or 0) + (count or 0)
    return total
