"""Texts that PostgreSQL cannot keep, and appends of many rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pregel.checkpoint.postgres import PostgresSaver
from pregel.checkpoint.records import Load, Release
from pregel.errors import InvalidInputError
from tests.behaviour.journals import Run, newest
from tests.behaviour.marks import chain


@pytest.mark.parametrize("text", ["a\0b", "half a pair: \ud800"])
def test_a_text_that_cannot_be_kept_is_refused_before_anything_is_written(saver: PostgresSaver, text: str) -> None:
    app = chain("x").compile(checkpointer=saver)

    with pytest.raises(InvalidInputError, match="nothing was written"):
        app.invoke({"a": []}, {"configurable": {"thread_id": text}})
    with pytest.raises(InvalidInputError, match="nothing was written"):
        saver.intern([text])
    with pytest.raises(InvalidInputError, match="nothing was written"):
        Run(saver, ns=f"child:{text}")

    assert [] == saver.threads()


def test_values_metadata_and_reasons_may_hold_any_text(saver: PostgresSaver) -> None:
    text = "NUL \0, half a pair \ud800, ä, 🙂"
    run = Run(saver)
    run.save({"a": text}, metadata={"note": text})
    append = run.blank()
    append.release = Release("failed", text)

    assert run.send(append).landed

    saved = newest(saver)
    assert saved is not None
    assert (text, text) == (saved.values["a"], saved.metadata["note"])
    assert "NUL \ufffd, half a pair \ufffd, ä, 🙂" == saver.load("t", [Load()]).thread.reason


def test_a_run_id_may_be_any_plain_value(saver: PostgresSaver, ask: Callable[..., list[Any]]) -> None:
    Run(saver).save({"a": 1}, metadata={"run_id": 17})

    saved = newest(saver)
    assert saved is not None
    assert 17 == saved.metadata["run_id"]
    assert [("17",)] == ask("SELECT run_id FROM pregel_checkpoints")


def test_many_rows_go_in_with_one_statement(saver: PostgresSaver) -> None:
    run = Run(saver)
    run.save({"a": 0})
    append = run.blank()
    for i in range(500):
        run.add_writes(append, [("a", "x" * 100), ("b", None), ("__resume__", [i])], task=f"task-{i}", path=f"~{i:04d}")

    assert run.send(append).landed

    saved = newest(saver)
    assert saved is not None
    assert [(f"task-{i}", [i]) for i in range(500)] == [(w.task, w.value) for w in saved.writes if w.idx == -4]
    assert 1500 == len(saved.writes)


def test_equal_rows_of_one_append_are_one(saver: PostgresSaver) -> None:
    run = Run(saver)
    run.save({"a": 0})
    append = run.blank()
    for i in range(3):
        run.add_writes(append, [("a", i), ("__resume__", [i])], task="x")

    assert run.send(append).landed

    saved = newest(saver)
    assert saved is not None
    assert [(-4, [2]), (0, 0)] == [(write.idx, write.value) for write in saved.writes]
