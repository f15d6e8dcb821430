"""A subagent that edits a file of a store or of a directory, as a program that dies between the edit and the barrier.

``python -m tests.kill.editing DIRECTORY KIND ACTION``: `run` dies after the edit, `resume` goes on and tells the file.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from pregel.agents import ScriptedModel
from pregel.agents.deep import create_deep_agent
from pregel.agents.deep.backends import (
    Backend,
    CompositeBackend,
    EditResult,
    FilesystemBackend,
    StateBackend,
    StoreBackend,
)
from pregel.agents.models import ChatRequest, call_tool
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.store.sqlite import SqliteStore

CONFIG: Any = {"configurable": {"thread_id": "t"}}
EDIT = {"file_path": "/memories/log.txt", "old_string": "end", "new_string": "one\nend"}


class Dying(CompositeBackend):
    """Its process does not outlive an edit."""

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        result = super().edit(file_path, old_string, new_string, replace_all)
        os.kill(os.getpid(), signal.SIGKILL)
        return result


def script(request: ChatRequest) -> Any:
    first = next(message.text for message in request.messages if message.type == "human")
    turn = sum(message.type == "ai" for message in request.messages)
    if first == "go":
        task = {"description": "edit", "subagent_type": "general-purpose"}
        return call_tool("task", task, id="task") if turn == 0 else request.messages[-1].text
    return call_tool("edit_file", EDIT, id="edit") if turn == 0 else request.messages[-1].text


def main(directory: str, kind: str, action: str) -> None:
    with (
        SqliteSaver.from_conn_string(f"{directory}/threads.db") as saver,
        SqliteStore.from_conn_string(f"{directory}/store.db") as store,
    ):
        memories: Backend = StoreBackend(namespace=lambda runtime: ("memories", runtime.context["user"]))
        of_ann: Backend = StoreBackend(namespace=("memories", "ann"), store=store)
        if kind == "files":
            memories = of_ann = FilesystemBackend(directory)
        if action == "run":
            of_ann.write("/log.txt", "end")
        composite = Dying if action == "run" else CompositeBackend
        routed = composite(StateBackend(), {"/memories/": memories})
        agent = create_deep_agent(
            ScriptedModel(script), backend=routed, context_schema=dict, checkpointer=saver, store=store
        )
        given: Any = {"messages": "go"} if action == "run" else None
        state = agent.invoke(given, CONFIG, context={"user": "ann"})
        data = of_ann.read("/log.txt").file_data
        print(f"{state['messages'][-1].text}|{data and data['content']!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
