"""Real faults of a thread's owner: frozen, forked, in another container, with another clock. Both stores."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.records import Page
from pregel.errors import ThreadBusy

from .owners import CONFIG, heard, row_at, saver_at, start, submitting, two_nodes

LEASE = 0.4  # seconds, of an owner whose lease is to lapse
KEPT = 4.0  # seconds, of one whose heartbeat is to keep it on any machine


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that several processes share."""
    return str(tmp_path / "threads.db") if request.param == "sqlite" else str(request.getfixturevalue("dsn"))


def end(process: subprocess.Popen[str]) -> str:
    """What a process that waits in its node says when it is let go."""
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    return heard(process)


@pytest.mark.acceptance("S0-11", "S4-3")
@pytest.mark.parametrize("durability", ["sync", pytest.param("exit", marks=pytest.mark.slow)])
def test_a_frozen_owner_is_taken_over_and_refused_when_it_wakes(where: str, durability: str) -> None:
    with start("hold", where, LEASE, durability) as owner, saver_at(where) as saver:
        assert heard(owner) == "in the node"
        owner.send_signal(signal.SIGSTOP)
        while not row_at(saver).lapsed:
            pass
        app = two_nodes(saver, lambda: "heir")

        result = app.invoke({"a": []}, CONFIG)
        history = [saved.id for _, saved in saver.page("t", Page())]
        owner.send_signal(signal.SIGCONT)

        assert end(owner) == "AuthorityLost"
        assert result["a"] == app.get_state(CONFIG).values["a"] == ["heir", "second"]
        assert history == [saved.id for _, saved in saver.page("t", Page())]


@pytest.mark.acceptance("S2-19")
def test_a_submission_of_an_older_generation_is_refused_by_who_compares_fences(where: str, tmp_path: Path) -> None:
    adapter = str(tmp_path / "adapter.db")
    with start("submit", where, LEASE, adapter) as owner, saver_at(where) as saver:
        old = int(heard(owner))
        owner.send_signal(signal.SIGSTOP)
        while not row_at(saver).lapsed:
            pass
        fences: list[int] = []
        app = submitting(saver, adapter, lambda fence: fences.append(fence) or "new")  # type: ignore[func-returns-value]

        result = app.invoke(None, CONFIG)
        owner.send_signal(signal.SIGCONT)

        assert ["new accepted"] == result["a"]
        assert fences[0] > old
        assert "AuthorityLost [('new',)]" == end(owner)


@pytest.mark.acceptance("S2-30")
def test_a_thread_that_was_deleted_and_made_again_has_a_newer_generation(where: str, tmp_path: Path) -> None:
    adapter = str(tmp_path / "adapter.db")
    with start("submit", where, KEPT, adapter) as owner, saver_at(where) as saver:
        old = int(heard(owner))
        saver.delete_thread("t")
        fences: list[int] = []
        app = submitting(saver, adapter, lambda fence: fences.append(fence) or "new")  # type: ignore[func-returns-value]

        app.invoke({"a": []}, CONFIG)
        history = [saved.id for _, saved in saver.page("t", Page())]

        assert fences[0] > old
        assert "AuthorityLost [('new',)]" == end(owner)
        assert ["new accepted"] == app.get_state(CONFIG).values["a"]
        assert history == [saved.id for _, saved in saver.page("t", Page())]


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "kept"), [("interrupt", ["gone"]), ("rollback", [])])
def test_an_owner_that_is_asked_to_make_way_cancels_the_node_it_is_in(where: str, mode: str, kept: list[str]) -> None:
    with start("wait", where, KEPT) as owner, saver_at(where) as saver:
        assert heard(owner) == "in the node"
        app = two_nodes(saver, lambda: "heir")

        result = app.invoke({"a": ["new"]}, CONFIG, concurrency=mode, wait=60.0)

        assert heard(owner) == f"displaced by {mode}"
        assert result["a"] == [*kept, "new", "heir", "second"]
        assert row_at(saver).crashes == 0


@pytest.mark.slow
def test_a_frozen_owner_that_nobody_took_over_goes_on(where: str) -> None:
    with start("hold", where, LEASE) as owner, saver_at(where) as saver:
        assert heard(owner) == "in the node"
        owner.send_signal(signal.SIGSTOP)
        while not row_at(saver).lapsed:
            pass
        owner.send_signal(signal.SIGCONT)

        assert end(owner) == "ended held,second"


