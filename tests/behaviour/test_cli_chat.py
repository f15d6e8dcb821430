"""`pregel chat`: what it shows, what it takes for an answer, and how it leaves the thread."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

import pregel
from pregel.cli import main

TOP = Path(pregel.__file__).parents[1]
AGENTS = """
    from pathlib import Path

    from pregel import interrupt
    from pregel.agents import ScriptedModel, create_agent, tool
    from pregel.agents.middleware import HumanInTheLoopMiddleware
    from pregel.agents.models import call_tool, call_tools
    from pregel.agents.models.scripted import Turn
    from pregel.messages import AIMessageChunk
    from pregel.graph import START, StateGraph

    @tool
    def pay(amount: int) -> str:
        "Pay."
        if amount == 13 and not Path("stopped").exists():
            Path("stopped").touch()
            raise KeyboardInterrupt
        return f"paid {amount}"

    @tool
    def ask(question: str) -> str:
        "Ask."
        return f"they said {interrupt(question)!r}"

    @tool
    def fail() -> str:
        "Fail."
        raise ValueError("no money")

    def script(request):
        last = request.messages[-1]
        if last.type == "tool":
            return f"So: {last.text}"
        word, _, rest = last.text.partition(" ")
        match word:
            case "pay":
                return call_tools(*(call_tool("pay", {"amount": int(one)}) for one in rest.split()))
            case "ask":
                return call_tool("ask", {"question": rest})
            case "fail":
                return call_tool("fail")
            case "break":
                return ConnectionError("the model is gone")
            case "half":
                return Turn(chunks=[AIMessageChunk("Half of "), AIMessageChunk("it")], error=ConnectionError("gone"))
            case "escape":
                return "a\\x1b[2Jb"
        return f"You said {last.text!r} in turn {sum(one.type == 'human' for one in request.messages)}."

    async def awaited(state):
        return {"messages": [("ai", "from a node that awaits")]}

    tools = [pay, ask, fail]
    agent = create_agent(ScriptedModel(script), tools, middleware=[HumanInTheLoopMiddleware({"pay": True})])
    each = create_agent(
        ScriptedModel(script), tools, middleware=[HumanInTheLoopMiddleware({"pay": True}, interrupt_mode="per_call")]
    )
    free = create_agent(ScriptedModel(script), tools)
    awaiting = StateGraph(agent.builder.state_schema).add_node(awaited).add_edge(START, "awaited")
    other = StateGraph(dict).add_node("nothing", lambda state: None).add_edge(START, "nothing")
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of a user with agents in helpers.py, which is forgotten again."""
    (tmp_path / "helpers.py").write_text(dedent(AGENTS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield tmp_path
    sys.modules.pop("helpers", None)


Chat = Callable[..., tuple[int, str, str]]


@pytest.fixture
def chat(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Chat:
    """The exit code, stdout and stderr of a chat in which these lines are typed."""

    def talk(*lines: str, agent: str = "agent") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        code = main(["chat", f"helpers:{agent}", "--thread", "t"])
        return code, *capsys.readouterr()

    return talk


def test_a_conversation_goes_on_in_the_next_process(chat: Chat) -> None:
    assert chat("hello", agent="free")[:2] == (
        0,
        "Thread t in pregel.db.\nYou said 'hello' in turn 1.\nGo on with: pregel chat helpers:free --thread t\n",
    )
    assert "You said 'again' in turn 2.\n" in chat("again", agent="free")[1]


def test_tool_calls_and_their_results_are_shown(chat: Chat) -> None:
    code, out, _ = chat("pay 5", "fail", agent="free")

    assert 0 == code
    assert '[pay] {"amount": 5}\n  = paid 5\nSo: paid 5\n' in out
    assert "[fail] {}\n  failed: no money\n" in out


@pytest.mark.parametrize("agent", ["agent", "each"])
def test_approvals_are_asked_and_obeyed(chat: Chat, agent: str) -> None:
    lines = ("pay 1 2 3", "yes", 'edit {"amount": 7}', "reject too dear", "pay 4", "respond it is paid")
    code, out, err = chat(*lines, agent=agent)

    assert (0, "") == (code, err)
    assert "Approve pay?\n  amount: 3\n" in out
    assert out.count("= paid 1\n") == 1
    assert 'What ran: pay with {"amount": 7}. paid 7\n' in out
    assert "paid 2" not in out
    assert "paid 3" not in out
    assert "So: too dear\n" in out
    assert "So: it is paid\n" in out


def test_what_is_no_decision_is_asked_again(chat: Chat) -> None:
    code, out, err = chat("pay 1", "perhaps", "edit 3", "respond", "edit []", "approve")

    assert (0, 4) == (code, err.count("pregel: "))
    assert "'perhaps' is no decision here." in err
    assert "So: paid 1\n" in out


def test_a_question_that_is_left_open_is_asked_by_the_next_chat(chat: Chat) -> None:
    assert 3 == chat("pay 5")[0]

    code, out, _ = chat("approve")

    assert 0 == code
    assert out.startswith("Thread t in pregel.db.\nApprove pay?\n  amount: 5\n")
    assert "So: paid 5\n" in out


@pytest.mark.parametrize(("typed", "heard"), [("7", "'7'"), ('{"sum": 7}', "{'sum': 7}"), ("{ no", "'{ no'")])
def test_other_questions_take_a_text_or_json(chat: Chat, typed: str, heard: str) -> None:
    _, out, _ = chat("ask How much?", typed)

    assert "It asks:\n  How much?\n" in out
    assert f"So: they said {heard}\n" in out
    assert 1 == out.count("[ask]")


def test_a_failed_run_is_told_and_leaves_its_exit_code(chat: Chat) -> None:
    code, out, err = chat("break", "hello")
    assert (0, True) == (code, "ConnectionError: the model is gone" in err)
    assert "You said 'hello' in turn 2." in out

    assert 1 == chat("break")[0]


def test_words_show_before_the_answer_is_whole(chat: Chat) -> None:
    code, out, _ = chat("half", agent="free")

    assert 1 == code
    assert "Half of it" in out


def test_a_run_that_was_cut_off_goes_on_with_an_empty_line(chat: Chat) -> None:
    assert 130 == chat("pay 13", agent="free")[0]

    code, out, _ = chat("", "", agent="free")

    assert 0 == code
    assert "Its last run did not end. An empty line goes on with it.\n" in out
    assert "So: paid 13\n" in out


def test_nothing_that_a_model_says_moves_the_cursor(chat: Chat) -> None:
    assert "a\\x1b[2Jb\n" in chat("escape")[1]


def test_a_graph_that_awaits_is_talked_to_as_well(chat: Chat) -> None:
    assert "from a node that awaits\n" in chat("hello", agent="awaiting")[1]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "needs an agent or a model"),
        (["helpers:agent", "--model", "openai:gpt"], "not both"),
        (["helpers:other"], "no `messages`"),
        (["--model", "nobody:gpt"], "No adapter"),
    ],
)
def test_a_wrong_call_is_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["chat", *arguments])
    assert said in capsys.readouterr().err


def test_on_a_terminal_it_prompts(here: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-W", "error", "-m", "pregel.cli", "chat", "helpers:agent", "--thread", "t"]
    environment = {**os.environ, "PYTHONPATH": str(TOP), "TERM": "dumb"}
    with subprocess.Popen(command, cwd=here, env=environment, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        heard = _until(ours, "> ")
        os.write(ours, b"pay 5\n")
        heard += _until(ours, "decision> ")
        os.write(ours, b"approve\n")
        heard += _until(ours, "So: paid 5")
        os.write(ours, b"\x04")
        heard += _until(ours, "Go on with")
        assert 0 == process.wait(60), heard
    os.close(ours)
    assert "Type one of: approve, edit" in heard


def _until(terminal: int, mark: str) -> str:
    """What the terminal shows up to a mark."""
    heard = b""
    while mark.encode() not in heard:
        heard += os.read(terminal, 1000)
    return heard.decode(errors="replace")  # the last character may not be whole yet
