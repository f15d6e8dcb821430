"""Whether a new version of a graph makes the same state of what a thread recorded, before it may make any.

1. The writes that the thread recorded are folded once more, checkpoint by checkpoint, with the channels of both
   versions. No node runs, no clock is read, and nothing is stored.
2. The old version has to come to what is stored: where it does not, its writes are not all recorded, and nothing is
   said of the new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pregel.channels import MISSING
from pregel.checkpoint.base import is_journal
from pregel.checkpoint.records import Page, Saved
from pregel.config import RunnableConfig
from pregel.engine.apply import apply
from pregel.engine.pending import outside_of
from pregel.engine.pregel import Pregel
from pregel.engine.state import State
from pregel.errors import CheckpointNotFoundError, InvalidInputError, NotBuiltError
from pregel.testing.plain import Plain

__all__ = ["StateDiffers", "aassert_same_state", "assert_same_state"]

START = "__start__"
TRIGGERED = ("",)  # by something: what was not written may expire


class StateDiffers(AssertionError):
    """Two versions of a graph make different values of the same writes. `new` is None where it makes none."""

    def __init__(self, checkpoint: str, step: int, channel: str, old: Any, new: Any) -> None:
        super().__init__(
            f"Channel {channel!r} differs first at step {step}, checkpoint {checkpoint}: "
            f"{_shown(old)} in the old version, {_shown(new)} in the new one."
        )
        self.checkpoint, self.step, self.channel = checkpoint, step, channel
        self.old, self.new = (None if value is MISSING else value for value in (old, new))


def assert_same_state(old: Pregel, new: Pregel, config: RunnableConfig) -> int:
    """How many checkpoints were compared, up to the one that `config` names, or the newest of its thread.

    The values are those that a snapshot shows of `old`; channels that only `new` has are not looked at. StateDiffers
    (an AssertionError) at the first difference, InvalidInputError where what was written is not recorded: under the
    durability ``exit``, or by a version that is not `old`. Of subgraphs only what they gave to this graph is compared.
    """
    saver, thread = _journal(old), str(config["configurable"]["thread_id"])
    return _compared(old, new, config, [saved for _, saved in saver.page(thread, Page(""))])


async def aassert_same_state(old: Pregel, new: Pregel, config: RunnableConfig) -> int:
    """Async twin of `assert_same_state`."""
    saver, thread = _journal(old), str(config["configurable"]["thread_id"])
    return _compared(old, new, config, [saved for _, saved in await saver.apage(thread, Page(""))])


class _Finished(NamedTuple):
    """What a task wrote."""

    name: str
    triggers: Sequence[str]
    writes: list[tuple[str, Any]]


class _Fold:
    """The state that a graph makes of writes."""

    def __init__(self, graph: Pregel) -> None:
        self.graph, self.state = graph, State(graph.plan)
        self.state.live.update(graph.plan.initially_live)

    def take(self, tasks: Sequence[_Finished]) -> None:
        """Apply what tasks wrote, as far as this graph has the channels."""
        channels = self.graph.plan.channels
        known = [
            one._replace(writes=[(name, value) for name, value in one.writes if name in channels]) for one in tasks
        ]
        apply(self.graph.plan, self.state, known)

    def value(self, channel: str) -> Any:
        """What it holds; MISSING when nothing."""
        if channel not in self.graph.plan.channels:
            return MISSING
        return self.state.read((channel,)).get(channel, MISSING)


def _compared(old: Pregel, new: Pregel, config: RunnableConfig, found: Sequence[Saved]) -> int:
    chain = _chain(found, config)
    keys = old.stream_channels_asis
    names = [keys] if isinstance(keys, str) else [key for key in keys if key in old.plan.channels]
    folds = _Fold(old), _Fold(new)
    before: Saved | None = None
    for saved in chain:
        for tasks in _applied(before, saved):
            for fold in folds:
                fold.take(tasks)
        stored = State(old.plan)
        stored.restore(saved.values, saved.counters)
        for name in names:
            ours, theirs = folds[0].value(name), folds[1].value(name)
            if not _same(stored.read((name,)).get(name, MISSING), ours):
                raise _not_recorded(saved, name)
            if not _same(ours, theirs):
                raise StateDiffers(saved.id, saved.step, name, ours, theirs)
        before = saved
    return len(chain)


def _chain(found: Sequence[Saved], config: RunnableConfig) -> list[Saved]:
    """The checkpoint that a config names and those that it came from, the oldest first."""
    by_id: Mapping[str, Saved] = {saved.id: saved for saved in found}
    place = config["configurable"]
    named = place.get("checkpoint_id") or next(iter(by_id), "")
    if named not in by_id:
        raise CheckpointNotFoundError(
            f"Thread {place['thread_id']!r} has no checkpoint{f' {named!r}' if named else ''}.",
            fix="Name a thread that was recorded, in the store of the old graph.",
        )
    chain = [by_id[named]]
    while chain[-1].parent is not None:
        if chain[-1].parent not in by_id:
            raise InvalidInputError("The history of this thread was pruned.", fix="Compare on one that is whole.")
        chain.append(by_id[chain[-1].parent])
    return chain[::-1]


def _applied(before: Saved | None, saved: Saved) -> Iterator[list[_Finished]]:
    """What a checkpoint applied to the one before it, in the order in which it did."""
    if before is not None and saved.source in ("input", "loop") and (outside := outside_of(before)):
        yield [_Finished("__input__", (), outside)]
    if saved.source == "input" and START in saved.values:
        yield [_Finished("__input__", (), [(START, saved.values[START])])]
    elif saved.source == "loop" and before is not None:
        yield [_Finished("", TRIGGERED, []), *_wrote(before, saved)]
    elif saved.source == "update" and before is not None:
        yield _wrote(before, saved)


def _wrote(before: Saved, saved: Saved) -> list[_Finished]:
    tasks: dict[str, _Finished] = {}
    for write in before.writes:
        is_its = write.path in saved.applied if write.child is None else write.child == saved.id
        if write.idx >= 0 and is_its:
            task = tasks.setdefault(write.task, _Finished(write.name, TRIGGERED, []))
            task.writes.append((write.channel, write.value))
    return list(tasks.values())


def _not_recorded(saved: Saved, channel: str) -> InvalidInputError:
    return InvalidInputError(
        f"What step {saved.step}, checkpoint {saved.id}, has in channel {channel!r} does not follow from the recorded "
        "writes.",
        fix="Give as the old version the one that recorded the thread, and a thread that was not run with the "
        "durability exit.",
    )


def _same(one: Any, other: Any) -> bool:
    one, other = Plain()(one), Plain()(other)  # a reducer of messages draws ids for those that have none
    try:
        return one is other or bool(one == other)
    except Exception:  # arrays have no one answer
        return repr(one) == repr(other)


def _shown(value: Any) -> str:
    return "nothing" if value is MISSING else repr(value)


def _journal(graph: Pregel) -> Any:
    kind: Any = type(graph.saver)  # a class has a hash
    if not is_journal(kind):
        raise NotBuiltError(
            f"{kind.__name__} does not show the writes of a thread.",
            fix="Use InMemorySaver, SqliteSaver or PostgresSaver.",
        )
    return graph.saver