@pytest.mark.acceptance("S6-4", "S0-8")
def test_a_killed_owner_is_taken_over_at_once_though_its_lease_goes_on(where: str) -> None:
    with start("hold", where, 1000) as owner, saver_at(where) as saver:
        assert heard(owner) == "in the node"
        app = two_nodes(saver, lambda: "heir")
        with pytest.raises(ThreadBusy):
            app.invoke(None, CONFIG)
        owner.kill()
        os.waitid(os.P_PID, owner.pid, os.WEXITED | os.WNOWAIT)  # a zombie that nobody has reaped
        before = app.threads.status("t")

        assert (before.status, before.can_resume) == ("abandoned", True)
        assert "died" in before.reason
        assert app.invoke(None, CONFIG)["a"] == ["heir", "second"]
        assert app.threads.status("t").status == "idle"


@pytest.mark.acceptance("S6-5")
def test_a_killed_run_goes_on_in_its_own_thread_and_says_in_words_what_happened(where: str) -> None:
    with start("hold", where, 1000) as owner, saver_at(where) as saver:
        assert heard(owner) == "in the node"
        before = [saved for _, saved in saver.page("t", Page())]
        owner.kill()
        os.waitid(os.P_PID, owner.pid, os.WEXITED | os.WNOWAIT)
        app = two_nodes(saver, lambda: "heir")

        reason = app.threads.status("t").reason
        result = app.threads.resume("t")

        assert reason.startswith(f"process {owner.pid} on ")
        assert reason.endswith("died while it ran")
        assert result["a"] == ["heir", "second"]
        assert [info.thread_id for info in app.threads.list()] == ["t"]
        after = list(app.get_state_history(CONFIG))
        assert [one.metadata["source"] for one in after] == ["loop", "loop", "loop", "input"]
        assert after[-len(before)].config["configurable"]["checkpoint_id"] == before[0].id  # and goes on from there
        assert after[-len(before) - 1].parent_config == after[-len(before)].config


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_the_copy_of_a_run_in_a_forked_child_never_writes(where: str, tmp_path: Path) -> None:
    told = tmp_path / "twin"
    with start("fork", where, told) as owner, saver_at(where) as saver:
        outcome = heard(owner)

        assert (outcome, told.read_text()) == ("parent,second", "AuthorityLost")
        assert two_nodes(saver, lambda: "heir").get_state(CONFIG).values["a"] == ["parent", "second"]
        assert saver.verify("t") == []


@pytest.mark.slow
def test_an_owner_in_another_pid_namespace_is_waited_for_until_its_lease_ends(where: str) -> None:
    apart = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this kernel lets nobody make a pid namespace")
    with start("hold", where, KEPT, prefix=apart) as owner, saver_at(where) as saver:
        assert heard(owner) == "in the node"
        app = two_nodes(saver, lambda: "heir")
        with pytest.raises(ThreadBusy):
            app.invoke(None, CONFIG)
        owner.kill()
        owner.wait()
        states: list[Any] = [app.threads.status("t").status]
        while states[-1] != "abandoned":
            states.append(app.threads.status("t").status)

        assert app.invoke(None, CONFIG)["a"] == ["heir", "second"]


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_clock_that_is_an_hour_off_takes_nothing_from_a_live_owner(where: str, seconds: int) -> None:
    with start("hold", where, 30) as owner:
        assert heard(owner) == "in the node"
        with start("ahead", where, seconds, "go_on") as other:
            assert heard(other) == "ThreadBusy"
        assert end(owner) == "ended held,second"


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_thread_goes_on_between_hosts_whose_clocks_are_an_hour_apart(where: str, seconds: int) -> None:
    with start("ahead", where, seconds, "hold", 30) as owner:
        assert heard(owner) == "in the node"
        owner.kill()
        owner.wait()
    with saver_at(where) as saver:
        before = row_at(saver)
        app = two_nodes(saver, lambda: "heir")

        result = app.invoke(None, CONFIG)

        after = row_at(saver)
        ids = [saved.id for _, saved in saver.page("t", Page())]
        assert result["a"] == app.get_state(CONFIG).values["a"] == ["heir", "second"]
        assert ids == sorted(ids, reverse=True)
        assert after.epoch > before.epoch
