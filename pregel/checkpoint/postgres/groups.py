"""What many runs say at once, as one statement: the words of `words` over arrays, one row a run.

1. The texts are derived from those of a single run, so each guard is written once. `v` holds the arguments of all runs,
   in columns called after the places; `i` says whose a row is.
2. A thread whose row somebody else has locked is passed over, as one whose guard misses: a statement of many waits for
   nobody, so two of them cannot meet in a deadlock. Whoever is not in the answer says the same again alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from pregel.checkpoint.flows import Atomic, Row
from pregel.checkpoint.postgres.words import STATEMENTS, TEXTS, Words, columns, head_args, tidied

_TYPED = re.compile(r"\$(\d+)::(\w+)(?!\[)")
_COLUMNS = re.compile(r"unnest\(([^)]+)\)\s+u \(([^)]+)\) ON true")
_PLACE = re.compile(r"\$(\d+)")


def appends(requests: Sequence[Atomic]) -> Words:
    """The appends of several runs whose guards have one name; the answer has rows as for one, each with its number."""
    name = requests[0].head.name
    args = columns(_kinds(name), [(*head_args(request),) for request in requests])
    tables: dict[str, list[Row]] = {}
    for number, request in enumerate(requests, 1):
        for many in request.rest:
            tables.setdefault(many.name, []).extend([(*row, number) for row in tidied(many)])
    for table, rows in tables.items():
        args += columns((*STATEMENTS[table].kinds, "bigint"), rows)
    return _append_text(name, tuple(tables)), args


def openings(places: Sequence[tuple[str, str]]) -> Words:
    """The rows of `opening` for several (thread, namespace), each led by its number."""
    return _opening_text(), columns(("text", "text"), places)


def _kinds(name: str) -> tuple[str, ...]:
    """The types of a guard's arguments, in the order of its places."""
    found = {int(place): kind for place, kind in _TYPED.findall(TEXTS[name])}
    return tuple(found[place + 1] for place in STATEMENTS[name].places)


@lru_cache(256)
def _append_text(name: str, tables: tuple[str, ...]) -> str:
    places = [place + 1 for place in STATEMENTS[name].places]
    guard = _PLACE.sub(r"v.a\1", TEXTS[name])
    given = _given(places, _kinds(name))
    if name == "create":
        made = guard.replace("ON CONFLICT", "FROM v ON CONFLICT")
        parts = [
            f"v AS (SELECT * FROM {given})",
            f"c AS ({made} RETURNING *)",
            "t AS (SELECT c.*, v.i FROM c JOIN v ON v.a1 = c.thread AND v.a6 = c.mark)",
        ]
    else:
        moved = guard.replace("\nWHERE", "\nFROM v WHERE")
        parts = [
            f"v AS (SELECT u.* FROM {given} JOIN pregel_threads p ON p.tno = u.a6 FOR UPDATE OF p SKIP LOCKED)",
            f"t AS ({moved} RETURNING pregel_threads.*, v.i)",
        ]
    first = len(places)
    for table in tables:
        parts.append(f"{table} AS ({_added(TEXTS[table], first)})")
        first += len(STATEMENTS[table].kinds) + 1
    landed = TEXTS["landed"].replace("\nFROM t", ", i\nFROM t")
    return f"WITH {', '.join(parts)} {landed}"


def _given(places: Sequence[int], kinds: Sequence[str]) -> str:
    """The arguments of all runs as a table `u`."""
    arrays = ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(kinds, 1))
    names = ", ".join(f"a{place}" for place in places)
    return f"unnest({arrays}) WITH ORDINALITY u ({names}, i)"


def _added(text: str, first: int) -> str:
    """A statement that adds rows, with its places after the first ones, and the number of its run with each row."""
    width = len(_PLACE.findall(text))
    text = _PLACE.sub(lambda match: f"${int(match[1]) + first}", text)
    return _COLUMNS.sub(rf"unnest(\1, ${first + width + 1}::bigint[]) u (\2, i) ON u.i = t.i", text)


@lru_cache(1)
def _opening_text() -> str:
    text = _PLACE.sub(r"v.a\1", TEXTS["opening"])
    text = text.replace("SELECT ", "SELECT v.i, ", 1).replace(
        "FROM pregel_threads t\n", "FROM v CROSS JOIN pregel_threads t\n", 1
    )
    return f"WITH v AS (SELECT * FROM {_given((1, 2), ('text', 'text'))}) {text}"
