"""How a wrong name is explained: what was probably meant, and what there is."""

from __future__ import annotations

from collections.abc import Iterable


def known_names(wrong: object, known: Iterable[str]) -> str:
    """``Did you mean 'total'? Known: total, visited.``"""
    from difflib import get_close_matches  # only somebody who made a mistake pays for it

    names = sorted(known)
    near = get_close_matches(str(wrong), names, n=1)
    guess = f"Did you mean {near[0]!r}? " if near else ""
    return f"{guess}Known: {', '.join(names) or 'none'}."


def quoted(names: Iterable[object]) -> str:
    """``'a', 'b'``"""
    return ", ".join(repr(name) for name in names)
