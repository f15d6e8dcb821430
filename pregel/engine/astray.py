"""A caller that runs again and makes another call than the first time: what had ended in its place, what is called now.

A call is known by its caller, its number there, its kind and its name. Arguments are told apart by their fingerprints
and never shown: an error's text may be read where values may not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from pregel.checkpoint.records import MEMO, Write
from pregel.engine.failure import unpacked
from pregel.engine.task import PUSH, path_text
from pregel.errors import ReplayMismatchError

if TYPE_CHECKING:
    from pregel.engine.calls import CallTask

RETURN = "__return__"
GRAPH = "call:"  # before the number of a graph's call


class Ended(NamedTuple):
    """A call that ended: its name, and what it was made with."""

    name: str
    fingerprint: str


def ended_calls(recalled: Mapping[str, Iterable[Write]]) -> dict[str, Ended]:
    """The calls that an open superstep has stored the end of, by their path."""
    found: dict[str, Ended] = {}
    for writes in recalled.values():
        rows = {write.channel: write for write in writes}
        kept = rows[MEMO].value if MEMO in rows else ""
        if (returned := rows.get(RETURN)) is not None:
            found[returned.path] = Ended(returned.name, kept)
        elif isinstance(kept, list) and _is_call(rows[MEMO].path):
            found[rows[MEMO].path] = Ended(rows[MEMO].name, unpacked(kept).fingerprint)
    return found


def _is_call(path: str) -> bool:
    """Whether a record is a call's; values of `runtime.step` have records too."""
    return path.endswith(", True")


def astray(made: CallTask, ended: Mapping[str, Ended]) -> ReplayMismatchError:
    """The error of a caller that makes this call where another one had ended; both are named."""
    number = str(made.path[2])
    what, other = ("graph", "another input") if number.startswith(GRAPH) else ("task", "other arguments")
    before = ended.get(made.path_text)
    if before is None or before.name == made.name:
        told = f"calls {what} {made.name!r} with {other} than the first time"
    else:
        told = f"calls {what} {made.name!r} where it had called {what} {before.name!r} the first time"
    place = f"call {number.removeprefix(GRAPH)} of {made.parent.name!r}"
    if (old := _place_then(made, ended)) is not None:
        place += f", the first time this was call {old}"
    return ReplayMismatchError(
        f"A node runs again, and {told} ({place}).",
        fix="Make the same calls in the same order: take input from the state, and keep what changes (times, random "
        "numbers) with runtime.step.",
        thread=made.frame.run.thread,
    )


def _place_then(made: CallTask, ended: Mapping[str, Ended]) -> str | None:
    """The number that this very call had the first time, where the order has changed."""
    _, caller, index, _ = made.path
    number = int(str(index).removeprefix(GRAPH))
    for other in range(len(ended) + number + 1):
        place = f"{GRAPH}{other}" if str(index).startswith(GRAPH) else other
        found = ended.get(path_text((PUSH, caller, place, True)))
        if other != number and found == (made.name, made.fingerprint) and made.fingerprint:
            return str(other)
    return None
