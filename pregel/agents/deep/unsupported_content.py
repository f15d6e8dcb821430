"""Content that a model cannot take, as a note in its place: a picture that was read once must not end every later call.

The state keeps what it holds, so another model is shown it again. What a model takes is in its `profile`; what that
does not speak of is taken to be supported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pregel.agents.middleware.base import AgentMiddleware
from pregel.agents.middleware.requests import ModelRequest
from pregel.messages.convert import kind_of

PDF = "application/pdf"
INPUT = {"image": "image_inputs", "audio": "audio_inputs", "video": "video_inputs", "file": "pdf_inputs"}
"""Which key of a profile speaks of a type of block."""
RESULT = {"image": "image_tool_message", "file": "pdf_tool_message"}
"""And which one beside it, where the block is a tool's."""


class UnsupportedContentMiddleware(AgentMiddleware):
    """Shows the model a note for every block whose kind its profile says it does not take.

    Put it last, so that it asks the profile of the model that is called.
    """

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Put the notes into the request; the stored messages stay as they are."""
        profile: Mapping[str, Any] = request.model.profile or {}
        refused = [key for key in (*INPUT.values(), *RESULT.values()) if profile.get(key) is False]
        if refused:
            request = request.override(messages=[_supported(message, refused) for message in request.messages])
        return (yield request)


def _supported(message: Any, refused: list[str]) -> Any:
    kind = kind_of(message)
    if kind not in ("human", "tool") or isinstance(message.content, str):
        return message
    keys = (INPUT, RESULT) if kind == "tool" else (INPUT,)
    content = [_note(block, message) if _is_refused(block, keys, refused) else block for block in message.content]
    return message if content == message.content else message.model_copy(update={"content": content})


def _is_refused(block: Any, keys: tuple[dict[str, str], ...], refused: list[str]) -> bool:
    if not isinstance(block, Mapping):
        return False
    if block.get("type") == "file" and ("base64" not in block or block.get("mime_type") != PDF):
        return False  # of which a profile says nothing
    return any(key.get(str(block.get("type"))) in refused for key in keys)


def _note(block: Mapping[str, Any], message: Any) -> dict[str, Any]:
    path = message.additional_kwargs.get("read_file_path")
    named = f" of {path}" if path else ""
    kind = block.get("mime_type") or block["type"]
    return {"type": "text", "text": f"[The content{named} ({kind}) is not shown: this model takes no {block['type']}.]"}
