"""Chat messages: what people, models and tools say, as plain objects, and how they join, convert and are cut."""

from __future__ import annotations

from typing import TypeAlias

from pregel.messages.base import BaseMessage
from pregel.messages.calls import (
    InvalidToolCall,
    ToolCall,
    ToolCallChunk,
    invalid_tool_call,
    tool_call,
    tool_call_chunk,
)
from pregel.messages.chunks import (
    AIMessageChunk,
    BaseMessageChunk,
    ChatMessageChunk,
    FunctionMessageChunk,
    HumanMessageChunk,
    SystemMessageChunk,
    ToolMessageChunk,
    message_chunk_to_message,
)
from pregel.messages.combine import merge_content
from pregel.messages.content import (
    Annotation,
    AudioContentBlock,
    Citation,
    ContentBlock,
    DataContentBlock,
    FileContentBlock,
    ImageContentBlock,
    NonStandardAnnotation,
    NonStandardContentBlock,
    PlainTextContentBlock,
    ReasoningContentBlock,
    RefusalContentBlock,
    ServerToolCall,
    ServerToolCallChunk,
    ServerToolResult,
    TextContentBlock,
    VideoContentBlock,
)
from pregel.messages.convert import (
    MESSAGE_CLASSES,
    MessageCoercionError,
    MessageLikeRepresentation,
    convert_to_messages,
    is_message,
    message_to_dict,
    messages_from_dict,
    messages_to_dict,
)
from pregel.messages.history import filter_messages, merge_message_runs, trim_messages
from pregel.messages.kinds import (
    AIMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from pregel.messages.openai import convert_to_openai_messages
from pregel.messages.reducer import (
    REMOVE_ALL_MESSAGES,
    add_messages,
    merge_messages,
    messages_delta_reducer,
    whole_messages,
    with_ids,
)
from pregel.messages.transcript import count_tokens_approximately, get_buffer_string
from pregel.messages.usage import InputTokenDetails, OutputTokenDetails, UsageMetadata

AnyMessage: TypeAlias = (
    AIMessage
    | HumanMessage
    | ChatMessage
    | SystemMessage
    | FunctionMessage
    | ToolMessage
    | AIMessageChunk
    | HumanMessageChunk
    | ChatMessageChunk
    | SystemMessageChunk
    | FunctionMessageChunk
    | ToolMessageChunk
)

__all__ = [
    "MESSAGE_CLASSES",
    "REMOVE_ALL_MESSAGES",
    "AIMessage",
    "AIMessageChunk",
    "Annotation",
    "AnyMessage",
    "AudioContentBlock",
    "BaseMessage",
    "BaseMessageChunk",
    "ChatMessage",
    "ChatMessageChunk",
    "Citation",
    "ContentBlock",
    "DataContentBlock",
    "FileContentBlock",
    "FunctionMessage",
    "FunctionMessageChunk",
    "HumanMessage",
    "HumanMessageChunk",
    "ImageContentBlock",
    "InputTokenDetails",
    "InvalidToolCall",
    "MessageCoercionError",
    "MessageLikeRepresentation",
    "NonStandardAnnotation",
    "NonStandardContentBlock",
    "OutputTokenDetails",
    "PlainTextContentBlock",
    "ReasoningContentBlock",
    "RefusalContentBlock",
    "RemoveMessage",
    "ServerToolCall",
    "ServerToolCallChunk",
    "ServerToolResult",
    "SystemMessage",
    "SystemMessageChunk",
    "TextContentBlock",
    "ToolCall",
    "ToolCallChunk",
    "ToolMessage",
    "ToolMessageChunk",
    "UsageMetadata",
    "VideoContentBlock",
    "add_messages",
    "convert_to_messages",
    "convert_to_openai_messages",
    "count_tokens_approximately",
    "filter_messages",
    "get_buffer_string",
    "invalid_tool_call",
    "is_message",
    "merge_content",
    "merge_message_runs",
    "merge_messages",
    "message_chunk_to_message",
    "message_to_dict",
    "messages_delta_reducer",
    "messages_from_dict",
    "messages_to_dict",
    "tool_call",
    "tool_call_chunk",
    "trim_messages",
    "whole_messages",
    "with_ids",
]
