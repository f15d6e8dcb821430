"""Files for an agent: tools over a backend, long texts moved out of the context, changes that cannot collide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired

from pregel.agents.deep.backends.base import Backend
from pregel.agents.deep.backends.composite import CompositeBackend, can_delete, can_execute
from pregel.agents.deep.backends.errors import Refused
from pregel.agents.deep.backends.paths import below
from pregel.agents.deep.backends.state import StateBackend, merge_files
from pregel.agents.deep.blobs import in_state, with_bytes, without_bytes
from pregel.agents.deep.eviction import (
    CHARACTERS,
    EVICTED,
    artifacts_root,
    as_the_model_sees,
    evicted,
    file_name,
    marked,
    over_results,
)
from pregel.agents.deep.file_tools import NAMES, file_tools
from pregel.agents.deep.permissions import FilesystemPermission, guarded
from pregel.agents.flow import AgentFlow, calling, either
from pregel.agents.history import last_answer
from pregel.agents.middleware.base import AgentMiddleware, hook_config
from pregel.agents.middleware.requests import ModelRequest, ToolCallRequest
from pregel.agents.middleware.todo import with_text
from pregel.agents.state import AgentState
from pregel.agents.tools.base import Tool
from pregel.channels import DeltaChannel
from pregel.errors import DefinitionError
from pregel.messages import ToolMessage
from pregel.messages.convert import kind_of
from pregel.warnings import warn_caller

FsToolName = Literal["ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep", "execute"]
CHANGING = frozenset({"write_file", "edit_file", "delete"})
PROMPT = """You have files. Paths are absolute. Use them for what is long or will be needed again, read a file before
you edit it, and change one file at most once in an answer."""


class FilesystemState(AgentState):
    """The files of a `StateBackend`, by path."""

    files: NotRequired[Annotated[dict[str, Any], DeltaChannel(merge_files, name="files/1")]]


class FilesystemMiddleware(AgentMiddleware):
    """Gives an agent the tools over a backend (default: files in its own state).

    - `grep_max_count`: lines that one `grep` finds at most; None: all.
    - `tools`: which of them, all by default; ``read_file`` always.
    - `tool_token_limit_before_evict`: a longer result of any other tool goes to a file, and
      `human_message_token_limit_before_evict`: a longer message of a person too; None: never.
    - `offload_binary_content`: pictures and other bytes, of people and of tools, go to files as well; each call of the
      model gets them back, and the state holds where they are.
    - `permissions`: rules over paths, see `FilesystemPermission`.
    - Two changes of one path in one answer: the second is refused, since nobody knows which would come last.
    """

    def __init__(
        self,
        *,
        backend: Backend | None = None,
        system_prompt: str | None = PROMPT,
        custom_tool_descriptions: Mapping[str, str] | None = None,
        tool_token_limit_before_evict: int | None = 20_000,
        human_message_token_limit_before_evict: int | None = 50_000,
        max_execute_timeout: int = 3600,
        grep_max_count: int | None = 1000,
        tools: Sequence[FsToolName] | Literal["all"] | None = None,
        offload_binary_content: bool = False,
        permissions: Sequence[FilesystemPermission] | None = None,
    ) -> None:
        backend = StateBackend() if backend is None else backend
        if not isinstance(backend, Backend):
            raise DefinitionError(
                f"{backend!r} is no backend.", fix="Give an instance of a Backend; factories are not taken."
            )
        self.permissions = tuple(permissions or ())
        self.backend = guarded(backend, self.permissions)
        self.offload = offload_binary_content and not in_state(backend)
        if offload_binary_content and not self.offload:
            warn_caller(
                "offload_binary_content does nothing here: the files are in the state, as the bytes are already. Put "
                "blobs/ behind a route of a CompositeBackend."
            )
        self.system_prompt = system_prompt
        self.result_limit, self.human_limit = tool_token_limit_before_evict, human_message_token_limit_before_evict
        self.state_schema = FilesystemState if _keeps_state(backend) else AgentState
        chosen = set(NAMES if tools in (None, "all") else tools or ())
        if "read_file" not in chosen or not chosen <= set(NAMES):
            raise DefinitionError(
                f"tools is {tools!r}.", fix=f"Choose from {', '.join(NAMES)}; read_file is needed always."
            )
        made = file_tools(
            self.backend,
            descriptions=dict(custom_tool_descriptions or {}),
            grep_max_count=grep_max_count,
            max_execute_timeout=max_execute_timeout,
        )
        self.tools: list[Tool] = [tool for tool in made if tool.name in chosen]
        possible = {"execute": can_execute(backend), "delete": can_delete(backend)}
        for tool in self.tools:
            tool.is_offered = possible.get(tool.name, True)

    @hook_config(can_jump_to=[])
    def before_agent(self, state: Any, runtime: Any) -> AgentFlow[Any]:
        """Put the last message of a person into a file when it is too long, and the bytes of all of them."""
        people = [message for message in state["messages"] if kind_of(message) == "human" and message.id is not None]
        changed = []
        for message in people if self.offload else people[-1:]:
            moved = (yield from without_bytes(self.backend, message)) if self.offload else message
            moved = (yield from self._shortened(moved)) if message is people[-1] else moved
            changed += [moved] if moved is not message else []
        return {"messages": changed} if changed else None

    def _shortened(self, message: Any) -> AgentFlow[Any]:
        if self.human_limit is None or EVICTED in message.additional_kwargs:
            return message
        if len(message.text) <= CHARACTERS * self.human_limit:
            return message
        path = f"{artifacts_root(self.backend)}/conversation_history/{file_name(message.id, message.text)}.md"
        written = yield either(self.backend.write, self.backend.awrite, path, message.text)
        return message if written.error is not None else marked(message, path)

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Tell the model of the files, hide what cannot be done, and show previews for what is in files."""
        tools = [tool for tool in request.tools if getattr(tool, "is_offered", True)]
        messages = [as_the_model_sees(message) for message in request.messages]
        if self.offload:
            messages = yield from with_bytes(self.backend, messages)
        request = request.override(tools=tools, messages=messages)
        if self.system_prompt:
            request = request.override(system_message=with_text(request.system_message, self.system_prompt))
        return (yield request)

    def wrap_tool_call(self, request: ToolCallRequest, *_: Any) -> Any:
        """Refuse a second change of one path, and put a long result into a file."""
        call = request.tool_call
        if call["name"] in CHANGING and (yield from self._changed_before(request)):
            text = (
                f"Error: {call['args']['file_path']} is changed by another call of the same answer. "
                "Change it again in your next answer."
            )
            return ToolMessage(text, tool_call_id=call["id"], name=call["name"], status="error")
        result = yield request
        evicting = call["name"] not in NAMES and self.result_limit is not None
        if not evicting and not self.offload:
            return result
        return (yield from over_results(result, lambda message: self._moved(message, evicting)))

    def _changed_before(self, request: ToolCallRequest) -> AgentFlow[bool]:
        """Whether an earlier call of the same answer changes the file of this one, under any name for it."""
        answer, _ = last_answer(request.state["messages"])
        changing = [call for call in (answer.tool_calls if answer is not None else ()) if call["name"] in CHANGING]
        ids = [call["id"] for call in changing]
        if request.tool_call["id"] not in ids[1:]:
            return False  # as a rule, and nothing is looked up
        mine, *earlier = [request.tool_call, *changing[: ids.index(request.tool_call["id"])]]
        meet: bool = yield calling(lambda: any(_meet(self._places(mine), self._places(one)) for one in earlier))
        return meet

    def _places(self, call: Any) -> tuple[str, ...]:
        """What a call changes: the path, and where it leads; nothing where the backend refuses it by itself."""
        try:
            path = self.backend.absolute(str(call["args"]["file_path"]))
        except (KeyError, Refused):
            return ()
        return path, self.backend.real_path(path)

    def _moved(self, message: ToolMessage, evicting: bool) -> AgentFlow[ToolMessage]:
        """A tool's message with what is too much for the context in files."""
        if self.offload:
            message = yield from without_bytes(self.backend, message)
        if evicting and self.result_limit is not None:
            message = yield from evicted(self.backend, message, CHARACTERS * self.result_limit)
        return message


def _meet(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two changes touch one file: a directory is deleted with what it holds."""
    return any(a == b or below(a, b) or below(b, a) for a in one for b in other)


def _keeps_state(backend: Backend) -> bool:
    if isinstance(backend, CompositeBackend):
        return any(map(_keeps_state, (backend.default, *backend.routes.values())))
    return isinstance(backend, StateBackend)
