"""Somebody else's tool (LangChain's, by its shape alone) as one of ours: nothing of theirs is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, get_origin

from pregel.agents.flow import AgentFlow, either
from pregel.agents.schema_pydantic import Arguments, is_validation_error
from pregel.agents.tools.base import Tool, ToolInvocationError
from pregel.agents.tools.inject import ToolRuntime, hints_of, injected_values, injections_of
from pregel.errors import DefinitionError
from pregel.messages import ToolMessage

ToolLike = Tool | Callable[..., Any]


def is_foreign_tool(thing: object) -> bool:
    """Whether it looks like a tool of another library."""
    return not isinstance(thing, (Tool, type)) and all(
        hasattr(thing, name) for name in ("name", "description", "invoke", "args_schema")
    )


def as_tools(things: Sequence[Any]) -> list[Tool]:
    """The tools of a list, each as `as_tool` makes it; DefinitionError also for two of one name."""
    given: dict[str, Any] = {}
    tools: dict[str, Tool] = {}
    for thing in tool_list(things):
        made = as_tool(thing)
        if given.setdefault(made.name, thing) is not thing:
            raise DefinitionError(
                f"Two tools are called {made.name!r}.", fix='Give one a name that can tell them apart: @tool("name").'
            )
        tools.setdefault(made.name, made)
    return list(tools.values())


def tool_list(things: Any) -> Sequence[Any]:
    """The list itself; DefinitionError for what is none, such as a single tool."""
    if isinstance(things, (str, Mapping)) or not isinstance(things, Iterable):
        raise DefinitionError(f"{things!r} is no list of tools.", fix="Put the tool in a list: [tool].")
    return list(things)


def as_tool(thing: Any) -> Tool:
    """A tool from a tool, a foreign tool or a function; DefinitionError for anything else."""
    if isinstance(thing, Tool):
        return thing
    if isinstance(thing, type) and issubclass(thing, Tool):
        raise DefinitionError(f"{thing!r} is a class.", fix=f"Give an instance: {thing.__name__}(...).")
    if is_foreign_tool(thing):
        return ForeignTool(thing)
    if callable(thing):
        return Tool(thing)
    raise DefinitionError(
        f"{thing!r} is no tool.", fix="Give a function, a tool made with @tool, or a provider's dict."
    )


class ForeignTool(Tool):
    """A tool of another library, called through its own `invoke` with a whole tool call.

    Its injected arguments are those that its `args_schema` has and its `tool_call_schema` hides.
    """

    def __init__(self, foreign: Any) -> None:
        self.foreign = foreign
        self.tells_by_itself = hasattr(foreign, "callbacks")  # LangChain's do
        self.name, self.description = foreign.name, foreign.description or foreign.name
        for name in ("return_direct", "response_format", "tags", "metadata", "extras"):
            if (value := getattr(foreign, name, None)) is not None:
                setattr(self, name, value)
        self.func, self.coroutine, self.has_sync = foreign.invoke, getattr(foreign, "ainvoke", None), True
        arguments = Arguments(getattr(foreign, "tool_call_schema", None) or foreign.args_schema)
        source = getattr(foreign, "func", None) or getattr(foreign, "coroutine", None) or getattr(foreign, "_run", None)
        hints = hints_of(source) if source is not None else {}
        self.injections = injections_of(source, hints) if source is not None else ()
        hidden = {one.name for one in self.injections}  # our marks are none of theirs: they show what these inject
        self.arguments = arguments.without(hidden) if hidden else arguments
        self.runtimes = {one.name: _class(hints[one.name]) for one in self.injections if one.kind == "runtime"}

    def call_flow(self, given: Any, runtime: ToolRuntime[Any, Any]) -> AgentFlow[Any]:
        """Hands the call over, with what we can inject."""
        call_id = given.get("id") if isinstance(given, Mapping) and given.get("type") == "tool_call" else None
        call: Any = given
        if call_id is not None:
            known = [one for one in self.injections if one.kind in ("state", "store", "runtime", "call id")]
            hidden = {one.name for one in self.injections}
            args = {key: value for key, value in given["args"].items() if key not in hidden}
            injected = injected_values(self.name, known, runtime.override(tool_call_id=call_id))
            injected.update({name: _as(cls, injected[name]) for name, cls in self.runtimes.items()})
            call = {**given, "args": {**args, **injected}}
        try:
            result = yield either(self.func, self.coroutine, call, name=self.name)
        except Exception as error:
            if not is_validation_error(error):
                raise
            problems = [(".".join(map(str, one["loc"])), one["msg"]) for one in error.errors(include_url=False)]  # type: ignore[attr-defined]
            raise ToolInvocationError(self.name, given.get("args", {}), problems) from error
        return _ours(result) if call_id is not None else result


def _class(hint: Any) -> Any:
    return get_origin(hint) or hint


def _as(cls: Any, runtime: ToolRuntime[Any, Any]) -> Any:
    """The runtime as the class that the tool asks for, which may be another library's."""
    if isinstance(runtime, cls) if isinstance(cls, type) else True:
        return runtime
    return cls(**{field.name: getattr(runtime, field.name, None) for field in fields(cls) if field.init})


def _ours(result: Any) -> Any:
    """A foreign tool message as ours: it is stored without the other library."""
    if type(result).__name__ != "ToolMessage" or isinstance(result, ToolMessage):
        return result
    return ToolMessage(
        result.content,
        tool_call_id=result.tool_call_id,
        name=result.name,
        artifact=result.artifact,
        status=result.status,
        additional_kwargs=result.additional_kwargs,
    )
