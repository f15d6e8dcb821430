"""An agent's work on one input as sessions: each has a cap, and hands over to the next one when it has reached it.

1. A session is closed and the next one opened by one write, before a model call: a process that dies has both or none.
   The run, its thread and the step of a workflow around it go on: no attempt is used up, and nobody is asked.
2. There are four outcomes. *Succeeded*: the agent came to its end. *Rolled over*: a cap was reached. *Failed*: its
   model or a tool raised. *Interrupted*: another input came before any of these. Only failure takes of the patience.
3. A session whose process died is no other session when somebody goes on with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, Unpack

from typing_extensions import TypedDict

from pregel.agents.flow import AgentFlow, calling
from pregel.agents.middleware.base import AgentMiddleware, hook_config, inline
from pregel.agents.middleware.budget import NOTHING, Caps, Limits, Spent, added, spent_on
from pregel.agents.middleware.requests import ExtendedModelResponse, ModelRequest, ModelResponse, ToolCallRequest
from pregel.agents.state import AgentState, OmitFromInput, PrivateStateAttr
from pregel.errors import (
    DefinitionError,
    GraphBubbleUp,
    InternalError,
    OutcomeUnknownError,
    RunError,
    StepTimeoutError,
)
from pregel.messages import REMOVE_ALL_MESSAGES, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from pregel.messages.convert import kind_of
from pregel.types import Command

Outcome = Literal["running", "succeeded", "failed", "interrupted", "rolled_over"]

SOURCE = "handoff"
"""What the message of a hand-over has for ``additional_kwargs["lc_source"]``."""
LAST, SHORT = 20, 300  # calls that a hand-over tells, and characters of each
_NO_FAILURES = (GraphBubbleUp, InternalError, OutcomeUnknownError, StepTimeoutError)


class Session(TypedDict):
    """What is known of a session. Times in unix seconds; `facts` are the caller's own.

    `reason`: why it is over, in plain words; `output`: the last words of the agent in it; `handoff`: what the next
    session was told.
    """

    number: int
    outcome: Outcome
    reason: str
    started: float
    ended: float | None
    spent: Spent
    output: str
    facts: dict[str, Any]
    handoff: str


class Failure(TypedDict):
    """What a session failed of, and the owner of the thread that met it."""

    type: str
    message: str
    fence: int


class SessionFailedError(RunError):
    """A session failed, and the patience is used up. `error_type` and `error_message` are those of its error."""

    code = "SESSION_FAILED"

    def __init__(self, message: str, *, error_type: str = "", error_message: str = "", **place: Any) -> None:
        self.error_type, self.error_message = error_type, error_message
        super().__init__(message, **place)


def _appended(left: list[Session] | None, right: list[Session] | None) -> list[Session]:
    known = {session["number"]: session for session in (*(left or ()), *(right or ()))}
    return [known[number] for number in sorted(known)]


def _first(left: Failure | None, right: Failure | None) -> Failure | None:
    """Several tools of a step may fail."""
    return right if right is None or left is None else left


class SessionState(AgentState):
    """The sessions that are over, and the one that is not."""

    sessions: NotRequired[Annotated[list[Session], OmitFromInput, _appended]]
    session: NotRequired[Annotated[Session | None, PrivateStateAttr]]
    session_failure: NotRequired[Annotated[Failure | None, PrivateStateAttr, _first]]


class SessionMiddleware(AgentMiddleware):
    """Closes a session that has reached a cap, or has failed, and opens the next one with a hand-over.

    - `max_tokens`, `max_calls`, `max_seconds` (of model calls), `max_money` with `prices` by model name: of a session.
    - `handoff`: (messages, session) -> what the next session is told, after the task in its own words; by default what
      was done and said last.
    - `facts`: (state) -> what is to be known of a session that is over, such as its commits.
    - `patience`: how many sessions may fail on one input before the run does, with a SessionFailedError.

    The state's ``sessions`` has those that are over; `sessions_of` adds the one that is not.
    """

    state_schema = SessionState

    def __init__(
        self,
        *,
        handoff: Callable[[list[BaseMessage], Session], str] | None = None,
        facts: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
        patience: int = 0,
        clock: Callable[[], float] = time.time,
        **caps: Unpack[Caps],
    ) -> None:
        self.limits = Limits("A session", caps)
        if any(limit == 0 for limit in self.limits.most.values()):
            raise DefinitionError("A session with a limit of 0 comes to nothing.", fix="Give a limit above 0.")
        if isinstance(patience, bool) or not isinstance(patience, int) or patience < 0:
            raise DefinitionError(f"patience is {patience!r}.", fix="Give the number of sessions that may fail.")
        self.handoff, self.facts, self.patience, self.clock = handoff or told, facts, patience, clock

    # -- how a session begins and ends ---------------------------------------------------------------------------------

    @hook_config(can_jump_to=[])
    def before_agent(self, state: Any, runtime: Any) -> AgentFlow[Any]:
        """A new input: a session that is still open is over, and the next one begins."""
        closed: list[Session] = []
        if (left := state.get("session")) is not None:
            failure = state.get("session_failure")
            outcome: Outcome = "interrupted" if failure is None else "failed"
            why = "another input came" if failure is None else f"{failure['type']}: {failure['message']}"
            closed = [(yield from self._closed(state, left, outcome, why))]
        number = max((one["number"] for one in (*(state.get("sessions") or ()), *closed)), default=0) + 1
        return {"session": self._opened(number), "sessions": closed, "session_failure": None}

    @hook_config(can_jump_to=[])
    def before_model(self, state: Any, runtime: Any) -> AgentFlow[Any]:
        """Hand over when a cap is reached or the session has failed; raise when the patience is used up."""
        session: Session = state.get("session") or self._opened(1)
        if (failure := state.get("session_failure")) is not None:
            why = f"{failure['type']}: {failure['message']}"
            if failure["fence"] == runtime.fence and self._failed(state) >= self.patience:
                raise SessionFailedError(
                    f"Session {session['number']} failed: {why}",
                    fix="Resume the thread to go on with a new session, or allow for more with patience=.",
                    error_type=failure["type"],
                    error_message=failure["message"],
                )
            return (yield from self._next(state, session, "failed", why))
        if (reached := self.limits.reached(session["spent"])) is not None:
            why = "the cap of {:g} {} was reached: {:g}".format(*reached)
            return (yield from self._next(state, session, "rolled_over", why))
        return None

    @inline
    @hook_config(can_jump_to=["model"])
    def after_model(self, state: Any, runtime: Any) -> Any:
        """A session that has failed goes nowhere but to its end."""
        return None if state.get("session_failure") is None else {"jump_to": "model"}

    @hook_config(can_jump_to=[])
    def after_agent(self, state: Any, runtime: Any) -> AgentFlow[Any]:
        """The agent has come to its end."""
        session = state.get("session") or self._opened(1)
        return {"sessions": [(yield from self._closed(state, session, "succeeded", ""))], "session": None}

    def _next(self, state: Any, session: Session, outcome: Outcome, why: str) -> AgentFlow[Any]:
        messages = list(state["messages"])
        closed = yield from self._closed(state, session, outcome, why)
        text = yield calling(self.handoff, messages, closed)
        if not isinstance(text, str):
            raise TypeError(f"handoff returned a {type(text).__name__}. Return a str.")
        task = next((one for one in reversed(messages) if kind_of(one) == "human" and not _is_handoff(one)), None)
        head = HumanMessage(text, additional_kwargs={"lc_source": SOURCE})
        return {
            "messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *([] if task is None else [task]), head],
            "sessions": [{**closed, "handoff": text}],
            "session": self._opened(session["number"] + 1),
            "session_failure": None,
        }

    def _opened(self, number: int) -> Session:
        return {
            "number": number,
            "outcome": "running",
            "reason": "",
            "started": self.clock(),
            "ended": None,
            "spent": NOTHING,
            "output": "",
            "facts": {},
            "handoff": "",
        }

    def _closed(self, state: Any, session: Session, outcome: Outcome, why: str) -> AgentFlow[Session]:
        facts = {} if self.facts is None else dict((yield calling(self.facts, state)))
        words = _last_words(state.get("messages") or ())
        over: Session = {**session, "outcome": outcome, "reason": why, "ended": self.clock()}
        return {**over, "output": words, "facts": facts}

    def _failed(self, state: Any) -> int:
        """How many sessions have failed on this input before."""
        count = 0
        for session in reversed(state.get("sessions") or ()):
            if session["outcome"] in ("succeeded", "interrupted"):
                break
            count += session["outcome"] == "failed"
        return count

    # -- what happens in it --------------------------------------------------------------------------------------------

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Ask, and book what it cost with the answer; a failure is the session's."""
        price, began = self.limits.price(request), self.clock()
        session: Session = request.state.get("session") or self._opened(1)
        try:
            response = yield request
        except Exception as error:
            return ExtendedModelResponse(ModelResponse([]), Command(update=_failing(error, request.runtime.fence)))
        spent = spent_on(request, response.result, price, self.clock() - began)
        news: Session = {**session, "spent": added(session["spent"], spent)}
        return ExtendedModelResponse(response, Command(update={"session": news}))

    def wrap_tool_call(self, request: ToolCallRequest, *_: Any) -> Any:
        """Call; a failure is the session's."""
        try:
            return (yield request)
        except Exception as error:
            call, update = request.tool_call, _failing(error, request.runtime.fence)
            said = f"{update['session_failure']['type']}: {update['session_failure']['message']}"
            result = ToolMessage(said, tool_call_id=str(call["id"]), name=call["name"], status="error")
            return Command(update={**update, "messages": [result]})


