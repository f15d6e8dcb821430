"""Shapes of content blocks: the parts a message's content is made of, the same for every provider."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, Required, TypeAlias

from typing_extensions import TypedDict

from pregel.messages.calls import InvalidToolCall, ToolCall, ToolCallChunk

Content: TypeAlias = str | list[str | dict[str, Any]]
"""What a message holds: text, or a list of texts and blocks."""


class Citation(TypedDict, total=False):
    """Where a piece of text comes from. Indexes count characters, of the answer and of the source."""

    type: Required[Literal["citation"]]
    id: str
    url: str
    title: str
    start_index: int
    end_index: int
    cited_text: str
    extras: dict[str, Any]


class NonStandardAnnotation(TypedDict, total=False):
    """An annotation only its provider knows."""

    type: Required[Literal["non_standard_annotation"]]
    value: Required[dict[str, Any]]
    id: str


Annotation: TypeAlias = Citation | NonStandardAnnotation


class Block(TypedDict, total=False):
    """What every block may have: an id, a place in a stream, and what only its provider knows."""

    id: str
    index: int | str
    extras: dict[str, Any]


class TextContentBlock(Block):
    """Text."""

    type: Required[Literal["text"]]
    text: Required[str]
    annotations: NotRequired[list[Annotation]]


class ReasoningContentBlock(Block):
    """What the model thought."""

    type: Required[Literal["reasoning"]]
    reasoning: NotRequired[str]


class RefusalContentBlock(Block):
    """Why the model does not answer."""

    type: Required[Literal["refusal"]]
    refusal: NotRequired[str]


class Data(Block):
    """Bytes: at a URL, in base64, or stored with the provider under `file_id`."""

    url: NotRequired[str]
    base64: NotRequired[str]
    file_id: NotRequired[str]
    mime_type: NotRequired[str]


class ImageContentBlock(Data):
    """A picture."""

    type: Required[Literal["image"]]


class AudioContentBlock(Data):
    """Sound."""

    type: Required[Literal["audio"]]


class VideoContentBlock(Data):
    """A film."""

    type: Required[Literal["video"]]


class FileContentBlock(Data):
    """Any other file, e.g. a PDF."""

    type: Required[Literal["file"]]


class PlainTextContentBlock(Data):
    """A text document."""

    type: Required[Literal["text-plain"]]
    text: NotRequired[str]
    title: NotRequired[str]
    context: NotRequired[str]


class ServerToolCall(Block):
    """A call the provider runs itself."""

    type: Required[Literal["server_tool_call"]]
    name: Required[str]
    args: Required[dict[str, Any]]


class ServerToolCallChunk(Block):
    """A piece of a call the provider runs itself."""

    type: Required[Literal["server_tool_call_chunk"]]
    name: NotRequired[str]
    args: NotRequired[str]


class ServerToolResult(Block):
    """The result of a call the provider ran itself."""

    type: Required[Literal["server_tool_result"]]
    tool_call_id: Required[str]
    status: Required[Literal["success", "error"]]
    output: NotRequired[Any]


class NonStandardContentBlock(Block):
    """A block only its provider knows, as it came."""

    type: Required[Literal["non_standard"]]
    value: Required[dict[str, Any]]


DataContentBlock: TypeAlias = (
    ImageContentBlock | AudioContentBlock | VideoContentBlock | FileContentBlock | PlainTextContentBlock
)
ContentBlock: TypeAlias = (
    TextContentBlock
    | ReasoningContentBlock
    | RefusalContentBlock
    | DataContentBlock
    | ToolCall
    | InvalidToolCall
    | ToolCallChunk
    | ServerToolCall
    | ServerToolCallChunk
    | ServerToolResult
    | NonStandardContentBlock
)
BLOCK_TYPES = frozenset(
    {
        "text",
        "reasoning",
        "refusal",
        "image",
        "audio",
        "video",
        "file",
        "text-plain",
        "tool_call",
        "tool_call_chunk",
        "invalid_tool_call",
        "server_tool_call",
        "server_tool_call_chunk",
        "server_tool_result",
        "non_standard",
    }
)
