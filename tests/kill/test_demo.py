"""The demos, and the runs they are made of, across a real SIGKILL on SQLite."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.cli.demo import review_story, trip_story
from pregel.cli.demo.desk import child_environment
from pregel.cli.demo.review import SourceFile, build_review
from pregel.cli.demo.stage import DemoFailed, Stage, open_stage
from pregel.cli.demo.trip import TOOLS, build_trip
from pregel.cli.screen import PlainScreen
from pregel.cli.target import Graph, compiled

COUNTED = trip_story.COUNTED
ONE_EACH = dict.fromkeys(COUNTED, 1)


@pytest.fixture
def stage() -> Iterator[Stage]:
    with open_stage(PlainScreen()) as stage:
        yield stage


@pytest.fixture
def saver(stage: Stage) -> Iterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(stage.path) as saver:
        yield saver


@pytest.fixture
def trip(stage: Stage, saver: SqliteSaver) -> Graph:
    return compiled(build_trip(stage.desk.call), saver, "trip")


def values(graph: Graph) -> dict[str, Any]:
    return dict(graph.get_state(trip_story.CONFIG).values)


def steps(graph: Graph) -> list[int]:
    return [(state.metadata or {})["step"] for state in graph.get_state_history(trip_story.CONFIG)]


def run_trip(stage: Stage, **request: object) -> dict[str, Any]:
    given = json.dumps({"request": {**trip_story.REQUEST, **request}})
    return stage.finish("run", trip_story.GRAPH, "--thread", trip_story.THREAD, "--input", given)


def resume_trip(stage: Stage, *more: str, code: int = 0) -> dict[str, Any]:
    return stage.finish("resume", trip_story.GRAPH, "--thread", trip_story.THREAD, *more, code=code)


@pytest.mark.acceptance("S0-1")
def test_a_trip_runs_to_a_confirmed_table_in_one_go(stage: Stage) -> None:
    told = run_trip(stage, approved=True)["values"]

    assert "confirmed" == told["status"]
    *booked, total = told["table"].splitlines()
    assert [["flight", "FL-1001"], ["hotel", "HO-1001"], ["car", "CA-1001"]] == [row.split()[:2] for row in booked]
    assert total.startswith("confirmed")
    assert ONE_EACH == stage.desk.accepted(*COUNTED)


@pytest.mark.acceptance("S0-2")
def test_defining_and_compiling_calls_nothing() -> None:
    calls = []

    def call(tool: str, **given: object) -> dict[str, Any]:
        calls.append(tool)
        return {"issues": []} if tool == "review" else {"status": "failed", "reason": "sold out"}

    graph = build_trip(call).compile()
    build_review(call).compile()
    assert [] == calls

    graph.invoke({"request": {"to": "Lisbon", "budget": 1}})
    assert {*TOOLS, "review"} == set(calls)


@pytest.mark.acceptance("S0-3")
def test_finished_bookings_are_not_repeated_after_a_kill(stage: Stage, trip: Graph) -> None:
    trip_story.book_until_held(stage, trip)
    assert {"flight": 1, "hotel": 1, "car": 0} == stage.desk.accepted(*TOOLS)
    recorded = values(trip)["bookings"]
    assert {"flight", "hotel"} == recorded.keys()

    resume_trip(stage, code=3)

    assert dict.fromkeys(TOOLS, 1) == stage.desk.accepted(*TOOLS)
    assert {**recorded, "car": {"status": "booked", "number": "CA-1001", "price": 180}} == values(trip)["bookings"]
    assert "confirmed" == resume_trip(stage, "--answer", '"yes"')["values"]["status"]
    assert ONE_EACH == stage.desk.accepted(*COUNTED)


def stored(saver: SqliteSaver) -> dict[str, tuple[str, bytes]]:
    """The four results before the last step, as the saver encodes them."""
    saved = saver.get_tuple(trip_story.CONFIG)
    assert saved is not None
    state = saved.checkpoint["channel_values"]
    results = {**state["bookings"], "review": state["issues"]}
    return {name: saver.serde.dumps_typed(result) for name, result in results.items()}


@pytest.mark.acceptance("S0-9")
def test_a_kill_before_the_last_step_leaves_only_that_step_to_do(stage: Stage, trip: Graph, saver: SqliteSaver) -> None:
    stage.desk.hold("confirm")
    given = json.dumps({"request": {**trip_story.REQUEST, "approved": True}})
    child = stage.start("run", trip_story.GRAPH, "--thread", trip_story.THREAD, "--input", given)
    stage.until(lambda: stage.desk.held("confirm") == 1, "the confirmation is held", child)
    stage.until(lambda: trip.get_state(trip_story.CONFIG).next == ("confirm",), "all before it is recorded", child)
    stage.kill(child)
    stage.until(lambda: stage.desk.dropped("confirm") == 1, "the request of the dead process is dropped")
    stage.desk.release("confirm")
    before, done = stored(saver), stage.desk.accepted(*COUNTED)
    steps_before = steps(trip)

    told = resume_trip(stage)["values"]

    assert "confirmed" == told["status"]
    assert {**dict.fromkeys(COUNTED, 1), "confirm": 0} == done
    assert ONE_EACH == stage.desk.accepted(*COUNTED)
    assert {"flight", "hotel", "car", "review"} == before.keys()
    assert before == stored(saver)
    assert [steps_before[0] + 1, *steps_before] == steps(trip)


@pytest.mark.acceptance("S0-15")
@pytest.mark.parametrize("trouble", ["sold out", "over budget"])
def test_the_guard_ends_a_trip_with_its_bookings_and_without_a_confirmation(stage: Stage, trouble: str) -> None:
    if trouble == "sold out":
        stage.desk.sell_out("car")
    told = run_trip(stage, budget=9_999 if trouble == "sold out" else 100, approved=True)

    assert "idle" == told["status"]
    assert "not_confirmed" == told["values"]["status"]
    assert set(TOOLS) == told["values"]["bookings"].keys()
    assert (trouble == "over budget") == bool(told["values"]["issues"])
    assert {**ONE_EACH, "confirm": 0} == stage.desk.accepted(*COUNTED)


def test_a_trip_that_is_not_wanted_is_not_confirmed(stage: Stage, trip: Graph) -> None:
    given = json.dumps({"request": trip_story.REQUEST})
    stage.finish("run", trip_story.GRAPH, "--thread", trip_story.THREAD, "--input", given, code=3)

    assert "not_confirmed" == resume_trip(stage, "--answer", '"no"')["values"]["status"]
    assert {**ONE_EACH, "confirm": 0} == stage.desk.accepted(*COUNTED)


# -- two files ---------------------------------------------------------------------------------------------------------

FIRST_FILE = """\
import sys
from functools import reduce


