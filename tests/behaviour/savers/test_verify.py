"""`verify` reads a thread to its first record and says where it is damaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import pytest

from pregel.checkpoint.flows import Many, Sql
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.keys import id_bytes
from pregel.flow import Flow
from pregel.graph import START, StateGraph
from tests.behaviour.journals import Run
from tests.behaviour.savers.foreign import put

LONG = "x" * 200


def thread_of(saver: JournalSaver, n: int = 3) -> list[str]:
    run = Run(saver)
    ids = [run.save({"a": [LONG, number], "b": number}) for number in range(n)]
    run.write([("a", LONG)])
    run.release()
    return ids


def damage(saver: JournalSaver, *requests: Sql | Many) -> None:
    """Do these statements to the rows of a thread."""

    def flow() -> Flow[None]:
        yield Sql("lock_thread", ("t",))
        for request in requests:  # noqa: UP028  # a reply is sent to each
            yield request

    saver.write(flow())


def tno_of(saver: JournalSaver) -> int:
    return saver.threads()[0].tno


def found(saver: JournalSaver) -> list[tuple[str, str, str]]:
    return [(one.checkpoint, one.kind, one.what) for one in saver.verify("t")]


def test_a_whole_thread_has_no_findings(saver: JournalSaver) -> None:
    thread_of(saver, 130)
    put(saver, {"a": [LONG]})

    assert [] == saver.verify("t")
    assert [] == saver.verify("unknown")


def test_a_value_that_is_gone_is_found_at_each_checkpoint_that_needs_it(saver: JournalSaver) -> None:
    ids = thread_of(saver)

    damage(saver, Many("delete_value", [(tno_of(saver), 0, saver.names.ids["a"], 2, "value")]))

    ((checkpoint, kind, what),) = found(saver)
    assert (ids[1], "damaged") == (checkpoint, kind)
    assert "'a'" in what


def test_a_checkpoint_that_is_gone_is_found_at_its_child(saver: JournalSaver) -> None:
    ids = thread_of(saver)

    damage(saver, Many("delete_checkpoint", [(tno_of(saver), 0, id_bytes(ids[1]))]))

    assert [(ids[2], "damaged", f"its parent {ids[1]} is gone")] == found(saver)


@pytest.mark.parametrize("manifest", [b"", b"\xc1", b"\x97", b"\x90"])
def test_a_manifest_that_cannot_be_read_is_found(saver: JournalSaver, manifest: bytes) -> None:
    ids = thread_of(saver)

    damage(saver, Sql("rewrite_checkpoint", (manifest, tno_of(saver), 0, id_bytes(ids[0]))))

    assert [(ids[0], "damaged")] == [finding[:2] for finding in found(saver)]


def test_a_value_whose_bytes_are_cut_is_found(saver: JournalSaver) -> None:
    ids = thread_of(saver)
    tno, name = tno_of(saver), saver.names.ids["a"]
    cut = saver.serde.dumps_typed([LONG, 1])[1][:-3]

    damage(
        saver,
        Many("delete_value", [(tno, 0, name, 2, "value")]),
        Many("add_values", [(tno, 0, name, 2, "value", "msgpack", cut, None, None, None, None)]),
    )

    assert [(ids[1], "damaged")] == [finding[:2] for finding in found(saver)]


@dataclass
class Note:
    text: str


def test_a_value_of_a_class_that_is_not_known_here_is_no_damage(saver: JournalSaver) -> None:
    run = Run(saver.with_allowlist([Note]))  # type: ignore[arg-type]  # it stays a journal
    checkpoint = run.save({"a": Note(LONG)})
    run.release()

    assert [(checkpoint, "unreadable")] == [finding[:2] for finding in found(saver)]
    assert [] == saver.with_allowlist([Note]).verify("t")  # type: ignore[attr-defined]


def test_a_write_whose_value_is_gone_is_found(saver: JournalSaver) -> None:
    class State(TypedDict, total=False):
        text: str

    graph = StateGraph(State).add_node("write", lambda state: {"text": LONG}).add_edge(START, "write")
    graph.compile(checkpointer=saver).invoke({"text": "given"}, {"configurable": {"thread_id": "t"}})

    damage(saver, Many("delete_value", [(tno_of(saver), 0, saver.names.ids["text"], 3, "value")]))

    assert [True, True] == ["is gone" in what for _, kind, what in found(saver) if kind == "damaged"]
