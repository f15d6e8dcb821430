"""Deep agents: subagents, summaries, skills, memory, approval."""

from __future__ import annotations

import asyncio
import operator
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from pregel.agents import tool
from pregel.agents.deep import (
    DeepAgentState,
    FilesystemMiddleware,
    FilesystemPermission,
    SummarizationMiddleware,
    create_deep_agent,
)
from pregel.agents.deep.backends import FilesystemBackend, StateBackend
from pregel.agents.deep.frontmatter import FrontmatterError, frontmatter
from pregel.agents.deep.subagents import GENERAL
from pregel.agents.middleware import AgentMiddleware
from pregel.agents.models import ContextOverflowError, ScriptedModel, Turn, call_tool, call_tools
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import DefinitionError
from pregel.messages import AIMessage, HumanMessage, ToolMessage
from pregel.types import Command

Invoke = Callable[..., Any]


@pytest.fixture(params=["sync", "async"])
def invoke(request: pytest.FixtureRequest) -> Invoke:
    if request.param == "sync":
        return lambda agent, *args: agent.invoke(*args)
    return lambda agent, *args: asyncio.run(agent.ainvoke(*args))


def task(description: str, subagent_type: str = GENERAL, id: str | None = None) -> AIMessage:
    return call_tool("task", {"description": description, "subagent_type": subagent_type}, id=id)


def write(path: str, content: str) -> AIMessage:
    return call_tool("write_file", {"file_path": path, "content": content})


def results(state: Any) -> list[ToolMessage]:
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]


def by_task(answers: dict[str, list[Any]]) -> ScriptedModel:
    """A model that answers by the first message of the conversation, one line a call."""

    def answer(request: Any) -> Any:
        first = next(message for message in request.messages if isinstance(message, HumanMessage))
        at = sum(isinstance(message, AIMessage) for message in request.messages)
        return answers[first.text][at]

    return ScriptedModel(answer)


@pytest.mark.parametrize("wrong", [{"deadline": "today"}, {"description": None}])
def test_a_task_that_is_described_otherwise_is_told_and_not_begun(wrong: dict[str, Any]) -> None:
    args = {"description": "look", "subagent_type": GENERAL, **wrong}
    model = by_task({"go": [call_tool("task", {key: value for key, value in args.items() if value}), "done"]})

    (told,) = results(create_deep_agent(model).invoke({"messages": "go"}))

    assert "error" == told.status
    assert next(iter(wrong)) in told.text


def test_a_tool_that_is_named_like_a_built_in_takes_its_place() -> None:
    @tool
    def write_file(file_path: str, content: str) -> str:
        """Mine."""
        return f"{file_path} was not written"

    model = ScriptedModel([write("/a", "x"), "done"])
    state = create_deep_agent(model, [write_file]).invoke({"messages": "go"})

    assert ["/a was not written"] == [message.text for message in results(state)]
    assert 2 == [getattr(one, "name", None) for one in model.requests[0].tools].index("write_file")


@pytest.mark.acceptance("S1-60")
def test_a_subagent_has_its_own_context_and_gives_one_result_and_its_files(invoke: Invoke) -> None:
    last = AIMessage("It is x.", tool_calls=call_tool("ls", {"path": "/"}).tool_calls)
    model = by_task({"go": [task("look"), "done"], "look": [write("/found.txt", "x"), last, ""]})

    state = invoke(create_deep_agent(model), {"messages": "go", "files": {"/given.txt": "y"}})

    assert [message.text for message in results(state)] == ["It is x."]
    assert len(state["messages"]) == 4
    assert sorted(state["files"]) == ["/found.txt", "/given.txt"]


def test_tasks_of_one_answer_run_side_by_side_and_a_failing_one_is_told(invoke: Invoke) -> None:
    def broken(request: Any) -> Any:
        raise RuntimeError("no model here")

    both = call_tools(task("look", id="1"), task("fail", "broken", id="2"))
    model = by_task({"go": [both, "done"], "look": ["seen"]})
    failing = {"name": "broken", "description": "Fails.", "model": ScriptedModel(broken)}

    state = invoke(create_deep_agent(model, subagents=[failing]), {"messages": "go"})  # type: ignore[list-item]

    first, second = results(state)
    assert (first.text, first.status) == ("seen", "success")
    assert (second.status, "no model here" in second.text) == ("error", True)
    assert state["messages"][-1].text == "done"


def test_an_unknown_subagent_is_named() -> None:
    model = by_task({"go": [task("look", "nobody"), "done"]})

    (message,) = results(create_deep_agent(model).invoke({"messages": "go"}))

    assert message.text == "There is no subagent 'nobody'. The subagents are: general-purpose."
    assert message.status == "success"  # a plain answer, as it is in deepagents


class Report(TypedDict):
    """A report."""

    summary: str


