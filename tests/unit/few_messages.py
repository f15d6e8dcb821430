"""A tool call and a picture that many tests of messages use."""

from __future__ import annotations

from pregel.messages import ToolCall

CALL: ToolCall = {"name": "look", "args": {"x": 1}, "id": "c1", "type": "tool_call"}
PNG = {"type": "image", "base64": "AA==", "mime_type": "image/png"}
