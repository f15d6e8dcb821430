"""Texts that name something in a store: any that every store keeps."""

from __future__ import annotations

from pregel.errors import InvalidInputError


def checked_text(text: object, what: str) -> str:
    """The text; InvalidInputError for what is none, or has a NUL character or half a surrogate pair."""
    if not isinstance(text, str):
        raise InvalidInputError(f"{what} is {text!r}, which is no text.", fix="Give a str.")
    try:
        if "\0" not in text and (text.isascii() or text.encode()):
            return text
    except UnicodeEncodeError:
        pass
    raise InvalidInputError(
        f"{what} {text!r} has a NUL character or half a surrogate pair, which not every store keeps.",
        fix="Keep such characters out of names and keys; values may hold them.",
    )