class State(DeepAgentState):
    notes: Annotated[list[str], operator.add]
    topic: str


def test_structured_answers_and_shared_state_come_back_once(invoke: Invoke) -> None:
    class Noting(AgentMiddleware):
        def after_agent(self, state: Any, runtime: Any) -> Any:
            return {"notes": ["child"], "topic": "new"} if "sub" in state["messages"][0].text else None

    given = call_tool("Report", {"summary": "short"})
    model = by_task({"go": [task("sub", "reporter"), "done"], "sub": [given]})
    reporter = {"name": "reporter", "description": "Reports.", "response_format": Report, "middleware": [Noting()]}

    state = invoke(
        create_deep_agent(model, subagents=[reporter], state_schema=State),  # type: ignore[list-item]
        {"messages": "go", "notes": ["parent"], "topic": "old"},
    )

    assert [message.text for message in results(state)] == ['{"summary": "short"}']
    assert (state["notes"], state["topic"]) == (["parent", "child"], "new")


def test_a_question_of_a_subagent_surfaces_and_is_answered_inside(invoke: Invoke) -> None:
    ran: list[int] = []

    def pay(amount: int) -> str:
        """Pays."""
        ran.append(amount)
        return f"paid {amount}"

    model = by_task({"go": [task("shop"), "done"], "shop": [call_tool("pay", {"amount": 5}), "bought"]})
    agent = create_deep_agent(model, [pay], interrupt_on={"pay": True}, checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}

    asked = invoke(agent, {"messages": "go"}, thread)
    assert [one.value["action_requests"][0]["name"] for one in asked["__interrupt__"]] == ["pay"]
    assert ran == []
    state = invoke(agent, Command(resume={"decisions": [{"type": "approve"}]}), thread)

    assert ran == [5]
    assert [message.text for message in results(state)] == ["bought"]
    assert state["messages"][-1].text == "done"


def test_a_fork_sees_the_conversation_and_not_the_call_that_made_it() -> None:
    seen: list[Any] = []

    def forked(request: Any) -> Any:
        seen.extend(request.messages)
        return "forked answer"

    model = by_task({"go": [task("more", "twin"), "done"]})
    twin = {"name": "twin", "description": "Forks.", "mode": "fork", "model": ScriptedModel(forked)}

    create_deep_agent(model, subagents=[twin]).invoke({"messages": "go"})  # type: ignore[list-item]

    people = [message for message in seen if isinstance(message, HumanMessage)]
    assert [people[0].text, people[-1].text.endswith("more")] == ["go", True]
    assert not any(isinstance(message, AIMessage) for message in seen)


@pytest.mark.parametrize(
    "subagents",
    [
        [{"name": "a", "description": "x"}, {"name": "a", "description": "y"}],
        [{"name": "a", "description": "x", "mode": "loose"}],
        [{"name": "a", "description": "x", "mode": "fork", "skills": ["/s"]}],
        [{"name": "a", "description": "x", "promt": "?"}],
        [{"name": "a"}],
        [{"description": "x"}],
        [{"name": "a", "runnable": ScriptedModel(["x"])}],
    ],
)
def test_subagents_that_make_no_sense_are_refused(subagents: Any) -> None:
    with pytest.raises(DefinitionError):
        create_deep_agent(ScriptedModel(["x"]), subagents=subagents)


# -- summaries ---------------------------------------------------------------------------------------------------------


def test_the_model_sees_a_summary_and_the_state_keeps_everything(invoke: Invoke) -> None:
    model = ScriptedModel(
        lambda request: "a summary" if len(request.messages) == 1 else f"answer {len(request.messages)}"
    )
    agent = create_deep_agent(
        model,
        middleware=[_summaries(model, trigger=("messages", 4), keep=("messages", 2))],
        checkpointer=InMemorySaver(),
    )
    thread = {"configurable": {"thread_id": "1"}}

    for text in ("one", "two", "three", "four"):
        state = invoke(agent, {"messages": text}, thread)

    assert [message.text for message in state["messages"] if isinstance(message, HumanMessage)] == [
        "one",
        "two",
        "three",
        "four",
    ]
    shown = model.requests[-1].messages
    assert "a summary" in shown[1].text
    assert "/conversation_history/" in shown[1].text
    assert len(shown) < len(state["messages"])
    (history,) = (data["content"] for path, data in state["files"].items() if "conversation_history" in path)
    assert "one" in history


