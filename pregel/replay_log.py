"""A logger for code that may run again: one line for each real execution, none while what was recorded is replayed."""

from __future__ import annotations

import logging

from pregel.config import current_task

__all__ = ["ReplaySafeLogger", "get_logger"]


class ReplaySafeLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger of the standard library that is silent while the running node replays (`Runtime.is_replaying`)."""

    def isEnabledFor(self, level: int) -> bool:
        """Whether a line of this level is written now."""
        if not self.logger.isEnabledFor(level):
            return False
        task = current_task.get()
        return task is None or not task.is_replaying


def get_logger(name: str | None = None) -> ReplaySafeLogger:
    """The standard library's logger of that name, silent on replay; outside of a run it logs as ever."""
    return ReplaySafeLogger(logging.getLogger(name), {})
