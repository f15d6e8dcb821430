"""What pregel does otherwise on purpose, and how the suite reads it. All mappings between the two sides stand here
(those of stored checkpoints in `stored.py`).

| what | reference | pregel | compared |
|---|---|---|---|
| a join left half full at the end of a run | just ends | `JoinStarvedError`, state saved | as no error |
| error classes | `InvalidUpdateError`, `KeyError`, ... | subclasses of those names | by the reference's name |
| updates of a step that failed | as threads end | as they are stored | their stored results |
| `next` of a step that is whole but was not applied | empty | what a resume goes on with | not |
| the values before a stored step that conflicts again | not shown | shown | not |
| get_state after a step whose writes conflict | raises the conflict again | readable | not |
| siblings cut off by a failure (1) | stored by luck | stored | from there on values and history only |
| a Command's writes beside pending tasks | in addressed values, no task | pending work | not, at that checkpoint |
| channels that expire, in the live view of a half-done step | expired already | shown | not |
| conflicting writes under durability exit | a half-applied step is stored | nothing of it | nothing from there on |
| finished siblings of a node that asks conflict | raised at once | the question first | nothing from there on |
| travel to a fork or an update at the head that has begun | runs under the old ids | a fork | nothing from there on |
| an error handler's task | not shown in snapshots | shown | not |
| an update as the result of a pending Send | not shown | shown | results of Sends not, after an update |
| ids of tasks, interrupts, checkpoints | its own | its own | parents by place in the history |

(1) A failing node waits until the others of its step are stored, so this is left for several failures in one step and
for durability exit.

Not drawn, because the two are meant to differ or the reference depends on thread timing:

- unknown goto, branch and Send targets, unknown update keys, stale or surplus answers: errors here
- in-place mutation of state; Overwrite on a channel without a reducer
- Command input on a fresh thread: applied twice there
- None as input while a question is pending after a plain answer: the answer is used twice there
- two failing nodes, or one beside a node that asks
- joins and Topic channels with durability async: the background save there holds the live container
- untracked values with durability exit: stored there beside a question
- durability sync around a subgraph that is never stored: AttributeError there
- `update_state` for a pending node of a half-done step: what siblings finished is lost there, kept here (`DELIBERATE`)

Not settled: the two differ, and nothing says that they should. `UNSETTLED` names the cases, `by_name` evens out what
meets every program. All these cases are expected to fail, so that a change shows.

- `update_state` as a node that waits (deferred, or the target of a full join): it still runs there, it has run here.
- Tasks of a snapshot come in the order of the graph's definition there, by name here.
- A call that a Command routes to a subgraph that remembers over calls: it counts as finished there and runs again here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tests.differential.play import Group, Seen, Snapshot
from tests.differential.program import Answer, Bulk, Go, Program, Steer, Update

SILENT_IN_THE_REFERENCE = {"JoinStarvedError"}
STEP_ENDED = {"GraphRecursionError"}  # raised between two steps
DELIBERATE = {"resume: update as the failed node", "question: update as the node that asks"}
UNSETTLED = {
    "update: as the target of a full join",
    "update: as a deferred node",
    "subgraph: is steered to and remembers",
}
DIFFERING = DELIBERATE | UNSETTLED
EXPIRING = {"ephemeral", "any", "topic"}


def aligned(
    program: Program, reference: list[Seen], ours: list[Seen], *, settled: bool = False
) -> tuple[list[Seen], list[Seen]]:
    """Both records with every deliberate difference taken out: equal when the implementations agree.

    With `settled` they end before an update that is not.
    """
    expiring = {name for name, kind in program.channels if kind in EXPIRING}
    pairs = [pair(theirs, mine, expiring) for theirs, mine in zip(reference, ours, strict=True)]
    pairs = forked(sound(pairs, program.durability == "exit"))
    if settled:
        pairs = pairs[: next((place for place in range(1, len(pairs)) if unsettled(program, pairs, place)), len(pairs))]
    luck = [place for place, seen in enumerate(pairs) if any(map(cut_off, seen))]
    for place in range(min(luck, default=len(pairs)), len(pairs)):
        pairs[place] = (blurred(pairs[place][0]), blurred(pairs[place][1]))
    theirs, mine = [theirs for theirs, _ in pairs], [mine for _, mine in pairs]
    return without_sent(without_steered(theirs)), without_sent(without_steered(mine))


def pair(theirs: Seen, mine: Seen, expiring: set[str]) -> tuple[Seen, Seen]:
    """One call on both sides."""
    if SILENT_IN_THE_REFERENCE & set(mine.error):
        mine = replace(mine, error=())
    if theirs.error and theirs.error[0] in mine.error:
        mine = replace(mine, error=theirs.error)
    if step_failed(theirs):
        theirs, mine = (replace(seen, groups=closed(seen.groups)) for seen in (theirs, mine))
    if "InvalidUpdateError" in theirs.error and not theirs.groups:
        mine = replace(mine, groups=())
    if theirs.live is None:
        mine = replace(mine, live=None)
    theirs, mine = (replace(seen, live=unapplied(lasting(seen.live, expiring))) for seen in (theirs, mine))
    return by_name(theirs), by_name(mine)


def sound(pairs: list[tuple[Seen, Seen]], at_exit: bool) -> list[tuple[Seen, Seen]]:
    """The calls before a conflict that the reference meets beside a question, or up to one that it half stores."""
    for place, (theirs, mine) in enumerate(pairs):
        if "InvalidUpdateError" not in theirs.error or isinstance(theirs.op, Update):
            continue
        if mine.asked and not mine.error:
            return pairs[:place]
        if at_exit:
            unstored = (replace(theirs, live=None, history=()), replace(mine, live=None, history=()))
            return [*pairs[:place], unstored]
    return pairs


def forked(pairs: list[tuple[Seen, Seen]]) -> list[tuple[Seen, Seen]]:
    """The calls before one that travels to a fork or an update at the head whose step has begun."""
    for place in range(1, len(pairs)):
        op, history = pairs[place][0].op, pairs[place - 1][0].history
        if not isinstance(op, Go) or op.back is None or not history or op.back % len(history):
            continue
        since = [seen.op for seen, _ in pairs[:place] if len(seen.history) == len(history)]
        begun = any(isinstance(one, Answer | Steer) for one in since)
        if history[0].source in ("fork", "update") and (
            begun or any(task.result is not None for task in history[0].tasks)
        ):
            return pairs[:place]
    return pairs


def unsettled(program: Program, pairs: list[tuple[Seen, Seen]], place: int) -> bool:
    """Whether a call updates a step some tasks of which are finished, or as a node that may be waiting."""
    op, before = pairs[place][0].op, pairs[place - 1][0]
    if not isinstance(op, Update):
        return False
    head = before.history[0].tasks if before.history else ()
    waiting = {end for _, end in program.joins} | {node.name for node in program.nodes if node.defer}
    return any(task.result is not None for task in head) or op.node in {None, *waiting}


def lasting(live: Snapshot | None, expiring: set[str]) -> Snapshot | None:
    """A live view of a half-done step without values that are about to expire."""
    if live is None or all(task.result is None for task in live.tasks):
        return live
    return replace(live, values={key: value for key, value in live.values.items() if key not in expiring})


def unapplied(live: Snapshot | None) -> Snapshot | None:
    """A live view without what comes next, when every task of its step has ended."""
    if live is None or not live.tasks or any(task.result is None for task in live.tasks):
        return live
    return replace(live, next=())


def step_failed(seen: Seen) -> bool:
    """Whether an error of a node or of the barrier ended the call."""
    return bool(seen.error) and not STEP_ENDED & set(seen.error)


def cut_off(seen: Seen) -> bool:
    """Whether a node's failure may have cut off another task, or the record of another failure."""
    head = seen.history[0].tasks if seen.history else ()
    return step_failed(seen) and sum(task.result is None for task in head) > 1


