"""A planted bug: what is changed in the source, and the net that must catch it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """One text of one file, and what stands there instead."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """A bug: its edits, the test that must fail, and what the failure must say where a test holds several nets."""

    name: str
    net: str
    edits: tuple[Edit, ...]
    says: str = ""


def mutant(name: str, net: str, file: str, old: str, new: str, says: str = "") -> Mutant:
    """A bug of one edit."""
    return Mutant(name, net, (Edit(file, old, new),), says)
