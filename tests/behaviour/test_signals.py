"""SIGTERM and Ctrl-C drain at the next barrier; a second one is as abrupt as ever; a host's handlers come back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.checkpoint.standing import info_of
from pregel.errors import GraphDrained, InvalidInputError
from pregel.signals import drain_on_signals

from .conftest import Runner
from .marks import Saver, Thread, chain

ROOT = Path(__file__).parents[2]


def signalling(*numbers: int) -> Any:
    """A node in which these signals reach the process, the first time it runs."""
    left = list(numbers)

    def node(state: Any) -> dict[str, Any]:
        while left:
            number = left.pop()
            if threading.current_thread() is threading.main_thread():
                signal.raise_signal(number)
            else:
                signal.pthread_kill(threading.main_thread().ident or 0, number)
        return {"a": ["signalled"]}

    return node


@pytest.mark.acceptance("S0-13")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_run_after_its_step(run: Runner, saver: Saver, thread: Thread, number: int) -> None:
    app = chain("one", "two", one=signalling(number)).compile(checkpointer=saver)
    before = signal.getsignal(number)

    with drain_on_signals() as control, pytest.raises(GraphDrained, match=signal.Signals(number).name):
        run.invoke(app, {"a": []}, thread("1"), control=control)

    assert signal.getsignal(number) == before
    assert run.state(app, thread("1")).values == {"a": ["signalled"]}
    assert run.invoke(app, None, thread("1"))["a"] == ["signalled", "two"]


@pytest.mark.parametrize(("number", "error"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)])
def test_a_second_signal_is_as_abrupt_as_ever(thread: Thread, number: int, error: type[BaseException]) -> None:
    app = chain("zero", "one", "two", one=signalling(number, number)).compile(checkpointer=InMemorySaver())

    with drain_on_signals() as control, pytest.raises(error):
        app.invoke({"a": []}, thread("1"), control=control)

    assert app.get_state(thread("1")).values == {"a": ["zero"]}
    assert app.invoke(None, thread("1"))["a"] == ["zero", "signalled", "two"]


def test_a_hosts_own_handlers_hear_everything_outside_of_the_block(thread: Thread) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        app = chain("one", one=signalling(signal.SIGTERM)).compile(checkpointer=InMemorySaver())
        app.invoke({"a": []}, thread("1"))
        with drain_on_signals(signal.SIGINT):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)

    assert heard == [signal.SIGTERM, signal.SIGTERM]


def test_on_another_thread_it_is_a_named_error() -> None:
    errors: list[Exception] = []

    def enter() -> None:
        try:
            with drain_on_signals():
                pass
        except InvalidInputError as error:
            errors.append(error)

    other = threading.Thread(target=enter)
    other.start()
    other.join()

    assert "main thread" in str(errors[0])


GRAPH = """
import sys
from typing import TypedDict
from pregel.graph import START, StateGraph

class State(TypedDict, total=False):
    n: int

def first(state):
    print("in the node", flush=True)
    sys.stdin.readline()
    return {"n": 1}

graph = StateGraph(State).add_node("first", first).add_node("second", lambda state: {"n": state["n"] + 1})
graph.add_edge(START, "first").add_edge("first", "second")
"""


def test_the_command_stops_between_two_steps_and_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(GRAPH)
    command = [sys.executable, "-m", "pregel.cli", "run", "slow:graph", "--input", "{}", "--thread", "t"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, **pipes) as child:
        assert child.stdout is not None
        while "in the node" not in child.stdout.readline():
            pass
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate("go\n", timeout=60)

    go_on = "pregel resume slow:graph --thread t"
    drained = f"pregel: The run was drained: SIGTERM. What it did is kept: `{go_on}` goes on from there.\n"
    assert (3, drained) == (child.returncode, err)
    assert f"n: 1\n\nIt is paused before second.\nGo on with: {go_on}\n" == out
    with SqliteSaver.from_conn_string(tmp_path / "pregel.db") as saver:
        info = info_of(saver.load("t", []).thread)
    assert ("idle", True) == (info.status, info.can_resume)
    assert "SIGTERM" in info.reason


STANDING = """
import asyncio, os, sys
from pregel.graph import START, MessagesState, StateGraph
from pregel.types import interrupt

def told():
    print("in the node", flush=True)
    with open(os.environ["GATE"]) as gate:  # blocks until the test opens it
        gate.read()

def ask(state):
    return {"messages": [("user", interrupt("go on?"))]} if os.environ.get("ASKS") else {}

def first(state):
    told()
    return {"messages": [("ai", "first")]}

async def afirst(state):
    await asyncio.to_thread(told)
    return {"messages": [("ai", "first")]}

def built(node):
    graph = StateGraph(MessagesState).add_node("ask", ask).add_node("first", node)
    graph.add_node("second", lambda state: {"messages": [("ai", "second")]})
    return graph.add_edge(START, "ask").add_edge("ask", "first").add_edge("first", "second")

graph, agraph = built(first), built(afirst)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("graph", ["graph", "agraph"])
@pytest.mark.parametrize("command", ["run", "resume", "chat"])
def test_every_command_that_runs_a_graph_stops_between_two_steps(
    tmp_path: Path, command: str, graph: str, number: int
) -> None:
    (tmp_path / "standing.py").write_text(STANDING)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT))), "GATE": str(gate)}
    start = [sys.executable, "-m", "pregel.cli"]
    place: dict[str, Any] = {"cwd": tmp_path, "env": environment, "text": True}
    arguments = [f"standing:{graph}", "--thread", "t"]
    if command == "resume":
        asked = [*start, "run", *arguments, "--input", "{}"]
        place["env"] = {**environment, "ASKS": "1"}
        assert subprocess.run(asked, capture_output=True, check=False, **place).returncode == 3
        arguments += ["--answer", '"yes"']
    elif command == "run":
        arguments += ["--input", "{}"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*start, command, *arguments], **place, **pipes) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        if command == "chat":
            child.stdin.write("hello\n")
            child.stdin.flush()
        while "in the node" not in (line := child.stdout.readline()):
            assert line, child.stderr and child.stderr.read()
        child.send_signal(number)
        gate.write_text("go")
        out, err = child.communicate(timeout=60)

    named = signal.Signals(number).name
    assert 3 == child.returncode
    assert ("" if command == "chat" else f"pregel: The run was drained: {named}. ") == err.partition("What it did")[0]
    assert "Go on with: pregel" in out
    with SqliteSaver.from_conn_string(tmp_path / "pregel.db") as saver:
        info = info_of(saver.load("t", []).thread)
    assert ("idle", True, signal.Signals(number).name) == (info.status, info.can_resume, info.reason)