def blurred(seen: Seen) -> Seen:
    """The record without what depends on which siblings of a failed task got stored: they run again, same end."""
    history = tuple(replace(entry, tasks=()) for entry in seen.history)
    groups = tuple(Group(Counter(), group.values) for group in closed(seen.groups))
    live = None if seen.error else seen.live and replace(seen.live, tasks=())
    return replace(seen, groups=groups, ran=None, history=history, live=live)


def closed(groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """The groups without the one that no values chunk closed."""
    return tuple(group for group in groups if group.values is not None)


def without_steered(record: list[Seen]) -> list[Seen]:
    """The record without what a checkpoint shows that a Command wrote to while tasks were pending there."""
    steered: set[int] = set()  # places in the history, counted from its oldest end
    shown: list[Seen] = []
    for place, seen in enumerate(record):
        if isinstance(seen.op, Steer) and place:
            steered.add(len(record[place - 1].history))
        size = len(seen.history)
        history = tuple(bare(entry) if size - i in steered else entry for i, entry in enumerate(seen.history))
        live = bare(seen.live) if seen.live and size in steered else seen.live
        shown.append(replace(seen, history=history, live=live))
    return shown


def without_sent(record: list[Seen]) -> list[Seen]:
    """The record without the results of Sends once there was an update."""
    first = next((place for place, seen in enumerate(record) if isinstance(seen.op, Update | Bulk)), len(record))
    return [
        *record[:first],
        *(replace(seen, history=tuple(map(unsent, seen.history))) for seen in record[first:]),
    ]


def unsent(entry: Snapshot) -> Snapshot:
    """A snapshot without the results of Sends."""
    tasks = (replace(task, result=None) if task.path[0] == "__pregel_push" else task for task in entry.tasks)
    return replace(entry, tasks=tuple(tasks))


def bare(entry: Snapshot) -> Snapshot:
    """A snapshot without values and tasks."""
    return replace(entry, values=None, next=(), tasks=(), asked=())


def by_name(seen: Seen) -> Seen:
    """The record with the tasks of each snapshot in one order, without those of error handlers."""
    live = None if seen.live is None else ordered(seen.live)
    return replace(seen, live=live, history=tuple(map(ordered, seen.history)))


def ordered(entry: Snapshot) -> Snapshot:
    """A snapshot with its Sends as they were sent, then its nodes by name."""
    shown = [task for task in entry.tasks if not task.name.startswith("__error_handler__")]
    tasks = sorted(shown, key=lambda task: (task.path[0] != "__pregel_push", task.path))
    return replace(
        entry, tasks=tuple(tasks), next=tuple(sorted(entry.next)), asked=tuple(sorted(entry.asked, key=repr))
    )
