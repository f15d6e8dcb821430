"""Who holds a thread, and when it is certain that a holder is dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pregel.checkpoint.lease import is_dead, live_runs, new_mark, this_owner
from pregel.checkpoint.records import Owner

TELL = """
import sys
from pregel.checkpoint.lease import this_owner
print(*this_owner(), sep="|", flush=True)
sys.stdin.read()
"""

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="deaths are seen through /proc")


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    """Another process that waits; it is not reaped before the test ends."""
    child = subprocess.Popen(
        [sys.executable, "-c", TELL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=os.getcwd()
    )
    with child:
        yield child
        child.kill()


def owner_of(process: subprocess.Popen[str]) -> Owner:
    assert process.stdout is not None
    boot, pidns, pid, ticks, host = process.stdout.readline().strip().split("|")
    return Owner(boot, int(pidns), int(pid), int(ticks), host)


def test_a_living_process_is_not_dead(process: subprocess.Popen[str]) -> None:
    assert not is_dead(owner_of(process), b"run")


def test_a_killed_process_is_dead_though_nobody_reaped_it(process: subprocess.Popen[str]) -> None:
    owner = owner_of(process)

    process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and left as a zombie

    assert is_dead(owner, b"run")


def test_a_reaped_process_is_dead(process: subprocess.Popen[str]) -> None:
    owner = owner_of(process)

    process.kill()
    process.wait()

    assert is_dead(owner, b"run")


def test_a_pid_that_another_process_has_now_is_dead(process: subprocess.Popen[str]) -> None:
    owner = owner_of(process)

    assert is_dead(owner._replace(ticks=owner.ticks - 1), b"run")


@pytest.mark.parametrize("elsewhere", [{"boot": "another boot"}, {"pidns": 1}])
def test_nothing_is_certain_about_another_boot_or_pid_namespace(elsewhere: dict[str, object]) -> None:
    gone = this_owner()._replace(pid=2**22 + 1, **elsewhere)  # type: ignore[arg-type]

    assert not is_dead(gone, b"run")


def test_in_this_process_a_run_lives_as_long_as_it_is_registered() -> None:
    live_runs.add(b"alive")
    try:
        assert [False, True] == [is_dead(this_owner(), run) for run in (b"alive", b"gone")]
    finally:
        live_runs.discard(b"alive")


def test_a_forked_child_is_a_new_owner_with_no_live_runs_and_marks_of_its_own() -> None:
    live_runs.add(b"parents")
    before, mark = this_owner(), new_mark()
    read, write = os.pipe()

    child = os.fork()
    if child == 0:
        os.write(write, b"ok" if this_owner().pid == os.getpid() != before.pid and not live_runs else b"no")
        os.write(write, new_mark())
        os._exit(0)
    os.waitpid(child, 0)
    live_runs.discard(b"parents")

    answer = os.read(read, 10)
    assert b"ok" == answer[:2]
    assert 3 == len({mark, new_mark(), answer[2:]})
    assert before == this_owner()
