"""Questions of a run, asked at the prompt: what a person types becomes the Command that answers them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from pregel.cli.answers import Approval, answer_of, approvals, choices, decision, visible
from pregel.cli.screen import Screen
from pregel.cli.usage import CallError
from pregel.cli.values import as_lines
from pregel.types import Command, Interrupt


class Questions:
    """Asks on a screen. `free` reads the answer to a question that is no approval of a tool call."""

    def __init__(self, screen: Screen, free: Callable[[str], Any]) -> None:
        self.screen = screen
        self.free = free

    def answers(self, questions: Sequence[Interrupt]) -> Command[Any] | None:
        """The answers to all of them; None when the input ends before."""
        answers: dict[str, Any] = {}
        for question in questions:
            answer = self._answer(question.value)
            if answer is None:
                return None
            answers[question.id] = answer[0]
        return Command(resume=answers)

    def line(self, prompt: str) -> str | None:
        """A line of the input; None at its end. A prompt is shown to people only."""
        if sys.stdin.isatty():
            try:
                return input(prompt)
            except EOFError:
                self.screen.say()
                return None
        line = sys.stdin.readline()
        return line.rstrip("\r\n") if line else None

    def _answer(self, question: Any) -> tuple[Any] | None:
        """The answer to a question; None when the input ends before it."""
        if isinstance(question, dict) and "error" in question:
            self.screen.problem(visible(str(question["error"])))
        calls = approvals(question)
        if calls is None:
            self.screen.say("It asks:")
            self._lines(question)
            line = self.line("answer> ")
            return None if line is None else (self.free(line),)
        decisions = []
        for call in calls:
            self.screen.say(f"Approve {visible(call.name)}?")
            self._lines(call.args)
            made = self._decision(call)
            if made is None:
                return None
            decisions.append(made)
        return (answer_of(question, decisions),)

    def _decision(self, call: Approval) -> dict[str, Any] | None:
        self.screen.say(f"Type one of: {choices(call)}")
        while (line := self.line("decision> ")) is not None:
            try:
                return decision(line, call)
            except CallError as error:
                self.screen.problem(str(error))
        return None

    def _lines(self, value: Any) -> None:
        for line in as_lines(value):
            self.screen.say(f"  {visible(line)}")


def json_or_text(line: str) -> Any:
    """A typed answer as ``--answer`` takes it, or the text where it is no JSON."""
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return line
