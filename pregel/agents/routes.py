"""Where an agent goes next: pure functions of its state.

1. A ``jump_to`` that the node itself wrote wins, whichever hook or tool it is.
2. Only calls without a result are run. A call that was answered otherwise (a person said no) is never sent to the
   tools, whatever jumps.
3. A call that could not be read goes to the tools too, which tell the model so; a model that writes nothing else
   several times in a row is not asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pregel.agents.history import last_answer, malformed_calls, only_malformed, pending_calls
from pregel.agents.state import JumpTo
from pregel.errors import InvalidUpdateError
from pregel.messages.convert import kind_of
from pregel.runnable import Runnable
from pregel.types import Send

TRIES = 3  # answers in a row that are nothing but calls nobody can read


@dataclass(frozen=True, slots=True)
class Places:
    """The nodes that routes lead to: `loop` before the next model call, `exit` at the end, `tools` if there are any."""

    loop: str
    exit: str
    tools: str | None
    direct: frozenset[str] = frozenset()
    """Tools whose answer ends the run."""
    structured: frozenset[str] = frozenset()
    """Pseudo-tools that give the structured answer."""

    def jump(self, to: JumpTo, state: Mapping[str, Any], who: str) -> Any:
        """Where a jump leads: the pending calls, the loop or the exit."""
        if to == "end":
            return self.exit
        if to == "model":
            return self.loop
        if to != "tools":
            raise InvalidUpdateError(f"{who} jumps to {to!r}.", fix="Use 'tools', 'model' or 'end'.")
        return self.calls(state) or self.loop

    def calls(self, state: Mapping[str, Any]) -> list[Send]:
        """A Send for each call that is neither answered nor a structured answer."""
        answer, after = last_answer(state.get("messages") or ())
        if answer is None or self.tools is None:
            return []
        calls = [call for call in pending_calls(answer, after) if call["name"] not in self.structured]
        return [Send(self.tools, [call]) for call in (*calls, *malformed_calls(answer, after))]


class Route(Runnable):
    """The path of a conditional edge; it never waits."""

    has_async = True

    def __init__(self, places: Places, who: str) -> None:
        self.places, self.who, self.name = places, who, "route"

    def call(self, value: Any, running: Any) -> Any:
        state = value if isinstance(value, Mapping) else {}
        for channel, to in reversed(running.writes):  # what the state holds may be the jump of the step before
            if channel == "jump_to" and to is not None:
                return self.places.jump(to, state, self.who)
        return self.next(state)

    def next(self, state: Mapping[str, Any]) -> Any:
        """Where it goes when nothing jumps."""
        raise NotImplementedError


class Onward(Route):
    """From a hook to the next node."""

    def __init__(self, places: Places, who: str, after: str) -> None:
        super().__init__(places, who)
        self.after = after

    def next(self, state: Mapping[str, Any]) -> Any:
        return self.after


class AfterModel(Route):
    """From the model, or from the hooks behind it: to the tools, once more to the model, or to the end."""

    def __init__(self, places: Places, who: str, *, must_answer: bool) -> None:
        super().__init__(places, who)
        self.must_answer = must_answer  # it has nothing but a structured answer to give

    def next(self, state: Mapping[str, Any]) -> Any:
        messages = state.get("messages") or ()
        answer, after = last_answer(messages)
        if answer is None:
            return self.places.exit
        if self.must_answer:
            return self.places.loop if state.get("structured_response") is None else self.places.exit
        if not answer.tool_calls and (not answer.invalid_tool_calls or _in_a_row(messages)):
            return self.places.exit
        if calls := self.places.calls(state):
            return calls
        if state.get("structured_response") is not None:
            return self.places.exit
        return self.places.loop if not pending_calls(answer, after) else self.places.exit


class AfterTools(Route):
    """From the tools: back to the model, or to the end when the answer is for the user."""

    def next(self, state: Mapping[str, Any]) -> Any:
        answer, after = last_answer(state.get("messages") or ())
        if answer is None:
            return self.places.loop
        results = {message.tool_call_id: message for message in after if kind_of(message) == "tool"}
        calls = [call for call in answer.tool_calls if call["name"] not in self.places.structured]
        if calls and all(self._ends(call, results.get(call["id"])) for call in calls):
            return self.places.exit
        given = (one for one in results.values() if one.name in self.places.structured)
        if any(getattr(one, "status", "success") != "error" for one in given):
            return self.places.exit
        return self.places.loop

    def _ends(self, call: Any, result: Any) -> bool:
        """Whether a call's answer is for the user. A sibling that still runs is told by the name of its tool."""
        if result is None:
            return call["name"] in self.places.direct
        return result.name in self.places.direct and getattr(result, "status", "success") != "error"


def _in_a_row(messages: Sequence[Any]) -> bool:
    """Whether the last answers were all nothing but calls that cannot be read."""
    answers = [message for message in messages if kind_of(message) == "ai"][-TRIES:]
    return len(answers) == TRIES and all(map(only_malformed, answers))
