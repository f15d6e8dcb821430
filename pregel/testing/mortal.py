"""The saver of a process that dies: at one of its appends, and it stores nothing from there on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Literal, NamedTuple, TypeVar

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.news import AsyncNews, News
from pregel.checkpoint.records import Append, Load, Opened, Receipt
from pregel.flow import Flow
from pregel.testing.landed import Landed
from pregel.testing.scripted import Died

T = TypeVar("T")
When = Literal["before", "after"]
WHEN: tuple[When, ...] = ("before", "after")


class Death(NamedTuple):
    """Where a process dies: right before or after the nth append of a turn."""

    turn: int
    when: When
    nth: int


class Mortal(JournalSaver):
    """Another saver, as one process has it. `stopped` tells what the append holds at which the process died."""

    def __init__(self, saver: JournalSaver, landed: Landed, death: Death | None = None) -> None:
        super().__init__(serde=saver.serde, lease=saver.lease)
        self.names, self.saver, self.landed, self.death = saver.names, saver, landed, death
        self.appends = 0
        self.stopped = ""

    def load(self, thread: str, loads: Sequence[Load], names: Iterable[str] = ()) -> Opened:
        return self.saver.load(thread, loads, names)

    def read(self, flow: Flow[T]) -> T:
        return self.saver.read(flow)

    def write(self, flow: Flow[T]) -> T:
        return self.saver.write(flow)

    def append(self, append: Append) -> Receipt:
        self._step("before", append)
        receipt = self.landed.watch(append, self.saver.append)
        self._step("after", append)
        return receipt

    async def aappend(self, append: Append) -> Receipt:
        self._step("before", append)
        receipt = await self.saver.aappend(append)
        self.landed.add(append, receipt)
        self._step("after", append)
        return receipt

    async def _hop(self, verb: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        found: T = await getattr(self.saver, f"a{verb.__name__}")(*args, **kwargs)
        return found

    def listen(self) -> AbstractContextManager[News]:
        return self.saver.listen()

    def alisten(self) -> AbstractAsyncContextManager[AsyncNews]:
        return self.saver.alisten()

    def _step(self, when: When, append: Append) -> None:
        if self.stopped:
            raise Died
        if when == "before":
            self.appends += 1
        if self.death is not None and self.death[1:] == (when, self.appends):
            self.stopped = self._holds(append)
            raise Died

    def _holds(self, append: Append) -> str:
        """What an append holds, in plain words."""
        nodes = dict.fromkeys(self.names.texts[write.name] for write in append.writes if write.idx >= 0)
        parts = ["the claim"] if append.claim is not None else []
        parts += [f"what {', '.join(nodes)} wrote"] if nodes else []
        parts += [f"step {row.step}" for row in append.checkpoints]
        parts += [f"the end: {append.release.status}"] if append.release is not None else []
        return ", ".join(parts) or "notes"
