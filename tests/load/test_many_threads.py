"""1,000 threads on one PostgreSQL, run by eight processes at once whose connections do not suffice."""

from __future__ import annotations

import time

import pytest

from pregel.checkpoint.postgres import PostgresSaver
from pregel.checkpoint.records import Page

from .programs import STEPS, start, told

THREADS, PROCESSES, CONNECTIONS = 1_000, 8, 3


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_thousand_threads_lose_nothing_and_wait_for_connections(dsn: str, request: pytest.FixtureRequest) -> None:
    seconds: float = request.config.getoption("--load-seconds")
    share = THREADS // PROCESSES  # 125 runs at once in a process, over three connections: they wait for each other
    with PostgresSaver.from_conn_string(dsn) as saver:
        saver.setup()
    until = time.time() + seconds
    began = time.perf_counter()
    workers = [start("share", dsn, at * share, share, CONNECTIONS, until) for at in range(PROCESSES)]
    reports = [told(worker) for worker in workers]
    took = time.perf_counter() - began

    counts = {f"t{number}": count for report in reports for number, count in report["counts"].items()}
    waits = sorted(wait for report in reports for wait in report["waits"])
    percentiles = {part: waits[int(len(waits) * part / 100)] * 1e3 for part in (50, 95, 99)}
    supersteps = sum(counts.values())
    print(
        f"{supersteps:,} supersteps in {took:.0f} s, {supersteps / took:,.0f} a second; one of them, ms: "
        + ", ".join(f"{part} % {wait:.1f}" for part, wait in percentiles.items())
        + f", slowest {waits[-1] * 1e3:.0f}"
    )
    assert len(counts) == THREADS
    assert min(counts.values()) >= STEPS  # each thread had its turn
    with PostgresSaver.from_conn_string(dsn) as saver:
        assert counts == {name: journal_count(saver, name) for name in counts}


def journal_count(saver: PostgresSaver, thread: str) -> int:
    """How far a thread counted, by its checkpoints: an unbroken line in which each superstep counts one further."""
    line = [saved for _, saved in saver.page(thread, Page())][::-1]  # oldest first
    assert [saved.parent for saved in line] == [None, *(saved.id for saved in line[:-1])]
    steps = [saved.values["n"] for saved in line if saved.source == "loop" and "count" in str(saved.applied)]
    assert steps == list(range(1, len(steps) + 1))
    return len(steps)
