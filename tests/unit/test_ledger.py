"""The ledger: what a run says, as rows, and the rows again as what was said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest

from pregel.channels import MISSING
from pregel.checkpoint.chains import Chains
from pregel.checkpoint.decode import Decoder, UnknownNameError
from pregel.checkpoint.keys import Names, id_bytes, id_text, version_text
from pregel.checkpoint.ledger import Ledger
from pregel.checkpoint.records import (
    ERROR,
    INTERRUPT,
    Append,
    Lone,
    Opened,
    Save,
    Saved,
    TaskWrites,
    ThreadRow,
)
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.errors import SerializationError

serde = JsonPlusSerializer()
LONG = "x" * 100


def checkpoint_id(n: int) -> str:
    return str(UUID(int=(6 << 76) | (n << 80)))


class Bench:
    """A ledger, and everything that it added to appends."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = Names()
        self.names.learn(enumerate(names, 1))
        self.ledger = Ledger(serde, self.names)
        self.rows = Append("t", 1, 1, b"run", 0, 1, b"mark")
        self.n = 0

    def save(
        self,
        changed: Mapping[str, tuple[int, Any]],
        seen: Mapping[str, Mapping[str, int]] | None = None,
        updated: Sequence[str] | None = None,
    ) -> int:
        """Add a checkpoint on top of the last one; its number comes back."""
        self.n += 1
        parent = checkpoint_id(self.n - 1) if self.n > 1 else None
        save = Save(
            "", checkpoint_id(self.n), parent, self.n, "loop", {}, bytes(16), changed, seen or {}, updated, ("~p",)
        )
        self.ledger.add_save(save, self.rows, at=self.n, now=1.0)
        return self.n

    def load(self, n: int) -> Saved:
        """That checkpoint as a store's rows give it."""
        row = self.rows.checkpoints[n - 1]
        base = next(((b.id, b.manifest) for b in self.rows.checkpoints if b.id == row.base), None)
        decoder = Decoder(serde, self.names)
        read = decoder.manifest(row, base)
        chains = Chains()
        chains.add(value[1:] for value in self.rows.values)
        writes = [write for write in self.rows.writes if write.checkpoint == row.id]
        return decoder.saved("", row, read, chains, writes)


def test_a_save_comes_back_as_it_was_said() -> None:
    bench = Bench(["a", "b", "c", "d", "n"])

    n = bench.save(
        {"a": (1, {"x": (1,)}), "b": (1, None), "c": (1, MISSING), "d": (1, b"raw")}, {"n": {"a": 1}}, ["a", "b"]
    )

    saved = bench.load(n)
    assert {"a": {"x": (1,)}, "b": None, "d": b"raw"} == saved.values
    assert {"a": 1, "b": 1, "c": 1, "d": 1} == saved.counters
    assert ({"n": {"a": 1}}, ["a", "b"], ["~p"]) == (saved.seen, saved.updated, saved.applied)
    assert {"source": "loop", "step": 1, "parents": {}} == saved.metadata


def test_a_later_save_keeps_what_did_not_change() -> None:
    bench = Bench(["a", "b", "n", "m"])
    bench.save({"a": (1, LONG), "b": (1, 1)}, {"n": {"a": 1}})

    n = bench.save({"b": (2, 2)}, {"m": {"b": 2}})

    saved = bench.load(n)
    assert {"a": LONG, "b": 2} == saved.values
    assert ({"a": 1, "b": 2}, {"a": 1, "b": 2}) == (saved.counters, saved.ats)
    assert {"n": {"a": 1}, "m": {"b": 2}} == saved.seen


@pytest.mark.parametrize(("size", "rows"), [(60, 0), (61, 0), (64, 1)])
def test_short_values_sit_in_the_manifest(size: int, rows: int) -> None:
    bench = Bench(["a"])

    bench.save({"a": (1, "x" * size)})

    assert rows == len(bench.rows.values)


def test_an_unchanged_value_is_stored_once() -> None:
    bench = Bench(["a", "b"])
    bench.save({"a": (1, LONG), "b": (1, 0)})

    for i in range(2, 10):
        bench.save({"b": (i, i)})

    assert 1 == len(bench.rows.values)


def test_a_write_and_the_value_that_it_becomes_share_one_encoding() -> None:
    bench = Bench(["a", "n"])
    value = [LONG]

    bench.ledger.add_writes(TaskWrites("", checkpoint_id(1), "t", "n", "~p", [("a", value)]), bench.rows)
    bench.save({"a": (1, value)})

    assert bench.rows.writes[0].blob is bench.rows.values[0].blob


def lone(ns: str, seen: tuple[tuple[str, int], ...] | None, box: Any) -> Lone:
    """A usual superstep."""
    values: tuple[Any, ...] = (1, box, None, MISSING)
    writes, changed = (("a", 1), ("b", box), ("c", None)), ("a", "b", "c", "t")
    place = ns, checkpoint_id(2), checkpoint_id(1), 2, "n", ("t",)
    return Lone(*place, writes, 4, changed, values, seen, ("a", "b", "c"), {"run_id": "r"}, b"lineage".ljust(16))


