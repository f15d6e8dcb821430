"""`pregel rewind`: a thread that failed is made ready to go on, in the words of the command."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from pregel.cli import main

GRAPH = """
    from pathlib import Path
    from typing import TypedDict

    from pregel import START, StateGraph

    class State(TypedDict, total=False):
        done: str

    def load(state):
        if not Path("mended").exists():
            raise ValueError("no such warehouse")
        return {"done": "loaded"}

    def lose(key):
        raise ConnectionError("sent, and the answer was lost")

    def send(state, runtime):
        return {"done": runtime.effect("mail", lose)}

    graph = StateGraph(State).add_node("load", load).add_edge(START, "load")
    mail = StateGraph(State).add_node("send", send).add_edge(START, "send")
"""
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> Path:
    """The current directory, with a thread that failed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "rewound_graph.py").write_text(dedent(GRAPH))
    assert 1 == main(["run", "rewound_graph:graph", "--thread", "7", "--input", "{}"])
    capsys.readouterr()
    return tmp_path


def rewind(*more: str) -> int:
    return main(["rewind", "rewound_graph:graph", "--thread", "7", *more])


def test_a_thread_that_failed_is_rewound_and_resumed(failed: Path, capsys: Captured) -> None:
    (failed / "mended").touch()
    assert 0 == rewind("--reason", "the warehouse is there", "--operator", "ann")
    first = capsys.readouterr().out
    assert 0 == rewind("--reason", "again", "--json")
    again = json.loads(capsys.readouterr().out)
    assert 0 == main(["resume", "rewound_graph:graph", "--thread", "7"])

    assert "Thread '7' is rewound. `pregel resume` goes on with it." in first
    assert "load failed after 1 attempt: ValueError('no such warehouse')" in first
    told = again["repeated"], again["operator"], again["reason"], again["failed"][0]["node"]
    assert (True, "ann", "the warehouse is there", "load") == told
    assert "done: loaded\n" == capsys.readouterr().out


def test_what_has_not_failed_is_a_wrong_call(failed: Path, capsys: Captured) -> None:
    (failed / "mended").touch()
    main(["resume", "rewound_graph:graph", "--thread", "7"])
    capsys.readouterr()

    assert 2 == rewind("--reason", "x")
    assert "has come to its end" in capsys.readouterr().err
    assert 2 == main(["rewind", "rewound_graph:graph", "--thread", "8", "--reason", "x"])
    assert "There is no thread '8'" in capsys.readouterr().err


@pytest.mark.usefixtures("failed")
def test_what_may_have_happened_is_listed_and_settled(capsys: Captured) -> None:
    def settle(*more: str) -> tuple[int, str]:
        code = main(["settle", "rewound_graph:mail", "--thread", "8", *more])
        return code, "".join(capsys.readouterr())

    main(["run", "rewound_graph:mail", "--thread", "8", "--input", "{}"])
    code = main(["resume", "rewound_graph:mail", "--thread", "8"])
    failure = capsys.readouterr().err
    listed = settle()
    unknown = settle("--effect", "letter", "--retry")
    unsaid = settle("--effect", "mail")
    settled = settle("--effect", "mail", "--result", '"sent"')
    nothing = settle()
    resumed = main(["resume", "rewound_graph:mail", "--thread", "8"])

    assert (1, True) == (code, "OutcomeUnknownError" in failure)
    assert (0, True) == (listed[0], "mail" in listed[1])
    assert (2, True) == (unknown[0], "No effect 'letter' waits" in unknown[1])
    assert 2 == unsaid[0]
    assert (0, "'mail' of send is settled. `pregel resume` goes on with the thread.\n") == settled
    assert (0, "Thread '8' has begun nothing whose outcome is unknown.\n") == nothing
    assert (0, "done: sent\n") == (resumed, capsys.readouterr().out)


@pytest.mark.usefixtures("failed")
def test_settling_tells_scripts_what_it_did(capsys: Captured) -> None:
    main(["run", "rewound_graph:mail", "--thread", "8", "--input", "{}"])
    capsys.readouterr()
    assert 0 == main(["settle", "rewound_graph:mail", "--thread", "8", "--effect", "mail", "--retry", "--json"])

    told = json.loads(capsys.readouterr().out)
    assert (["mail"], []) == ([one["key"] for one in told["settled"]], told["waiting"])
