"""`create_deep_agent`: an agent with files, subagents, a summary when its history is long, skills and memory.

It is `create_agent` with middleware, in this order: files, subagents, summaries, background subagents, (yours), skills,
memory, approval, notes for what the model cannot take. A middleware of yours that has the name of one of these takes
its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from pregel.agents.create import AgentGraph, create_agent
from pregel.agents.deep.backends.base import Backend
from pregel.agents.deep.backends.state import StateBackend
from pregel.agents.deep.background import AsyncSubAgent, AsyncSubAgentMiddleware
from pregel.agents.deep.filesystem import FilesystemMiddleware
from pregel.agents.deep.memory import MemoryMiddleware
from pregel.agents.deep.permissions import FilesystemPermission, Operation, Permissions, guarded
from pregel.agents.deep.prompt_cache import PromptCacheMiddleware
from pregel.agents.deep.skills import SkillsMiddleware
from pregel.agents.deep.subagents import (
    GENERAL,
    GENERAL_PURPOSE_SUBAGENT,
    CompiledSubAgent,
    SubAgent,
    SubAgentMiddleware,
)
from pregel.agents.deep.summarization import SummarizationMiddleware, create_summarization_middleware
from pregel.agents.deep.unsupported_content import UnsupportedContentMiddleware
from pregel.agents.middleware.base import AgentMiddleware
from pregel.agents.middleware.human import DECISIONS, HumanInTheLoopMiddleware
from pregel.agents.middleware.requests import as_system_message
from pregel.agents.middleware.todo import with_text
from pregel.agents.models.base import ChatModel
from pregel.agents.models.init import as_model
from pregel.agents.state import AgentState
from pregel.errors import DefinitionError
from pregel.messages import SystemMessage
from pregel.types import Checkpointer

AnySubAgent: TypeAlias = SubAgent | CompiledSubAgent | AsyncSubAgent
CORE = (FilesystemMiddleware, SubAgentMiddleware, SummarizationMiddleware, AsyncSubAgentMiddleware)
READING, WRITING = ("ls", "read_file", "glob", "grep"), ("write_file", "edit_file", "delete")


class DeepAgentState(AgentState):
    """The state that every deep agent has; subclass it to add keys, which subagents share."""


def create_deep_agent(
    model: str | ChatModel | Any,
    tools: Sequence[Any] | None = None,
    *,
    system_prompt: str | SystemMessage | None = None,
    middleware: Sequence[AgentMiddleware] | None = None,
    subagents: Sequence[AnySubAgent] | None = None,
    skills: Sequence[str] | None = None,
    memory: Sequence[str] | None = None,
    permissions: Sequence[FilesystemPermission] | None = None,
    backend: Backend | None = None,
    interrupt_on: Mapping[str, Any] | None = None,
    response_format: Any = None,
    state_schema: Any = None,
    context_schema: type | None = None,
    checkpointer: Checkpointer = None,
    store: Any = None,
    debug: bool = False,
    name: str | None = None,
    cache: Any = None,
) -> AgentGraph:
    """An agent for long work, as a compiled graph.

    - `subagents`: dicts as `SubAgent`, `CompiledSubAgent` or (on a server, in the background) `AsyncSubAgent` say; one
      called "general-purpose", with the agent's own tools, is there unless you give your own of that name.
    - `skills`: directories of skills, for "general-purpose" as well; `memory`: files of memory; both in the backend.
    - `backend`: where the files are; in the state by default.
    - `permissions`: rules over paths, of which the first that matches decides.
    - `interrupt_on`: tools whose calls a person decides about, here and in subagents; needs a checkpointer.

    The rest is as in `create_agent`. Everything is checkpointed: files, summaries, what subagents have done.
    """
    parts = _Parts(
        model=as_model(model),
        tools=tools or (),
        middleware=list(middleware or ()),
        skills=_sources(middleware) if skills is None else skills,
        memory=memory,
        permissions=tuple(permissions or ()),
        backend=StateBackend() if backend is None else backend,
        interrupt_on=dict(interrupt_on or {}),
        state_schema=state_schema,
        system_prompt=system_prompt,
    )
    inline, background = _by_place(subagents or ())
    return create_agent(
        parts.model,
        list(parts.tools),
        system_prompt=system_prompt,
        middleware=parts.stack([parts.subagent(one) for one in _with_general(inline)], background),
        response_format=response_format,
        state_schema=state_schema or DeepAgentState,
        context_schema=context_schema,
        checkpointer=checkpointer,
        store=store,
        debug=debug,
        name=name,
        cache=cache,
    )


@dataclass(slots=True, kw_only=True)
class _Parts:
    """What the agent and its subagents are made of."""

    model: ChatModel
    tools: Sequence[Any]
    middleware: list[AgentMiddleware]
    skills: Sequence[Any] | None
    memory: Sequence[str] | None
    permissions: tuple[FilesystemPermission, ...]
    backend: Backend
    interrupt_on: dict[str, Any]
    state_schema: Any
    system_prompt: str | SystemMessage | None
    made: list[AgentGraph] = field(default_factory=list)
    """The subagents that are built here."""

    def stack(
        self, subagents: Sequence[CompiledSubAgent], background: Sequence[AsyncSubAgent]
    ) -> list[AgentMiddleware]:
        """The middleware of the agent itself."""
        built = self._built(self.model, self.permissions, self.interrupt_on, self.skills)
        if background:
            built.insert(2, AsyncSubAgentMiddleware(background))  # behind files and summaries
        delegating = SubAgentMiddleware(subagents, state_schema=self.state_schema)
        for one in self.made:
            one.hand_over = delegating.outcome  # without it all files are stored once more for each call
        built[1:1] = [delegating]
        self._remember(built, self.model)
        return _with_own(built, self.middleware)

    def _remember(self, built: list[AgentMiddleware], model: ChatModel) -> None:
        """Put the memory of the agent before the approval."""
        if self.memory:
            caching = model.provider == "anthropic"
            part = MemoryMiddleware(backend=self.backend, sources=self.memory, add_cache_control=caching)
            built.insert(_place(built, (HumanInTheLoopMiddleware, UnsupportedContentMiddleware)), part)

    def _built(
        self,
        model: ChatModel,
        permissions: tuple[FilesystemPermission, ...],
        interrupt_on: Mapping[str, Any],
        skills: Sequence[Any] | None,
    ) -> list[AgentMiddleware]:
        """What every agent of this kind has."""
        found: list[AgentMiddleware] = [
            FilesystemMiddleware(backend=self.backend, permissions=permissions),
            create_summarization_middleware(model, self.backend),
        ]
        if skills:
            found.append(SkillsMiddleware(backend=guarded(self.backend, permissions), sources=skills))
        if model.provider == "anthropic":
            found.append(PromptCacheMiddleware())
        asking = {**_asked_by_rules(Permissions(permissions, self.backend)), **interrupt_on}
        if asking:
            found.append(HumanInTheLoopMiddleware(asking))
        return [*found, UnsupportedContentMiddleware()]

    def subagent(self, given: SubAgent | CompiledSubAgent) -> CompiledSubAgent:
        """A subagent that can run."""
        if "runnable" in given:
            return cast("CompiledSubAgent", given)
        spec: SubAgent = given
        forks, own = spec.get("mode") == "fork", list(spec.get("middleware") or ())
        model = as_model(spec["model"]) if spec.get("model") is not None else self.model
        permissions = tuple(spec.get("permissions", self.permissions) or ())
        asking = dict(spec.get("interrupt_on", self.interrupt_on) or {})
        alike = forks or spec is GENERAL_PURPOSE_SUBAGENT  # which have the agent's own skills
        skills = self.skills if alike else spec.get("skills") or _sources(own)
        built = self._built(model, permissions, asking, skills)
        if forks:
            self._remember(built, model)
        names = {part.name for part in built if alike or not isinstance(part, SkillsMiddleware)}
        taken = [one for one in self.middleware if forks or one.name in names]
        runnable = create_agent(
            model,
            list(spec.get("tools", self.tools) or ()),
            system_prompt=self._prompt(spec) if forks else spec.get("system_prompt"),
            middleware=_with_own(built, list({one.name: one for one in (*taken, *own)}.values())),
            response_format=spec.get("response_format"),
            state_schema=self.state_schema or DeepAgentState,
            name=spec["name"],
        )
        self.made.append(runnable)
        mode = spec.get("mode", "isolated")
        return {"name": spec["name"], "description": spec["description"], "runnable": runnable, "mode": mode}

    def _prompt(self, spec: SubAgent) -> SystemMessage | None:
        """The agent's own prompt, with what a fork adds to it."""
        prompt, added = as_system_message(self.system_prompt), spec.get("system_prompt")
        return with_text(prompt, added) if added else prompt


