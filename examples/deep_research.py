"""A deep agent reads a directory, gives the parts to subagents side by side, and writes one report.

Run it with ``python examples/deep_research.py`` (scripted, offline), or with a model of yours and a directory:
``python examples/deep_research.py openai:gpt-5-mini path/to/repository``.
"""

import sys
import tempfile
from pathlib import Path

from pregel.agents.deep import create_deep_agent
from pregel.agents.deep.backends import FilesystemBackend
from pregel.agents.models import ScriptedModel, call_tool, call_tools
from pregel.checkpoint.memory import InMemorySaver

PROMPT = "You review code. Search first, give parts to reviewers side by side, then write /REPORT.md."
TASK = "Find every function here that divides, and say whether it can divide by zero."


def scripted() -> tuple[ScriptedModel, ScriptedModel]:
    def part(name: str):
        return call_tool("task", {"description": f"Review /{name}", "subagent_type": "reviewer"}, id=name)

    lead = ScriptedModel(
        [
            call_tool("grep", {"pattern": " / ", "output_mode": "files_with_matches"}),
            call_tools(part("a.py"), part("b.py")),
            call_tool("write_file", {"file_path": "/REPORT.md", "content": "a.py: unsafe\nb.py: safe\n"}),
            "The report is in /REPORT.md.",
        ]
    )
    return lead, ScriptedModel(lambda request: f"{request.messages[-1].text}: done")


def main(model: str | None = None, directory: str | None = None) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(directory or scratch)
        if directory is None:
            (root / "a.py").write_text("def f(x): return 1 / x\n")
            (root / "b.py").write_text("def g(x): return x / 2\n")
        lead, reader = scripted() if model is None else (model, model)
        reviewer = {
            "name": "reviewer",
            "description": "Reviews one file.",
            "system_prompt": "Answer with faults.",
            "model": reader,
        }
        agent = create_deep_agent(
            lead,
            system_prompt=PROMPT,
            subagents=[reviewer],
            backend=FilesystemBackend(root),
            checkpointer=InMemorySaver(),
        )
        for chunk in agent.stream({"messages": TASK}, {"configurable": {"thread_id": "1"}}, stream_mode="updates"):
            for node, update in chunk.items():
                for message in (update or {}).get("messages", []):
                    print(f"{node}: {message.type}: {message.text[:70]}")
        print((root / "REPORT.md").read_text())


if __name__ == "__main__":
    main(*sys.argv[1:3])
