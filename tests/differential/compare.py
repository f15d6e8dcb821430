"""Whether a program shows the same on both sides, and if not, where."""

from __future__ import annotations

from dataclasses import fields, replace

from tests.differential.differences import aligned, step_failed
from tests.differential.play import Seen, play, play_otherwise
from tests.differential.program import Program, Run
from tests.differential.side import Side


def disagreement(program: Program, reference: Side, ours: Side, *, settled: bool = False) -> str:
    """Where the two sides differ, with the program to paste into a regression test; empty when they agree."""
    theirs, mine = aligned(program, play(program, reference), play(program, ours), settled=settled)
    for expected, actual in zip(theirs, mine, strict=True):
        if expected != actual:
            return report(program, "", expected, actual)
    return ""


def other_ways(program: Program, reference: Side, ours: Side) -> str:
    """Where our other ways to make the first call (awaiting, no saver) differ; empty when nowhere."""
    pauses = program.before or program.after or any(node.asks for node in program.nodes)
    first = replace(program, ops=(Run(),))
    for way, awaiting, saver in (("awaiting", True, ours.InMemorySaver()), ("no saver", False, None)):
        if saver is None and pauses:
            continue
        expected = replace(play(first, reference)[0], live=None, history=())
        actual = play_otherwise(first, ours, saver=saver, awaiting=awaiting)
        (expected,), (actual,) = aligned(first, [expected], [actual])
        if step_failed(expected):
            expected, actual = replace(expected, ran=None), replace(actual, ran=None)
        if expected != actual:
            return report(first, way, expected, actual)
    return ""


def report(program: Program, way: str, expected: Seen, actual: Seen) -> str:
    """What differs in one call, side by side."""
    lines = [f"{program!r}", f"in {expected.op!r} {way}"]
    for field in fields(Seen):
        theirs, mine = getattr(expected, field.name), getattr(actual, field.name)
        if isinstance(theirs, tuple) and isinstance(mine, tuple) and len(theirs) == len(mine):
            pairs = [(f"{field.name}[{place}]", *pair) for place, pair in enumerate(zip(theirs, mine, strict=True))]
        else:
            pairs = [(field.name, theirs, mine)]
        lines += [f"  {name}\n    reference {a!r}\n    ours      {b!r}" for name, a, b in pairs if a != b]
    return "\n".join(lines)
