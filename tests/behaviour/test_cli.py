"""The `pregel` command on graphs of a user: what it prints, what it keeps, and its exit codes."""

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

GRAPHS = """
    import operator
    import signal
    from pathlib import Path
    from typing import Annotated, TypedDict

    from pregel.func import entrypoint
    from pregel.graph import END, START, StateGraph
    from pregel.types import interrupt

    class State(TypedDict, total=False):
        total: int
        log: Annotated[list, operator.add]

    def add(state):
        return {"total": state["total"] + 1, "log": ["added"]}

    def ask(state):
        return {"log": [f"the answer was {interrupt({'question': 'Pay?', 'total': state['total']})}"]}

    def fail(state):
        raise ValueError("no money")

    def stop_once(state):
        if not Path("stopped").exists():
            Path("stopped").touch()
            signal.raise_signal(signal.SIGINT)  # asks it to drain
            signal.raise_signal(signal.SIGINT)
        return {"log": ["went on"]}

    def drain(state):
        signal.raise_signal(signal.SIGTERM)
        return {"log": ["drained"]}

    def chat(state):
        print("hello from a node")
        return {"log": ["chatted"]}

    async def wait(state):
        return {"log": ["awaited"]}

    def two(name, node):
        builder = StateGraph(State)
        builder.add_node("add", add)
        builder.add_node(name, node)
        builder.add_edge(START, "add")
        builder.add_edge("add", name)
        builder.add_edge(name, END)
        return builder

    adding = StateGraph(State)
    adding.add_node("add", add)
    adding.add_edge(START, "add")
    adding.add_edge("add", END)

    asking = two("ask", ask)
    compiled = two("ask", ask).compile()
    waiting = two("then", add).compile(interrupt_before=["then"])
    failing = two("fail", fail)
    stopping = two("stop", stop_once)
    draining = StateGraph(State).add_sequence([drain, add]).add_edge(START, "drain")

    @entrypoint()
    def flow(total):
        return interrupt("Pay?") + total

    chatting = two("chat", chat)
    awaiting = two("wait", wait)
    around = two("inner", two("wait", wait).compile())
    both = StateGraph(State)
    both.add_node("left", ask)
    both.add_node("right", ask)
    both.add_edge(START, "left")
    both.add_edge(START, "right")
    broken = StateGraph(State)
    broken.add_edge(START, "nowhere")
    number = 7

    class Holder:
        graph = adding
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of a user, with graphs in shop.py; modules that are imported from it are forgotten again."""
    (tmp_path / "shop.py").write_text(dedent(GRAPHS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


Captured = pytest.CaptureFixture[str]


def told(capsys: Captured) -> Any:
    return json.loads(capsys.readouterr().out)


def run(graph: str = "shop:adding", total: int = 1, *more: str) -> int:
    return main(["run", graph, "--input", json.dumps({"total": total}), "--thread", "t", *more])


# -- run --------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_a_run_prints_its_values_and_ends_with_0(capsys: Captured) -> None:
    assert 0 == run(total=10)

    assert 'total: 11\nlog: ["added"]\n' == capsys.readouterr().out


def test_a_run_is_kept_in_pregel_db_of_the_current_directory(here: Path) -> None:
    run()

    assert (here / "pregel.db").exists()


def test_a_run_is_kept_where_db_says(here: Path, capsys: Captured) -> None:
    assert 0 == run("shop:adding", 1, "--db", "other.db")

    assert (here / "other.db").exists()
    assert not (here / "pregel.db").exists()


@pytest.mark.parametrize("source", ["@input.json", "-"])
def test_the_input_may_come_from_a_file_or_from_stdin(here: Path, source: str) -> None:
    (here / "input.json").write_text('{"total": 20}')
    command = [sys.executable, "-m", "pregel.cli", "run", "shop:adding", "--input", source, "--thread", "t", "--json"]
    done = subprocess.run(command, input='{"total": 20}', capture_output=True, text=True, env=environment(), check=True)

    assert {"total": 21, "log": ["added"]} == json.loads(done.stdout)["values"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("graph", ["shop:asking", "shop:compiled"])
def test_a_question_ends_the_command_with_3_and_is_shown(graph: str, capsys: Captured) -> None:
    assert 3 == run(graph)

    out = capsys.readouterr().out
    assert "question: Pay?" in out
    assert f"Go on with: pregel resume {graph} --thread t --answer JSON" in out


@pytest.mark.usefixtures("here")
def test_a_breakpoint_ends_the_command_with_3_and_resume_goes_on(capsys: Captured) -> None:
    assert 3 == run("shop:waiting")
    assert "It is paused before then." in capsys.readouterr().out

    assert 0 == main(["resume", "shop:waiting", "--thread", "t"])
    assert "total: 3" in capsys.readouterr().out


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("graph", ["shop:awaiting", "shop:around"])
def test_a_graph_with_async_nodes_is_awaited(graph: str, capsys: Captured) -> None:
    assert 0 == run(graph, 1, "--json")

    assert "awaited" == told(capsys)["values"]["log"][-1]


@pytest.mark.usefixtures("here")
def test_a_failure_ends_the_command_with_1_and_shows_where(capsys: Captured) -> None:
    assert 1 == run("shop:failing")

    err = capsys.readouterr().err
    assert 'raise ValueError("no money")' in err
    assert "ValueError: no money" in err


@pytest.mark.usefixtures("here")
def test_json_tells_scripts_how_a_run_came_out(capsys: Captured) -> None:
    run("shop:asking", 1, "--json")
    paused = told(capsys)
    run("shop:failing", 1, "--json")
    failed = told(capsys)

    assert ("interrupted", "failed") == (paused["status"], failed["status"])
    assert ["ask"] == paused["next"]
    assert [{"question": "Pay?", "total": 2}] == [one["value"] for one in paused["interrupts"]]
    assert {"total": 2, "log": ["added"]} == paused["values"]
    assert {"type": "ValueError", "message": "no money"} == failed["error"]


@pytest.mark.usefixtures("here")
def test_what_a_node_prints_is_not_mixed_into_the_json(capsys: Captured) -> None:
    assert 0 == run("shop:chatting", 1, "--json")

    printed = capsys.readouterr()
    assert "idle" == json.loads(printed.out)["status"]
    assert "hello from a node\n" == printed.err


@pytest.mark.usefixtures("here")
def test_a_thread_that_somebody_else_runs_ends_the_command_with_75(capsys: Captured) -> None:
    with SqliteSaver.from_conn_string("pregel.db") as saver:
        Run(saver, "t").claim()

        assert 75 == run("shop:adding")

    assert "Thread 't' is being run by process" in capsys.readouterr().err


# -- resume -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_an_answer_goes_on_with_the_run(capsys: Captured) -> None:
    run("shop:asking")
    capsys.readouterr()

    assert 0 == main(["resume", "shop:asking", "--thread", "t", "--answer", '"yes"', "--json"])
    assert ["added", "the answer was yes"] == told(capsys)["values"]["log"]


@pytest.mark.usefixtures("here")
def test_resume_without_an_answer_asks_again(capsys: Captured) -> None:
    run("shop:asking")

    assert 3 == main(["resume", "shop:asking", "--thread", "t"])
    assert "question: Pay?" in capsys.readouterr().out


@pytest.mark.usefixtures("here")
def test_several_questions_are_answered_by_their_ids(capsys: Captured) -> None:
    run("shop:both", 1, "--json")
    questions = told(capsys)["interrupts"]
    answers = {one["id"]: number for number, one in enumerate(questions)}

    assert 2 == len(answers)
    assert 2 == main(["resume", "shop:both", "--thread", "t", "--answer", '"yes"'])
    assert 0 == main(["resume", "shop:both", "--thread", "t", "--answer", json.dumps(answers)])
    assert "the answer was 0" in capsys.readouterr().out


@pytest.mark.usefixtures("here")
def test_an_answer_that_nobody_waits_for_is_refused(capsys: Captured) -> None:
    run("shop:adding")

    assert 2 == main(["resume", "shop:adding", "--thread", "t", "--answer", "1"])
    assert "waits for no answer" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_a_finished_thread_is_resumed_to_the_same_values(capsys: Captured) -> None:
    run("shop:adding")

    assert 0 == main(["resume", "shop:adding", "--thread", "t"])
    assert "total: 2" in capsys.readouterr().out


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("graph", ["shop:adding", "shop:awaiting"])
def test_resume_says_that_a_thread_had_ended_before_and_that_nothing_ran(graph: str, capsys: Captured) -> None:
    run(graph, 1, "--json")
    ended = told(capsys)

    assert 0 == main(["resume", graph, "--thread", "t", "--json"])
    again = capsys.readouterr()
    assert "pregel: Thread 't' had ended before: nothing ran. `pregel run` gives it a new input.\n" == again.err
    assert {**ended, "ran": False} == json.loads(again.out)
    assert {"status": "idle", "can_resume": False, "ran": True}.items() <= ended.items()


# -- a run that is drained --------------------------------------------------------------------------------------------

GOES_ON = "pregel resume shop:draining --thread t"


@pytest.mark.usefixtures("here")
def test_a_drained_run_says_so_and_prints_its_values_as_they_stand(capsys: Captured) -> None:
    assert 3 == run("shop:draining")

    printed = capsys.readouterr()
    said = f"The run was drained: SIGTERM. What it did is kept: `{GOES_ON}` goes on from there."
    assert f"pregel: {said}\n" == printed.err
    shown = f'total: 1\nlog: ["drained"]\n\nIt is paused before add.\nGo on with: {GOES_ON}\n'
    assert shown == printed.out


@pytest.mark.usefixtures("here")
def test_a_drained_run_is_told_as_data(capsys: Captured) -> None:
    assert 3 == run("shop:draining", 1, "--json")

    printed = capsys.readouterr()
    assert f"`{GOES_ON}`" in printed.err
    assert {
        "thread": "t",
        "status": "idle",
        "reason": "SIGTERM",
        "can_resume": True,
        "ran": True,
        "values": {"total": 1, "log": ["drained"]},
        "next": ["add"],
        "interrupts": [],
    } == json.loads(printed.out)
    assert 0 == main(["resume", "shop:draining", "--thread", "t", "--json"])
    assert {"total": 2, "log": ["drained", "added"]}.items() <= told(capsys)["values"].items()


@pytest.mark.usefixtures("here")
def test_an_entrypoint_without_a_value_prints_none(capsys: Captured) -> None:
    assert 3 == run("shop:flow")

    assert capsys.readouterr().out.startswith("\nIt waits for an answer:\n")


# -- threads, history, show -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_threads_are_listed_with_how_they_stand(capsys: Captured) -> None:
    run("shop:asking")
    main(["run", "shop:adding", "--input", "{}", "--thread", "never"])
    main(["run", "shop:adding", "--input", '{"total": 1}', "--thread", "done"])
    capsys.readouterr()

    assert 0 == main(["threads", "--json"])
    listed = {row["thread"]: row["status"] for row in told(capsys)}
    assert {"t": "interrupted", "never": "failed", "done": "idle"} == listed

    assert 0 == main(["threads"])
    assert capsys.readouterr().out.startswith("thread")


@pytest.mark.usefixtures("here")
def test_history_lists_checkpoints_newest_first(capsys: Captured) -> None:
    run("shop:adding")
    capsys.readouterr()

    assert 0 == main(["history", "--thread", "t", "--json"])
    assert [1, 0, -1] == [entry["step"] for entry in told(capsys)]
    assert 0 == main(["history", "--thread", "t", "--limit", "2", "--graph", "shop:adding", "--json"])
    assert [[], ["add"]] == [entry["next"] for entry in told(capsys)]
    assert 0 == main(["history", "--thread", "t"])
    header, first, *_ = capsys.readouterr().out.splitlines()
    assert ["step", "source", "holds", "checkpoint", "written", "at"] == header.split()
    assert first.startswith("1     loop    total, log")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("graph", [[], ["--graph", "shop:asking"]])
def test_show_tells_values_and_question(graph: list[str], capsys: Captured) -> None:
    run("shop:asking")
    capsys.readouterr()

    assert 0 == main(["show", "--thread", "t", *graph])
    out = capsys.readouterr().out
    assert "thread t: interrupted" in out
    assert "total: 2" in out
    assert "question: Pay?" in out
    assert 0 == main(["show", "--thread", "t", "--json", *graph])
    shown = told(capsys)
    assert {"total": 2, "log": ["added"]} == shown["values"]
    assert [{"question": "Pay?", "total": 2}] == [one["value"] for one in shown["questions"]]


@pytest.mark.usefixtures("here")
def test_show_tells_the_error_of_a_failed_run(capsys: Captured) -> None:
    run("shop:failing")

    assert 0 == main(["show", "--thread", "t"])
    assert "no money" in capsys.readouterr().out


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("graph", [[], ["--graph", "shop:adding"]])
def test_show_reads_an_earlier_checkpoint(graph: list[str], capsys: Captured) -> None:
    run("shop:adding")
    main(["history", "--thread", "t", "--json"])
    earlier = json.loads(capsys.readouterr().out.partition("\n[")[2].join(["[", ""]))[1]["checkpoint"]

    assert 0 == main(["show", "--thread", "t", "--checkpoint", earlier, "--json", *graph])
    assert 1 == told(capsys)["values"]["total"]


@pytest.mark.usefixtures("here")
def test_reading_imports_nothing_of_the_user_and_writes_nothing(here: Path, capsys: Captured) -> None:
    run("shop:adding")
    (here / "shop.py").unlink()
    sys.modules.pop("shop")

    assert 0 == main(["show", "--thread", "t"])
    assert 0 == main(["history", "--thread", "t"])
    assert 2 == main(["show", "--thread", "other"])
    assert 0 == main(["threads", "--json"])
    assert ["t"] == [row["thread"] for row in json.loads(capsys.readouterr().out.partition("\n[")[2].join(["[", ""]))]


# -- wrong calls ------------------------------------------------------------------------------------------------------

RUN = ["--input", "{}", "--thread", "t"]
ON_T = ["--db", "a.db", "--thread", "t"]
WRONG_CALLS = {
    "no module": (["run", "nowhere:graph", *RUN], "There is no module 'nowhere'"),
    "no module inside": (["run", "shop.deep:graph", *RUN], "There is no module 'shop"),
    "a file": (["run", "shop.py:graph", *RUN], "Name a module, not a file"),
    "a file here": (["run", "./shop.py:graph", *RUN], "Name a module, not a file"),
    "a module that fails": (["run", "bad:graph", *RUN], "ZeroDivisionError"),
    "a module that imports another": (["run", "lost:graph", *RUN], "No module named 'not_there'"),
    "no attribute": (["run", "shop:nothing", *RUN], "shop has no attribute 'nothing'"),
    "no graph": (["run", "shop:number", *RUN], "shop:number is no graph; it is of type int"),
    "the graphs there are": (["run", "shop:number", *RUN], "adding, around, asking"),
    "no colon": (["run", "shop", *RUN], "'shop' names no graph"),
    "a graph that does not compile": (["run", "shop:broken", *RUN], "shop:broken does not compile"),
    "no JSON": (["run", "shop:adding", "--input", "{total: 1}", "--thread", "t"], "--input is not JSON"),
    "no input file": (["run", "shop:adding", "--input", "@none.json", "--thread", "t"], "Cannot read none.json"),
    "no JSON in a file": (["run", "shop:adding", "--input", "@shop.py", "--thread", "t"], "shop.py is not JSON"),
    "no input for a graph": (["run", "shop:adding", "--input", "[1]", *ON_T], "InvalidUpdateError"),
    "no thread id": (["run", "shop:adding", "--input", "{}", *ON_T[:-1], "a\udc80"], "half a surrogate pair"),
    "no thread": (["run", "shop:adding", "--input", "{}"], "--thread"),
    "no input": (["run", "shop:adding", "--thread", "t"], "--input"),
    "no command": ([], "COMMAND"),
    "no directory": (["run", "shop:adding", *RUN, "--db", "none/a.db"], "There is no directory none"),
    "no database": (["threads", "--db", "none.db"], "There is no database none.db"),
    "no database to resume": (["resume", "shop:adding", "--thread", "t", "--db", "none.db"], "There is no database"),
    "a file that is no database": (["threads", "--db", "shop.py"], "shop.py is not a SQLite database"),
    "a directory": (["threads", "--db", "."], ". is a directory"),
    "no thread to resume": (["resume", "shop:adding", "--thread", "x", "--db", "a.db"], "There is no thread 'x'"),
    "no thread to show": (["show", "--thread", "x", "--db", "a.db"], "There is no thread 'x'"),
    "no history": (["history", "--thread", "x", "--db", "a.db"], "There is no thread 'x'"),
    "no thread to prune": (["prune", "--thread", "x", "--db", "a.db"], "There is no thread 'x'"),
    "no thread to verify": (["verify", "--thread", "x", "--db", "a.db"], "There is no thread 'x'"),
    "nothing to prune": (["prune", "--db", "a.db"], "--thread"),
    "no time": (["prune", "--idle-for", "a while", "--db", "a.db"], "is no time"),
    "no checkpoint": (
        ["show", "--thread", "t", "--db", "a.db", "--checkpoint", "1ef00000-0000-6000-8000-000000000000"],
        "has no checkpoint",
    ),
    "no limit": (["history", "--thread", "t", "--db", "a.db", "--limit", "0"], "--limit is 0"),
    "no file to review": (["demo", "review", "shop.py", "none.py"], "Cannot read none.py"),
}


@pytest.mark.parametrize(("call", "said"), WRONG_CALLS.values(), ids=WRONG_CALLS.keys())
def test_a_wrong_call_ends_with_2_and_says_why(call: list[str], said: str, here: Path, capsys: Captured) -> None:
    (here / "bad.py").write_text("1 / 0")
    (here / "lost.py").write_text("import not_there")
    run("shop:adding", 1, "--db", "a.db")
    capsys.readouterr()

    assert 2 == main(call)
    assert said in capsys.readouterr().err
    assert {"a.db", "shop.py", "bad.py", "lost.py"} >= {path.name for path in here.glob("*.*[by]")}


def test_a_graph_may_be_an_attribute_of_an_attribute(here: Path) -> None:
    assert 0 == run("shop:Holder.graph")


# -- as a process -----------------------------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    root = str(Path(__file__).parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["--version"])
    assert f"pregel {pregel.__version__}\n" == capsys.readouterr().out


def test_help_loads_no_engine() -> None:
    code = "import sys; from pregel.cli import main; main(['--help']); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True)

    assert "exit codes:" in done.stdout
    loaded = done.stdout.splitlines()[-1]
    assert "'pregel.cli'" in loaded
    assert "'pregel.engine" not in loaded
    assert "'pregel.graph" not in loaded
    assert "'msgpack" not in loaded


def test_a_reader_that_has_seen_enough_is_no_failure(here: Path) -> None:
    run("shop:adding")
    command = f"{sys.executable} -m pregel.cli history --thread t | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment(), check=True)

    assert ("0\n", "") == (done.stdout, done.stderr)


def test_a_run_that_ctrl_c_stopped_is_resumed(here: Path, capsys: Captured) -> None:
    command = [sys.executable, "-m", "pregel.cli", "run", "shop:stopping", "--input", '{"total": 1}', "--thread", "t"]
    stopped = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job inherits it as ignored
    )

    assert 130 == stopped.returncode
    assert "Stopped by Ctrl-C" in stopped.stderr
    assert 0 == main(["resume", "shop:stopping", "--thread", "t", "--json"])
    assert ["added", "went on"] == told(capsys)["values"]["log"]
