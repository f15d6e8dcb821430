"""What every journal promises of loads and pages, which change nothing, and of threads that are deleted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.records import Load, Page, Saved
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import InvalidInputError
from tests.behaviour.journals import Run, everything, fresh_id, newest
from tests.behaviour.savers.foreign import config

# -- loads -------------------------------------------------------------------------------------------------------------


def test_a_load_gives_the_newest_one_by_id_or_the_newest_before(saver: JournalSaver) -> None:
    run = Run(saver)
    ids = [run.save({"a": i}) for i in range(5)]

    opened = saver.load("t", [Load(), Load("", ids[1]), Load("", None, ids[3]), Load("", fresh_id()), Load("other")])

    assert [ids[4], ids[1], ids[2], None, None] == [saved and saved.id for saved in opened.saved]
    assert {"": ids[4]} == opened.heads


def test_a_look_gives_what_a_load_gives(saver: JournalSaver) -> None:
    run = Run(saver)
    names = [f"channel_{i}" for i in range(40)]
    saver.intern(names)
    ids = [run.save({**{name: f"{name} {step}" for name in names[: 40 if not step else 2]}}) for step in range(4)]
    ids.append(run.save({"a": "long " * 100, "b": None}))

    for checkpoint in (None, *ids, fresh_id()):
        for ns in ("", "other"):
            loaded = saver.load("t", [Load(ns, checkpoint)]).saved[0]
            looked = saver.look("t", ns, checkpoint)
            assert plain(loaded) == plain(looked)
    assert saver.look("nobody", "") is None


def plain(saved: Saved | None) -> Saved | None:
    """Without what only the ledger looks at."""
    return saved and replace(saved, manifest=None)


def test_namespaces_are_apart(saver: JournalSaver) -> None:
    root = Run(saver)
    root.save({"a": "root"})
    child = Run(saver, ns="child:1")
    child.epoch, child.run, child.seq = root.epoch, root.run, root.seq
    child.save({"a": "child"})

    opened = saver.load("t", [Load(), Load("child:1")])

    assert ["root", "child"] == [saved.values["a"] for saved in opened.saved if saved]
    assert {"", "child:1"} == opened.heads.keys() == opened.thread.namespaces.keys()


def test_many_channels_at_depth_load_whole(saver: JournalSaver) -> None:
    run = Run(saver)
    names = [f"channel_{i}" for i in range(300)]
    saver.intern(names)
    state: dict[str, Any] = {name: f"{name} {'x' * 80}" for name in names}
    run.save(state)
    states = [dict(state)]
    for step in range(100):
        changed = {names[(step * 7 + i) % 300]: step for i in range(3)}
        state.update(changed)
        run.save(changed)
        states.append(dict(state))

    history = [saved.values for _, saved in saver.page("t", Page())]

    assert states == history[::-1]
    saved = newest(saver)
    assert saved is not None
    assert state == saved.values


def test_another_saver_on_the_same_store_reads_names_it_did_not_intern(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(tmp_path / "x.db") as one, SqliteSaver.from_conn_string(tmp_path / "x.db") as two:
        two.intern(["first"])
        one.intern(["zeta", "eta"])
        Run(one).save({"zeta": 1, "a": 2})

        saved = newest(two)

    assert saved is not None
    assert {"zeta": 1, "a": 2} == saved.values


def test_reads_change_nothing(saver: JournalSaver) -> None:
    Run(saver).save({"a": 1})
    before = everything(saver), saver.threads()

    saver.load("nobody", [Load(), Load("x")])
    saver.get_tuple(config("nobody"))
    saver.get_tuple(config("t", checkpoint_ns="nowhere"))
    list(saver.list(config("nobody")))
    saver.page("nobody", Page())
    saver.delete_thread("nobody")

    assert before == (everything(saver), saver.threads())


def test_threads_are_listed_last_written_first(saver: JournalSaver) -> None:
    for name in ("one", "two", "three"):
        Run(saver, name).save({"a": 1})
    Run(saver, "four").release("interrupted")

    assert ["four", "three", "two", "one"] == [row.thread for row in saver.threads()]
    assert ["four"] == [row.thread for row in saver.threads(status="interrupted")]
    assert ["four", "three"] == [row.thread for row in saver.threads(limit=2)]


@pytest.mark.acceptance("S1-36")
def test_a_new_thread_is_an_empty_history_and_threads_see_nothing_of_each_other(saver: JournalSaver) -> None:
    for name in ("one", "two"):
        run = Run(saver, name)
        run.save({"a": name})
        run.write([("b", name)])

    assert [] == list(saver.list(config("three")))
    for name in ("one", "two"):
        assert [({"a": name}, [name])] == [
            (found.checkpoint["channel_values"], [value for _, _, value in found.pending_writes or ()])
            for found in saver.list(config(name))
        ]


# -- history -----------------------------------------------------------------------------------------------------------


def test_a_page_is_newest_first_and_goes_on_before_an_id(saver: JournalSaver) -> None:
    run = Run(saver)
    ids = [run.save({"a": i}) for i in range(7)]

    first = saver.page("t", Page(limit=3))
    second = saver.page("t", Page(limit=3, before=first[-1][1].id))

    assert ids[:0:-1] == [saved.id for _, saved in first + second]


def test_a_page_may_span_namespaces_and_threads(saver: JournalSaver) -> None:
    root = Run(saver)
    ids = [root.save({"a": 1})]
    child = Run(saver, ns="child")
    child.epoch, child.run, child.seq = root.epoch, root.run, root.seq
    ids.append(child.save({"a": 2}))
    other = Run(saver, "u").save({"a": 3})

    assert ids[::-1] == [saved.id for _, saved in saver.page("t", Page(ns=None))]
    assert [("u", other), ("t", ids[1]), ("t", ids[0])] == [(t, s.id) for t, s in saver.page(None, Page(ns=None))]
    assert [("u", other), ("t", ids[0])] == [(t, s.id) for t, s in saver.page(None, Page(ns=""))]


def test_a_filter_is_applied_before_the_limit(saver: JournalSaver) -> None:
    run = Run(saver)
    ids = [run.save({"a": i}, metadata={"even": i % 2 == 0, "who": None if i else "x"}) for i in range(200)]

    def found(limit: int | None = None, **wanted: Any) -> list[str]:
        return [saved.id for _, saved in saver.page("t", Page(limit=limit, filter=wanted))]

    assert ids[198:100:-2][:3] == found(3, even=True)
    assert 100 == len(found(even=False))
    assert [ids[5]] == found(step=4)
    assert [ids[0]] == found(who="x")
    assert 199 == len(found(who=None))
    assert [] == found(even=True, source="fork")


def test_a_limit_of_zero_is_nothing(saver: JournalSaver) -> None:
    Run(saver).save({"a": 1})

    assert [] == saver.page("t", Page(limit=0))
    assert [] == list(saver.list(config(), limit=0))


# -- delete ------------------------------------------------------------------------------------------------------------


def test_a_deleted_thread_is_gone_and_others_stay(saver: JournalSaver) -> None:
    for name in ("t", "u"):
        run = Run(saver, name)
        run.save({"a": "x" * 200})
        run.write([("a", 1)])

    saver.delete_thread("t")

    assert None is saver.get_tuple(config("t"))
    assert ["u"] == [row.thread for row in saver.threads()]
    assert ["u"] == [thread for thread, *_ in everything(saver)]


def test_a_run_whose_thread_was_deleted_cannot_write_it_back(saver: JournalSaver) -> None:
    run = Run(saver)
    run.save({"a": 1})
    saver.delete_thread("t")

    receipt = run.write([("a", 2)])

    assert (False, 0) == (receipt.landed, receipt.thread.tno)
    assert [] == saver.threads()


def test_a_thread_id_that_cannot_be_written_down_is_a_named_error(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        with pytest.raises(InvalidInputError, match="half a surrogate pair"):
            saver.get_tuple(config("t\ud800"))
        for verb in (saver.delete_thread, saver.verify):
            with pytest.raises(InvalidInputError, match="half a surrogate pair"):
                verb("t\ud800")
