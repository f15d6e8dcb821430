"""Personal data in what people, models and tools say: found, and redacted, masked, hashed or refused."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from pregel.agents.history import last_answer
from pregel.agents.middleware.base import AgentMiddleware, hook_config, inline
from pregel.errors import DefinitionError, RunError
from pregel.messages import BaseMessage
from pregel.messages.convert import kind_of

Strategy = Literal["redact", "mask", "hash", "block"]
STRATEGIES: tuple[Strategy, ...] = ("redact", "mask", "hash", "block")


@dataclass(frozen=True, slots=True)
class PIIMatch:
    """Where something was found in a text."""

    value: str
    start: int
    end: int


Detector: TypeAlias = Callable[[str], Sequence[Any]]


class PIIDetectionError(RunError):
    """A text holds personal data that is not let through. `matches` are where."""

    code = "PII"

    def __init__(self, pii_type: str, matches: Sequence[PIIMatch]) -> None:
        self.pii_type, self.matches = pii_type, list(matches)
        super().__init__(
            f"A text holds {len(matches)} of the type {pii_type!r}, which is blocked.",
            fix="Take it out, or use strategy='redact', 'mask' or 'hash'.",
        )


def _by_pattern(pattern: str, holds: Callable[[str], bool] = lambda _: True) -> Detector:
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
    "email": _by_pattern(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}\b"),
    "credit_card": _by_pattern(r"\b(?:\d{4}[ -]?){3}\d{4}\b", _luhn),
    "ip": _by_pattern(r"\b(?:\d{1,3}\.){3}\d{1,3}\b", _is_address),
    "mac_address": _by_pattern(r"\b(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}\b"),
    "url": _by_pattern(r"\b(?:https?://|www\.)[^\s<>\"')]+"),
}


@dataclass(frozen=True, slots=True)
class RedactionRule:
    """What is looked for and what is done about it. `detector`: a regular expression, or a function of the text."""

    pii_type: str
    strategy: Strategy = "redact"
    detector: str | Detector | None = None

    def resolved(self) -> Callable[[str], str]:
        """The function that makes a text clean; raises PIIDetectionError under "block"."""
        if self.strategy not in STRATEGIES:
            raise DefinitionError(f"{self.strategy!r} is no strategy.", fix=f"Use one of {', '.join(STRATEGIES)}.")
        given = self.detector if self.detector is not None else DETECTORS.get(self.pii_type)
        if given is None:
            raise DefinitionError(
                f"There is no detector for {self.pii_type!r}.",
                fix=f"Give detector=, or use one of {', '.join(DETECTORS)}.",
            )
        detect = _by_pattern(given) if isinstance(given, str) else given
        return lambda text: self._clean(text, [_match(one) for one in detect(text)])

    def _clean(self, text: str, matches: Sequence[PIIMatch]) -> str:
        if matches and self.strategy == "block":
            raise PIIDetectionError(self.pii_type, matches)
        for match in sorted(matches, key=lambda one: one.start, reverse=True):
            text = f"{text[: match.start]}{self._instead(match.value)}{text[match.end :]}"
        return text

    def _instead(self, value: str) -> str:
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


class PIIMiddleware(AgentMiddleware):
    """Keeps one type of personal data out of what the model is asked, the state and its values.

    The streams of ``messages`` and ``tools`` show words as they come, before they are looked through; the checkpoint
    of the step in which they came holds them too.

    Types: email, credit_card, ip, mac_address, url, or any with a `detector`. `apply_to_input`: the last human message,
    before each model call; `apply_to_tool_results`: those behind the last answer; `apply_to_output`: the answer. What
    is found is replaced in the state as well. "block" raises PIIDetectionError.
    """

    def __init__(
        self,
        pii_type: str,
        *,
        strategy: Strategy = "redact",
        detector: str | Detector | None = None,
        apply_to_input: bool = True,
        apply_to_output: bool = False,
        apply_to_tool_results: bool = False,
    ) -> None:
        self.pii_type, self.strategy = pii_type, strategy
        self.clean = RedactionRule(pii_type, strategy, detector).resolved()
        self.input, self.output, self.results = apply_to_input, apply_to_output, apply_to_tool_results

    @property
    def name(self) -> str:
        """With the type, so that an agent may have several."""
        return f"PIIMiddleware[{self.pii_type}]"

    @inline
    @hook_config(can_jump_to=[])
    def before_model(self, state: Any, runtime: Any) -> Any:
        """Clean what the model is about to read."""
        messages = state["messages"]
        chosen: list[BaseMessage] = []
        if self.input:
            chosen += [one for one in reversed(messages) if kind_of(one) == "human"][:1]
        if self.results:
            chosen += [one for one in last_answer(messages)[1] if kind_of(one) == "tool"]
        return self._update(chosen)

    def wrap_model_call(self, request: Any, *_: Any) -> Any:
        """Clean the answer before it is stored."""
        response = yield request
        if not self.output:
            return response
        return replace(response, result=[self._cleaned(one) or one for one in response.result])

    def _update(self, messages: Sequence[BaseMessage]) -> Any:
        changed = [clean for one in messages if (clean := self._cleaned(one)) is not None]
        return {"messages": changed} if changed else None

    def _cleaned(self, message: BaseMessage) -> BaseMessage | None:
        """The message without what is looked for; None when there is nothing of it."""
        content: Any = message.content
        if isinstance(content, str):
            cleaned: Any = self.clean(content)
        else:
            cleaned = [self._block(block) for block in content]
        return None if cleaned == content else message.model_copy(update={"content": cleaned})

    def _block(self, block: Any) -> Any:
        if isinstance(block, str):
            return self.clean(block)
        return {**block, "text": self.clean(block["text"])} if isinstance(block.get("text"), str) else block
