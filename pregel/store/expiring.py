"""Removing what has lapsed, from time to time: the sweeper of a store."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

from pregel.errors import InvalidInputError, StoreError
from pregel.flow import on_thread
from pregel.store.base import TTLConfig

if TYPE_CHECKING:
    import asyncio

log = logging.getLogger("pregel.store")
log.addHandler(logging.NullHandler())

INTERVAL = 5.0  # minutes
KEYS = ("refresh_on_read", "omit_expired", "default_ttl", "sweep_interval_minutes")


class Expiring:
    """A store whose items may lapse. It defines `sweep_ttl`."""

    ttl_config: TTLConfig | None

    def __init__(self, ttl: TTLConfig | None) -> None:
        self.ttl_config = checked_ttl(ttl)
        self._sweeping: tuple[threading.Thread, threading.Event, Future[None]] | None = None

    def sweep_ttl(self) -> int:
        """Remove what has lapsed; how many items that were comes back."""
        raise NotImplementedError

    async def asweep_ttl(self) -> int:
        """`sweep_ttl`, awaited."""
        return await on_thread(self.sweep_ttl)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Sweep every so many minutes in a thread of its own, until `stop_ttl_sweeper`; its future comes back.

        Nothing is started, and the future is done, for a store without a ttl config. A sweep that failed is logged and
        tried again the next time.
        """
        minutes = interval(self.ttl_config, sweep_interval_minutes)
        if minutes is None:
            done: Future[None] = Future()
            done.set_result(None)
            return done
        if self._sweeping is not None and self._sweeping[0].is_alive():
            return self._sweeping[2]
        stopped, future = threading.Event(), Future[None]()
        thread = threading.Thread(
            target=self._sweep_until, args=(stopped, minutes * 60.0, future), name="pregel-store-sweeper", daemon=True
        )
        self._sweeping = thread, stopped, future
        thread.start()
        return future

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper, waiting at most `timeout` seconds; whether it has stopped comes back."""
        if self._sweeping is None:
            return True
        thread, stopped, _ = self._sweeping
        stopped.set()
        thread.join(timeout)
        if thread.is_alive():
            return False
        self._sweeping = None
        return True

    def _sweep_until(self, stopped: threading.Event, seconds: float, future: Future[None]) -> None:
        while not stopped.wait(seconds):
            try:
                self.sweep_ttl()
            except StoreError as error:
                log.warning("Lapsed items could not be removed: %s", error)
        future.set_result(None)


class AsyncExpiring:
    """A store whose items may lapse, for programs that await. It defines `asweep_ttl`."""

    ttl_config: TTLConfig | None

    def __init__(self, ttl: TTLConfig | None) -> None:
        self.ttl_config = checked_ttl(ttl)
        self._sweeping: asyncio.Task[None] | None = None

    async def asweep_ttl(self) -> int:
        """Remove what has lapsed; how many items that were comes back."""
        raise NotImplementedError

    async def sweep_ttl(self) -> int:
        """The same, under the reference's name."""
        return await self.asweep_ttl()

    async def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> asyncio.Task[None]:
        """Sweep every so many minutes, until `stop_ttl_sweeper`; the task comes back, done without a ttl config."""
        import asyncio

        if self._sweeping is None or self._sweeping.done():
            minutes = interval(self.ttl_config, sweep_interval_minutes)
            self._sweeping = asyncio.create_task(self._sweep_for_ever(minutes))
        return self._sweeping

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper, waiting at most `timeout` seconds; whether it has stopped comes back."""
        import asyncio

        task = self._sweeping
        if task is None:
            return True
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=timeout)
        if not done:
            return False
        self._sweeping = None
        return True

    async def _sweep_for_ever(self, minutes: float | None) -> None:
        import asyncio

        while minutes is not None:
            await asyncio.sleep(minutes * 60.0)
            try:
                await self.asweep_ttl()
            except StoreError as error:
                log.warning("Lapsed items could not be removed: %s", error)


def checked_ttl(ttl: TTLConfig | None) -> TTLConfig | None:
    """The config; InvalidInputError when it has a key that means nothing."""
    for key in ttl or ():
        if key not in KEYS:
            raise InvalidInputError(f"ttl has the key {key!r}.", fix=f"Use {', '.join(KEYS)}.")
    return ttl


def interval(ttl: TTLConfig | None, given: float | None) -> float | None:
    """Minutes between two sweeps; None without a config."""
    return None if ttl is None else given or ttl.get("sweep_interval_minutes") or INTERVAL
