"""`pregel guide` and `pregel check`: the API learnt offline, and a workflow checked before it is used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pregel import guide
from pregel.cli import main
from pregel.errors import InvalidInputError

Captured = pytest.CaptureFixture[str]

GOOD = """
from typing import TypedDict
from pregel import START, StateGraph

class State(TypedDict, total=False):
    n: int

graph = StateGraph(State).add_node("one", lambda state: {"n": 1}).add_edge(START, "one")
"""
BAD = """
import time
from typing import TypedDict
from pregel import START, StateGraph, interrupt

class State(TypedDict, total=False):
    n: int

def ask(state):
    time.time()
    return {"n": interrupt("?")}

graph = StateGraph(State).add_node("ask", ask).add_node("left", lambda state: {})
graph.add_edge(START, "ask").add_edge("ask", "nowhere").add_edge("gone", "left")
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# -- pages -------------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("S0-24")
def test_the_documents_are_there_without_a_network(capsys: Captured) -> None:
    assert 0 == main(["guide"])
    index = capsys.readouterr().out.splitlines()
    assert 0 == main(["guide", "waits"])
    text = capsys.readouterr().out
    assert 0 == main(["guide", "--path"])
    directory = Path(capsys.readouterr().out.strip())

    assert "waits Waiting for a time or an event" in [" ".join(line.split()) for line in index]
    assert text.startswith("# Waiting for a time or an event\n")
    assert text == (directory / "waits.md").read_text(encoding="utf-8")
    assert (guide.path(), len(index)) == (directory, len(guide.pages()))
    assert {"readme", "guide", "waits", "agents", "offline"} <= {page.name for page in guide.pages()}
    for page in guide.pages():
        assert page.read() == guide.page(page.name)


def test_a_page_that_is_not_there_is_refused_with_those_that_are(capsys: Captured) -> None:
    assert 2 == main(["guide", "waiting"])
    assert "waits" in capsys.readouterr().err
    with pytest.raises(InvalidInputError, match="no page"):
        guide.page("../pyproject")


# -- check -------------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("S0-24")
def test_all_that_is_wrong_with_a_workflow_is_told_at_once() -> None:
    found = guide.check(BAD)

    assert [("PG101", 10), *[("compile", 13)] * 2] == sorted(
        ((problem.rule, problem.line) for problem in found), key=lambda one: one[1]
    )
    assert all(problem.fix and problem.file == "<workflow>" for problem in found)
    assert [] == guide.check(GOOD)
    assert [] == guide.check(GOOD, graph="graph")


@pytest.mark.acceptance("S0-24")
def test_nothing_of_a_checked_workflow_stays_in_this_process(tmp_path: Path) -> None:
    source = f"""{GOOD}
import os, pathlib, sys
pathlib.Path({str(tmp_path / "pid")!r}).write_text(str(os.getpid()))
sys.modules["left_behind"] = sys
os.environ["LEFT_BEHIND"] = "1"
"""
    modules = set(sys.modules)

    assert [] == guide.check(source)

    assert str(os.getpid()) != (tmp_path / "pid").read_text()
    assert ("LEFT_BEHIND" in os.environ, set()) == (False, set(sys.modules) - modules)


REFUSED = {
    "no Python": ("def f(:", "PG001", 1, "This is not Python"),
    "raises": ("x = 1\nx / 0\n", "import", 2, "ZeroDivisionError"),
    "a module that is not there": ("import none_such_module\n", "import", 1, "none_such_module"),
    "refused as it is built": (
        "from pregel import StateGraph\n\n\ng = StateGraph(dict)\ng.add_node('a', print).add_node('a', print)\n",
        "import",
        5,
        "'a'",
    ),
    "ends its process": ("import os\nos._exit(3)\n", "import", 1, "status 3"),
    "exits": ("raise SystemExit(0)\n", "import", 1, "SystemExit"),
    "no graph": ("x = 1\n", "graph", 1, "names no graph"),
    "compiled with problems": (
        "from pregel import StateGraph\napp = StateGraph(dict).add_node('a', print).compile()\n",
        "compile",
        2,
        "START",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_built_is_told_with_its_line(what: str) -> None:
    source, rule, line, words = REFUSED[what]

    (problem,) = guide.check(source)

    assert (rule, line) == (problem.rule, problem.line)
    assert words in problem.message
    assert problem.fix


def test_a_graph_of_another_name_is_told_with_those_that_are_there() -> None:
    (problem,) = guide.check(GOOD, graph="flow")

    assert "It has graph." in problem.message


@pytest.mark.acceptance("S0-24")
def test_a_workflow_that_does_not_come_back_is_killed_with_what_it_started(tmp_path: Path) -> None:
    """Its child holds one end of a pipe: it is gone when the other end reads to the end."""
    os.mkfifo(pipe := tmp_path / "pipe")
    wait = "import threading; threading.Event().wait()"
    source = f"""
import subprocess, sys, threading
subprocess.Popen([sys.executable, "-c", {wait!r}], stdout=open({str(pipe)!r}, "w"))
threading.Event().wait()
"""
    reader = subprocess.Popen(["cat", str(pipe)])

    (problem,) = guide.check(source, timeout=2.0)
    with suppress(OSError):  # the reader has gone; else nobody came to open the other end in time
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))

    assert ("time", 0) == (problem.rule, reader.wait(60))


def test_files_and_modules_are_checked_where_they_are(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("")
    (tmp_path / "shop" / "parts.py").write_text("NAME = 'one'\n")
    (tmp_path / "shop" / "good.py").write_text(GOOD + "from shop.parts import NAME\n")
    (tmp_path / "bad.py").write_text(BAD)

    assert 0 == main(["check", "shop.good:graph"])
    assert "No problems in shop.good:graph.\n" == capsys.readouterr().out
    assert 0 == main(["check", "shop/good.py"])
    capsys.readouterr()
    assert 1 == main(["check", "bad.py:graph", "--format", "json"])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    assert {("bad.py", "PG101"), ("bad.py", "compile")} == {(one["file"], one["rule"]) for one in found}
    for wrong in ("none.py", "none.such"):
        assert 2 == main(["check", wrong])
    assert "shop" not in sys.modules


# -- tools -------------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("S0-24")
def test_an_agent_is_given_the_documents_and_the_check_as_tools() -> None:
    read, check = guide.tools()

    assert "waits" in read.invoke({})
    assert guide.page("waits") == read.invoke({"name": "waits"})
    assert "Nothing is wrong" in check.invoke({"source": GOOD})
    assert "PG101" in check.invoke({"source": BAD})
    assert all(one.description for one in (read, check))
