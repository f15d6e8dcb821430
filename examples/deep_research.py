"""A deep agent reviews a repository: it searches, gives three reviewers a part each, side by side, and writes a report.

Run it with ``python examples/deep_research.py`` (scripted, offline), or with a model of yours and a directory:
``python examples/deep_research.py openai:gpt-5-mini path/to/repository``. Reviewers may ask you. Kill it whenever you
like: the same command goes on where it was. The repository is only read; the report is printed.
"""

import sys
import tempfile
from pathlib import Path

from pregel import Command
from pregel.agents import tool
from pregel.agents.deep import FilesystemPermission, create_deep_agent
from pregel.agents.deep.backends import CompositeBackend, FilesystemBackend, StateBackend
from pregel.agents.models import ScriptedModel, call_tool, call_tools
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.types import interrupt

PROMPT = """You review the code in /repo. Search first, split what is to be read into three parts and give each to a
reviewer, all three in one answer. Then write /REPORT.md and say that it is there."""
REVIEWER = "Read your part of /repo and answer with its faults alone. When only a person can decide, ask."
TASK = "Find every function that divides, and say whether it can divide by zero."


@tool
def ask(question: str) -> str:
    """Ask the person who wants the report."""
    return interrupt(question)


def agent(lead, reader, root: Path, saver):
    reviewer = {
        "name": "reviewer",
        "description": "Reviews a part of the repository.",
        "system_prompt": REVIEWER,
        "tools": [ask],
        "model": reader,
    }
    return create_deep_agent(
        lead,
        system_prompt=PROMPT,
        subagents=[reviewer],
        backend=CompositeBackend(StateBackend(), {"/repo/": FilesystemBackend(root)}),
        permissions=[FilesystemPermission(["write"], ["/repo/**"], "deny")],
        checkpointer=saver,
    )


def research(app, root: Path, answer) -> str:
    """The report, `answer` being how a person answers a question; a thread that was begun goes on."""
    config = {"configurable": {"thread_id": str(root.resolve())}}
    given = None if app.get_state(config).created_at else {"messages": TASK}
    while True:
        for chunk in app.stream(given, config, stream_mode="updates"):
            for node, update in chunk.items():
                if node != "__interrupt__":
                    for message in (update or {}).get("messages", []):
                        print(f"{node}: {message.type}: {message.text[:70]}")
        state = app.get_state(config)
        if not state.interrupts:
            return state.values["files"]["/REPORT.md"]["content"]
        given = Command(resume={question.id: answer(question.value) for question in state.interrupts})


def main(model: str | None = None, directory: str = ".") -> None:
    if model is not None:
        root = Path(directory)
        with SqliteSaver.from_conn_string("deep_research.db") as saver:
            print(research(agent(model, model, root, saver), root, lambda question: input(f"{question}\n> ")))
        return
    with tempfile.TemporaryDirectory() as scratch, SqliteSaver.from_conn_string(f"{scratch}/threads.db") as saver:
        root = repository(Path(scratch))
        print(research(agent(*scripted(), root, saver), root, lambda question: "no"))


# -- without a model ---------------------------------------------------------------------------------------------------


def repository(scratch: Path) -> Path:
    root = scratch / "repository"
    for number in range(60):
        path = root / "abc"[number // 20] / f"m{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"def f(x): return x {'/' if number % 5 == 0 else '+'} {number}\n")
    return root


def scripted() -> tuple[ScriptedModel, ScriptedModel]:
    def part(name: str):
        return call_tool("task", {"description": f"Review /repo/{name}", "subagent_type": "reviewer"}, id=name)

    def review(request):
        """Three searches side by side; one reviewer asks."""
        texts = [message.text for message in request.messages if message.type != "system"]
        name = texts[0].removeprefix("Review ")
        if len(texts) == 1:
            return call_tool("grep", {"pattern": " / ", "path": name, "output_mode": "files_with_matches"})
        if name == "/repo/b" and len(texts) == 3:
            return call_tool("ask", {"question": "Is dividing by a constant a fault?"})
        asked = f" (a constant is a fault: {texts[4]})" if len(texts) > 3 else ""
        return f"{name}: {len(texts[2].splitlines())} of 20 files divide{asked}"

    def write(request):
        reviews = [message.text for message in request.messages if message.type == "tool"][1:]
        return call_tool("write_file", {"file_path": "/REPORT.md", "content": "\n".join(reviews)})

    steps = [
        lambda request: call_tool("grep", {"pattern": " / ", "path": "/repo", "output_mode": "files_with_matches"}),
        lambda request: call_tools(part("a"), part("b"), part("c")),
        write,
        lambda request: "The report is in /REPORT.md.",
    ]
    lead = ScriptedModel(lambda request: steps[sum(message.type == "ai" for message in request.messages)](request))
    return lead, ScriptedModel(review)


if __name__ == "__main__":
    main(*sys.argv[1:3])
