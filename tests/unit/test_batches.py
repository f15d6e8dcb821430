"""How much is stored of a channel whose reducer folds batches, and what is said of a reducer that cannot be trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest

from pregel.channels import DeltaChannel
from pregel.channels.batches import Batched, Unfolded
from pregel.channels.law import check_law
from pregel.checkpoint.batches import stored_batches
from pregel.checkpoint.chains import Chains
from pregel.checkpoint.logs import FOLD, Tip
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.errors import ReducerChanged, ReducerLawError
from pregel.types import Overwrite

serde = JsonPlusSerializer()
Fold = Callable[[Any, Sequence[Any]], Any]


def put(old: dict[str, str], writes: Sequence[dict[str, str]]) -> dict[str, str]:
    """Entries by key."""
    new = dict(old)
    for write in writes:
        new.update(write)
    return new


def added(old: list[str], writes: Sequence[str]) -> list[str]:
    return [*old, *writes]


class Store:
    """One channel, and the rows that are stored of it."""

    def __init__(self, reducer: Fold, typ: Any = dict, every: int | None = None) -> None:
        self.channel: DeltaChannel[Any] = DeltaChannel(reducer, typ, snapshot_frequency=every, name="fold")
        self.tip: Tip | None = None
        self.rows: list[tuple[Any, ...]] = []
        self.at = 0

    def step(self, *writes: Any) -> list[str]:
        """One superstep; the kinds of rows that it took."""
        self.channel.update(writes)
        return self.save()

    def save(self) -> list[str]:
        assert self.channel.growth is not None
        log = self.channel.growth.log(self.channel.snapshot())
        assert isinstance(log, Batched)
        news = stored_batches(log, self.tip, serde.dumps_typed, serde.loads_typed)
        self.at += 1
        kinds: list[str] = []
        base = self.at
        if news.tail is not None:
            assert self.tip is not None
            base = self.tip.base if news.whole is None else self.at
            self.rows.append((1, self.at, "delta", *news.tail, self.tip.at, self.tip.base, news.layout, news.n))
            kinds.append("delta")
        if news.whole is not None:
            kinds.append("value" if news.tail is None else "cache")
            kind, blob = news.whole
            self.rows.append((1, self.at, kinds[-1], f"{kind}{FOLD}{news.fold}", blob, None, None, None, None))
        self.tip = None if news.tip is None else news.tip.placed(self.at, base)
        return kinds

    def read(self, at: int | None = None, *, caches: bool = True) -> Any:
        chains = Chains(caches=caches)
        chains.add(self.rows)
        stored, tip = chains.value(1, at or self.at, serde.loads_typed)
        self.loaded = tip
        return self.channel.from_checkpoint(stored).get()

    def bytes(self, kind: str) -> int:
        return sum(len(row[4]) for row in self.rows if row[2] == kind)


def steps(store: Store, n: int) -> None:
    for _ in range(n):
        store.step("x" * 300)


@pytest.mark.acceptance("S1-52")
def test_a_dict_that_grows_is_stored_as_what_was_put_into_it() -> None:
    store = Store(put)
    for number in range(200):
        store.step({f"key {number}": "x" * 300})

    assert [True] * 200 == [len(store.read(at)) == at for at in range(1, 201)]
    assert [len(store.read(at, caches=False)) for at in (1, 50, 200)] == [1, 50, 200]
    assert store.bytes("delta") <= 200 * 330
    assert store.bytes("cache") <= 2 * store.bytes("delta")


@pytest.mark.acceptance("S1-52")
def test_a_value_of_one_size_is_stored_whole_now_and_then() -> None:
    store = Store(put)
    store.step({f"key {number}": "x" * 300 for number in range(40)})
    for number in range(200):
        store.step({f"key {number % 40}": "y" * 300})

    whole = len(serde.dumps_typed(store.channel.get())[1])
    assert store.bytes("cache") <= 2 * store.bytes("delta")
    chain = store.tip.weight if store.tip is not None else 0
    assert chain <= 4 * whole


@pytest.mark.acceptance("S1-52")
def test_an_explicit_frequency_wins() -> None:
    store = Store(added, list, every=3)

    assert [["value"], ["delta"], ["delta"], ["delta", "cache"], ["delta"]] == [store.step("x" * 99) for _ in range(5)]


def test_a_value_that_is_lighter_than_its_delta_is_stored_whole() -> None:
    store = Store(lambda old, writes: {"longest": "x" * 99, "length": max(map(len, writes))})
    store.step("x" * 2000)

    assert ["value"] == store.step("y" * 2001)


def test_several_writes_and_several_supersteps_fold_as_they_were_recorded() -> None:
    store = Store(lambda old, writes: [*old, "|" + "x" * 900, *writes], list)  # shows where a batch began
    store.step("a")
    store.step("b", "c")
    store.channel.update(["d"])
    store.channel.update(["e", "f"])

    assert ["delta"] == store.save()
    assert store.channel.get() == store.read()
    assert ["a", "|", "b", "c", "|", "d", "|", "e", "f"] == [item[0] for item in store.read()][1:]


def test_an_overwrite_is_stored_whole_and_deltas_go_on_from_it() -> None:
    store = Store(added, list)
    store.step("x" * 999)

    assert [["delta"], ["value"], ["delta"]] == [
        store.step("y"),
        store.step("lost", Overwrite(["z" * 999])),
        store.step("end"),
    ]
    assert ["z" * 999, "end"] == store.read()


def test_a_run_that_starts_from_a_chain_goes_on_with_it() -> None:
    store = Store(added, list)
    for letter in "abc":
        store.step(letter * 999)
    chains = Chains()
    chains.add(store.rows)
    stored, store.tip = chains.value(1, store.at, serde.loads_typed)
    store.channel = store.channel.from_checkpoint(stored)

    assert isinstance(stored, Unfolded)
    assert ["delta"] == store.step("d" * 999)
    assert [letter * 999 for letter in "abcd"] == store.read()


def test_a_tip_of_another_value_is_not_built_on() -> None:
    store = Store(added, list)
    store.step("x" * 999)
    assert store.tip is not None
    store.tip.last = ["x" * 999]

    assert ["value"] == store.step("y")


@pytest.mark.acceptance("S1-53")
def test_a_reducer_that_does_not_give_the_same_again_is_found_before_a_cache_is_written() -> None:
    numbers = count()
    store = Store(lambda old, writes: [*old, f"{next(numbers):0300}"], list)

    with pytest.raises(ReducerLawError, match="What 'fold' makes of the recorded writes is not the value"):
        steps(store, 200)


def test_a_set_that_is_written_down_in_another_order_is_the_same() -> None:
    store = Store(lambda old, writes: {*old, *writes}, set)
    for number in range(150):
        store.step(f"{number:0200}")

    assert {f"{number:0200}" for number in range(150)} == store.read()


def test_what_a_later_superstep_changed_in_place_is_stored_whole() -> None:
    def grow(old: list[Any], writes: Sequence[Any]) -> list[Any]:
        for write in writes:
            if old:
                old[0]["texts"].append(write["texts"][0])
            else:
                old.append(write)
        return old

    store = Store(grow, list)
    store.step({"texts": ["a" * 999]})
    assert ["delta"] == store.step({"texts": ["b"]})
    first = {"texts": ["c"]}
    store.channel.update([first])
    store.channel.update([{"texts": ["d"]}])
    first["texts"][0] = "changed"

    assert ["value"] == store.save()
    assert ["a" * 999, "b", "c", "d"] == store.read()[0]["texts"]


def test_another_reducer_is_refused() -> None:
    stored = Unfolded([], [[1]], "shop:add", 1)

    with pytest.raises(ReducerChanged, match=r"'shop:add'.*'other'"):
        DeltaChannel(added, list, name="other").from_checkpoint(stored)


def test_another_length_is_refused() -> None:
    stored = Unfolded([], [[1]], "fold", 2)

    with pytest.raises(ReducerChanged, match="another length"):
        DeltaChannel(added, list, name="fold").from_checkpoint(stored)


# -- the law -----------------------------------------------------------------------------------------------------------


def law(reducer: Fold, *writes: Any, strict: bool = False) -> None:
    check_law(reducer, list, writes, channel="log", strict=strict)


@pytest.mark.acceptance("S1-53")
def test_a_reducer_that_breaks_the_law_is_named() -> None:
    with pytest.warns(UserWarning, match=r"'log' breaks the law of batches: \('a',\) in two .* \[1\], in one \[2\]"):
        law(lambda old, writes: [len(writes)], "a")
    with pytest.raises(ReducerLawError, match="breaks the law of batches"):
        law(lambda old, writes: [len(writes)], "a", strict=True)


def test_a_lawful_reducer_and_one_that_cannot_be_tried_are_let_be() -> None:
    def fails(old: Any, writes: Any) -> Any:
        raise ZeroDivisionError

    law(added, "a", "b", strict=True)
    law(fails, "a", strict=True)
    law(added, (letter for letter in "ab"), strict=True)  # which cannot be copied


def test_a_reducer_is_tried_twice_and_then_no_more() -> None:
    calls: list[int] = []

    def counted(old: list[Any], writes: Sequence[Any]) -> list[Any]:
        calls.append(len(writes))
        return [*old, *writes]

    for _ in range(5):
        law(counted, "a")

    assert [1, 1, 2, 1, 1, 2] == calls
