"""Checkpoint metadata, on every journal: it comes back as it was given, and filters find it."""

from __future__ import annotations

import json
import operator
import sqlite3
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.records import Page
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import SerializationError
from tests.behaviour.journals import Run, everything, newest
from tests.behaviour.savers.foreign import config, put

METADATA: dict[str, Any] = {
    "source": "update",
    "step": 4,
    "parents": {},
    "keys": {1: 2, "1": 3},
    "long": 2**70,
    "pair": (1, [2.5, float("inf")]),
    "since": date(2026, 1, 2),
    'nul"\0': "\ud800",
    "\x1a": b"\0",
}
PLACES: list[Callable[[JournalSaver], Any]] = [
    lambda saver: Run(saver).save({"a": 1}, metadata=METADATA),
    lambda saver: put(saver, {"a": 1}, metadata=METADATA),
]


@pytest.mark.parametrize("store", PLACES, ids=["append", "put"])
def test_metadata_comes_back_equal_and_of_its_types(saver: JournalSaver, store: Callable[[JournalSaver], Any]) -> None:
    store(saver)

    found = newest(saver)
    assert found is not None
    assert repr(METADATA) == repr(found.metadata)


@pytest.mark.parametrize("store", PLACES, ids=["append", "put"])
def test_filters_find_any_metadata(saver: JournalSaver, store: Callable[[JournalSaver], Any]) -> None:
    store(saver)

    for key in METADATA:
        assert [METADATA] == [one.metadata for one in saver.list(config("t"), filter={key: METADATA[key]})]
    assert [] == list(saver.list(config("t"), filter={"keys": {"1": 2}}))


def test_metadata_that_cannot_be_stored_leaves_the_store_as_it_was(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": 1})
    before = everything(saver)
    append = run.blank()

    with pytest.raises(SerializationError, match=r"metadata\['a'\]\[0\]"):
        run.add_save(append, {"a": 2}, metadata={"a": [operator]})

    assert before == everything(saver)


def test_what_pruning_looks_at_needs_none_of_the_metadatas_classes(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": 1}, metadata=METADATA)
    last = run.save({"a": 2}, metadata=METADATA)
    run.release()

    saver.prune(["t"])

    assert [(last, METADATA)] == [(saved.id, saved.metadata) for _, saved in saver.page("t", Page())]


@pytest.mark.parametrize("written", [{"n": 2**70}, {"n": [-(2**64)]}, {"n": float("inf")}, {"n": "\ud800"}, {"\0": 1}])
def test_metadata_of_earlier_versions_is_read(tmp_path: Path, written: dict[str, Any]) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver.from_conn_string(path) as saver:
        Run(saver).save({"a": 1})
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE pregel_checkpoints SET metadata = ?", [json.dumps(written)])
    connection.close()

    with SqliteSaver.from_conn_string(path) as saver:
        found = newest(saver)

    assert found is not None
    assert {"source": "loop", "step": -1, "parents": {}, **written} == found.metadata