@pytest.mark.parametrize("ns", ["", "sub"])
@pytest.mark.parametrize("seen", [None, (("t", 3), ("a", 2))])
@pytest.mark.parametrize("box", [[1], [LONG]])
def test_a_usual_superstep_has_the_rows_of_its_general_records(ns: str, seen: Any, box: list[Any]) -> None:
    short, general = Bench("abctn"), Bench("abctn")
    step = lone(ns, seen, box)

    short.ledger.add_lone(step, short.rows, at=2, now=1.0)
    general.ledger.add_writes(step.wrote(), general.rows)
    general.ledger.add_save(step.saved(), general.rows, at=2, now=1.0)

    assert [getattr(general.rows, name) for name in Append.__slots__] == [
        getattr(short.rows, name) for name in Append.__slots__
    ]


def test_a_usual_superstep_that_is_refused_leaves_nothing() -> None:
    bench = Bench("abctn")
    step = lone("", None, 1)._replace(values=(1, object(), None, MISSING))

    with pytest.raises(SerializationError):
        bench.ledger.add_lone(step, bench.rows, at=2)

    assert ([], [], []) == (bench.rows.checkpoints, bench.rows.values, bench.rows.writes)


def test_names_of_a_usual_superstep_are_asked_for() -> None:
    step = lone("", (("seen", 1),), 1)._replace(updated=("updated",))

    assert {"t", "n", "seen", "updated"} == Bench("abc").ledger.missing(saves=[step])


def test_a_value_changed_between_appends_is_encoded_anew() -> None:
    bench = Bench(["a"])
    value = [LONG]
    bench.save({"a": (1, value)})
    first = bench.rows
    bench.rows = Append("t", 1, 1, b"run", 1, 1, b"mark2")
    bench.rows.checkpoints, bench.rows.values = first.checkpoints, first.values
    value.append("more")

    n = bench.save({"a": (2, value)})

    assert [LONG, "more"] == bench.load(n).values["a"]


def test_a_value_grown_in_place_between_two_saves_of_one_append_is_encoded_anew() -> None:
    bench = Bench(["a"])
    value = [LONG]
    bench.save({"a": (1, value)})
    value.append("more")

    n = bench.save({"a": (2, value)})

    assert [[LONG], [LONG, "more"]] == [bench.load(n - 1).values["a"], bench.load(n).values["a"]]


# -- manifests at depth ------------------------------------------------------------------------------------------------

CHANNELS = [f"channel_{i}" for i in range(300)]


def deep(steps: int, width: int) -> tuple[Bench, list[dict[str, Any]]]:
    """Many checkpoints over many channels, and the state that each should show."""
    bench = Bench([*CHANNELS, "n"])
    state: dict[str, Any] = dict.fromkeys(CHANNELS, 0)
    bench.save(dict.fromkeys(CHANNELS, (1, 0)))
    states = [dict(state)]
    for step in range(2, steps + 1):
        changed = {CHANNELS[(step * 7 + i) % len(CHANNELS)]: f"{step}.{i}" for i in range(width)}
        state.update(changed)
        bench.save({name: (step, value) for name, value in changed.items()}, {"n": {CHANNELS[0]: step}})
        states.append(dict(state))
    return bench, states


def test_every_checkpoint_of_a_deep_and_wide_thread_reads_back() -> None:
    bench, states = deep(200, 3)

    assert states == [bench.load(n).values for n in range(1, 201)]


def test_no_checkpoint_needs_more_than_one_other() -> None:
    bench, _ = deep(200, 3)
    whole = {row.id for row in bench.rows.checkpoints if row.base is None}

    assert all(row.base in whole for row in bench.rows.checkpoints if row.base is not None)
    assert 2 <= len(whole) < 40


def test_changes_cost_less_than_whole_manifests() -> None:
    bench, _ = deep(200, 3)
    sizes = [len(row.manifest) for row in bench.rows.checkpoints]

    assert sum(sizes) < 0.25 * sizes[0] * len(sizes)


def test_a_small_graph_writes_it_whole() -> None:
    bench = Bench(["a", "b"])
    for i in range(1, 50):
        bench.save({"a": (i, i)})

    assert {None} == {row.base for row in bench.rows.checkpoints}


def test_a_run_goes_on_from_any_loaded_checkpoint() -> None:
    bench, states = deep(100, 3)
    for start in (1, 40, 99, 100):
        bench.ledger = Ledger(serde, bench.names)
        bench.ledger.open(Opened(ThreadRow("t", 1, next_ns=1, namespaces={"": 0}), [bench.load(start)], {}))

        n = bench.save({CHANNELS[5]: (1000, "fork")})

        assert {**states[start - 1], CHANNELS[5]: "fork"} == bench.load(n).values


