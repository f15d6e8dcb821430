"""The awaiting driver, cancelled at every turn of its event loop, over a saver whose every verb waits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.records import Append, Load, Opened, Receipt
from pregel.testing import Landed
from pregel.types import Durability
from tests.behaviour.workers import all_news_is_posted
from tests.simulation.graphs import IN, deep, flat

TURNS = 400  # of the loop; more than any of these runs takes


class WaitingSaver(InMemorySaver):
    """Each async verb lets the loop turn before and after it does its work, as a real one does."""

    def __init__(self) -> None:
        super().__init__()
        self.landed = Landed()

    async def aload(self, thread: str, loads: Sequence[Load], names: Iterable[str] = ()) -> Opened:
        await turn()
        opened = self.load(thread, loads, names)
        await turn()
        return opened

    async def aintern(self, texts: Iterable[str]) -> None:
        await turn()
        self.intern(texts)
        await turn()

    async def aappend(self, append: Append) -> Receipt:
        await turn()
        receipt = self.landed.watch(append, self.append)
        await turn()
        return receipt


async def turn() -> None:
    """Come back at the loop's next turn."""
    loop = asyncio.get_running_loop()
    waiting = loop.create_future()
    loop.call_soon(waiting.set_result, None)
    await waiting


async def invoke_and_cancel(app: Any, config: Any, durability: Durability, turns: int, cancels: int) -> bool:
    """Whether the run was over before it was cancelled; each further cancellation comes a turn later."""
    run = asyncio.ensure_future(app.ainvoke(IN, config, durability=durability))
    for _ in range(turns):
        all_news_is_posted()  # how many turns a run takes is no matter of its threads
        await turn()
    if run.done():
        return True
    for _ in range(cancels):
        run.cancel()
        await turn()
    await asyncio.wait([run])
    return False


async def continued(app: Any, config: Any, durability: Durability) -> Any:
    """What the run ends with when it is taken up again."""
    begun = (await app.aget_state(config)).config["configurable"].get("checkpoint_id") is not None
    return await app.ainvoke(None if begun else IN, config, durability=durability)


@pytest.mark.parametrize(
    ("program", "durability", "cancels"),
    [
        (flat, "sync", 1),
        (flat, "async", 1),
        (flat, "exit", 1),
        (deep, "sync", 1),
        (deep, "async", 1),
        (deep, "exit", 1),
        (flat, "async", 5),
        pytest.param(deep, "sync", 5, marks=pytest.mark.slow),
    ],
)
def test_a_run_that_is_cancelled_at_any_turn_of_the_loop_can_be_continued(
    program: Any, durability: Durability, cancels: int
) -> None:
    expected = program().copy({"checkpointer": InMemorySaver()}).invoke(IN, {"configurable": {"thread_id": "1"}})
    config = {"configurable": {"thread_id": "1"}}

    for turns in range(TURNS):
        saver = WaitingSaver()
        app = program().copy({"checkpointer": saver})
        if asyncio.run(invoke_and_cancel(app, config, durability, turns, cancels)):
            break
        assert expected == asyncio.run(continued(app, config, durability)), f"cancelled after {turns} turns"
        assert "" == saver.landed.broken, f"cancelled after {turns} turns"
    else:
        pytest.fail(f"the run takes more than {TURNS} turns")
