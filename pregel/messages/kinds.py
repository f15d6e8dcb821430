"""The message classes, by who speaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, Unpack, cast

from pregel.errors import InvalidInputError
from pregel.messages.base import REQUIRED, BaseMessage
from pregel.messages.blocks import Blocks
from pregel.messages.calls import (
    InvalidToolCall,
    ToolCall,
    checked_calls,
    checked_invalid_calls,
    parse_openai_calls,
)
from pregel.messages.content import Content
from pregel.messages.fields import MessageFields
from pregel.messages.usage import UsageMetadata


class HumanMessage(BaseMessage):
    """What the user says."""

    __slots__ = ()
    type: ClassVar[str] = "human"


class SystemMessage(BaseMessage):
    """What the application tells the model to be and do."""

    __slots__ = ()
    type: ClassVar[str] = "system"


class AIMessage(BaseMessage):
    """What the model answers: content, and the tool calls it asks for."""

    __slots__ = ("invalid_tool_calls", "tool_calls", "usage_metadata")

    type: ClassVar[str] = "ai"
    DEFAULTS: ClassVar[dict[str, Any]] = {
        **BaseMessage.DEFAULTS,
        "tool_calls": list,
        "invalid_tool_calls": list,
        "usage_metadata": None,
    }

    tool_calls: list[ToolCall]
    invalid_tool_calls: list[InvalidToolCall]
    usage_metadata: UsageMetadata | None

    def __init__(
        self,
        content: Content | None = None,
        *,
        tool_calls: Iterable[Mapping[str, Any]] | Iterable[ToolCall] = (),
        invalid_tool_calls: Iterable[Mapping[str, Any]] | Iterable[InvalidToolCall] = (),
        usage_metadata: UsageMetadata | None = None,
        **fields: Unpack[MessageFields],
    ) -> None:
        super().__init__(content, **fields)
        self.usage_metadata = usage_metadata
        self.tool_calls = checked_calls(cast("Any", tool_calls)) if tool_calls != () else []
        self.invalid_tool_calls = checked_invalid_calls(cast("Any", invalid_tool_calls)) if invalid_tool_calls else []
        if not self.tool_calls and not self.invalid_tool_calls:
            self._find_calls(in_blocks=fields.get("content_blocks") is not None)

    def _find_calls(self, in_blocks: bool) -> None:
        """Calls that were passed in OpenAI's raw form, or as blocks."""
        if "tool_calls" in self.additional_kwargs:
            self.tool_calls, self.invalid_tool_calls = parse_openai_calls(self.additional_kwargs["tool_calls"] or ())
        elif in_blocks:
            blocks = [block for block in self.content if isinstance(block, dict) and block.get("type") == "tool_call"]
            self.tool_calls = checked_calls(blocks)

    @property
    def content_blocks(self) -> Blocks:
        """The content as standard blocks, led by reasoning and followed by tool calls that are not in the content."""
        if self.response_metadata.get("output_version") == "v1" and isinstance(self.content, list):
            return cast(Blocks, self.content)
        blocks = super().content_blocks
        reasoning = self.additional_kwargs.get("reasoning_content")
        if isinstance(reasoning, str) and not any(block["type"] == "reasoning" for block in blocks):
            blocks.insert(0, {"type": "reasoning", "reasoning": reasoning})
        calls: dict[Any, dict[str, Any]] = {call["id"] or at: dict(call) for at, call in enumerate(self.tool_calls)}
        # A call in the content may have been streamed in pieces or edited since: tool_calls says how it stands.
        shown = [calls.pop(block.get("id"), block) if block["type"] == "tool_call" else block for block in blocks]
        return [*shown, *calls.values()]

    def pretty_repr(self, html: bool = False) -> str:
        """The message for a person, its tool calls included."""
        lines = [super().pretty_repr(html)]
        if self.tool_calls:
            lines.append("Tool Calls:")
            for call in self.tool_calls:
                lines += [f"  {call['name']} ({call['id']})", f" Call ID: {call['id']}", "  Args:"]
                lines += [f"    {name}: {value}" for name, value in call["args"].items()]
        if self.invalid_tool_calls:
            lines.append("Invalid Tool Calls:")
            for bad in self.invalid_tool_calls:
                lines += [f"  {bad['name']} ({bad['id']})", f" Call ID: {bad['id']}"]
                lines += [f"  Error: {bad['error']}"] if bad["error"] else []
                lines += ["  Args:", f"    {bad['args']}"]
        return "\n".join(lines)


class ToolMessage(BaseMessage):
    """What a tool gives back for the call `tool_call_id`. `artifact` is for the program, the model does not see it.

    Content that is neither a str nor a list is shown with `str()`.
    """

    __slots__ = ("artifact", "status", "tool_call_id")

    type: ClassVar[str] = "tool"
    DEFAULTS: ClassVar[dict[str, Any]] = {
        **BaseMessage.DEFAULTS,
        "tool_call_id": REQUIRED,
        "artifact": None,
        "status": "success",
    }

    tool_call_id: str
    artifact: Any
    status: Literal["success", "error"]

    def __init__(
        self,
        content: Any = None,
        tool_call_id: Any = None,  # any id that str() can write: a str, an int, a UUID
        *,
        artifact: Any = None,
        status: Literal["success", "error"] = "success",
        **fields: Unpack[MessageFields],
    ) -> None:
        super().__init__(content, **fields)
        if tool_call_id is None:
            raise InvalidInputError("A ToolMessage needs a tool_call_id.", fix="Pass the id of the call it answers.")
        if status not in ("success", "error"):
            raise InvalidInputError(f"The status of a ToolMessage is {status!r}.", fix="Use 'success' or 'error'.")
        self.tool_call_id = str(tool_call_id)
        self.artifact = artifact
        self.status = status

    @classmethod
    def _checked_content(cls, content: object) -> Content:
        if isinstance(content, (list, tuple)):
            return [part if isinstance(part, (str, dict)) else str(part) for part in content]
        return super()._checked_content(content) if content is None else str(content)


class FunctionMessage(BaseMessage):
    """What a function gave back, in an API that tools replaced."""

    __slots__ = ()
    type: ClassVar[str] = "function"

    def __init__(self, content: Content | None = None, **fields: Unpack[MessageFields]) -> None:
        super().__init__(content, **fields)
        if self.name is None:
            raise InvalidInputError("A FunctionMessage needs a name.", fix="Pass the name of the function.")


class ChatMessage(BaseMessage):
    """What somebody in a role of your own naming says."""

    __slots__ = ("role",)
    type: ClassVar[str] = "chat"
    DEFAULTS: ClassVar[dict[str, Any]] = {**BaseMessage.DEFAULTS, "role": REQUIRED}
    role: str

    def __init__(
        self, content: Content | None = None, role: str | None = None, **fields: Unpack[MessageFields]
    ) -> None:
        super().__init__(content, **fields)
        if role is None:
            raise InvalidInputError("A ChatMessage needs a role.", fix="Pass the role that speaks.")
        self.role = role


class RemoveMessage(BaseMessage):
    """Asks the state to forget the message with this id."""

    __slots__ = ()
    type: ClassVar[str] = "remove"

    def __init__(self, id: str | float | None = None, *, content: str | None = "", **fields: Any) -> None:
        if content:
            raise InvalidInputError("A RemoveMessage has no content.", fix="Pass the id alone.")
        if id is None:
            raise InvalidInputError("A RemoveMessage needs an id.", fix="Pass the id of the message to remove.")
        super().__init__("", id=id, **fields)
