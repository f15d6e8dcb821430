"""`pregel settle`: what a thread may have done outside, and what came of it, said by somebody who knows."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from pregel.cli.rewind import operator_of
from pregel.cli.screen import Screen
from pregel.cli.target import Graph, open_graph
from pregel.cli.usage import DONE, CallError, existing_database, read_json
from pregel.cli.values import as_json
from pregel.errors import ThreadNotFoundError, UnknownEffectError
from pregel.types import Effect


def settle(options: argparse.Namespace, screen: Screen) -> int:
    """Settles an effect, or lists those that wait when none is named."""
    said = options.result is not None or options.retry
    if said != (options.effect is not None):
        raise CallError("An effect is settled by --effect KEY with --result JSON or --retry.", "Leave all out to list.")
    with open_graph(options.graph, existing_database(options.db)) as graph:
        try:
            settled = [_settled(graph, options)] if said else []
            waiting = graph.threads.effects(options.thread)
        except (UnknownEffectError, ThreadNotFoundError) as error:
            raise CallError(error.message, error.fix) from error
    if options.json:
        told = {"settled": [asdict(one) for one in settled], "waiting": [asdict(one) for one in waiting]}
        screen.say(as_json(told))
        return DONE
    for effect in settled:
        screen.say(f"{effect.key!r} of {effect.node} is settled. `pregel resume` goes on with the thread.")
    if waiting:
        screen.table(["effect", "node", "key that was offered", "id"], [_row(effect) for effect in waiting])
    elif not settled:
        screen.say(f"Thread {options.thread!r} has begun nothing whose outcome is unknown.")
    return DONE


def _settled(graph: Graph, options: argparse.Namespace) -> Effect:
    outcome: dict[str, Any] = {"retry": True} if options.retry else {"result": read_json(options.result, "--result")}
    return graph.threads.settle(options.thread, options.effect, **outcome, operator=operator_of(options))


def _row(effect: Effect) -> list[str]:
    return [effect.key, effect.node, effect.idempotency_key, effect.id]