# -- names, namespaces, control rows -----------------------------------------------------------------------------------


def test_missing_names_are_told_before_anything_is_encoded() -> None:
    ledger = Ledger(serde, Names())
    writes = TaskWrites("", checkpoint_id(1), "t", "node", "~p", [("a", 1)])
    save = Save("", checkpoint_id(1), None, 0, "loop", {}, b"", {"b": (1, 1)}, {"n": {"c": 1}}, ["d"])

    assert {"node", "a", "b", "n", "c", "d"} == ledger.missing([writes], [save])


def test_a_name_that_another_process_interned_is_asked_for() -> None:
    bench = Bench(["a"])
    n = bench.save({"a": (1, 1)})
    bench.names = Names()

    with pytest.raises(UnknownNameError) as caught:
        bench.load(n)

    assert (1,) == caught.value.args


def test_namespaces_are_numbered_above_those_of_the_thread() -> None:
    bench = Bench(["n"])
    bench.ledger.open(Opened(ThreadRow("t", 1, namespaces={"": 0}, next_ns=7), [], {}))

    for ns in ("", "child:1", "child:2", "child:1"):
        bench.ledger.add_writes(TaskWrites(ns, checkpoint_id(1), "t", "n", "~p", []), bench.rows)

    assert [(7, "child:1"), (8, "child:2")] == bench.rows.namespaces


def test_control_writes_have_an_index_below_zero_and_others_their_position() -> None:
    bench = Bench(["a", "n", ERROR, INTERRUPT])
    writes = [("a", 1), (INTERRUPT, (1,)), ("a", 2), (ERROR, ValueError("boom"))]

    bench.ledger.add_writes(TaskWrites("", checkpoint_id(1), "t", "n", "~p", writes), bench.rows)

    assert [0, -3, 2, -1] == [row.idx for row in bench.rows.writes]


def test_an_error_is_stored_as_its_text() -> None:
    bench = Bench(["a", "n", ERROR])
    n = bench.save({"a": (1, 1)})

    bench.ledger.add_writes(TaskWrites("", checkpoint_id(n), "t", "n", "~p", [(ERROR, ValueError("boom"))]), bench.rows)

    assert "ValueError('boom')" == bench.load(n).writes[0].value


def test_seen_all_up_to_a_counter_is_one_number() -> None:
    bench = Bench(["a", INTERRUPT])

    n = bench.save({"a": (5, 1)}, {INTERRUPT: {"": 5}})

    assert {INTERRUPT: {"": 5}} == bench.load(n).seen


def test_writes_come_in_path_order() -> None:
    bench = Bench(["a", "n"])
    n = bench.save({"a": (1, 1)})
    for task, path in (("t2", "~push, 0000000010"), ("t1", "~push, 0000000009"), ("t3", "~pull, z")):
        bench.ledger.add_writes(TaskWrites("", checkpoint_id(n), task, "n", path, [("a", 1)]), bench.rows)

    assert ["t3", "t1", "t2"] == [write.task for write in bench.load(n).writes]


def test_a_value_that_cannot_be_stored_names_channel_and_path_and_adds_nothing() -> None:
    bench = Bench(["a", "b", "n"])
    bench.save({"a": (1, LONG)})
    before = len(bench.rows.checkpoints), len(bench.rows.values), len(bench.rows.writes)

    with pytest.raises(SerializationError, match=r"cannot store state\['b'\]\[1\]: objects of type object"):
        bench.save({"a": (2, LONG + "y"), "b": (2, [1, object()])})
    with pytest.raises(SerializationError) as caught:
        bench.ledger.add_writes(
            TaskWrites("", checkpoint_id(1), "t", "n", "~p", [("a", 1), ("b", {"k": object()})]), bench.rows
        )

    assert ("b", "n") == (caught.value.channel, caught.value.node)
    assert before == (len(bench.rows.checkpoints), len(bench.rows.values), len(bench.rows.writes))


# -- keys --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["", "task-1", "x" * 15, "x" * 16, "é" * 8, checkpoint_id(3), checkpoint_id(3).upper(), "\ud800", "-" * 36],
    ids=ascii,
)
def test_any_id_comes_back_from_its_stored_form(text: str) -> None:
    assert text == id_text(id_bytes(text))


def test_stored_uuids_sort_like_their_texts() -> None:
    ids = [checkpoint_id(n) for n in (1, 255, 256, 70000)]

    assert sorted(map(id_bytes, ids)) == [id_bytes(text) for text in sorted(ids)]


def test_version_texts_compare_like_their_numbers() -> None:
    versions = [(2, 1), (10, 0), (10, 9), (10, 10)]

    assert [version_text(*v) for v in versions] == sorted(version_text(*v) for v in versions)