def total(prices, id):
    running = 1
    return reduce(lambda a, b: a + b, prices)


def load(path, cache={}):
    try:
        return cache[path]
    except KeyError:
        return missing(path, f"not there")
"""
SECOND_FILE = "def total(prices):\n    return sum(prices)\n"


@pytest.mark.acceptance("S0-19")
def test_the_first_of_two_reviews_is_reused_byte_for_byte_after_a_kill(stage: Stage, saver: SqliteSaver) -> None:
    files: list[SourceFile] = []
    for name, text in (("orders.py", FIRST_FILE), ("prices.py", SECOND_FILE)):
        (stage.directory / name).write_text(text)
        files.append({"name": name, "path": str(stage.directory / name)})
    graph = compiled(build_review(stage.desk.call), saver, "review")

    before = review_story.review_until_killed(stage, graph, files)
    assert 492 == len(before)
    assert {"reviewer": 1} == stage.desk.accepted("reviewer")
    (stage.directory / "orders.py").write_text("changed = True\n")  # a second review of it would read otherwise

    told = stage.finish("resume", review_story.GRAPH, "--thread", review_story.THREAD)["values"]

    assert before == review_story.stored_review(graph) == told["first_review"].encode()
    assert "prices.py: no findings" == told["second_review"]
    assert {"reviewer": 2} == stage.desk.accepted("reviewer")


# -- as the user sees them ---------------------------------------------------------------------------------------------


def demo(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pregel.cli", "demo", *arguments]
    environment = child_environment(TMPDIR=str(directory))
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=90, env=environment)


def cpu_seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_demo_ends_well_and_leaves_nothing_behind(tmp_path: Path) -> None:
    before = cpu_seconds_of_children()
    done = demo(directory=tmp_path)

    assert cpu_seconds_of_children() - before < 15  # of CPU: the machine may be loaded
    assert (0, "") == (done.returncode, done.stderr)
    assert "$ kill -9 " in done.stdout
    assert "thread trip-1 is abandoned" in done.stdout
    assert "confirmed  TRIP-1001   1110 EUR" in done.stdout
    assert "not_confirmed, with the bookings FL-1001, HO-1001, CA-1001" in done.stdout
    assert ["calls", "1", "1", "1", "1", "1"] == done.stdout.splitlines()[-1].split()
    assert [] == os.listdir(tmp_path)


@pytest.mark.slow
def test_the_demo_keeps_its_files_when_asked_to(tmp_path: Path) -> None:
    done = demo("--keep", directory=tmp_path)

    [kept] = tmp_path.iterdir()
    assert f"Kept: cd {kept} && pregel history --db demo.db --thread trip-1" in done.stdout
    assert (kept / "demo.db").exists()


@pytest.mark.slow
def test_the_review_demo_reviews_the_files_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "orders.py").write_text(FIRST_FILE)
    (tmp_path / "prices.py").write_text(SECOND_FILE)
    done = demo("review", "orders.py", "prices.py", directory=tmp_path)

    assert (0, "") == (done.returncode, done.stderr)
    [recorded, reused] = [line.split(maxsplit=1)[1] for line in done.stdout.splitlines() if "bytes, sha256" in line]
    assert recorded == reused
    assert recorded.startswith("492 bytes, sha256 ")
    assert "reviews run in total: 2" in done.stdout
    assert "orders.py:7: reduce() without an initial value" in done.stdout
    assert "prices.py: no findings" in done.stdout
    assert {"orders.py", "prices.py"} == set(os.listdir(tmp_path))


def test_a_call_too_many_fails_the_demo() -> None:
    with pytest.raises(DemoFailed, match="car was called 2 times"):
        trip_story.check_counts({**ONE_EACH, "car": 2})


def test_a_child_that_ends_too_early_fails_the_demo(stage: Stage) -> None:
    child = stage.start("run", "nowhere:graph", "--thread", "t", "--input", "{}")

    with pytest.raises(DemoFailed, match="There is no module 'nowhere'"):
        stage.until(lambda: False, "something happens", child)
