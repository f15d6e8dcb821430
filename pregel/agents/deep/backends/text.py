"""What can be done with the text of a file: a window of its lines, a replacement, a search."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from pregel.agents.deep.backends.base import FileData, ReadResult
from pregel.agents.deep.backends.errors import Refused


def encoded(raw: bytes) -> FileData:
    """The content of a file: text when it is UTF-8 without NULs, else base64."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return {"content": base64.b64encode(raw).decode("ascii"), "encoding": "base64"}
    return {"content": text, "encoding": "utf-8"}


def decoded(data: FileData) -> bytes:
    """The bytes of a content."""
    if data["encoding"] == "base64":
        return base64.b64decode(data["content"])
    return data["content"].encode("utf-8")


def check(content: str) -> None:
    """Refused when no file can hold the text."""
    try:
        content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Refused("invalid_content", f"the text holds half a surrogate pair at {error.start}.") from None


def lines_of(text: str) -> list[str]:
    """The lines, however they end; a last line end makes no line."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def window(data: FileData, offset: int, limit: int) -> ReadResult:
    """`limit` lines after the first `offset`; Refused when the file ends before that."""
    if data["encoding"] == "base64":
        return ReadResult(file_data=data)
    lines = lines_of(data["content"])
    total = len(lines)
    if limit <= 0:
        return ReadResult(file_data={**data, "content": ""}, total_lines=total, no_lines_requested=True)
    offset = max(offset, 0)
    if offset and offset >= total:
        raise Refused("invalid_offset", f"line offset {offset} exceeds file length ({total} lines).")
    shown = lines[offset : offset + limit]
    end = offset + len(shown)
    return ReadResult(
        file_data={**data, "content": "\n".join(shown)},
        total_lines=total,
        start_line=offset + 1 if shown else None,
        end_line=end if shown else None,
        next_offset=end if end < total else None,
    )


def replaced(text: str, old: str, new: str, *, every: bool) -> tuple[str, int]:
    """The text with one place, or every place, replaced, and how many; Refused when it is none, or not clear which."""
    if not old:
        raise Refused("invalid_edit", "old_string is empty. Give the text to replace, or write the file anew.")
    check(new)
    if "\r\n" in text and old not in text:  # a model sees and writes lines that end in LF
        old, new = (part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (old, new))
    count = text.count(old)
    if count == 0 and old.endswith("\n") and text.endswith(old[:-1]):
        raise Refused("invalid_edit", "old_string ends with a line end, and the file does not. Leave it out.")
    if count == 0:
        raise Refused("invalid_edit", f"old_string was not found: {_shown(old)}")
    if count > 1 and not every:
        raise Refused(
            "invalid_edit",
            f"old_string stands in {count} places. Give more of the text around it, or replace_all=true.",
        )
    return text.replace(old, new), count


def found(text: str, pattern: str) -> Iterator[tuple[int, str]]:
    """(line number from 1, line) of every line that holds the pattern, literally."""
    if pattern not in text:  # most files: searched at C speed, without cutting lines
        return
    for number, line in enumerate(lines_of(text), 1):
        if pattern in line:
            yield number, line


def _shown(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:200] + "...")
