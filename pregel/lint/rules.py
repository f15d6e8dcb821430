"""The rules, and a problem that one of them found."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RULES", "Problem", "Rule"]


@dataclass(frozen=True, slots=True)
class Rule:
    """What is wrong, in a sentence about `{what}` in `{where}`, and how it is put right."""

    id: str
    name: str
    message: str
    fix: str


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A place in a source file that breaks a rule. Lines count from 1, columns too."""

    file: str
    line: int
    column: int
    rule: str
    message: str
    fix: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.rule} {self.message} Fix: {self.fix}"


_AGAIN = "{where} runs again from its top on a resume and after a crash"

RULES = {
    rule.id: rule
    for rule in (
        Rule("PG001", "syntax", "{what}", "Mend the syntax: nothing else of this file was checked."),
        Rule(
            "PG101",
            "clock",
            "{what} gives another time when " + _AGAIN + ".",
            'Take the time in a @task, or once: runtime.step("now", time.time).',
        ),
        Rule(
            "PG102",
            "random",
            "{what} gives another value when " + _AGAIN + ".",
            'Draw it in a @task, or once: runtime.step("id", lambda: str(uuid.uuid4())). A seed makes it the same.',
        ),
        Rule(
            "PG103",
            "sleep",
            "{what} waits anew each time that " + _AGAIN + ", and holds the process meanwhile.",
            "Wait with pregel.waits.sleep, which holds nothing; or in a @task, or in a node of its own.",
        ),
        Rule(
            "PG104",
            "io",
            "{what} is done anew, and may give something else, when " + _AGAIN + ".",
            "Do it in a @task, in a node of its own, or once in runtime.step.",
        ),
        Rule(
            "PG201",
            "call-outside-boundary",
            "{what} is not recorded by itself, and {where} goes on after it: after a crash it is done again.",
            "Make it a @task, a node of its own, or put it into runtime.effect(key, ...). To record only the final "
            "result does not record it.",
        ),
        Rule(
            "PG202",
            "no-idempotency-key",
            "{what} in {where} has no idempotency key: it is done twice when the process dies before its result is "
            "recorded.",
            "Send runtime.idempotency_key with it, or the key that runtime.effect gives to its producer.",
        ),
        Rule(
            "PG301",
            "guarded-by-replay",
            "{what} in {where} depends on is_replaying: a run that goes on after a crash takes the other way, and "
            "leaves it out or does it twice.",
            "Take the condition away: what is recorded is not done again anyway. The flag is for logs and metrics.",
        ),
    )
}
