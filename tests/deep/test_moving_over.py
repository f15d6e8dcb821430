"""What is written for deepagents works here: its options, its dicts, its backends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NotRequired

import pytest

from pregel.agents import create_agent
from pregel.agents.deep import (
    GENERAL_PURPOSE_SUBAGENT,
    FilesystemMiddleware,
    MemoryMiddleware,
    SkillsMiddleware,
    SubAgentMiddleware,
    SummarizationMiddleware,
    SummarizationToolMiddleware,
    UnsupportedContentMiddleware,
    create_deep_agent,
    create_summarization_middleware,
    create_summarization_tool_middleware,
)
from pregel.agents.deep.backends import (
    BackendProtocol,
    CompositeBackend,
    ExecuteResponse,
    FileDownloadResponse,
    FilesystemBackend,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    SandboxBackendProtocol,
    StateBackend,
    WriteResult,
    create_file_data,
)
from pregel.agents.middleware import AgentMiddleware
from pregel.agents.models import ScriptedModel, call_tool
from pregel.agents.state import AgentState
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import DefinitionError
from pregel.messages import HumanMessage, SystemMessage, ToolMessage

Invoke = Callable[..., Any]
THREAD: Any = {"configurable": {"thread_id": "1"}}
SKILL = "---\nname: {name}\ndescription: Does {name}.\n---\nHow to {name}."


@pytest.fixture(params=["sync", "async"])
def invoke(request: pytest.FixtureRequest) -> Invoke:
    if request.param == "sync":
        return lambda agent, *args: agent.invoke(*args)
    return lambda agent, *args: asyncio.run(agent.ainvoke(*args))


def task(subagent_type: str) -> Any:
    return call_tool("task", {"description": "look", "subagent_type": subagent_type})


def results(state: Any) -> list[str]:
    return [message.text for message in state["messages"] if isinstance(message, ToolMessage)]


def prompt_of(model: ScriptedModel) -> str:
    return "".join(message.text for message in model.requests[0].messages if isinstance(message, SystemMessage))


class Remote(SandboxBackendProtocol):
    """A user's backend: errors in words of its own, None for lists, and a shell without a timeout."""

    id = "remote"

    def __init__(self, files: dict[str, str]) -> None:
        self.contents = files

    def ls(self, path: str) -> LsResult:
        return LsResult(error=f"Directory '{path}' not found", entries=None)  # type: ignore[arg-type]

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return ReadResult(f"File '{file_path}' not found")

    def write(self, file_path: str, content: str) -> WriteResult:
        self.contents[file_path] = content
        return WriteResult(None, file_path)

    def grep(self, pattern: str, path: Any = None, glob: Any = None, *, max_count: int | None = None) -> GrepResult:
        return GrepResult(error="away", matches=None)  # type: ignore[arg-type]

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        return GlobResult(error="away", matches=None)  # type: ignore[arg-type]

    def upload_files(self, files: Sequence[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return [FileUploadResponse(path=path, error="permission_denied") for path, _ in files]

    def download_files(self, paths: Sequence[str]) -> list[FileDownloadResponse]:
        return [
            FileDownloadResponse(path=path, content=self.contents[path].encode())
            if path in self.contents
            else FileDownloadResponse(path=path, error="file_not_found")
            for path in paths
        ]

    def execute(self, command: str) -> ExecuteResponse:  # type: ignore[override]
        return ExecuteResponse(output=f"did {command}", exit_code=0)


def test_a_backend_of_a_user_has_memory_and_a_shell(invoke: Invoke) -> None:
    model = ScriptedModel([call_tool("execute", {"command": "it"}), "done"])
    agent = create_deep_agent(model, backend=Remote({"/AGENTS.md": "Be kind."}), memory=["/none.md", "/AGENTS.md"])

    assert results(invoke(agent, {"messages": "go"}))[0].startswith("did it\n")
    assert "Be kind." in prompt_of(model)


@pytest.mark.parametrize(
    ("verb", "args"), [("ls", {"path": "/r"}), ("grep", {"pattern": "x"}), ("glob", {"pattern": "x"})]
)
def test_a_backend_of_a_user_may_answer_none_for_a_list(verb: str, args: dict[str, Any], invoke: Invoke) -> None:
    backend: BackendProtocol = CompositeBackend(Remote({}), {"/r/": Remote({})})
    model = ScriptedModel([call_tool(verb, args), "done"])

    (told,) = results(invoke(create_deep_agent(model, backend=backend), {"messages": "go"}))

    assert told.startswith("Error: ")


def test_files_are_made_for_a_run(invoke: Invoke) -> None:
    model = ScriptedModel([call_tool("read_file", {"file_path": "/a.txt"}), "done"])
    state = invoke(create_deep_agent(model), {"messages": "go", "files": {"/a.txt": create_file_data("hello")}})

    assert results(state)[0].endswith("hello")
    assert {"content", "encoding", "created_at", "modified_at"} == set(state["files"]["/a.txt"])
    assert "2024" == create_file_data("x", created_at="2024")["created_at"]


def test_subagents_of_a_plain_agent_are_dicts_that_say_all(invoke: Invoke) -> None:
    spec: Any = {
        "name": "researcher",
        "description": "Looks things up.",
        "system_prompt": "You look.",
        "model": ScriptedModel(["found"]),
        "tools": [],
    }
    model = ScriptedModel([task("researcher"), "done"])
    delegating = SubAgentMiddleware(
        backend=StateBackend(), subagents=[spec], task_description="Whom to ask:\n{available_agents}"
    )
    state = invoke(create_agent(model, middleware=[delegating]), {"messages": "go"})

    assert ["found"] == results(state)
    assert "Whom to ask:\n- researcher: Looks things up." == getattr(model.requests[0].tools[0], "description", None)
    assert "You look." == prompt_of(spec["model"])


class Found(AgentState):
    """What a subagent notes for the agent."""

    place: NotRequired[str]


class Noting(AgentMiddleware):
    """Notes a place."""

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"place": "here"}


def test_a_plain_agent_gets_the_keys_of_the_shared_state_and_no_files(invoke: Invoke) -> None:
    write = call_tool("write_file", {"file_path": "/a", "content": "x"})
    spec: Any = {"name": "a", "description": "x", "model": ScriptedModel([write, "found"]), "tools": []}
    spec["middleware"] = [FilesystemMiddleware(backend=StateBackend()), Noting()]
    delegating = SubAgentMiddleware(backend=StateBackend(), subagents=[spec], state_schema=Found)

    state = invoke(create_agent(ScriptedModel([task("a"), "done"]), middleware=[delegating]), {"messages": "go"})

    assert (["found"], "here", False) == (results(state), state["place"], "files" in state)


def test_files_of_a_subagent_reach_an_agent_that_has_none_yet(invoke: Invoke) -> None:
    write = call_tool("write_file", {"file_path": "/a", "content": "x"})
    agent = create_deep_agent(ScriptedModel([task("general-purpose"), write, "found", "done"]))

    assert ["/a"] == list(invoke(agent, {"messages": "go"})["files"])


def test_a_private_key_is_not_shared(invoke: Invoke) -> None:
    spec: Any = {"name": "a", "description": "x", "model": ScriptedModel(["found"]), "tools": []}
    spec["middleware"] = [Noting()]
    delegating = SubAgentMiddleware(
        backend=StateBackend(), subagents=[spec], state_schema=Found, private_state_keys=frozenset({"place"})
    )

    state = invoke(create_agent(ScriptedModel([task("a"), "done"]), middleware=[delegating]), {"messages": "go"})

    assert "place" not in state


@pytest.mark.parametrize("missing", ["model", "tools"])
def test_a_dict_that_does_not_say_all_is_refused_by_a_plain_agent(missing: str) -> None:
    spec: Any = {"name": "a", "description": "x", "model": ScriptedModel([]), "tools": []}
    del spec[missing]

    with pytest.raises(DefinitionError, match=missing):
        SubAgentMiddleware(subagents=[spec], backend=StateBackend())


def test_what_a_subagent_streams_says_whose_it_is() -> None:
    found = create_agent(ScriptedModel(["found"]))
    compiled: Any = {"name": "researcher", "description": "Looks.", "runnable": found}
    agent = create_deep_agent(ScriptedModel([task("researcher"), "done"]), subagents=[compiled], name="main")

    shown = [
        (message.text, metadata["lc_agent_name"])
        for _, (message, metadata) in agent.stream({"messages": "go"}, stream_mode="messages", subgraphs=True)
        if message.text
    ]

    assert ("found", "researcher") in shown
    assert ("done", "main") in shown


def test_options_may_be_none(invoke: Invoke) -> None:
    none: Any = None
    spec: Any = {"name": "a", "description": "x", "tools": None, "permissions": None, "interrupt_on": None}
    files = FilesystemMiddleware(permissions=none, grep_max_count=none)
    model = ScriptedModel([call_tool("grep", {"pattern": "x"}), "done"])
    given = {"messages": "go", "files": {"/a": "x\n" * 1500}}

    create_deep_agent(ScriptedModel([]), subagents=[spec], middleware=none)
    state = invoke(create_deep_agent(model, middleware=[files]), given)

    assert ["/a"] == results(state)


# -- skills ------------------------------------------------------------------------------------------------------------


def with_skills(*names: str) -> dict[str, str]:
    return {f"/skills/{name}/SKILL.md": SKILL.format(name=name) for name in names}


@pytest.mark.parametrize("own", [False, True], ids=["option", "middleware"])
def test_the_general_purpose_subagent_has_the_agents_skills(own: bool, invoke: Invoke) -> None:
    model = ScriptedModel([task("general-purpose"), "seen", "done"])
    options: Any = (
        {"middleware": [SkillsMiddleware(backend=StateBackend(), sources=["/skills"])]}
        if own
        else {"skills": ["/skills"]}
    )
    invoke(create_deep_agent(model, **options), {"messages": "go", "files": with_skills("sort")})

    told = [any("sort: Does sort." in message.text for message in request.messages) for request in model.requests]
    assert [True, True, True] == told
    assert "general-purpose" == GENERAL_PURPOSE_SUBAGENT["name"]


def test_a_subagent_keeps_its_own_skills_beside_a_middleware_of_the_agent(invoke: Invoke) -> None:
    spec: Any = {"name": "a", "description": "x", "skills": ["/own"], "model": ScriptedModel(["seen"])}
    agent = create_deep_agent(
        ScriptedModel([task("a"), "done"]),
        subagents=[spec],
        middleware=[SkillsMiddleware(backend=StateBackend(), sources=["/skills"])],
    )
    files = {**with_skills("sort"), "/own/cut/SKILL.md": SKILL.format(name="cut")}
    invoke(agent, {"messages": "go", "files": files})

    assert ("cut: Does cut." in prompt_of(spec["model"]), "Does sort." in prompt_of(spec["model"])) == (True, False)


def test_skills_are_looked_for_again_when_none_are_given(invoke: Invoke) -> None:
    model = ScriptedModel(["one", "two", "three"])
    agent = create_deep_agent(model, skills=["/skills"], checkpointer=InMemorySaver())

    invoke(agent, {"messages": "go", "files": with_skills("sort")}, THREAD)
    invoke(agent, {"messages": "go", "files": with_skills("cut")}, THREAD)
    invoke(agent, {"messages": "go", "skills_metadata": None}, THREAD)

    told = ["Does cut." in request.messages[0].text for request in model.requests]
    assert [False, False, True] == told


def test_what_is_known_of_a_skill_has_every_key_and_a_pinned_one_is_marked(invoke: Invoke) -> None:
    agent = create_deep_agent(ScriptedModel(["done"]), skills=["/skills"], checkpointer=InMemorySaver())
    given = {"messages": "go", "files": with_skills("sort"), "pinned_skills": ["sort"]}

    state = invoke(agent, given, THREAD)

    known = {"name": "sort", "path": "/skills/sort/SKILL.md", "description": "Does sort."}
    rest: dict[str, Any] = {"license": None, "compatibility": None, "metadata": {}, "allowed_tools": []}
    assert [{**known, **rest}] == agent.get_state(THREAD).values["skills_metadata"]
    pinned = next(one for one in state["messages"] if isinstance(one, HumanMessage) and one.text != "go")
    assert {"lc_source": "pinned_skill", "skill": known} == pinned.additional_kwargs


def test_a_section_for_skills_may_name_its_parts_apart(invoke: Invoke) -> None:
    model = ScriptedModel(["done"])
    section = "At {skills_locations}\nThere are {skills_list}{skills_load_warnings}"
    skills = SkillsMiddleware(backend=StateBackend(), sources=["/skills"], system_prompt=section)
    files = {**with_skills("sort"), "/skills/bad/SKILL.md": "nothing"}

    invoke(create_deep_agent(model, middleware=[skills]), {"messages": "go", "files": files})

    prompt = prompt_of(model)
    assert (
        "At - /skills\nThere are - sort: Does sort. [/skills/sort/SKILL.md]\n(could not be read: /skills/bad" in prompt
    )


def test_memory_without_a_section_shows_nothing(invoke: Invoke) -> None:
    model = ScriptedModel(["done"])
    memory = MemoryMiddleware(backend=StateBackend(), sources=["/a.md"], system_prompt=None)

    invoke(create_deep_agent(model, middleware=[memory]), {"messages": "go", "files": {"/a.md": "Be kind."}})

    assert "Be kind." not in prompt_of(model)


# -- forks -------------------------------------------------------------------------------------------------------------


class Noted(AgentMiddleware):
    """Tells the model something."""

    def wrap_model_call(self, request: Any, *_: Any) -> Any:
        told = SystemMessage(f"{request.system_message.text} Noted.")
        return (yield request.override(system_message=told))


def test_a_fork_has_the_agents_prompt_skills_memory_and_middleware(invoke: Invoke) -> None:
    spec: Any = {"name": "twin", "description": "x", "mode": "fork", "system_prompt": "Be a twin."}
    spec["model"] = ScriptedModel(["seen"])
    agent = create_deep_agent(
        ScriptedModel([task("twin"), "done"]),
        system_prompt="Be brief.",
        subagents=[spec],
        skills=["/skills"],
        memory=["/a.md"],
        middleware=[Noted()],
    )
    invoke(agent, {"messages": "go", "files": {**with_skills("sort"), "/a.md": "Be kind."}})

    prompt = prompt_of(spec["model"])
    wanted = ("Be brief.\n\nBe a twin.", "Does sort.", "Be kind.", "Noted.")
    assert [True] * 4 == [part in prompt for part in wanted]


# -- summaries ---------------------------------------------------------------------------------------------------------


def test_a_plain_agent_may_have_the_summaries_of_a_deep_one(invoke: Invoke) -> None:
    model = ScriptedModel(lambda request: "short" if len(request.messages) == 1 else "done")
    backend = StateBackend()
    summing = create_summarization_middleware(model, backend, summarizer=lambda messages: "all that was said")
    agent = create_agent(model, middleware=[FilesystemMiddleware(backend=backend), summing])
    history = [HumanMessage(f"{number}" * 100_000) for number in range(8)]

    invoke(agent, {"messages": history})

    assert "all that was said" in "".join(message.text for message in model.requests[-1].messages)


def compacting(messages: int) -> tuple[ScriptedModel, Any, list[Any]]:
    """A model that calls the tool once, its agent, and a history of so many messages before its answer."""
    model = ScriptedModel([call_tool("compact_conversation", {}, id="c"), "done"])
    told = [HumanMessage(f"said {number}") for number in range(messages)]
    sizes: Any = {
        "trigger": ("messages", 10),
        "keep": ("messages", 2),
        "summarizer": lambda gone: f"{len(gone)} are gone",
    }
    summing = SummarizationMiddleware(model, backend=StateBackend(), **sizes)
    tools = SummarizationToolMiddleware(summing, system_prompt="Compact at times.")
    return model, create_deep_agent(model, middleware=[summing, tools]), told


def test_a_model_may_have_a_history_summarised_before_it_must_be(invoke: Invoke) -> None:
    model, agent, told = compacting(5)

    state = invoke(agent, {"messages": told})

    shown = [message.text for message in model.requests[1].messages]
    assert "Compact at times." in shown[0]
    assert "3 are gone" in shown[1]
    assert ["said 3", "said 4", ""] == shown[2:5]
    assert [message.text for message in told] == [one.text for one in state["messages"] if one.type == "human"]
    assert "said 0" in next(data["content"] for path, data in state["files"].items() if "conversation_history" in path)
    assert ["The beginning of the conversation is summarised."] == results(state)


def test_a_short_history_is_not_summarised(invoke: Invoke) -> None:
    model, agent, told = compacting(2)

    state = invoke(agent, {"messages": told})

    assert ["There is nothing to summarise yet: the conversation is short."] == results(state)
    assert ["said 0", "said 1"] == [message.text for message in model.requests[1].messages[1:3]]


def test_the_tool_stands_beside_the_summaries_of_a_deep_agent(invoke: Invoke) -> None:
    model = ScriptedModel(["done"])
    tools = create_summarization_tool_middleware(model, StateBackend())

    invoke(create_deep_agent(model, middleware=[tools]), {"messages": "go"})

    assert "compact_conversation" in [getattr(one, "name", None) for one in model.requests[0].tools]


def wrote(number: int, text: str) -> list[Any]:
    call = call_tool("write_file", {"file_path": f"/{number}", "content": text}, id=str(number))
    return [call, ToolMessage("Wrote it.", tool_call_id=str(number))]


@pytest.mark.parametrize(
    ("settings", "first", "last"),
    [
        (
            {"trigger": ("messages", 3), "keep": ("messages", 2)},
            "x" * 20 + "... (3000 characters were written)",
            "y" * 3000,
        ),
        ({"trigger": ("messages", 3), "keep": ("messages", 9)}, "x" * 3000, "y" * 3000),
        ({"trigger": ("messages", 9), "keep": ("messages", 2)}, "x" * 3000, "y" * 3000),
        ({"trigger": ("tokens", 100), "keep": ("messages", 0), "max_length": 5000}, "x" * 3000, "y" * 3000),
        ({"trigger": ("tokens", 100), "keep": ("messages", 0), "truncation_text": "!"}, "x" * 20 + "!", "y" * 20 + "!"),
        ({"trigger": None}, "x" * 3000, "y" * 3000),
        (None, "x" * 3000, "y" * 3000),
    ],
)
def test_what_was_written_long_ago_is_shown_short(settings: Any, first: str, last: str, invoke: Invoke) -> None:
    model = ScriptedModel(["done"])
    summing = SummarizationMiddleware(model, backend=StateBackend(), truncate_args_settings=settings)
    history = [HumanMessage("go"), *wrote(1, "x" * 3000), *wrote(2, "y" * 3000)]

    state = invoke(create_deep_agent(model, middleware=[summing]), {"messages": history})

    shown, kept = (
        [call["args"]["content"] for one in messages for call in getattr(one, "tool_calls", ())]
        for messages in (model.requests[0].messages, state["messages"])
    )
    assert [first, last] == shown
    assert ["x" * 3000, "y" * 3000] == kept


def test_a_deep_agent_shows_what_was_written_more_than_twenty_messages_ago_short(invoke: Invoke) -> None:
    model = ScriptedModel(["done"])
    history = [*wrote(1, "x" * 3000), *(HumanMessage(str(number)) for number in range(19)), *wrote(2, "y" * 3000)]

    invoke(create_deep_agent(model), {"messages": history})

    shown = [call["args"]["content"] for one in model.requests[0].messages for call in getattr(one, "tool_calls", ())]
    assert [54, 3000] == [len(text) for text in shown]


def test_a_directory_is_virtual_by_its_second_argument(tmp_path: Any) -> None:
    (tmp_path / "a.txt").write_text("x")

    assert FilesystemBackend(tmp_path, False).read(f"{tmp_path}/a.txt").error is None


# -- what a model cannot take ------------------------------------------------------------------------------------------

PICTURE = {"type": "image", "base64": "aGVsbG8=", "mime_type": "image/png"}
PDF = {"type": "file", "base64": "aGVsbG8=", "mime_type": "application/pdf"}
SHEET = {"type": "file", "base64": "aGVsbG8=", "mime_type": "text/csv"}


def kinds(messages: Sequence[Any]) -> list[str]:
    return [block["type"] for message in messages if not isinstance(message.content, str) for block in message.content]


@pytest.mark.parametrize(
    ("profile", "of_people", "of_tools"),
    [
        (None, ["image", "file", "file"], "image"),
        ({"image_inputs": True}, ["image", "file", "file"], "image"),
        ({"image_inputs": False}, ["text", "file", "file"], "text"),
        ({"pdf_inputs": False}, ["image", "text", "file"], "image"),
        ({"image_tool_message": False}, ["image", "file", "file"], "text"),
    ],
)
def test_what_a_model_does_not_take_is_a_note_and_stays_in_the_state(
    profile: Any, of_people: list[str], of_tools: str, invoke: Invoke
) -> None:
    model = ScriptedModel([call_tool("read_file", {"file_path": "/a.png"}), "done"], profile=profile)
    picture = create_file_data("aGVsbG8=", encoding="base64")
    given = {"messages": [HumanMessage([PICTURE, PDF, SHEET])], "files": {"/a.png": picture}}

    state = invoke(create_deep_agent(model), given)

    assert [*of_people, of_tools] == kinds([one for one in model.requests[1].messages if one.type in ("human", "tool")])
    assert ["image", "file", "file", "image"] == kinds(state["messages"])


def test_a_note_names_the_file_and_a_plain_agent_may_have_notes() -> None:
    model = ScriptedModel(["done"], profile={"image_inputs": False})
    agent = create_agent(model, middleware=[UnsupportedContentMiddleware()])
    read = ToolMessage([PICTURE], tool_call_id="1", additional_kwargs={"read_file_path": "/a.png"})

    agent.invoke({"messages": ["go", call_tool("look", {}, id="1"), read, "and?"]})

    (told,) = [one.text for one in model.requests[0].messages if isinstance(one, ToolMessage)]
    assert "[The content of /a.png (image/png) is not shown: this model takes no image.]" == told
