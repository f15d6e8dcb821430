"""`pregel rewind`: a thread that failed is made ready to go on; `pregel resume` goes on with it."""

from __future__ import annotations

import argparse
import getpass
from dataclasses import asdict

from pregel.cli.screen import Screen
from pregel.cli.target import open_graph
from pregel.cli.usage import DONE, CallError, existing_database
from pregel.cli.values import as_json, counted
from pregel.errors import CannotRewindError, ThreadNotFoundError
from pregel.types import Rewind


def rewind(options: argparse.Namespace, screen: Screen) -> int:
    """Rewinds a thread, and names what its failed tasks may have done outside."""
    operator = operator_of(options)
    with open_graph(options.graph, existing_database(options.db)) as graph:
        try:
            rewound = graph.threads.rewind(options.thread, reason=options.reason, operator=operator)
        except (CannotRewindError, ThreadNotFoundError) as error:
            raise CallError(error.message, error.fix) from error
    if options.json:
        told = {**asdict(rewound), "failed": [task._asdict() for task in rewound.failed]}
        screen.say(as_json(told))
    else:
        _tell(rewound, screen)
    return DONE


def operator_of(options: argparse.Namespace) -> str | None:
    """Who acts: as the call says, else the user of this process; None where the system does not say."""
    if options.operator is not None:
        return str(options.operator)
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return None


def _tell(rewound: Rewind, screen: Screen) -> None:
    thread = rewound.thread_id
    if rewound.repeated:
        screen.say(f"Thread {thread!r} was rewound before ({rewound.reason}), and nothing has run since.")
    else:
        screen.say(f"Thread {thread!r} is rewound. `pregel resume` goes on with it.")
    for task in rewound.failed:
        screen.say(f"  {task.node} failed after {counted(task.attempts, 'attempt')}: {task.error}")
    for effect in rewound.effects:
        screen.say(f"  {effect.node} may have done {effect.key!r}, under the key {effect.idempotency_key}")
