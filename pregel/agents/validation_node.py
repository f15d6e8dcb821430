"""A node that checks the tool calls of the last AI message by their schemas and runs nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pregel.agents.history import last_answer
from pregel.agents.schema_pydantic import Arguments, InvalidArguments
from pregel.agents.tools.base import Tool
from pregel.agents.tools.foreign import as_tool, is_foreign_tool
from pregel.agents.tools.result import to_content
from pregel.errors import InvalidInputError
from pregel.messages import ToolMessage, whole_messages
from pregel.runnable import Runnable

FormatError = Callable[[BaseException, Any, Any], str]


def _format_error(error: BaseException, call: Any, schema: Any) -> str:
    return f"{error!r}\n\nMend the call and try again."


class ValidationNode(Runnable):
    """Answers each tool call of the last AI message with its arguments as JSON, or with what is wrong with them.

    `schemas`: pydantic models, tools, or functions; each checks the calls of its name. A message about an error has
    ``additional_kwargs={"is_error": True}``, worded by `format_error(error, call, schema)`.
    """

    has_async = True

    def __init__(
        self,
        schemas: Sequence[Any],
        *,
        format_error: FormatError | None = None,
        name: str = "validation",
        tags: Sequence[str] | None = None,
    ) -> None:
        self.name, self.tags = name, list(tags or ())
        self.format_error = format_error or _format_error
        self.schemas_by_name = dict(map(_named, schemas))

    def call(self, value: Any, running: Any) -> Any:
        listed = isinstance(value, list)
        if not listed:
            value = value.get("messages") if isinstance(value, Mapping) else value.messages
        answer, _ = last_answer(whole_messages(value))
        if answer is None:
            raise InvalidInputError("The input has no AIMessage.", fix="Give one with tool calls.")
        results = [self._checked(call) for call in answer.tool_calls]
        return results if listed else {"messages": results}

    def _checked(self, call: Any) -> ToolMessage:
        arguments = self.schemas_by_name.get(call["name"])
        if arguments is None:
            known = ", ".join(self.schemas_by_name)
            return self._error(
                InvalidInputError(f"There is no schema {call['name']!r}.", fix=f"Schemas: {known}."), call
            )
        try:
            checked = arguments.validated(call["args"])
        except InvalidArguments as error:
            return self._error(error, call)
        content = json.dumps(checked, ensure_ascii=False, default=lambda value: json.loads(to_content(value)))
        return ToolMessage(content, tool_call_id=call["id"], name=call["name"])

    def _error(self, error: BaseException, call: Any) -> ToolMessage:
        schema = self.schemas_by_name.get(call["name"])
        text = self.format_error(error, call, schema.schema if schema is not None else None)
        return ToolMessage(
            text, tool_call_id=call["id"], name=call["name"], additional_kwargs={"is_error": True}, status="error"
        )


def _named(schema: Any) -> tuple[str, Arguments]:
    if isinstance(schema, type) and not issubclass(schema, Tool):
        return schema.__name__, Arguments(schema)
    if isinstance(schema, Tool) or is_foreign_tool(schema) or callable(schema):
        tool = _tool(schema)
        return tool.name, tool.arguments
    raise InvalidInputError(f"{schema!r} is no schema.", fix="Give pydantic models, tools or functions.")


def _tool(schema: Any) -> Tool:
    if isinstance(schema, Tool) or is_foreign_tool(schema):
        return as_tool(schema)
    return Tool(schema, description=schema.__doc__ or schema.__name__)
