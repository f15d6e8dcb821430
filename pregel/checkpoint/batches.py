"""What is stored of a channel whose reducer folds batches: the batches, now and then the whole value.

1. A delta holds the batches of one record. A whole value that deltas may stand on says in its type which reducer they
   are for, so a chain has one reducer; another one starts with a whole value.
2. A whole value is stored with a delta by the rule of `checkpoint.logs`. How large the value is, is not known: it is
   taken to be as large as all that went in, and measured each time the number of deltas has doubled.
3. Whenever it is measured the deltas are folded as a reader would: when that gives another value, nothing is stored.
4. One that is lighter than its delta is stored whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgpack  # type: ignore[import-untyped]

from pregel.channels.batches import Batched, length_of
from pregel.checkpoint.logs import ROW, SMALL, Stored, Tip, Typed
from pregel.checkpoint.manifest import INLINE
from pregel.errors import ReducerLawError

BATCHES = 2  # how a delta is laid out, as its row says
SEVERAL = "@batches"  # type of a delta that is not just one write
FIRST_MEASURED = 8  # deltas

Encode = Callable[[Any], Typed]
Loads = Callable[[Typed], Any]


class FoldTip(Tip):
    """Where the log of such a channel stands on one branch."""

    __slots__ = ("chain", "fold", "root")

    def __init__(self, last: Any, root: Typed, chain: list[Typed], fold: str) -> None:
        super().__init__(last, 0, len(root[1]), sum(len(blob) + ROW for _, blob in chain), len(chain))
        self.root = root  # the nearest whole value, as it is stored
        self.chain = chain  # the deltas since then
        self.fold = fold


def stored_batches(
    log: Batched, tip: Tip | None, encode: Encode, loads: Loads, compared: Encode | None = None
) -> Stored:
    """How to store a value on top of what its branch holds.

    `compared` writes two values for their comparison, where what `encode` gives differs each time.
    """
    n = length_of(log.value)
    if not isinstance(tip, FoldTip) or log.base is not tip.last or log.fold != tip.fold or not log.batches:
        return _whole(log, n, encode(log.value))
    delta = _packed(log.batches, encode)
    weight, rows = tip.weight + len(delta[1]) + ROW, tip.rows + 1
    whole: Typed | None = None
    if log.every is not None:
        due = rows >= log.every
    else:
        due = _is_due(tip.whole + weight - rows * ROW, tip, weight)  # that large, unless the reducer blows it up
        if due or _to_be_measured(rows) or len(delta[1]) + ROW >= tip.whole:
            whole = encode(log.value)
            if len(whole[1]) <= len(delta[1]) + ROW:
                return _whole(log, n, whole)
            due = due or _is_due(len(whole[1]), tip, weight)
    if not due and whole is None and len(log.batches) == 1:
        return _on_top(log, n, delta, tip)
    whole = encode(log.value) if whole is None else whole
    written = whole if compared is None else compared(log.value)
    if not _same_when_read(log, delta, tip, written, compared or encode, loads):
        if len(log.batches) == 1:
            raise _unlawful(log)
        return _whole(
            log, n, whole
        )  # a later superstep may have changed what an earlier one wrote, before it was stored
    if not due:
        return _on_top(log, n, delta, tip)
    return Stored(n, delta, whole, FoldTip(log.value, whole, [], log.fold), BATCHES, log.fold)


def _is_due(size: int, tip: FoldTip, weight: int) -> bool:
    return tip.whole + weight >= 2 * max(size, SMALL)


def _to_be_measured(rows: int) -> bool:
    return rows >= FIRST_MEASURED and rows & (rows - 1) == 0


def _on_top(log: Batched, n: int | None, delta: Typed, tip: FoldTip) -> Stored:
    return Stored(n, delta, None, FoldTip(log.value, tip.root, [*tip.chain, delta], tip.fold), BATCHES, log.fold)


def _whole(log: Batched, n: int | None, whole: Typed) -> Stored:
    tip = FoldTip(log.value, whole, [], log.fold) if len(whole[1]) > INLINE else None
    return Stored(n, None, whole, tip, BATCHES, log.fold)


def _packed(batches: Sequence[Sequence[Any]], encode: Encode) -> Typed:
    """The batches as (type, bytes); a lone write as it is, so that a row for the write itself can name the delta."""
    if len(batches) == 1 and len(batches[0]) == 1:
        return encode(batches[0][0])
    return SEVERAL, msgpack.packb([[encode(write) for write in batch] for batch in batches])


def unpacked(delta: Typed, loads: Loads) -> list[list[Any]]:
    """The batches of a delta."""
    if delta[0] != SEVERAL:
        return [[loads(delta)]]
    return [[loads((kind, blob)) for kind, blob in batch] for batch in msgpack.unpackb(delta[1])]


def _same_when_read(log: Batched, delta: Typed, tip: FoldTip, written: Typed, encode: Encode, loads: Loads) -> bool:
    batches = [batch for one in (*tip.chain, delta) for batch in unpacked(one, loads)]
    found = log.refold(loads(tip.root), batches)
    if encode(found) == written:
        return True
    try:
        return bool(found == log.value)  # the same set may be written down in another order
    except Exception:  # of a comparison of the user's
        return False


def _unlawful(log: Batched) -> ReducerLawError:
    return ReducerLawError(
        f"What {log.fold!r} makes of the recorded writes is not the value that it made when it ran.",
        fix="The reducer must give the same for the same writes, and no node may change a value that it was handed: "
        "no clock, no chance, no state of its own; return what is new instead.",
    )
