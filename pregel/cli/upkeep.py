"""`pregel prune` and `pregel verify`: removing what is not needed any more, and looking for damage."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import asdict

from pregel.checkpoint.decode import Prototypes
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.cli.screen import Screen
from pregel.cli.target import load
from pregel.cli.usage import BUSY, DONE, FAILED, CallError, existing_database
from pregel.cli.values import as_json, counted
from pregel.errors import ThreadBusy

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def prune(options: argparse.Namespace, screen: Screen) -> int:
    """Prunes threads that are named, or those that are old."""
    idle_for = None if options.idle_for is None else seconds(options.idle_for)
    strategy = "delete" if options.delete else "keep_latest"
    busy = ""
    pruned: Sequence[str]
    with SqliteSaver.from_conn_string(existing_database(options.db)) as saver:
        if idle_for is not None:
            pruned = saver.sweep(idle_for, strategy=strategy)
        else:
            pruned = known(saver, options)
            try:
                saver.prune(pruned, strategy=strategy)
            except ThreadBusy as error:
                busy = error.message
    if options.json:
        screen.say(as_json({"threads": pruned, "strategy": strategy, "problem": busy}))
    else:
        done = "deleted" if options.delete else "reduced to the newest state"
        screen.say(busy or f"{counted(len(pruned), 'thread')} {done}.")
    return BUSY if busy else DONE


def verify(options: argparse.Namespace, screen: Screen) -> int:
    """Reads every record of threads, and lists what is wrong with them."""
    # loading a graph makes its types known; its channels fold what its reducers have to
    channels: Prototypes | None = getattr(load(options.graph), "channels", None) if options.graph else None
    with SqliteSaver.from_conn_string(existing_database(options.db)) as saver:
        threads = known(saver, options)
        findings = [finding for thread in threads for finding in saver.verify(thread, channels=channels)]
    damaged = any(finding.kind == "damaged" for finding in findings)
    if options.json:
        screen.say(as_json({"threads": len(threads), "findings": [asdict(finding) for finding in findings]}))
        return FAILED if damaged else DONE
    if findings:
        rows = [[one.kind, one.thread, one.ns, one.checkpoint, one.what] for one in findings]
        screen.table(["", "thread", "namespace", "checkpoint", "what is wrong"], rows)
    read = counted(len(threads), "thread")
    screen.say(f"{read} read, {counted(len(findings), 'finding')}." if findings else f"{read}: whole.")
    return FAILED if damaged else DONE


def known(saver: SqliteSaver, options: argparse.Namespace) -> Sequence[str]:
    """The threads that were named, or all; CallError for one that is not there."""
    present = [row.thread for row in saver.threads()]
    if options.thread is None:
        return present
    if unknown := [thread for thread in options.thread if thread not in present]:
        fix = f"`pregel threads --db {options.db}` lists the threads."
        raise CallError(f"There is no thread {unknown[0]!r} in {options.db}.", fix)
    return list(options.thread)


def seconds(text: str) -> float:
    """A time such as ``90s``, ``30m``, ``12h``, ``7d`` in seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if match is None:
        raise CallError(f"--idle-for {text!r} is no time.", "Write a number and s, m, h or d: 90s, 30m, 12h, 7d.")
    return float(match[1]) * SECONDS[match[2]]
