"""Memory: files that the model is shown at the start and keeps up itself, such as AGENTS.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, NotRequired

from pregel.agents.deep.backends.base import Backend
from pregel.agents.flow import AgentFlow, either
from pregel.agents.middleware.base import AgentMiddleware, hook_config
from pregel.agents.middleware.requests import ModelRequest
from pregel.agents.middleware.todo import with_text
from pregel.agents.state import AgentState, PrivateStateAttr
from pregel.errors import DefinitionError, InvalidInputError
from pregel.messages import SystemMessage

NOTHING = "(Nothing has been noted yet.)"
PROMPT = """Below is what was noted in earlier work. When you learn something that will matter later (a preference, a
correction, a decision, where things are), write it into one of these files with `edit_file`, at once and shortly. Never
note passwords or keys.

{agent_memory}"""
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


class MemoryState(AgentState):
    """What the files of memory held when the thread began."""

    memory_contents: NotRequired[Annotated[dict[str, str], PrivateStateAttr]]


class MemoryMiddleware(AgentMiddleware):
    """Shows the model the files `sources` of the backend, read once a thread. A file that is not there yet is fine.

    `system_prompt` is the section with ``{agent_memory}`` in it; None shows nothing.
    """

    state_schema = MemoryState

    def __init__(
        self,
        *,
        backend: Backend,
        sources: Sequence[str],
        add_cache_control: bool = False,
        system_prompt: str | None = PROMPT,
    ) -> None:
        if system_prompt is not None and "{agent_memory}" not in system_prompt:
            raise DefinitionError("The section for memory has no place for it.", fix="Put {agent_memory} into it.")
        if isinstance(sources, str):
            raise DefinitionError(f"The memory {sources!r} is no list.", fix=f"Put it in a list: [{sources!r}].")
        self.backend, self.sources = backend, list(sources)
        self.add_cache_control, self.system_prompt = add_cache_control, system_prompt

    @hook_config(can_jump_to=[])
    def before_agent(self, state: Any, runtime: Any) -> AgentFlow[Any]:
        """Read the files."""
        if "memory_contents" in state:
            return None
        contents: dict[str, str] = {}
        for path in self.sources:
            (found,) = yield either(self.backend.download_files, self.backend.adownload_files, [path])
            if found.error == "file_not_found":
                continue
            if found.content is None or found.error is not None:
                raise InvalidInputError(
                    f"The memory {path} could not be read: {found.error}", fix="Mend it, or leave it out."
                )
            contents[path] = _COMMENT.sub("", found.content.decode("utf-8", "replace")).strip()
        return {"memory_contents": contents}

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Show the files, as the last part of the system message."""
        if self.system_prompt is None:
            return (yield request)
        contents = request.state.get("memory_contents") or {}
        shown = "\n\n".join(f"{path}\n\n{text}" for path, text in contents.items() if text) or NOTHING
        system = with_text(request.system_message, self.system_prompt.replace("{agent_memory}", shown))
        return (yield request.override(system_message=_cached(system) if self.add_cache_control else system))


def _cached(system: SystemMessage) -> SystemMessage:
    """The message with a cache mark on its last block."""
    content: Any = system.content
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    marked = [*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}]
    return system.model_copy(update={"content": marked})
