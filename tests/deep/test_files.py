"""An agent with files: what its tools tell, where the files are, and what happens to long texts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pregel.agents import create_agent, tool
from pregel.agents.deep import create_deep_agent
from pregel.agents.deep.backends import Backend, CompositeBackend, FilesystemBackend, LocalShellBackend, StateBackend
from pregel.agents.deep.filesystem import FilesystemMiddleware
from pregel.agents.deep.permissions import FilesystemPermission
from pregel.agents.models import ScriptedModel, call_tool, call_tools
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import DefinitionError, OutsideRunError
from pregel.messages import HumanMessage, ToolMessage

Play = Callable[..., dict[str, Any]]


@pytest.fixture(params=["sync", "async"])
def invoke(request: pytest.FixtureRequest) -> Callable[..., Any]:
    if request.param == "sync":
        return lambda agent, *args: agent.invoke(*args)
    return lambda agent, *args: asyncio.run(agent.ainvoke(*args))


@pytest.fixture
def play(invoke: Callable[..., Any]) -> Play:
    """Plays tool calls, one answer each (or several in a tuple), and gives the final state."""

    def play(*calls: Any, files: Any = None, tools: Any = (), **options: Any) -> dict[str, Any]:
        answers = [call_tools(*call) if isinstance(call, tuple) else call for call in calls]
        agent = create_agent(
            ScriptedModel([*answers, "done"]), list(tools), middleware=[FilesystemMiddleware(**options)]
        )
        given = {"messages": "go", **({"files": files} if files is not None else {})}
        return invoke(agent, given)  # type: ignore[no-any-return]

    return play


def told(state: dict[str, Any]) -> list[str]:
    return [message.text for message in state["messages"] if isinstance(message, ToolMessage)]


def statuses(state: dict[str, Any]) -> list[str]:
    return [message.status for message in state["messages"] if isinstance(message, ToolMessage)]


@pytest.mark.acceptance("S1-61")
def test_files_are_state(play: Play) -> None:
    state = play(
        call_tool("write_file", {"file_path": "notes/a.txt", "content": "one\ntwo\n"}),
        call_tool("read_file", {"file_path": "/notes/a.txt", "limit": 1}),
        call_tool("edit_file", {"file_path": "/notes/a.txt", "old_string": "two", "new_string": "2"}),
        call_tool("ls", {"path": "/"}),
        call_tool("glob", {"pattern": "*.txt"}),
        call_tool("grep", {"pattern": "2", "output_mode": "content"}),
        call_tool("delete", {"file_path": "/seed.txt"}),
        files={"/seed.txt": "seed"},
    )

    assert told(state) == [
        "Wrote /notes/a.txt.",
        "@@ lines 1-1 of 2 | next offset 1 @@\none",
        "Replaced 1 place in /notes/a.txt.",
        "['/notes/', '/seed.txt']",
        "['/notes/a.txt', '/seed.txt']",
        "/notes/a.txt:\n  2: 2",
        "Deleted /seed.txt.",
    ]
    assert {path: data["content"] for path, data in state["files"].items()} == {"/notes/a.txt": "one\n2\n"}


@pytest.mark.acceptance("S1-61")
def test_a_shell_that_is_not_there_is_hidden_and_refused(play: Play) -> None:
    seen: list[Any] = []

    def answer(request: Any) -> Any:
        seen.append([tool.name for tool in request.tools])
        return call_tool("execute", {"command": "ls"}) if len(seen) == 1 else "done"

    agent = create_agent(ScriptedModel(answer), middleware=[FilesystemMiddleware()])
    state = agent.invoke({"messages": "go"})

    assert seen[0] == ["ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep"]
    assert statuses(state) == ["error"]
    assert "Commands cannot be run" in told(state)[0]


def test_a_call_of_no_tool_is_told_those_that_are_offered() -> None:
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    model = ScriptedModel([call_tool("run", {"command": "ls"}), "done"])
    state = create_agent(model, [look], middleware=[FilesystemMiddleware()]).invoke({"messages": "go"})

    offered = ", ".join(sorted(getattr(one, "name", "") for one in model.requests[0].tools))
    (said,) = told(state)
    assert offered == ", ".join(sorted(said.removesuffix(".").partition("The tools are: ")[2].split(", ")))


def test_a_tool_of_ones_own_named_execute_is_offered() -> None:
    @tool
    def execute(command: str) -> str:
        """Mine."""
        return f"ran {command}"

    model = ScriptedModel([call_tool("execute", {"command": "ls"}), "done"])
    state = create_deep_agent(model, [execute]).invoke({"messages": "go"})

    assert "execute" in [getattr(one, "name", "") for one in model.requests[0].tools]
    assert told(state) == ["ran ls"]


def test_a_backend_that_cannot_delete_has_no_tool_for_it() -> None:
    class Kept(FilesystemBackend):
        delete = Backend.delete  # as a class that never wrote one

    model = ScriptedModel(["done"])
    create_agent(model, middleware=[FilesystemMiddleware(backend=Kept())]).invoke({"messages": "go"})

    assert "delete" not in [tool.name for tool in model.requests[0].tools]  # type: ignore[union-attr]


def test_a_shell_runs_commands(play: Play, tmp_path: Path) -> None:
    state = play(
        call_tool("execute", {"command": "echo hi; exit 3"}),
        call_tool("execute", {"command": "true", "timeout": 99_999}),
        backend=LocalShellBackend(tmp_path),
    )

    assert told(state)[0] == "hi\n[Command failed with exit code 3]"
    assert "from 1 to 3600" in told(state)[1]


def test_files_are_checkpointed_and_each_thread_has_its_own() -> None:
    saver = InMemorySaver()
    script: list[Any] = [call_tool("write_file", {"file_path": "/a.txt", "content": "x"}), "done", "again"]
    agent = create_agent(ScriptedModel(script), middleware=[FilesystemMiddleware()], checkpointer=saver)
    one: Any = {"configurable": {"thread_id": "1"}}

    agent.invoke({"messages": "go"}, one)

    assert agent.get_state(one).values["files"]["/a.txt"]["content"] == "x"
    assert agent.invoke({"messages": "hi"}, {"configurable": {"thread_id": "2"}})["files"] == {}


def test_two_writes_of_one_step_both_count(play: Play) -> None:
    state = play(
        (
            call_tool("write_file", {"file_path": "/a.txt", "content": "a"}),
            call_tool("write_file", {"file_path": "/b.txt", "content": "b"}),
        )
    )

    assert sorted(state["files"]) == ["/a.txt", "/b.txt"]


def test_a_second_change_of_one_path_in_one_answer_is_refused(play: Play) -> None:
    state = play(
        (
            call_tool("write_file", {"file_path": "/a.txt", "content": "first"}),
            call_tool("edit_file", {"file_path": "a.txt", "old_string": "first", "new_string": "second"}),
            call_tool("read_file", {"file_path": "/a.txt"}),
        )
    )

    assert statuses(state)[:2] == ["success", "error"]
    assert "another call of the same answer" in told(state)[1]
    assert state["files"]["/a.txt"]["content"] == "first"


@pytest.mark.parametrize("path", ["/../etc/passwd", "~/x", "C:\\x", "/no.txt"])
def test_a_path_that_leads_nowhere_is_told_to_the_model(play: Play, path: str) -> None:
    state = play(call_tool("read_file", {"file_path": path}))

    assert statuses(state) == ["error"]
    assert told(state)[0].startswith("Error: ")


def test_windows_say_what_they_show(play: Play) -> None:
    lines = "".join(f"{n}\n" for n in range(250))
    reads: list[dict[str, Any]] = [{}, {"offset": 200}, {"offset": -3, "limit": 1}, {"limit": 0}, {"offset": 250}]
    state = play(
        *(call_tool("read_file", {"file_path": "/a.txt", **read}) for read in reads),
        call_tool("read_file", {"file_path": "/empty.txt"}),
        files={"/a.txt": lines, "/empty.txt": ""},
    )

    first = [text.split("\n")[0] for text in told(state)]
    assert first[0] == "@@ lines 1-100 of 250 | next offset 100 @@"
    assert first[1] == "@@ lines 201-250 of 250 @@"
    assert told(state)[2].split("\n")[1] == "@@ lines 1-1 of 250 | next offset 1 @@"
    assert "nothing was read" in first[3]
    assert "exceeds file length" in first[4]
    assert "it is empty" in first[5]


def test_a_very_long_line_is_cut(play: Play) -> None:
    state = play(call_tool("read_file", {"file_path": "/a.txt"}), files={"/a.txt": "x" * 200_000 + "\nend"})

    assert told(state)[0].startswith(
        "(The text was cut after 80000 characters.)\n@@ lines 1-1 of 2 | next offset 1 @@\n"
    )


def test_pictures_are_shown_as_pictures(play: Play, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\x00")

    state = play(call_tool("read_file", {"file_path": "/a.png"}), backend=FilesystemBackend(tmp_path))

    (message,) = (one for one in state["messages"] if isinstance(one, ToolMessage))
    assert message.content == [{"type": "image", "base64": "iVBORwA=", "mime_type": "image/png"}]
    assert message.additional_kwargs["read_file_path"] == "/a.png"


def test_grep_says_that_it_is_literal(play: Play) -> None:
    state = play(call_tool("grep", {"pattern": "a.*b"}), call_tool("grep", {"pattern": "x", "max_count": 0}), files={})

    assert "literally" in told(state)[0]
    assert "positive" in told(state)[1]


def kept_in(message: Any) -> str:
    """The file that the text of a message is in."""
    found = re.search(r"in the file (\S+)\.", message.text)
    assert found is not None
    return found[1]


def test_a_long_result_goes_to_a_file(play: Play) -> None:
    def long_tool() -> str:
        """Says a lot."""
        return "\n".join(f"line {n}" for n in range(20))

    state = play(
        call_tool("long_tool", id="../../etc/x"),
        lambda request: call_tool("read_file", {"file_path": kept_in(request.messages[-1])}),
        tools=[long_tool],
        tool_token_limit_before_evict=10,
    )

    assert kept_in(state["messages"][2]).startswith("/large_tool_results/______etc_x-")
    assert "line 0" in told(state)[0]
    assert "line 10" not in told(state)[0]
    assert "line 10" in told(state)[1]


def test_ids_that_look_alike_share_no_file(play: Play) -> None:
    def say(text: str) -> str:
        """Say it often."""
        return text * 20

    calls = [call_tool("say", {"text": id}, id=id) for id in ("a/b", "a_b", "a.b")]
    state = play(tuple(calls), tools=[say], tool_token_limit_before_evict=1)

    kept = [kept_in(message) for message in state["messages"][2:5]]
    assert ["a/b" * 20, "a_b" * 20, "a.b" * 20] == [state["files"][path]["content"] for path in kept]


def test_threads_with_one_store_and_the_same_ids_share_no_history(tmp_path: Path) -> None:
    middleware = FilesystemMiddleware(backend=FilesystemBackend(tmp_path), human_message_token_limit_before_evict=1)
    for text in ("first thread", "second thread"):
        agent = create_agent(ScriptedModel(["done"]), middleware=[middleware])
        agent.invoke({"messages": [HumanMessage(text, id="../1")]})

    assert {"first thread", "second thread"} == {path.read_text() for path in tmp_path.glob("conversation_history/*")}


@pytest.mark.parametrize(
    "paths",
    [
        ("/link.txt", "/real.txt"),
        ("/real.txt", "/dir/real.txt"),
        ("/real.txt", "real.txt"),
        ("/real.txt", "//./real.txt"),
    ],
)
def test_a_second_change_of_one_file_is_refused_under_any_of_its_names(
    play: Play, tmp_path: Path, paths: tuple[str, str]
) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    (tmp_path / "dir").symlink_to(tmp_path)
    calls = tuple(call_tool("write_file", {"file_path": path, "content": path}) for path in paths)

    state = play(calls, backend=FilesystemBackend(tmp_path))

    assert ["success", "error"] == statuses(state)
    assert paths[0] == (tmp_path / "real.txt").read_text()


def test_a_change_below_a_directory_that_is_deleted_is_refused(play: Play) -> None:
    calls = [call_tool("delete", {"file_path": "/d"}), call_tool("write_file", {"file_path": "/d/b", "content": "x"})]

    state = play(tuple(calls), files={"/d/a": "1"})

    assert ["success", "error"] == statuses(state)
    assert {} == state["files"]


def test_a_relative_path_is_judged_as_what_it_means(play: Play, tmp_path: Path) -> None:
    rule = FilesystemPermission(["write"], [f"{tmp_path}/**"], "deny")
    backend = FilesystemBackend(tmp_path, virtual_mode=False)

    state = play(call_tool("write_file", {"file_path": "a.txt", "content": "x"}), backend=backend, permissions=[rule])

    assert ["error"] == statuses(state)
    assert [] == [*tmp_path.iterdir()]


def test_a_long_message_goes_to_a_file_and_stays_whole_in_the_state() -> None:
    model = ScriptedModel(["done"])
    middleware = FilesystemMiddleware(human_message_token_limit_before_evict=10)
    text = "\n".join(f"line {n}" for n in range(20))

    state = create_agent(model, middleware=[middleware]).invoke({"messages": text})

    assert state["messages"][0].text == text
    assert len(state["messages"]) == 2
    assert "line 10" not in model.requests[0].messages[-1].text
    (data,) = state["files"].values()
    assert data["content"] == text


RULES = [
    FilesystemPermission(["read", "write"], ["/secret/**", "/hid/*"], "deny"),
    FilesystemPermission(["write"], ["/src/**"], "allow"),
    FilesystemPermission(["write"], ["/**"], "deny"),
]


def test_permissions(play: Play) -> None:
    files = {"/secret/k.txt": "needle", "/hid/a.txt": "needle", "/src/a.py": "needle", "/b.txt": "x"}
    calls = [
        call_tool("read_file", {"file_path": "/secret/k.txt"}),
        call_tool("ls", {"path": "/hid"}),
        call_tool("grep", {"pattern": "needle"}),
        call_tool("write_file", {"file_path": "/b.txt", "content": "y"}),
        call_tool("write_file", {"file_path": "/src/b.py", "content": "y"}),
        call_tool("delete", {"file_path": "/secret"}),
        call_tool("delete", {"file_path": "/src"}),
    ]

    state = play(*calls, files=files, permissions=RULES)

    assert statuses(state) == ["error", "success", "success", "error", "success", "error", "error"]
    assert told(state)[1] == "No files found in /hid."
    assert told(state)[2] == "/src/a.py"
    assert sorted(state["files"]) == ["/b.txt", "/hid/a.txt", "/secret/k.txt", "/src/a.py", "/src/b.py"]


def test_a_shell_may_not_go_around_permissions(tmp_path: Path) -> None:
    shell = LocalShellBackend(tmp_path)
    rule = FilesystemPermission(["write"], ["/memories/**"], "deny")

    with pytest.raises(DefinitionError, match="shell"):
        FilesystemMiddleware(backend=shell, permissions=[rule])
    FilesystemMiddleware(backend=CompositeBackend(shell, {"/memories/": StateBackend()}), permissions=[rule])


@pytest.mark.parametrize("tools", [["ls"], ["read_file", "fly"]])
def test_a_choice_of_tools_that_makes_no_sense_is_refused(tools: Any) -> None:
    with pytest.raises(DefinitionError, match="read_file"):
        FilesystemMiddleware(tools=tools)


def test_state_files_need_a_run() -> None:
    with pytest.raises(OutsideRunError):
        StateBackend().ls("/")
