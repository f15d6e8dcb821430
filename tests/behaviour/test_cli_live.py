"""`pregel run` and `pregel resume` on a real terminal: the progress of the run, and questions at the prompt."""

from __future__ import annotations

import codecs
import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest
from rich.console import Console

import pregel
from pregel.cli.progress import MODES, PlainView, Progress, Running
from pregel.cli.rich_progress import RichView
from pregel.graph import StateGraph

from .marks import State, chain, mark

TOP = Path(pregel.__file__).parents[1]
GRAPHS = """
    from typing import Annotated, TypedDict
    from operator import add

    from pregel import interrupt
    from pregel.agents import ScriptedModel
    from pregel.graph import START, StateGraph

    class State(TypedDict, total=False):
        log: Annotated[list, add]

    model = ScriptedModel(["two words"], loop=True)

    def speak(state):
        return {"log": [model.invoke("hi").text]}

    def ask(state):
        return {"log": [interrupt({"question": "How much?"}), interrupt("Sure?")]}

    inner = StateGraph(State).add_node("speak", speak).add_edge(START, "speak").compile()
    asking = StateGraph(State).add_node("inner", inner).add_node("ask", ask)
    asking.add_edge(START, "inner").add_edge("inner", "ask")
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A directory of a user with a graph in shop.py."""
    (tmp_path / "shop.py").write_text(dedent(GRAPHS))
    return tmp_path


class Terminal:
    """A command on a pseudo-terminal. `heard` is all that it has shown."""

    def __init__(self, fd: int, process: subprocess.Popen[bytes]) -> None:
        self.fd, self.process, self.heard, self.place = fd, process, "", 0
        self.decoder = codecs.getincrementaldecoder("utf-8")()  # a character may come in two pieces

    def until(self, text: str) -> None:
        """Read until the terminal has shown a text, behind what was waited for before."""
        while (found := self.heard.find(text, self.place)) < 0:
            self.heard += self.decoder.decode(os.read(self.fd, 1000))
        self.place = found + len(text)

    def type(self, line: str) -> None:
        os.write(self.fd, line.encode())

    def ends(self) -> int:
        """The exit code, when everything has been read."""
        try:
            while piece := os.read(self.fd, 1000):
                self.heard += self.decoder.decode(piece)
        except OSError:  # nobody writes any more
            pass
        return self.process.wait(60)


@contextmanager
def terminal(here: Path, *command: str, kind: str = "xterm") -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(TOP), "TERM": kind, "COLUMNS": "100"}
    whole = [sys.executable, "-W", "error", "-m", "pregel.cli", *command]
    with subprocess.Popen(whole, cwd=here, env=environment, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        try:
            yield Terminal(ours, process)
        finally:
            process.kill()
            os.close(ours)


RUN = ("run", "shop:asking", "--input", "{}", "--thread", "t")


def test_a_run_on_a_terminal_shows_itself_and_asks(here: Path) -> None:
    with terminal(here, *RUN) as shown:
        shown.until("inner/speak done")
        shown.until("answer> ")
        shown.type("50\n")  # JSON, as --answer takes it
        shown.until("answer> ")
        shown.type("well, yes\n")
        assert shown.ends() == 0, shown.heard

    assert "step 2: ask asks" in shown.heard
    assert "question: How much?" in shown.heard
    assert "two words" in shown.heard
    assert 'log: ["two words", 50, "well, yes"]' in shown.heard


@pytest.mark.slow
def test_a_question_that_is_left_open_is_asked_by_the_next_resume(here: Path) -> None:
    with terminal(here, *RUN, kind="dumb") as shown:
        shown.until("answer> ")
        shown.type("\x04")
        assert shown.ends() == 3, shown.heard
    assert "Go on with: pregel resume shop:asking --thread t --answer JSON" in shown.heard

    with terminal(here, "resume", "shop:asking", "--thread", "t") as shown:
        shown.until("How much?")
        shown.until("answer> ")
        shown.type('["a", 1]\n')
        shown.until("answer> ")
        shown.type("\x04")
        assert shown.ends() == 3, shown.heard


@pytest.mark.slow
def test_json_on_a_terminal_shows_and_asks_nothing(here: Path) -> None:
    with terminal(here, *RUN, "--json") as shown:
        assert shown.ends() == 3

    assert [one["value"] for one in json.loads(shown.heard)["interrupts"]] == [{"question": "How much?"}]


# -- what is shown -----------------------------------------------------------------------------------------------------


def fail(state: State) -> State:
    raise ValueError("no\x1b[2J money")


def shown_by(view: object, graph: StateGraph[State]) -> Progress:
    progress = Progress(view)  # type: ignore[arg-type]  # it is one of both
    try:
        for chunk in graph.compile().stream({"a": []}, stream_mode=MODES, subgraphs=True):
            progress.take(chunk)
    except ValueError:
        pass
    return progress


def test_plain_lines_tell_starts_ends_and_errors() -> None:
    lines: list[str] = []
    progress = shown_by(PlainView(lines.append, lines.append), chain("x", "child", child=chain("y", y=fail).compile()))

    assert [line.partition(" (")[0] for line in lines] == [
        "step 1: x",
        "step 1: x done",
        "step 2: child",
        "step 1: child/y",
        "step 1: child/y failed: ValueError: no\\x1b[2J money",
        "step 2: child failed: ValueError: no\\x1b[2J money",
    ]
    assert progress.values == {"a": ["x"]}


def test_words_stand_behind_the_node_that_says_them() -> None:
    out: list[str] = []
    view = PlainView(lambda text="": out.append(f"{text}\n"), out.append)
    first, second = Running(1, "a"), Running(1, "b")

    for task, words in ((first, "one"), (first, " two"), (second, "three")):
        view.said(task, words)
    view.close()

    assert "".join(out) == "a> one two\nb> three\n"


@pytest.mark.parametrize(("node", "mark_of_it"), [(mark("x"), "✓ step 1: x done"), (fail, "✗ step 1: x failed")])
def test_a_screen_with_rich_marks_what_has_ended(node: Callable[[State], State], mark_of_it: str) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)
    view = RichView(console)

    shown_by(view, chain("x", x=node))
    view.close()

    assert mark_of_it in console.file.getvalue()  # type: ignore[attr-defined]  # it is the one from above
