"""The shapes by which serialisers know channels and Sends."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


class ChannelProtocol(Protocol):
    """What `create_checkpoint` asks of a channel."""

    def checkpoint(self) -> Any: ...


@runtime_checkable
class SendProtocol(Protocol):
    """What a Send is made of."""

    node: str
    arg: Any
