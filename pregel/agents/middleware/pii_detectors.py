"""What finds personal data in a text, and how much of a text that still grows has to be known for that."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class PIIMatch:
    """Where something was found in a text."""

    value: str
    start: int
    end: int


Detector: TypeAlias = Callable[[str], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Extent:
    """How far matches reach. `breaks`: a character that no match holds, and that no match depends on beyond.

    `opens`: where a match may begin, in a text that may go on; without it, anywhere.
    """

    breaks: re.Pattern[str]
    opens: re.Pattern[str] | None = None

    @classmethod
    def of(cls, breaks: str, opens: str | None = None) -> Extent:
        """From regular expressions."""
        return cls(re.compile(breaks), re.compile(opens) if opens is not None else None)


def by_pattern(pattern: str, holds: Callable[[str], bool] = lambda _: True) -> Detector:
    """The detector of what a regular expression finds."""
    compiled = re.compile(pattern)

    def detect(text: str) -> list[PIIMatch]:
        return [PIIMatch(one[0], *one.span()) for one in compiled.finditer(text) if holds(one[0])]

    return detect


def _luhn(number: str) -> bool:
    digits = [int(one) for one in number if one.isdigit()]
    doubled = [sum(divmod(2 * one, 10)) for one in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_address(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


DETECTORS: dict[str, Detector] = {
    "email": by_pattern(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}\b"),
    "credit_card": by_pattern(r"\b(?:\d{4}[ -]?){3}\d{4}\b", _luhn),
    "ip": by_pattern(r"\b(?:\d{1,3}\.){3}\d{1,3}\b", _is_address),
    "mac_address": by_pattern(r"\b(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}\b"),
    "url": by_pattern(r"\b(?:https?://|www\.)[^\s<>\"')]+"),
}

EXTENTS: dict[str, Extent] = {
    "email": Extent.of(r"[^A-Za-z0-9._%+@-]", r"[A-Za-z0-9._%+-]"),
    "credit_card": Extent.of(r"[^\d -]", r"\d"),
    "ip": Extent.of(r"[^\d.]", r"\d"),
    "mac_address": Extent.of(r"[^0-9A-Fa-f:-]", r"[0-9A-Fa-f]"),
    "url": Extent.of(r"[\s<>\"')]", r"\b(?:https?://|www\.|(?:h|ht|htt|https?|https?:|https?:/|w{1,3})\Z)"),
}
"""Of the detectors above: each match is a run of characters that are no breaks, and looks one character beyond it."""
