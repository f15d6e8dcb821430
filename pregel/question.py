"""The question of a paused node; `pregel.types` is where users find it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, final

from pregel.warnings import LangGraphDeprecatedSinceV10, warn_caller


@final
@dataclass(slots=True, init=False)
class Interrupt:
    """A question that a node asked. `id` is 32 hex characters, stable over resumes; answers name it."""

    value: Any
    id: str
    response_schema: dict[str, Any] | None = None

    def __init__(
        self, value: Any, id: str = "placeholder-id", *, response_schema: dict[str, Any] | None = None, **_: Any
    ) -> None:
        self.value, self.id, self.response_schema = value, id, response_schema

    @classmethod
    def from_ns(cls, value: Any, ns: str, *, response_schema: dict[str, Any] | None = None) -> Interrupt:
        """An interrupt whose id is a hash of the namespace that asks."""
        return cls(value, hashlib.blake2b(ns.encode(), digest_size=16).hexdigest(), response_schema=response_schema)

    @property
    def interrupt_id(self) -> str:
        """The id. Deprecated."""
        warn_caller("`interrupt_id` is deprecated: use `id`.", LangGraphDeprecatedSinceV10)
        return self.id

    def __repr__(self) -> str:
        return f"Interrupt(value={self.value!r}, id={self.id!r})"

    def __hash__(self) -> int:
        return hash(self.id)


Interrupt.__module__ = "pregel.types"
