"""An agent that handles an incident, as a program that dies where it is told.

``python -m tests.kill.incident DIRECTORY ACTION``: `run` and `resume` go on with the thread, `approve` answers its
question. What it does outside of its thread leaves a line in ``DIRECTORY/log``. It dies once, at the point that KILL_AT
names.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

from pregel import Command
from pregel.agents import ScriptedModel, ToolRuntime, create_agent, tool
from pregel.agents.middleware import HumanInTheLoopMiddleware
from pregel.agents.models import ChatRequest, call_tool, call_tools
from pregel.checkpoint.sqlite import SqliteSaver
from tests.kill.outside import Outside

POINTS = ("telemetry recorded", "proposal made", "waiting", "remediation done")
CONFIG: Any = {"configurable": {"thread_id": "incident"}}


def remediated(outside: Outside, proposal: str, key: str) -> str:
    """The identifier of what was done under this key; it is done once."""
    outside.once(key, f"remediated {proposal}")
    return f"change-{key[:8]}"


def build(outside: Outside, saver: Any) -> Any:
    """The agent."""

    @tool
    def logs() -> str:
        """Read the logs."""
        outside.note("read logs")
        return "errors since 12:00"

    @tool
    def metrics() -> str:
        """Read the metrics."""
        outside.note("read metrics")
        return "cpu 100%"

    @tool
    def remediate(proposal: str, runtime: ToolRuntime) -> str:
        """Carry a proposal out."""
        outside.note(f"attempt {runtime.attempt}")
        change = remediated(outside, proposal, runtime.idempotency_key)
        outside.die_at("remediation done")
        return change

    def script(request: ChatRequest) -> Any:
        turn = sum(message.type == "ai" for message in request.messages)
        if turn == 0:
            return call_tools(call_tool("logs"), call_tool("metrics"))
        if turn == 1:
            outside.die_at("telemetry recorded")
            answer = call_tool("remediate", {"proposal": f"proposal {uuid4()}"})  # another one each time it is asked
            outside.note("asked for a proposal")
            outside.die_at("proposal made")
            return answer
        return f"done: {request.messages[-1].text}"

    approval = HumanInTheLoopMiddleware({"remediate": {"allowed_decisions": ["approve", "reject"]}})
    return create_agent(ScriptedModel(script), [logs, metrics, remediate], middleware=[approval], checkpointer=saver)


def main(directory: str, action: str) -> None:
    outside = Outside(Path(directory))
    given: Any = {"run": {"messages": "it is slow"}, "resume": None}.get(action)
    if action == "approve":
        given = Command(resume={"decisions": [{"type": "approve"}]})
    with SqliteSaver.from_conn_string(f"{directory}/threads.db") as saver:
        agent = build(outside, saver)
        result = agent.invoke(given, CONFIG)
        asked = [question.value for question in agent.get_state(CONFIG).interrupts]
        print(json.dumps({"asked": asked, "last": result["messages"][-1].text}), flush=True)
        outside.die_at("waiting")


if __name__ == "__main__":
    main(*sys.argv[1:])
