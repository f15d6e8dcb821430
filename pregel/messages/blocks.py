"""Content as standard blocks, whatever shape a caller or provider wrote it in.

1. Text becomes a text block; a block of a known type and shape stays as it is.
2. What OpenAI and Anthropic take as input (and the older `source_type` form) is translated by the tables below.
3. What a provider answered is translated only when the message names that provider.
4. Anything else is wrapped as it came: `{"type": "non_standard", "value": ...}`. Nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pregel.messages.content import BLOCK_TYPES, Content

Blocks: TypeAlias = list[dict[str, Any]]
Translator: TypeAlias = "Callable[[dict[str, Any]], dict[str, Any] | None]"


def text_of(content: Content) -> str:
    """The texts and text blocks of a content, joined with nothing between."""
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else _text_in(part) for part in content)


def _text_in(block: Mapping[str, Any]) -> str:
    text = block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) else ""


def standard_blocks(content: Content, provider: str | None = None) -> Blocks:
    """The content as standard blocks. `provider` also translates what that provider answers with."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [
        {"type": "text", "text": part} if isinstance(part, str) else _standard_block(part, provider) for part in content
    ]


def _standard_block(block: dict[str, Any], provider: str | None) -> dict[str, Any]:
    answered = _ANSWERS.get((provider or "", block.get("type", "")))
    translators = (answered, _INPUTS.get(block.get("type", "")))
    for translated in (translate(block) for translate in translators if translate is not None):
        if translated is not None:
            return translated
    return block if block.get("type") in BLOCK_TYPES else {"type": "non_standard", "value": block}


# -- input shapes ----------------------------------------------------------------------------------------------------


def data_uri(text: str) -> tuple[str, str] | None:
    """(mime type, base64 text) of a base64 data URI."""
    head, comma, data = text.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return head[len("data:") : -len(";base64")], data


def _at(kind: str, location: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """A data block at a URL or in a data URI."""
    inline = data_uri(location)
    where = {"url": location} if inline is None else {"base64": inline[1], "mime_type": inline[0]}
    return _with_extras({"type": kind, **where}, known)


def _with_extras(block: dict[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    return {**block, "extras": dict(extras)} if extras else block


def _without(block: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key not in keys}


def _openai_image(block: dict[str, Any]) -> dict[str, Any] | None:
    image = block.get("image_url")
    if isinstance(image, str):
        return _at("image", image, {})
    return _at("image", image["url"], _without(image, "url")) if isinstance(image, dict) and "url" in image else None


def _openai_audio(block: dict[str, Any]) -> dict[str, Any] | None:
    audio = block.get("input_audio")
    if not isinstance(audio, dict) or "data" not in audio:
        return None
    return {"type": "audio", "base64": audio["data"], "mime_type": f"audio/{audio.get('format', 'wav')}"}


def _file(block: dict[str, Any]) -> dict[str, Any] | None:
    file = block.get("file")
    if not isinstance(file, dict):
        return _older(block)
    extras = _without(file, "file_data", "file_id")
    if "file_data" in file:
        return _at("file", file["file_data"], extras)
    return _with_extras({"type": "file", "file_id": file["file_id"]}, extras) if "file_id" in file else None


def _image(block: dict[str, Any]) -> dict[str, Any] | None:
    return _anthropic(block, "image") if "source" in block else _older(block)


def _document(block: dict[str, Any]) -> dict[str, Any] | None:
    return _anthropic(block, "file")


def _anthropic(block: dict[str, Any], kind: str) -> dict[str, Any] | None:
    source: Any = block.get("source")
    extras = _without(block, "type", "source")
    match source:
        case {"type": "base64", "data": data}:
            found = {"type": kind, "base64": data}
        case {"type": "url", "url": url}:
            found = {"type": kind, "url": url}
        case {"type": "file", "file_id": file_id}:
            found = {"type": kind, "file_id": file_id}
        case {"type": "text", "data": text}:
            found = {"type": "text-plain", "text": text}
        case _:
            return None
    if "media_type" in source:
        found["mime_type"] = source["media_type"]
    return _with_extras(found, extras)


_OLDER = {"base64": ("data", "base64"), "url": ("url", "url"), "id": ("id", "file_id"), "text": ("text", "text")}


def _older(block: dict[str, Any]) -> dict[str, Any] | None:
    """The form with `source_type`, from before standard blocks."""
    source_type = block.get("source_type")
    if source_type not in _OLDER:
        return None
    old, new = _OLDER[source_type]
    if old not in block:
        return None
    found = {"type": "text-plain" if source_type == "text" else block["type"], new: block[old]}
    if "mime_type" in block:
        found["mime_type"] = block["mime_type"]
    return _with_extras(found, _without(block, "type", "source_type", "mime_type", old))


def _untyped(block: dict[str, Any]) -> dict[str, Any] | None:
    return {"type": "text", "text": block["text"]} if isinstance(block.get("text"), str) and len(block) == 1 else None


_INPUTS: dict[str, Translator] = {
    "image_url": _openai_image,
    "input_audio": _openai_audio,
    "file": _file,
    "image": _image,
    "audio": _older,
    "video": _older,
    "document": _document,
    "": _untyped,
}


# -- what a provider answers -----------------------------------------------------------------------------------------


def _anthropic_thinking(block: dict[str, Any]) -> dict[str, Any]:
    found = {"type": "reasoning", "reasoning": block.get("thinking", "")}
    return _with_extras(found, _without(block, "type", "thinking"))


def _anthropic_tool_use(block: dict[str, Any]) -> dict[str, Any] | None:
    args = block.get("input")
    if not isinstance(args, dict):
        return None
    return {"type": "tool_call", "name": block.get("name", ""), "args": args, "id": block.get("id")}


def _openai_reasoning(block: dict[str, Any]) -> dict[str, Any] | None:
    summary = block.get("summary")
    if not isinstance(summary, list):
        return None
    text = "\n\n".join(part.get("text", "") for part in summary)
    found = {"type": "reasoning", **({"id": block["id"]} if "id" in block else {}), "reasoning": text}
    return _with_extras(found, _without(block, "type", "summary", "id"))


def _anthropic_text(block: dict[str, Any]) -> dict[str, Any]:
    found = _without(block, "citations")
    if not block.get("citations"):
        return found
    return {**found, "annotations": [_anthropic_citation(citation) for citation in block["citations"]]}


def _anthropic_citation(citation: dict[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = {key: citation[key] for key in ("cited_text", "title", "url") if key in citation}
    return _with_extras({"type": "citation", **known}, _without(citation, *known))


_ANSWERS: dict[tuple[str, str], Translator] = {
    ("anthropic", "text"): _anthropic_text,
    ("anthropic", "thinking"): _anthropic_thinking,
    ("anthropic", "tool_use"): _anthropic_tool_use,
    ("openai", "reasoning"): _openai_reasoning,
}
