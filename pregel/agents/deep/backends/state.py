"""Files in the state of the graph: checkpointed with it, one copy a thread, written at the barrier of the step.

1. A task sees what it wrote itself; what others of its step wrote, it sees in the next step.
2. A write is the task's own write to the channel `files`: it counts when the task ends well, and is given up with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pregel.agents.deep.backends.base import FileData
from pregel.agents.deep.backends.table import TableBackend, as_file_data
from pregel.config import current_task
from pregel.errors import OutsideRunError

FILES = "files"
"""The state key that holds the files."""


class StateBackend(TableBackend):
    """Files under the key `files` of the running graph's state; OutsideRunError outside of a run.

    Give files to a run with ``invoke({"files": {"/a.txt": "text"}})``.
    """

    def files(self) -> Mapping[str, FileData]:
        held: Mapping[str, Any] = _running().fresh_values((FILES,)).get(FILES) or {}
        return {path: as_file_data(value) for path, value in held.items()}

    def file(self, path: str) -> FileData | None:
        held: Mapping[str, Any] = _running().fresh_values((FILES,)).get(FILES) or {}
        return as_file_data(held[path]) if path in held else None

    def change(self, changes: Mapping[str, FileData | None]) -> None:
        _running().write(FILES, dict(changes))


def merge_files(files: Mapping[str, Any] | None, updates: list[Mapping[str, Any] | None]) -> dict[str, Any]:
    """The reducer of `files`: later entries win, None takes a file out. Never changes what it is given."""
    merged = dict(files or {})
    for update in updates:
        for path, value in (update or {}).items():
            if value is None:
                merged.pop(path, None)
            else:
                merged[path] = value
    return merged


def _running() -> Any:
    running = current_task.get()
    if running is None:
        raise OutsideRunError(
            "The files of a StateBackend are in the state of a running graph, and none is running.",
            fix="Use the backend inside of a node or tool, or another backend.",
        )
    return running
