"""A stream as other runs of its process see it: whether it goes on, or stands at a chunk that nobody pulls on from."""

from __future__ import annotations

from typing import Any

from pregel.checkpoint import lease

GRACE = 1.0  # seconds: a stream that nobody pulled for so long is left behind, whoever asks


class Parked:
    """Whether a stream gives way: it stands between two chunks and none of its tasks runs.

    To a run of the thread (or asyncio task) that pulls the stream it gives way at once, since that one is busy with the
    new run. To all others only after a while: they cannot tell a slow consumer from one that has left.
    """

    __slots__ = ("caller", "chunks", "jobs", "since")

    def __init__(self, chunks: Any, jobs: Any, caller: object) -> None:
        self.chunks = chunks
        self.jobs = jobs
        self.caller = caller
        self.since = lease.uptime()

    def touch(self) -> None:
        """A chunk is about to be handed out."""
        self.since = lease.uptime()

    def __call__(self, caller: object) -> bool:
        """Whether a run of this caller may take the thread."""
        if self.jobs or self._runs():
            return False
        return caller == self.caller or lease.uptime() - self.since >= GRACE

    def _runs(self) -> bool:
        running: bool = self.chunks.gi_running if hasattr(self.chunks, "gi_running") else self.chunks.ag_running
        return running
