"""`pregel run --journal-stream` and `pregel follow`: what a run showed, from any shell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import pregel
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.cli import main
from tests.behaviour.journals import Run

Captured = pytest.CaptureFixture[str]
GRAPHS = """
    import os
    from typing import TypedDict

    from pregel import get_stream_writer, interrupt
    from pregel.graph import START, StateGraph

    class State(TypedDict, total=False):
        n: int

    def ask(state):
        get_stream_writer()("half way")
        return {"n": interrupt("How many?")}

    def fail(state):
        if state["n"] < 0:
            raise ValueError("too few")

    asking = StateGraph(State).add_node("ask", ask).add_node("fail", fail)
    asking.add_edge(START, "ask").add_edge("ask", "fail")
"""
RUN = ["run", "watched:asking", "--input", "{}", "--thread", "7"]
ANSWER = ["resume", "watched:asking", "--thread", "7", "--journal-stream", "--answer"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a graph in watched.py."""
    (tmp_path / "watched.py").write_text(dedent(GRAPHS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def followed(capsys: Captured, *options: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code of `pregel follow --json`, and the chunks it told."""
    capsys.readouterr()
    code = main(["follow", "--thread", "7", "--json", *options])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.usefixtures("here")
def test_a_paused_run_is_followed_to_its_question_and_on_from_there(capsys: Captured) -> None:
    assert 3 == main([*RUN, "--journal-stream"])
    code, chunks = followed(capsys)

    assert 3 == code
    assert ["attempt", "custom", "updates", "status"] == [chunk["mode"] for chunk in chunks]
    assert "half way" == chunks[1]["data"]
    assert ["How many?"] == [question["value"] for question in chunks[-1]["data"]["interrupts"]]

    assert 0 == main([*ANSWER, "2"])
    code, later = followed(capsys, "--offset", str(chunks[-1]["offset"]))
    assert 0 == code
    assert [[1, 1]] == later[0]["data"]["superseded"]
    assert {"fail": None} == later[-2]["data"]
    assert "idle" == later[-1]["data"]["status"]


@pytest.mark.usefixtures("here")
def test_what_was_lost_is_told_in_plain_text_and_a_failed_run_ends_with_1(capsys: Captured) -> None:
    main([*RUN, "--journal-stream"])
    main([*ANSWER, "-1"])
    capsys.readouterr()

    assert 1 == main(["follow", "--thread", "7"])
    told = capsys.readouterr().out
    assert "    1  custom    ask: half way (superseded)" in told
    assert "attempt 1, in place of 1\n" in told
    assert "failed: ValueError: too few" in told


@pytest.mark.usefixtures("here")
def test_a_run_that_was_not_told_to_journal_shows_only_how_it_stands(capsys: Captured) -> None:
    assert 3 == main(RUN)
    assert ["status"] == [chunk["mode"] for chunk in followed(capsys)[1]]


@pytest.mark.usefixtures("here")
def test_a_follower_without_patience_leaves_a_thread_that_is_held(capsys: Captured) -> None:
    with SqliteSaver.from_conn_string("pregel.db") as saver:
        Run(saver, "7").claim()
        code, (status,) = followed(capsys, "--wait", "0")

    assert (75, "running") == (code, status["data"]["status"])


@pytest.mark.usefixtures("here")
def test_a_call_that_is_wrong_is_told_so(capsys: Captured) -> None:
    assert 2 == main(["follow", "--thread", "7"])  # no database
    main(RUN)
    capsys.readouterr()

    assert 2 == main(["follow", "--thread", "8"])
    assert "There is no thread '8'" in capsys.readouterr().err
    assert 2 == main(["follow", "--thread", "7", "--offset", "-1"])
    assert "offset is -1" in capsys.readouterr().err


@pytest.fixture
def hears_ctrl_c() -> Iterator[None]:
    """Programs that are started here hear Ctrl-C, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_stops_the_follower_and_says_where_to_go_on(here: Path) -> None:
    with SqliteSaver.from_conn_string("pregel.db") as saver:
        main([*RUN, "--journal-stream"])
        Run(saver, "7").claim()
        command = [sys.executable, "-m", "pregel.cli", "follow", "--thread", "7", "--json"]
        environment = {**os.environ, "PYTHONPATH": str(Path(pregel.__file__).parents[1])}
        with subprocess.Popen(
            command, cwd=here, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            chunks = [json.loads(process.stdout.readline()) for _ in range(3)]
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=60)

    assert [0, 1, 2] == [chunk["offset"] for chunk in chunks]
    assert 130 == process.returncode
    said = "pregel: Stopped by Ctrl-C; the run is not. To follow it from here on: --offset "
    assert told in (f"{said}3\n", f"{said}2\n")  # the third may have been written and not counted yet
