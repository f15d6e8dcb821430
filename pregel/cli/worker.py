"""`pregel start` and `pregel worker`: runs that are admitted in one process and run in others."""

from __future__ import annotations

import argparse
import asyncio
from contextlib import nullcontext

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.cli.screen import Screen
from pregel.cli.target import compiled, is_async, load, open_graph
from pregel.cli.usage import DONE, read_json, writable_database
from pregel.cli.values import as_json
from pregel.durable import StatusPage, Worker
from pregel.signals import drain_on_signals


def start(options: argparse.Namespace, screen: Screen) -> int:
    """Admits a run and returns; a worker runs it."""
    given = read_json(options.input, "--input")
    config = {"configurable": {"thread_id": options.thread}} if options.thread else None
    with open_graph(options.graph, writable_database(options.db)) as graph:
        handle = graph.start(given, config, key=options.key)  # type: ignore[arg-type]  # it has the keys of one
        info = handle.status()
    if options.json:
        told = {"thread": handle.thread_id, "run": handle.run_id, "existing": handle.existing, "status": info.status}
        screen.say(as_json(told))
    else:
        screen.say(f"Thread {handle.thread_id!r} {'was started before' if handle.existing else 'is started'}.")
        screen.say(f"It is {info.status}: {info.reason}.")
    return DONE


def work(options: argparse.Namespace, screen: Screen) -> int:
    """Runs what can go on, until it is stopped."""
    with SqliteSaver.from_conn_string(writable_database(options.db)) as saver:
        graphs = [compiled(load(target), saver, target) for target in options.graphs]
        worker = Worker(graphs, concurrency=options.concurrency)  # type: ignore[arg-type]  # they are Pregels
        page = nullcontext() if options.http is None else StatusPage(graphs[0], port=options.http)  # type: ignore[arg-type]
        with drain_on_signals(control=worker.control), page as served:
            if served is not None:
                screen.say(f"How threads stand: {served.url}/threads/ID")
            if any(is_async(graph) for graph in graphs):
                asyncio.run(_once(worker) if options.once else worker.arun())
            elif options.once:
                worker.run_once()
            else:
                worker.run()
    return DONE


async def _once(worker: Worker) -> None:
    await worker.arun_once()
