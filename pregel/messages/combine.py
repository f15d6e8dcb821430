"""How the pieces of a streamed message are put together.

1. Texts are joined. Lists grow; their dicts with the same `index` (and no two different ids) become one.
2. Dicts are merged key by key: None gives way, texts are joined, ints that differ added, dicts and lists merged. What
   names something (`id`, `index`, the `type` of a part, a time) is not joined.
3. Nothing that comes in is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pregel.messages.content import Content

AUTO_ID = "lc_"  # starts an id or index that was made up, by a streaming model for a block
RUN_ID = "lc_run-"  # starts an id that a chat model made up, from its run

_LATEST = frozenset({"index", "created", "timestamp"})
_NAMES = frozenset({"id", "output_version", "model_provider"})


def merge_content(first: Content, *others: Content) -> Content:
    """One content from several, in order."""
    merged = first
    for other in others:
        if isinstance(merged, str):
            merged = merged + other if isinstance(other, str) else [merged, *other]
        elif isinstance(other, list):
            merged = merge_lists(merged, other)
        elif not other:
            continue
        elif merged and isinstance(merged[-1], str):
            merged = [*merged[:-1], merged[-1] + other]
        else:
            merged = [*merged, other]
    return merged


def merge_lists(left: list[Any], right: Iterable[Any]) -> list[Any]:
    """The left list, into whose dicts those of the right with the same index are merged; the others follow."""
    merged = list(left)
    for part in right:
        at = _place(merged, part)
        if at is None:
            merged.append(part)
        else:
            merged[at] = merge_dicts(merged[at], {key: value for key, value in part.items() if key != "type"})
    return merged


def _place(merged: list[Any], part: Any) -> int | None:
    """Where the part of a stream belongs that this is the next piece of."""
    index = part.get("index") if isinstance(part, dict) else None
    if not isinstance(index, int) and not (isinstance(index, str) and index.startswith(AUTO_ID)):
        return None
    for at, other in enumerate(merged):
        if isinstance(other, dict) and other.get("index") == index:
            ids = {found for found in (other.get("id"), part.get("id")) if found}
            if len(ids) < 2:
                return at
    return None


def merge_dicts(left: Mapping[str, Any], *others: Mapping[str, Any]) -> dict[str, Any]:
    """The dicts merged key by key; TypeError where one key holds values that do not go together."""
    merged = dict(left)
    for other in others:
        for key, value in other.items():
            if merged.get(key) is None:
                merged[key] = value
            elif value is not None:
                merged[key] = _merge_values(key, merged[key], value)
    return merged


def _merge_values(key: str, left: Any, right: Any) -> Any:
    if type(left) is not type(right):
        raise TypeError(f"Pieces of a message hold a {type(left).__name__} and a {type(right).__name__} under {key!r}.")
    if isinstance(left, dict):
        return merge_dicts(left, right)
    if isinstance(left, list):
        return merge_lists(left, right)
    if key in _LATEST:
        return right
    if left == right and (key in _NAMES or not isinstance(left, str)):
        return left
    return left + right if isinstance(left, (str, int)) and not isinstance(left, bool) else right


def best_id(ids: Iterable[str | None]) -> str | None:
    """The id that says most: the provider's, else the run's, else one made up for a block."""
    found = [id for id in ids if id]
    return min(found, key=_made_up, default=None)


def _made_up(id: str) -> int:
    return 1 if id.startswith(RUN_ID) else 2 if id.startswith(AUTO_ID) else 0
