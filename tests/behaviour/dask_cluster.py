"""A graph and a workflow on a Dask cluster, blocking and awaited: a program of its own, as Dask warns of its sockets.

``python -m tests.behaviour.dask_cluster``: prints what they came to.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import distributed

from pregel.checkpoint.memory import InMemorySaver
from pregel.func import entrypoint

from . import away_nodes as nodes
from .marks import chain


def told(executor: Any) -> list[Any]:
    app = chain("x", "y", x=nodes.where, y=lambda state: {"a": ["a lambda"]})
    away = app.compile(checkpointer=InMemorySaver(), executor=executor)

    @entrypoint(executor=executor)
    def squares(numbers: list[int]) -> Any:
        futures = [nodes.square(n) for n in numbers]
        return [future.result() for future in futures]

    found = [away.invoke({"a": []}, place("1")), asyncio.run(away.ainvoke({"a": []}, place("2")))]
    pids, texts = zip(*[one["a"] for one in found], strict=True)
    awaited = asyncio.run(squares.ainvoke([1, 2, 3]))
    return [str(os.getpid()) in pids, texts, squares.invoke([1, 2, 3]), awaited]


def place(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def main() -> None:
    dask: Any = distributed
    cluster = dask.LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None, host="127.0.0.1")
    with cluster, dask.Client(cluster) as client:
        print(json.dumps(told(client.get_executor(retries=0, pure=False))))


if __name__ == "__main__":
    main()
