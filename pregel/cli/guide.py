"""`pregel guide` and `pregel check`: for whoever writes workflows offline, a person or a model."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from pregel.cli.screen import Screen
from pregel.cli.usage import DONE, FAILED, CallError
from pregel.cli.values import as_json
from pregel.guide import check_target, listing, page, path


def guide(options: argparse.Namespace, screen: Screen) -> int:
    """Prints a page, the list of pages, or where they are."""
    if options.path:
        screen.say(str(path()))
    else:
        screen.say(page(options.page).rstrip() if options.page else listing())
    return DONE


def check(options: argparse.Namespace, screen: Screen) -> int:
    """Says what is wrong with a workflow."""
    if options.timeout <= 0:
        raise CallError("--timeout is above 0.", "Give seconds.")
    found = check_target(options.target, timeout=options.timeout)
    if options.format == "json":
        screen.say(as_json([asdict(problem) for problem in found]))
    else:
        for problem in found:
            screen.say(str(problem))
        screen.say(f"{len(found) or 'No'} problem{'' if len(found) == 1 else 's'} in {options.target}.")
    return FAILED if found else DONE
