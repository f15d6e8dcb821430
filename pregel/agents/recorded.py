"""The model's answers within one task of the model node, recorded before a wrap hook sees them.

1. An answer is stored before it is used. A task that runs again, since its process died or a hook asked a person, gets
   the stored answers in their order; what failed had no answer and is not counted, so a retry or a fallback gets the
   answer that its first try would have had to wait for.
2. What a hook around the call keeps out of answers (`pregel.tokens.screening`) is recorded nowhere. An answer that it
   refuses is not recorded: the hook fails of it.
3. A task that failed with an answer shall not get it again: its failure voids what was recorded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pregel.agents.flow import AgentFlow, Either
from pregel.errors import GraphBubbleUp, InternalError, StoreError
from pregel.messages import AIMessage
from pregel.runtime import Steps
from pregel.tokens import screened


class RecordedAnswers:
    """The answers of a task, new and recorded ones, in the order in which they came."""

    def __init__(self, task: Steps) -> None:
        self.task = task
        self.lock = threading.Lock()  # a hook may ask several models at once
        self.given = 0
        self.failures = 0
        while task.recall(self._voided()):
            self.failures += 1

    def asked(self, ask: Callable[[], AgentFlow[AIMessage]]) -> AgentFlow[AIMessage]:
        """The next recorded answer; the one that `ask` gets, and records, when there is none."""
        with self.lock:
            if known := self.task.recall(self._key()):
                self.given += 1
                recorded: AIMessage = known[0]
                return recorded
        raw = yield from ask()
        answer: AIMessage | None = screened(raw)
        if answer is None:
            return raw
        with self.lock:
            key = self._key()
            self.given += 1
        yield self._kept(key, answer)
        return answer

    def voiding(self, work: AgentFlow[Any]) -> AgentFlow[Any]:
        """What the work comes to; when it fails, what was recorded for it does not count any more."""
        try:
            return (yield from work)
        except (GraphBubbleUp, StoreError, InternalError):
            raise
        except Exception:
            if self.given:
                yield self._kept(self._voided(), True)
            raise

    def _key(self) -> str:
        return f"model answer {self.failures}.{self.given}"

    def _voided(self) -> str:
        return f"model answers failed {self.failures}"

    def _kept(self, key: str, value: Any) -> Either:
        async def kept() -> None:
            await self.task.keep(key, value)

        return Either(lambda: self.task.keep(key, value).result(), kept)
