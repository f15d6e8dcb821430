"""The demo's trip, in a process that dies when the provider has accepted the car, before that is recorded.

``python -m tests.kill.trips STORE DRIVER DURABILITY IDEMPOTENT``: its provider is the one that the environment names.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from pregel.checkpoint.postgres.aio import AsyncPostgresSaver
from pregel.checkpoint.sqlite.aio import AsyncSqliteSaver
from pregel.cli.demo.desk import call
from pregel.cli.demo.trip import build_trip
from pregel.types import Durability
from tests.kill.owners import saver_at

CONFIG: Any = {"configurable": {"thread_id": "trip"}}
GIVEN: Any = {"request": {"to": "Lisbon", "budget": 1500, "approved": True}}


def deadly(tool: str, **given: object) -> dict[str, Any]:
    """What the provider answers; nobody hears what it says to a car."""
    answer = call(tool, **given)
    if tool == "car":
        os.kill(os.getpid(), signal.SIGKILL)
    return answer


async def awaited(store: str, graph: Any, durability: Durability) -> None:
    made: Any = AsyncSqliteSaver if store.endswith(".db") else AsyncPostgresSaver
    async with made.from_conn_string(store) as saver:
        await graph.compile(checkpointer=saver).ainvoke(GIVEN, CONFIG, durability=durability)


def main(store: str, driver: str, durability: Durability, idempotent: str) -> None:
    graph = build_trip(deadly, idempotent=idempotent == "True")
    if driver == "async":
        asyncio.run(awaited(store, graph, durability))
    else:
        with saver_at(store) as saver:
            graph.compile(checkpointer=saver).invoke(GIVEN, CONFIG, durability=durability)


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]  # the test knows what it gives
