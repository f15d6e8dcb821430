"""`@tool`: a function, a coroutine function or a runnable as a tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from pregel.agents.tools.base import Tool
from pregel.errors import DefinitionError
from pregel.runnable import Runnable, coerce_to_runnable


@overload
def tool(name_or_callable: Callable[..., Any], runnable: None = None, **options: Any) -> Tool: ...
@overload
def tool(name_or_callable: str, runnable: Runnable, **options: Any) -> Tool: ...
@overload
def tool(
    name_or_callable: str | None = None, runnable: None = None, **options: Any
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    name_or_callable: str | Callable[..., Any] | None = None, runnable: Runnable | None = None, **options: Any
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """A tool made from a function: ``@tool``, ``@tool("name")``, ``@tool(return_direct=True)``, ``tool("name", run)``.

    The arguments come from the signature, the description from the docstring. Options: those of `Tool`, and
    `infer_schema`, `parse_docstring` (Google style: its Args describe the arguments), `error_on_invalid_docstring`.
    DefinitionError when nothing describes the tool.
    """
    if runnable is not None:
        if not isinstance(name_or_callable, str):
            raise DefinitionError("tool(name, runnable) needs a name.", fix="Pass a str as the first argument.")
        return _of_runnable(name_or_callable, runnable, options)
    if callable(name_or_callable):
        return Tool(name_or_callable, **options)
    if name_or_callable is not None:
        options = {"name": name_or_callable, **options}
    return lambda function: Tool(function, **options)


def _of_runnable(name: str, given: Any, options: dict[str, Any]) -> Tool:
    runnable = coerce_to_runnable(given)

    def call(**arguments: Any) -> Any:
        return runnable.invoke(arguments)

    async def acall(**arguments: Any) -> Any:
        return await runnable.ainvoke(arguments)

    schema = options.pop("args_schema", None) or {"type": "object", "properties": {}, "additionalProperties": True}
    description = options.pop("description", None) or f"Run {name}."
    return Tool(call, acall, name=name, args_schema=schema, description=description, **options)
