"""How much of a growing list is stored, and that a fold of deltas says what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pregel.channels.growth import Log, Runs, kept_runs, same_items
from pregel.checkpoint.chains import CacheUnreadableError, Chains
from pregel.checkpoint.logs import Tip, stored
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.errors import JournalDamaged

serde = JsonPlusSerializer()


class Writer:
    """A list that grows, and the rows that are stored of it."""

    def __init__(self, every: int | None = None) -> None:
        self.every = every
        self.tip: Tip | None = None
        self.rows: list[tuple[Any, ...]] = []
        self.at = 0

    def save(self, value: list[Any], kept: int, runs: Runs = ()) -> list[str]:
        """Store the list; the kinds of rows that it took."""
        base = None if self.tip is None else self.tip.last
        news = stored(Log(value, kept, base, self.every, runs=runs), self.tip, serde.dumps_typed)
        self.at += 1
        added: list[tuple[Any, ...]] = []
        before = self.tip
        if news.tail is not None and before is not None:
            added.append((1, self.at, "delta", *news.tail, before.at, before.base, news.layout, news.n))
        if news.whole is not None:
            kind = "value" if news.tail is None else "cache"
            added.append((1, self.at, kind, *news.whole, None, None, None, None))
        whole = news.whole is not None or before is None
        base = self.at if whole else before.base  # type: ignore[union-attr]
        self.tip = None if news.tip is None else news.tip.placed(self.at, base)
        self.rows += added
        return [row[2] for row in added]

    def bytes(self, kind: str) -> int:
        return sum(len(row[4]) for row in self.rows if row[2] == kind)


def read(rows: list[tuple[Any, ...]], at: int, *, caches: bool = True) -> Any:
    chains = Chains(caches=caches)
    chains.add(rows)
    return chains.value(1, at, serde.loads_typed)[0]


def grown(n: int, size: int = 300, every: int | None = None) -> tuple[Writer, list[str]]:
    writer = Writer(every)
    value: list[str] = []
    for number in range(n):
        value = [*value, f"{number:0{size}}"]
        writer.save(value, len(value) - 1)
    return writer, value


@pytest.mark.acceptance("S1-52")
@pytest.mark.parametrize("size", [10, 60, 300])
def test_all_caches_of_a_list_cost_what_its_deltas_do_at_most(size: int) -> None:
    writer, value = grown(1000, size)

    assert writer.bytes("cache") <= writer.bytes("delta") + 150 * 1000
    assert writer.bytes("delta") <= len(serde.dumps_typed(value)[1]) + 1000


@pytest.mark.acceptance("S1-52")
@pytest.mark.parametrize("size", [10, 60, 300])
@pytest.mark.parametrize("n", [1, 2, 17, 64, 200, 900])
def test_a_read_takes_two_sizes_of_the_list_at_most(n: int, size: int) -> None:
    writer, value = grown(n, size)
    base = n if writer.tip is None else writer.tip.base

    weight = sum(len(row[4]) for row in writer.rows if row[1] == base and row[2] != "delta")
    weight += sum(len(row[4]) + 150 for row in writer.rows if row[1] > base and row[2] == "delta")

    assert weight <= 2 * max(len(serde.dumps_typed(value)[1]), 4096)


def test_items_that_are_larger_than_a_row_need_no_caches() -> None:
    assert 0 == grown(1000)[0].bytes("cache")


@pytest.mark.acceptance("S1-52")
def test_a_snapshot_frequency_wins_over_the_sizes() -> None:
    writer, _ = grown(301, every=100)

    assert [101, 201, 301] == [row[1] for row in writer.rows if row[2] == "cache"]


@pytest.mark.acceptance("S6-2", "S1-53")
def test_every_state_reads_back_with_and_without_caches() -> None:
    writer, value = grown(120, 60)

    assert "cache" in {row[2] for row in writer.rows}
    for n in range(1, 121):
        assert value[:n] == read(writer.rows, n) == read(writer.rows, n, caches=False)


@pytest.mark.acceptance("S6-2")
def test_a_cache_that_cannot_be_read_is_named_so_that_it_can_be_left_out() -> None:
    writer, value = grown(120, 60)
    rows = [(*row[:4], b"\xc1", *row[5:]) if row[2] == "cache" else row for row in writer.rows]
    chains = Chains()
    chains.add(rows)

    while True:
        try:
            found, _ = chains.value(1, 120, serde.loads_typed)
            break
        except CacheUnreadableError as error:
            chains.drop(error.address)

    assert value == found


def test_a_list_that_lost_its_first_item_is_stored_whole() -> None:
    writer, value = grown(50)

    assert ["value"] == writer.save(value[1:], 0)
    assert value[1:] == read(writer.rows, writer.at)


def test_a_list_that_shrank_to_less_than_half_gets_a_cache() -> None:
    writer, value = grown(60)

    assert ["delta", "cache"] == writer.save(value[:20], 20)
    assert value[:20] == read(writer.rows, writer.at) == read(writer.rows, writer.at, caches=False)


def test_a_short_list_is_stored_whole() -> None:
    writer = Writer()
    writer.save(["x" * 80], 0)

    assert ["value"] == writer.save(["x" * 80, 1], 1)


def test_a_delta_that_does_not_fit_is_damage() -> None:
    writer, _ = grown(50)
    rows = [(*row[:-1], 99) if row[1] == 30 else row for row in writer.rows if row[2] != "cache"]

    with pytest.raises(JournalDamaged, match="does not fit"):
        read(rows, 50)


def test_a_delta_whose_base_is_gone_is_damage() -> None:
    writer, _ = grown(50)

    with pytest.raises(JournalDamaged, match="is gone"):
        read([row for row in writer.rows if row[1] > 5 and row[2] == "delta"], 50)


# -- edits -------------------------------------------------------------------------------------------------------------


def edit(before: list[Any], after: list[Any]) -> tuple[Writer, list[str]]:
    """A list that became another one, with what is left of it named, and the kinds of rows that this took."""
    writer = Writer()
    writer.save(before, 0)
    kept = same_items(before, after, len(after))
    return writer, writer.save(after, kept, kept_runs(before, after, set()))


def test_a_list_that_lost_its_first_items_is_stored_as_what_is_left() -> None:
    before = [f"{number:0300}" for number in range(50)]
    after = [*before[3:], "new" * 50]

    writer, kinds = edit(before, after)

    assert ["delta"] == kinds
    assert writer.bytes("delta") <= 200
    assert after == read(writer.rows, 2)


@given(
    picks=st.lists(st.one_of(st.integers(0, 39), st.text(max_size=3)), max_size=60),
)
def test_any_mixture_of_old_and_new_items_reads_back(picks: list[int | str]) -> None:
    before = [f"{number:0200}" for number in range(40)]
    after = [before[pick] if isinstance(pick, int) else pick for pick in picks]

    writer, _ = edit(before, after)

    assert after == read(writer.rows, 2)


def test_an_edit_of_a_list_that_is_not_the_stored_one_is_not_used() -> None:
    before = [f"{number:0300}" for number in range(50)]
    writer = Writer()
    writer.save(before, 0)
    other = [f"{number:0300}" for number in range(1, 51)]
    log = Log(other[3:], 0, other, runs=kept_runs(other, other[3:], set()))

    assert stored(log, writer.tip, serde.dumps_typed).tail is None


def test_an_edit_that_does_not_fit_is_damage() -> None:
    before = [f"{number:0300}" for number in range(50)]
    writer, _ = edit(before, [*before[3:], "new"])
    rows = [(*row[:-1], 99) if row[2] == "delta" else row for row in writer.rows]

    with pytest.raises(JournalDamaged, match="does not fit"):
        read(rows, 2)
    short = [(*row[:4], serde.dumps_typed(before[:9])[1], *row[5:]) if row[1] == 1 else row for row in writer.rows]
    with pytest.raises(JournalDamaged, match="does not fit"):
        read(short, 2)