def _failing(error: Exception, fence: int) -> dict[str, Any]:
    """The update that tells of a failure; what is none is raised."""
    if isinstance(error, _NO_FAILURES):
        raise error
    failure: Failure = {"type": type(error).__name__, "message": str(error), "fence": fence}
    return {"session_failure": failure}


# -- what is handed over -----------------------------------------------------------------------------------------------


def told(messages: list[BaseMessage], session: Session) -> str:
    """What the next session is told where nobody says otherwise: why it begins, what was done, what was said last."""
    results = {str(one.tool_call_id): one.text for one in messages if isinstance(one, ToolMessage)}
    calls = [call for one in messages for call in getattr(one, "tool_calls", ()) or ()]
    lines = [f"You take over from a session that is over: {session['reason']}. Go on with the task from here."]
    lines += [one.text for one in messages if _is_handoff(one)]
    if calls:
        lines.append("What was called last, and what came of it:")
        lines += [
            _short(f"- {call['name']}({call['args']}): {results.get(str(call['id']), '')}") for call in calls[-LAST:]
        ]
    if session["output"]:
        lines.append(f"What was said last: {session['output']}")
    return "\n".join(lines)


def _short(text: str) -> str:
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"


def _is_handoff(message: BaseMessage) -> bool:
    return message.additional_kwargs.get("lc_source") == SOURCE


def _last_words(messages: Sequence[BaseMessage]) -> str:
    return next((one.text for one in reversed(messages) if kind_of(one) == "ai" and one.text), "")


# -- looking -----------------------------------------------------------------------------------------------------------


def sessions_of(agent: Any, thread_id: str) -> list[Session]:
    """The sessions of a thread, the oldest first; the last one is ``running`` while somebody runs it, and as it would
    be closed if nobody goes on with it: ``failed`` or ``interrupted``. ThreadNotFoundError where there is none.
    """
    info = agent.threads.status(thread_id)
    return _all(agent.get_state({"configurable": {"thread_id": thread_id}}).values, info)


async def asessions_of(agent: Any, thread_id: str) -> list[Session]:
    """`sessions_of`, awaited."""
    info = await agent.threads.astatus(thread_id)
    return _all((await agent.aget_state({"configurable": {"thread_id": thread_id}})).values, info)


def _all(values: Mapping[str, Any], info: Any) -> list[Session]:
    over, left = list(values.get("sessions") or ()), values.get("session")
    if left is None:
        return over
    outcome = info.status if info.status in ("running", "failed") else "interrupted"
    return [*over, {**left, "outcome": outcome, "reason": "" if outcome == "running" else info.reason}]