def _checked(given: SubAgent | CompiledSubAgent) -> SubAgent | CompiledSubAgent:
    """The subagent; DefinitionError when it lacks a key, has an unknown one, or two that do not go together."""
    keys, named = set(given), given.get("name", given)
    if missing := {"name", "description"} - keys:
        raise DefinitionError(f"The subagent {named!r} lacks {' and '.join(sorted(missing))}.", fix="Give it both.")
    known = (CompiledSubAgent if "runnable" in given else SubAgent).__annotations__
    if unknown := keys - known.keys():
        raise DefinitionError(
            f"The subagent {named!r} has the unknown keys {', '.join(sorted(unknown))}.",
            fix=f"It may have {', '.join(known)}.",
        )
    if given.get("mode") == "fork" and given.get("skills"):
        raise DefinitionError(
            f"The subagent {named!r} forks and has skills of its own.", fix="Leave one of the two out."
        )
    return given


def _by_place(subagents: Sequence[AnySubAgent]) -> tuple[list[SubAgent | CompiledSubAgent], list[AsyncSubAgent]]:
    """Those that run here, and those of a server."""
    inline = [one for one in subagents if "graph_id" not in one]
    background = [one for one in subagents if "graph_id" in one]
    return inline, cast("list[AsyncSubAgent]", background)


