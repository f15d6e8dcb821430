"""An agent whose sessions roll over, and which dies where it is told.

``python -m tests.kill.sessions DIRECTORY``: begins, or goes on; prints how the thread stood before, and its sessions.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pregel.agents import ScriptedModel, ToolRuntime, create_agent, tool
from pregel.agents.middleware import SessionMiddleware, sessions_of
from pregel.agents.models import call_tool
from pregel.checkpoint.sqlite import SqliteSaver
from tests.kill.outside import Outside

PLACE: Any = {"configurable": {"thread_id": "work"}}
POINTS = ("handing over", "handed over", "in the tool", "at the end")
CALLS = 4


def main(directory: Path) -> None:
    outside = Outside(directory)

    def script(request: Any) -> Any:
        done = sum(line.startswith("built") for line in outside_log(directory))
        outside.note(f"asked {done}")
        if done == 2:
            outside.die_at("handed over")
        if done == CALLS:
            outside.die_at("at the end")
            return "done"
        return call_tool("build", {"part": done})

    @tool
    def build(part: int, runtime: ToolRuntime) -> str:
        """Build."""
        outside.once(runtime.idempotency_key, f"built {part}")
        if part == 2:
            outside.die_at("in the tool")
        return f"built {part}"

    def handoff(messages: Any, session: Any) -> str:
        outside.die_at("handing over")
        return f"after {session['number']}"

    with SqliteSaver.from_conn_string(directory / "threads.db") as saver:
        sessions = SessionMiddleware(max_calls=2, handoff=handoff)
        agent = create_agent(ScriptedModel(script), [build], middleware=[sessions], checkpointer=saver)
        begun = agent.get_state(PLACE).created_at is not None
        stood = agent.threads.status("work").status if begun else "new"
        before = sessions_of(agent, "work") if begun else []
        agent.invoke(None if begun else {"messages": "build"}, PLACE)
        print(json.dumps([stood, told(before), told(sessions_of(agent, "work"))]), flush=True)


def told(found: Any) -> list[Any]:
    return [[one["number"], one["outcome"], one["spent"]["calls"], one["handoff"]] for one in found]


def outside_log(directory: Path) -> list[str]:
    log = directory / "log"
    return log.read_text().splitlines() if log.exists() else []


if __name__ == "__main__":
    main(Path(sys.argv[1]))