def test_what_an_attempt_has_put_into_the_history_is_not_put_there_again(tmp_path: Path) -> None:
    failing = [False]

    def answer(request: Any) -> Any:
        if request.messages[0].type != "system":
            return "a summary"
        if failing[0] and len(request.messages) > 2:
            raise RuntimeError("cut off")
        return f"answer {len(request.messages)}"

    model = ScriptedModel(answer)
    sizes: Any = {"trigger": ("messages", 4), "keep": ("messages", 2)}
    summaries = SummarizationMiddleware(model, backend=FilesystemBackend(tmp_path), **sizes)
    agent = create_deep_agent(model, system_prompt="Talk.", middleware=[summaries], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    for text in ("one", "two", "three"):
        agent.invoke({"messages": text}, thread)
    failing[0] = True
    for given in ({"messages": "four"}, None):
        with pytest.raises(RuntimeError):
            agent.invoke(given, thread)
    failing[0] = False
    agent.invoke(None, thread)

    (history,) = (path.read_text() for path in tmp_path.glob("conversation_history/*"))
    assert [1, 1, 1] == [history.count(f">{text}<") for text in ("one", "two", "three")]


def test_an_agent_and_its_subagent_share_no_long_result(invoke: Invoke) -> None:
    def say(text: str) -> str:
        """Say it often."""
        return text * 30_000

    def saying(text: str) -> AIMessage:
        return call_tool("say", {"text": text}, id="call_1")

    model = by_task({"go": [saying("abc"), task("look"), "done"], "look": [saying("xyz"), "done"]})

    state = invoke(create_deep_agent(model, [say]), {"messages": "go"})

    assert {"abc" * 30_000, "xyz" * 30_000} == {data["content"] for data in state["files"].values()}


def test_a_call_of_a_subagent_stores_what_it_is_given_and_what_it_changed(tmp_path: Path) -> None:
    files = {f"/{n}.txt": "x" * 2000 for n in range(30)}
    size = sum(map(len, files.values()))

    def stored(calls: int) -> int:
        model = by_task({"go": [*[task("look")] * calls, "done"], "look": [write("/found.txt", "y"), "done"]})
        path = str(tmp_path / f"{calls}.db")
        with SqliteSaver.from_conn_string(path) as saver:
            agent = create_deep_agent(model, checkpointer=saver)
            state = agent.invoke({"messages": "go", "files": files}, {"configurable": {"thread_id": "1"}})
        assert bool(calls) == ("/found.txt" in state["files"])
        with closing(sqlite3.connect(path)) as database:
            rows = database.execute("SELECT blob FROM pregel_writes UNION ALL SELECT blob FROM pregel_channel_values")
            return sum(len(row[0]) for row in rows)

    before, after = stored(0), stored(1)

    assert before < 2.5 * size  # the input, and the files as they are
    assert after - before < 2.5 * size


def test_a_model_that_says_it_is_too_much_is_asked_again_with_less(invoke: Invoke) -> None:
    def answer(request: Any) -> Any:
        if request.tools and len(request.messages) > 4:
            return Turn(error=ContextOverflowError("too long"))
        return "ok"

    model = ScriptedModel(answer)
    agent = create_deep_agent(model, middleware=[_summaries(model, keep=("messages", 2))])
    history = [("user" if n % 2 == 0 else "assistant", f"{n}") for n in range(9)]

    state = invoke(agent, {"messages": history})

    assert state["messages"][-1].text == "ok"
    assert len(state["messages"]) == 10


def _summaries(model: Any, **sizes: Any) -> Any:
    return SummarizationMiddleware(model, backend=StateBackend(), **sizes)


# -- skills and memory -------------------------------------------------------------------------------------------------

SKILL = "---\nname: {name}\ndescription: Does {name}.\nallowed-tools: ls, grep\n---\nHow to {name}.\n"


@pytest.fixture
def disk(tmp_path: Path) -> FilesystemBackend:
    backend = FilesystemBackend(tmp_path)
    for path, text in {
        "/skills/sort/SKILL.md": SKILL.format(name="sort"),
        "/skills/broken/SKILL.md": "---\nname: broken\n",
        "/skills/none/readme.md": "nothing",
        "/mine/sort/SKILL.md": SKILL.format(name="sort").replace("Does sort.", "Mine."),
        "/AGENTS.md": "Be kind.<!-- not this -->",
    }.items():
        backend.write(path, text)
    return backend


def test_skills_are_listed_later_sources_win_and_faults_are_told(disk: FilesystemBackend, invoke: Invoke) -> None:
    model = ScriptedModel(["done"])
    agent = create_deep_agent(model, backend=disk, skills=["/skills", "/mine", "/no"])

    state = invoke(agent, {"messages": "go"})

    prompt = model.requests[0].messages[0].text
    assert "- sort: Mine. (tools: ls, grep) [/mine/sort/SKILL.md]" in prompt
    assert "/skills/broken/SKILL.md: its head does not end" in prompt
    assert "readme" not in prompt
    assert "skills_metadata" not in state


def test_a_skill_whose_name_is_not_its_directorys_is_there_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    skill = tmp_path / "skills" / "other" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: Sort It\ndescription: Sorts.\n---")  # without a line end behind its head
    model = ScriptedModel(["done"])

    create_deep_agent(model, backend=FilesystemBackend(tmp_path), skills=["/skills"]).invoke({"messages": "go"})

    prompt = model.requests[0].messages[0].text
    assert "- Sort It: Sorts. [/skills/other/SKILL.md]" in prompt
    assert "could not be read" not in prompt
    assert "the name 'Sort It' should be its directory's" in caplog.text


def test_pinned_skills_are_put_before_the_model_once(disk: FilesystemBackend, invoke: Invoke) -> None:
    model = ScriptedModel([call_tool("ls", {"path": "/"}), "done"])
    agent = create_deep_agent(model, backend=disk, skills=["/skills"])

    state = invoke(agent, {"messages": "go", "pinned_skills": ["sort", "nope"]})

    told = [message.text for message in state["messages"] if isinstance(message, HumanMessage)]
    assert [("How to sort." in text, "no skill 'nope'" in text) for text in told] == [
        (False, False),
        (True, False),
        (False, True),
    ]


@pytest.mark.parametrize(
    "text", ["name: x", "---\nname: x", "---\n- x\n---\n", "---\n{\n---\n", " ---\nname: x\n---\n"]
)
def test_a_head_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(FrontmatterError):
        frontmatter(text)


def test_memory_is_shown_and_kept_up_by_the_model(disk: FilesystemBackend, invoke: Invoke) -> None:
    edit = call_tool("edit_file", {"file_path": "/AGENTS.md", "old_string": "kind", "new_string": "brief"})
    model = ScriptedModel([edit, "done"])
    agent = create_deep_agent(model, backend=disk, memory=["/AGENTS.md", "/not-there.md"])

    invoke(agent, {"messages": "go"})

    prompt = model.requests[0].messages[0].text
    assert "Be kind." in prompt
    assert "not this" not in prompt
    assert "Be brief." in disk.download_files(["/AGENTS.md"])[0].content.decode()  # type: ignore[union-attr]


# -- the whole ---------------------------------------------------------------------------------------------------------


def test_a_memory_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").mkdir()
    agent = create_deep_agent(ScriptedModel([]), backend=FilesystemBackend(tmp_path), memory=["/AGENTS.md", "/none.md"])

    with pytest.raises(ValueError, match=r"/AGENTS\.md could not be read: is_directory"):
        agent.invoke({"messages": "go"})


def test_rules_may_ask_a_person() -> None:
    rule = FilesystemPermission(["write"], ["/prod/**"], "interrupt")
    both = call_tools(write("/prod/a", "x"), write("/dev/a", "x"))
    agent = create_deep_agent(ScriptedModel([both, "done"]), permissions=[rule], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}

    asked = agent.invoke({"messages": "go"}, thread)
    state = agent.invoke(Command(resume={"decisions": [{"type": "reject"}]}), thread)

    assert len(asked["__interrupt__"][0].value["action_requests"]) == 1
    assert list(state["files"]) == ["/dev/a"]


def test_a_middleware_of_the_same_name_takes_the_place_of_ours() -> None:
    model = ScriptedModel(["done"])

    create_deep_agent(model, middleware=[FilesystemMiddleware(tools=["read_file"])]).invoke({"messages": "go"})

    assert [tool.name for tool in model.requests[0].tools] == ["read_file", "task"]  # type: ignore[union-attr]


def test_a_deep_agent_without_a_prompt_sends_no_empty_system_message() -> None:
    model = ScriptedModel(["done"])

    create_deep_agent(model).invoke({"messages": "go"})

    assert model.requests[0].messages[0].text.strip()


def test_a_new_process_goes_on_where_a_thread_stopped(tmp_path: Path) -> None:
    answers: dict[str, list[Any]] = {"go": [write("/a.txt", "x"), task("look"), "done"], "look": ["seen"]}
    thread: Any = {"configurable": {"thread_id": "1"}}
    with SqliteSaver.from_conn_string(str(tmp_path / "db")) as saver:
        agent = create_deep_agent(by_task(answers), checkpointer=saver)
        agent.invoke({"messages": "go"}, thread, interrupt_before=["tools"])
    with SqliteSaver.from_conn_string(str(tmp_path / "db")) as saver:
        agent = create_deep_agent(by_task(answers), checkpointer=saver)
        state = agent.invoke(None, thread)

    assert [message.text for message in results(state)] == ["Wrote /a.txt.", "seen"]
    assert state["files"]["/a.txt"]["content"] == "x"


@pytest.mark.parametrize("given", [{"skills": "/skills"}, {"memory": "/AGENTS.md"}])
def test_one_path_in_the_place_of_a_list_is_refused(given: Any) -> None:
    with pytest.raises(DefinitionError, match="Put it in a list"):
        create_deep_agent(ScriptedModel([]), **given)
