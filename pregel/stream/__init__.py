"""A run as an object, whose projections are read alone or together: what ``stream_events(version="v3")`` returns."""

from pregel.stream.channel import StreamChannel
from pregel.stream.message import AsyncMessageStream, MessageStream
from pregel.stream.protocol import LifecyclePayload, ProtocolEvent, SubgraphStatus
from pregel.stream.run import GraphRunStream, SubgraphRunStream
from pregel.stream.run_async import AsyncGraphRunStream, AsyncSubgraphRunStream
from pregel.stream.transformer import StreamTransformer
from pregel.stream.transformers import (
    CheckpointsTransformer,
    CustomTransformer,
    DebugTransformer,
    LifecycleTransformer,
    SubgraphTransformer,
    TasksTransformer,
    UpdatesTransformer,
)

__all__ = [
    "AsyncGraphRunStream",
    "AsyncMessageStream",
    "AsyncSubgraphRunStream",
    "CheckpointsTransformer",
    "CustomTransformer",
    "DebugTransformer",
    "GraphRunStream",
    "LifecyclePayload",
    "LifecycleTransformer",
    "MessageStream",
    "ProtocolEvent",
    "StreamChannel",
    "StreamTransformer",
    "SubgraphRunStream",
    "SubgraphStatus",
    "SubgraphTransformer",
    "TasksTransformer",
    "UpdatesTransformer",
]
