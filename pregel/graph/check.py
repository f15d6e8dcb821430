"""What is checked before an update becomes a write, so that a value that a typed key cannot hold is never stored."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from pregel.channels import MISSING, BaseChannel, LastValue
from pregel.channels.overwrite import overwrite_of
from pregel.graph import pydantic_adapter
from pregel.graph.schema import KeyMap, channel_keys
from pregel.types import Overwrite

Checks = Mapping[str, Callable[[Any], Any]]


def checks_of(schemas: Mapping[Any, KeyMap], channels: Mapping[str, BaseChannel[Any, Any, Any]]) -> Checks:
    """A check for each key whose first schema is a pydantic model, or that is declared to hold LangChain's messages."""
    checks: dict[str, Callable[[Any], Any]] = {}
    seen: set[str] = set()
    for schema, keys in schemas.items():
        fresh = [key for key in channel_keys(keys) if key not in seen]
        seen.update(fresh)
        if pydantic_adapter.is_model(schema):
            checks.update((key, KeyCheck(pydantic_adapter.field_check(schema, key), channels[key])) for key in fresh)
    return with_messages(checks, channels)


def with_messages(checks: Checks, channels: Mapping[str, BaseChannel[Any, Any, Any]]) -> Checks:
    """The checks, which get LangChain's messages for keys that are declared to hold them, whatever was written."""
    if "langchain_core.messages.utils" not in sys.modules:
        return checks
    from pregel.interop.langchain import InTheirMessages, holds_their_messages

    holding = [key for key, channel in channels.items() if holds_their_messages(channel)]
    return {**checks, **{key: InTheirMessages(checks.get(key)) for key in holding}} if holding else checks


class KeyCheck:
    """What a key makes of an update; pydantic's ValidationError when the key cannot hold it.

    A reducer may take updates of another type than it holds (one message for a list of messages): such an update is
    judged by what the reducer makes of it on an empty key.
    """

    __slots__ = ("channel", "validate")

    def __init__(self, validate: Callable[[Any], Any], channel: BaseChannel[Any, Any, Any]) -> None:
        self.validate = validate
        self.channel = channel

    def __call__(self, update: Any) -> Any:
        whole = overwrite_of(update)
        if whole is not MISSING:
            return Overwrite(self.validate(whole))
        try:
            return self.validate(update)
        except ValueError:
            if isinstance(self.channel, LastValue) or not self._reduces_well(update):
                raise
            return update

    def _reduces_well(self, update: Any) -> bool:
        probe = self.channel.from_checkpoint(MISSING)
        try:
            probe.update([update])
        except (TypeError, AttributeError):
            return False
        except Exception:  # it depends on what is there already, like the removal of a message: the reducer will say
            return update is not None
        try:
            self.validate(probe.get())
        except ValueError:
            return False
        return True
