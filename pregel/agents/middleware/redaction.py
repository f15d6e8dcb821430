"""What is done about personal data in a text: a rule, and the function that follows it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pregel.agents.middleware.pii_detectors import DETECTORS, EXTENTS, Detector, Extent, PIIMatch, by_pattern
from pregel.errors import DefinitionError, RunError

Strategy = Literal["redact", "mask", "hash", "block"]
STRATEGIES: tuple[Strategy, ...] = ("redact", "mask", "hash", "block")


class PIIDetectionError(RunError):
    """A text holds personal data that is not let through. `matches` are where."""

    code = "PII"

    def __init__(self, pii_type: str, matches: Sequence[PIIMatch]) -> None:
        self.pii_type, self.matches = pii_type, list(matches)
        super().__init__(
            f"A text holds {len(matches)} of the type {pii_type!r}, which is blocked.",
            fix="Take it out, or use strategy='redact', 'mask' or 'hash'.",
        )


@dataclass(frozen=True, slots=True)
class Redaction:
    """Makes a text clean; raises PIIDetectionError under "block". `extent`: how far matches reach, if it is known."""

    rule: RedactionRule
    detect: Detector
    extent: Extent | None = None

    def __call__(self, text: str, before: str = "") -> str:
        """The clean text. `before` is what stands before it, a character or nothing: matches may depend on it."""
        matches = [_match(one) for one in self.detect(before + text)]
        matches = [one for one in matches if one.start >= len(before)]
        if matches and self.rule.strategy == "block":
            raise PIIDetectionError(self.rule.pii_type, matches)
        text = before + text
        for match in sorted(matches, key=lambda one: one.start, reverse=True):
            text = f"{text[: match.start]}{self.rule.instead(match.value)}{text[match.end :]}"
        return text[len(before) :]


@dataclass(frozen=True, slots=True)
class RedactionRule:
    """What is looked for and what is done about it.

    `detector`: a regular expression, or a function of the text. `breaks`, for a detector of your own: a regular
    expression of one character that no match holds, and beyond which none looks (``r"\\s"``); with it a text that
    streams is held back to the next such character only, without it to its end.
    """

    pii_type: str
    strategy: Strategy = "redact"
    detector: str | Detector | None = None
    breaks: str | None = None

    def resolved(self) -> Redaction:
        """The function that makes a text clean; DefinitionError for a strategy or a type that there is not."""
        if self.strategy not in STRATEGIES:
            raise DefinitionError(f"{self.strategy!r} is no strategy.", fix=f"Use one of {', '.join(STRATEGIES)}.")
        given = self.detector if self.detector is not None else DETECTORS.get(self.pii_type)
        if given is None:
            raise DefinitionError(
                f"There is no detector for {self.pii_type!r}.",
                fix=f"Give detector=, or use one of {', '.join(DETECTORS)}.",
            )
        return Redaction(self, by_pattern(given) if isinstance(given, str) else given, self._extent())

    def _extent(self) -> Extent | None:
        if self.breaks is not None:
            return Extent(re.compile(self.breaks))
        return EXTENTS.get(self.pii_type) if self.detector is None else None

    def instead(self, value: str) -> str:
        """What stands in the place of what was found."""
        if self.strategy == "redact":
            return f"[REDACTED_{self.pii_type.upper()}]"
        if self.strategy == "hash":
            return f"<{self.pii_type}_hash:{hashlib.sha256(value.encode()).hexdigest()[:8]}>"
        return _masked(self.pii_type, value)


def _match(found: Any) -> PIIMatch:
    """What a detector found: a match of ours, or a dict with the same keys."""
    return found if isinstance(found, PIIMatch) else PIIMatch(found["value"], found["start"], found["end"])


def _masked(kind: str, value: str) -> str:
    """A value of which only the end can be seen."""
    if kind == "email":
        user, _, host = value.partition("@")
        return f"{'*' * len(user)}@****.{host.rpartition('.')[2]}"
    if kind == "credit_card":
        return f"****-****-****-{''.join(one for one in value if one.isdigit())[-4:]}"
    if kind == "ip":
        return f"*.*.*.{value.rpartition('.')[2]}"
    if kind == "url":
        return "[MASKED_URL]"
    return f"{'*' * max(len(value) - 4, 4)}{value[-4:] if len(value) > 4 else ''}"
