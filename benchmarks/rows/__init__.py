"""The groups of rows. Importing this registers them all, in the order of the report."""

from benchmarks.rows import (
    agent,
    channels,
    conversation,
    crowd,
    deep,
    defaults,
    flat,
    questions,
    reads,
    send,
    startup,
    store,
    stream,
    subgraphs,
    superstep,
)

__all__ = [
    "agent",
    "channels",
    "conversation",
    "crowd",
    "deep",
    "defaults",
    "flat",
    "questions",
    "reads",
    "send",
    "startup",
    "store",
    "stream",
    "subgraphs",
    "superstep",
]