def _with_general(subagents: Sequence[SubAgent | CompiledSubAgent]) -> list[SubAgent | CompiledSubAgent]:
    """The subagents, checked, behind the one that is always there."""
    subagents = [_checked(one) for one in subagents]
    if any(one["name"] == GENERAL for one in subagents):
        return list(subagents)
    return [GENERAL_PURPOSE_SUBAGENT, *subagents]


def _sources(middleware: Sequence[AgentMiddleware] | None) -> list[str] | None:
    """The skills of a user's `SkillsMiddleware`, which takes the place of ours."""
    return next((one.sources for one in middleware or () if isinstance(one, SkillsMiddleware)), None)


def _with_own(built: Sequence[AgentMiddleware], own: Sequence[AgentMiddleware]) -> list[AgentMiddleware]:
    """The stack with a user's middleware in it: in the place of one of the same name, else behind the core."""
    named = {one.name: one for one in own}
    found = [named.pop(one.name, one) for one in built]
    core = 1 + max((at for at, one in enumerate(built) if isinstance(one, CORE)), default=-1)
    return [*found[:core], *(one for one in own if one.name in named), *found[core:]]


def _place(built: Sequence[AgentMiddleware], kinds: tuple[type[AgentMiddleware], ...]) -> int:
    return next((at for at, one in enumerate(built) if isinstance(one, kinds)), len(built))


def _asked_by_rules(permissions: Permissions) -> dict[str, Any]:
    """Which calls of the file tools a person decides about, because a rule says so."""
    if not permissions.ask:
        return {}

    def config(operation: Operation, *, whole: bool = False) -> dict[str, Any]:
        def when(request: Any) -> bool:
            return permissions.asks(operation, _path(request.tool_call["args"]), whole=whole)

        return {"allowed_decisions": list(DECISIONS), "when": when}

    reading = {name: config("read") for name in READING}
    return reading | {name: config("write", whole=name == "delete") for name in WRITING}


def _path(arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("file_path") or arguments.get("path") or "/")
