"""The first tier of a journal and its housekeeping, each verb written once.

1. A verb is a flow that asks for what the saver defines: `load`, `intern`, `read` and `write`. A saver that blocks
   calls these, one that awaits calls their twins.
2. Names are interned before the write that needs them, in a transaction of their own.
3. What a live run holds is left alone, and named at the end.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from pregel.checkpoint import flows, foreign, housekeeping
from pregel.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
)
from pregel.checkpoint.decode import Decoder, Prototypes
from pregel.checkpoint.keys import Names, checked_place, thread_digest, thread_text
from pregel.checkpoint.records import Load, Opened
from pregel.checkpoint.serde.base import SerializerProtocol
from pregel.checkpoint.shapes import coordinates, history_in, tuple_of
from pregel.checkpoint.verify import Finding, verify_flow
from pregel.config import RunnableConfig
from pregel.errors import MissingThreadError
from pregel.flow import Flow


class Ask(NamedTuple):
    """A verb of the saver's own to perform; the reply is what it returns."""

    verb: str
    args: tuple[Any, ...]


def read(flow: Flow[Any]) -> Ask:
    """Run a flow of reading statements in one snapshot."""
    return Ask("read", (flow,))


def write(flow: Flow[Any]) -> Ask:
    """Run a flow in one transaction."""
    return Ask("write", (flow,))


# -- first tier --------------------------------------------------------------------------------------------------------


def get_tuple(config: RunnableConfig) -> Flow[CheckpointTuple | None]:
    """The checkpoint that a config names, or the newest one of its thread."""
    thread, ns = address(config)
    opened: Opened = yield Ask("load", (thread, [Load(ns, get_checkpoint_id(config))]))
    saved = opened.saved[0]
    return None if saved is None else tuple_of(thread, saved)


def history(
    config: RunnableConfig, channels: Sequence[str]
) -> Flow[tuple[dict[str, DeltaChannelHistory], Sequence[str]]]:
    """What the logs of channels hold, and the channels that have none."""
    thread, ns = address(config)
    opened: Opened = yield Ask("load", (thread, [Load(ns, get_checkpoint_id(config))]))
    return history_in(opened.saved[0], channels)


def put(
    serde: SerializerProtocol,
    names: Names,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
) -> Flow[RunnableConfig]:
    """Store a checkpoint of a foreign engine; the config that names it."""
    record = _put_record(config, checkpoint, metadata, new_versions)
    yield Ask("intern", (foreign.names_in(checkpoint),))
    yield write(foreign.put_flow(serde, names, record, time.time()))
    return coordinates(record.thread, record.ns, checkpoint["id"])


def put_writes(
    serde: SerializerProtocol,
    names: Names,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
) -> Flow[None]:
    """Store what a task of a foreign engine wrote."""
    thread, ns = address(config)
    record = foreign.PutWrites(thread, ns, config["configurable"]["checkpoint_id"], writes, task_id, task_path)
    yield Ask("intern", (record.names(),))
    yield write(foreign.put_writes_flow(serde, names, record, time.time()))


def delete_thread(thread: str) -> Flow[None]:
    """Remove everything of a thread."""
    text = thread_text(thread)
    yield write(flows.delete_flow(text, thread_digest(text), time.time()))


# -- housekeeping ------------------------------------------------------------------------------------------------------


def delete_for_runs(run_ids: Sequence[str]) -> Flow[None]:
    """Remove the checkpoints of these runs; ThreadBusy at the end for threads that live runs hold."""
    runs, left = frozenset(map(str, housekeeping.checked_ids("delete_for_runs", "run", run_ids))), []
    for thread in (yield read(housekeeping.threads_of_runs_flow(runs))) if runs else ():
        if not (yield write(housekeeping.delete_runs_flow(thread, runs))):
            left.append(thread)
    housekeeping.check_left(left, "deleted")


def copy_thread(source: str, target: str) -> Flow[None]:
    """Copy a thread to a new one."""
    if target is None or target == "":
        raise MissingThreadError(
            "copy_thread needs the id of the thread that is to be made.", fix="Give a thread_id that is free."
        )
    place, _ = checked_place(thread_text(target), "")
    yield write(housekeeping.copy_flow(thread_text(source), place, time.time()))


def prune(threads: Sequence[str], strategy: str) -> Flow[None]:
    """Prune threads; ThreadBusy at the end for those that live runs hold."""
    now, left = time.time(), []
    for thread in housekeeping.checked_prune(threads, strategy):
        if (yield write(housekeeping.prune_flow(thread, strategy, now))) is False:
            left.append(thread)
    housekeeping.check_left(left, "pruned")


def sweep(idle_for: float, strategy: str) -> Flow[list[str]]:
    """Prune the threads that were not written for so many seconds; their ids."""
    now = time.time()
    before, swept = now - idle_for, []
    for thread in housekeeping.checked_prune((yield write(housekeeping.stale_flow(before, now))), strategy):
        if (yield write(housekeeping.prune_flow(thread, strategy, now, unless_after=before))):
            swept.append(thread)
    return swept


def verify(decoder: Decoder, thread: str, channels: Prototypes | None) -> Flow[list[Finding]]:
    """What is wrong with a thread."""
    findings: list[Finding] = yield read(verify_flow(decoder, thread_text(thread), channels or {}))
    return findings


# -- arguments ---------------------------------------------------------------------------------------------------------


def _put_record(
    config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
) -> foreign.Put:
    """The arguments of `put` as a record."""
    thread, ns = address(config)
    merged = get_serializable_checkpoint_metadata(config, metadata)
    parent = get_checkpoint_id(config)
    return foreign.Put(
        thread, ns, parent, cast("dict[str, Any]", checkpoint), cast("dict[str, Any]", merged), new_versions
    )


def address(config: RunnableConfig) -> tuple[str, str]:
    """Thread and namespace of a config."""
    configurable = config.get("configurable", {})
    if "thread_id" not in configurable:
        raise MissingThreadError()
    return checked_place(str(configurable["thread_id"]), configurable.get("checkpoint_ns") or "")
