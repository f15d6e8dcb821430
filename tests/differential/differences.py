"""What pregel does otherwise on purpose, and how the suite reads it. All mappings between the two sides stand here.

| what | reference | pregel | compared |
|---|---|---|---|
| a join left half full at the end of a run | just ends | `JoinStarvedError`, state saved | as no error |
| error classes | `InvalidUpdateError`, `KeyError`, ... | subclasses of those names | by the reference's name |
| updates of a step in which a node failed | as threads end | as they are stored | their stored results |
| get_state after a step whose writes conflict | raises the conflict again | readable | not |
| siblings cut off by a failure (1) | stored by luck | stored | from there on values and history only |
| ids of tasks, interrupts, checkpoints | its own | its own | parents by place in the history |

(1) A failing node waits until the others of its step are stored, so this is left for several failures in one step and
for durability exit.

Not drawn, because the two are meant to differ or the reference depends on thread timing:
unknown goto, branch and Send targets (an error here) · unknown update keys · in-place mutation of state ·
Command input on a fresh thread (applied twice there) · None as input while a question is pending after a plain answer
(the answer is used twice there) · stale or surplus answers (an error here) · Overwrite on a channel without a reducer ·
durability sync around a subgraph that is never stored (AttributeError there) ·
two failing nodes, or one beside a node that asks · joins and Topic channels with durability async (the background save
there holds the live container and stores what a later step puts into it).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tests.differential.play import Group, Seen

SILENT_IN_THE_REFERENCE = {"JoinStarvedError"}
STEP_ENDED = {"InvalidUpdateError", "GraphRecursionError"}  # raised by the engine after all tasks of the step ended


def aligned(reference: list[Seen], ours: list[Seen]) -> tuple[list[Seen], list[Seen]]:
    """Both records with every deliberate difference taken out: equal when the implementations agree."""
    pairs = [pair(theirs, mine) for theirs, mine in zip(reference, ours, strict=True)]
    luck = [place for place, seen in enumerate(pairs) if any(map(cut_off, seen))]
    for place in range(min(luck, default=len(pairs)), len(pairs)):
        pairs[place] = (blurred(pairs[place][0]), blurred(pairs[place][1]))
    return [theirs for theirs, _ in pairs], [mine for _, mine in pairs]


def pair(theirs: Seen, mine: Seen) -> tuple[Seen, Seen]:
    """One call on both sides."""
    if SILENT_IN_THE_REFERENCE & set(mine.error):
        mine = replace(mine, error=())
    if theirs.error and theirs.error[0] in mine.error:
        mine = replace(mine, error=theirs.error)
    if node_failed(theirs):
        theirs, mine = (replace(seen, groups=closed(seen.groups)) for seen in (theirs, mine))
    if theirs.live is None:
        mine = replace(mine, live=None)
    return theirs, mine


def node_failed(seen: Seen) -> bool:
    """Whether a node's own error ended the call."""
    return bool(seen.error) and not STEP_ENDED & set(seen.error)


def cut_off(seen: Seen) -> bool:
    """Whether a node's failure may have cut off another task, or the record of another failure."""
    head = seen.history[0].tasks if seen.history else ()
    return node_failed(seen) and sum(task.result is None for task in head) > 1


def blurred(seen: Seen) -> Seen:
    """The record without what depends on which siblings of a failed task got stored: they run again, same end."""
    history = tuple(replace(entry, tasks=()) for entry in seen.history)
    groups = tuple(Group(Counter(), group.values) for group in closed(seen.groups))
    live = None if seen.error else seen.live and replace(seen.live, tasks=())
    return replace(seen, groups=groups, ran=None, history=history, live=live)


def closed(groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """The groups without the one that no values chunk closed."""
    return tuple(group for group in groups if group.values is not None)
