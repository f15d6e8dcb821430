"""Channels: how the writes of a superstep become the state."""

from pregel.channels.any_value import AnyValue
from pregel.channels.base import MISSING, BaseChannel, DeltaSnapshot
from pregel.channels.binop import BinaryOperatorAggregate
from pregel.channels.delta import DeltaChannel
from pregel.channels.ephemeral_value import EphemeralValue
from pregel.channels.last_value import LastValue, LastValueAfterFinish
from pregel.channels.named_barrier_value import NamedBarrierValue, NamedBarrierValueAfterFinish
from pregel.channels.topic import Topic
from pregel.channels.untracked_value import UntrackedValue

__all__ = [
    "MISSING",
    "AnyValue",
    "BaseChannel",
    "BinaryOperatorAggregate",
    "DeltaChannel",
    "DeltaSnapshot",
    "EphemeralValue",
    "LastValue",
    "LastValueAfterFinish",
    "NamedBarrierValue",
    "NamedBarrierValueAfterFinish",
    "Topic",
    "UntrackedValue",
]
