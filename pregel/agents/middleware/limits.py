"""How often an agent may ask its model and call its tools, in one run and in the life of a thread.

The counts are written together with the answer they count, so that no jump gets around them and no crash loses them.
A run is one input: what is resumed goes on counting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired, Self

from pregel.agents.history import last_answer, pending_calls
from pregel.agents.middleware.base import AgentMiddleware, hook_config, inline
from pregel.agents.middleware.requests import ExtendedModelResponse, ModelRequest, ModelResponse
from pregel.agents.state import AgentState, PrivateStateAttr
from pregel.errors import DefinitionError, RunError
from pregel.messages import AIMessage, ToolMessage
from pregel.types import Command

ALL = "__all__"


class _LimitExceededError(RunError):
    """A limit is reached. The counts are those of the calls that were made; a limit that is not set is None."""

    thread_count = run_count = 0
    thread_limit: int | None = None
    run_limit: int | None = None

    def counting(self, thread: int, run: int, limits: ModelCallLimitMiddleware | ToolCallLimitMiddleware) -> Self:
        """The error itself, with its counts and limits."""
        self.thread_count, self.run_count = thread, run
        self.thread_limit, self.run_limit = limits.thread_limit, limits.run_limit
        return self


class ModelCallLimitExceededError(_LimitExceededError):
    """The agent has asked its model as often as it may: `thread_count`, `run_count`, and the limits of both."""

    code = "MODEL_CALL_LIMIT"


class ToolCallLimitExceededError(_LimitExceededError):
    """The agent has called its tools as often as it may: counts and limits, of `tool_name` or (None) of all tools."""

    code = "TOOL_CALL_LIMIT"
    tool_name: str | None = None


class ModelCallLimitState(AgentState):
    """The counts of model calls."""

    thread_model_call_count: NotRequired[Annotated[int, PrivateStateAttr]]
    run_model_call_count: NotRequired[Annotated[int, PrivateStateAttr]]


def _added(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    return {**(left or {}), **{key: (left or {}).get(key, 0) + count for key, count in (right or {}).items()}}


def _replaced(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    """Several limits write their own keys."""
    return {**(left or {}), **(right or {})}


class ToolCallLimitState(AgentState):
    """The counts of tool calls, by tool or `ALL`."""

    thread_tool_call_count: NotRequired[Annotated[dict[str, int], PrivateStateAttr, _added]]
    run_tool_call_count: NotRequired[Annotated[dict[str, int], PrivateStateAttr, _replaced]]


class ModelCallLimitMiddleware(AgentMiddleware):
    """At most `run_limit` model calls for one input, `thread_limit` in the life of a thread.

    `exit_behavior`: "end" ends the run with a message that says why, "error" raises ModelCallLimitExceededError.
    """

    state_schema = ModelCallLimitState

    def __init__(
        self,
        *,
        thread_limit: int | None = None,
        run_limit: int | None = None,
        exit_behavior: Literal["end", "error"] = "end",
    ) -> None:
        _check(thread_limit, run_limit, exit_behavior, ("end", "error"))
        self.thread_limit, self.run_limit, self.exit_behavior = thread_limit, run_limit, exit_behavior

    @inline
    @hook_config(can_jump_to=[])
    def before_agent(self, state: Any, runtime: Any) -> Any:
        """A new input starts a new count."""
        return {"run_model_call_count": 0}

    @inline
    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> Any:
        """End the run when the limit is reached."""
        counts = (("thread", self.thread_limit), ("run", self.run_limit))
        for scope, limit in counts:
            if limit is not None and state.get(f"{scope}_model_call_count", 0) >= limit:
                text = f"The limit of {limit} model calls for this {scope} is reached."
                if self.exit_behavior == "error":
                    fix = f"Raise {scope}_limit, or start a new {scope}."
                    thread, run = (state.get(f"{one}_model_call_count", 0) for one, _ in counts)
                    raise ModelCallLimitExceededError(text, fix=fix).counting(thread, run, self)
                return {"jump_to": "end", "messages": [AIMessage(text)]}
        return None

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Count the call together with its answer."""
        response = yield request
        names = ("thread_model_call_count", "run_model_call_count")
        return ExtendedModelResponse(response, Command(update={name: request.state.get(name, 0) + 1 for name in names}))


class ToolCallLimitMiddleware(AgentMiddleware):
    """At most `run_limit` tool calls for one input, `thread_limit` in the life of a thread; of one tool, or of all.

    `exit_behavior`: "continue" answers the calls above the limit with an error, the others run; "end" answers all with
    an error and ends the run; "error" raises ToolCallLimitExceededError.
    """

    state_schema = ToolCallLimitState

    def __init__(
        self,
        *,
        tool_name: str | None = None,
        thread_limit: int | None = None,
        run_limit: int | None = None,
        exit_behavior: Literal["continue", "error", "end"] = "continue",
    ) -> None:
        _check(thread_limit, run_limit, exit_behavior, ("continue", "error", "end"))
        if thread_limit is not None and run_limit is not None and run_limit > thread_limit:
            raise DefinitionError(
                f"run_limit {run_limit} is above thread_limit {thread_limit}.", fix="A thread has at least one run."
            )
        self.tool_name, self.key = tool_name, tool_name or ALL
        self.thread_limit, self.run_limit, self.exit_behavior = thread_limit, run_limit, exit_behavior

    @property
    def name(self) -> str:
        """With the tool, so that an agent may have several."""
        return f"ToolCallLimitMiddleware[{self.tool_name}]" if self.tool_name else "ToolCallLimitMiddleware"

    @inline
    @hook_config(can_jump_to=[])
    def before_agent(self, state: Any, runtime: Any) -> Any:
        """A new input starts a new count."""
        return {"run_tool_call_count": {self.key: 0}}

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Answer the calls above the limit before anything can run them, and count the others."""
        response = yield request
        answer, after = last_answer(response.result)
        calls = pending_calls(answer, after) if answer is not None else []
        mine = [call for call in calls if self.tool_name in (None, call["name"])]
        if not mine:
            return response
        room = self._room(request.state)
        allowed, blocked = mine[: max(room, 0)], mine[max(room, 0) :]
        if blocked and self.exit_behavior == "error":
            error = ToolCallLimitExceededError(self._text(), fix="Raise the limit, or start a new run or thread.")
            error.tool_name = self.tool_name
            counts = (request.state.get(f"{one}_tool_call_count", {}) for one in ("thread", "run"))
            thread, run = (count.get(self.key, 0) for count in counts)
            raise error.counting(thread, run, self)
        if blocked and self.exit_behavior == "end":
            allowed, blocked = [], calls
        news: list[Any] = [_refusal(self._text(), call) for call in blocked]
        if blocked and self.exit_behavior == "end":
            news.append(AIMessage(self._text()))
        run = request.state.get("run_tool_call_count", {}).get(self.key, 0) + len(allowed)
        counted = {"thread_tool_call_count": {self.key: len(allowed)}, "run_tool_call_count": {self.key: run}}
        whole = ModelResponse([*response.result, *news], response.structured_response)
        return ExtendedModelResponse(whole, Command(update=counted))

    def _room(self, state: Any) -> int:
        """How many more calls are allowed."""
        left: list[int] = []
        for limit, counts in ((self.thread_limit, "thread_tool_call_count"), (self.run_limit, "run_tool_call_count")):
            if limit is not None:
                left.append(limit - state.get(counts, {}).get(self.key, 0))
        return min(left)

    def _text(self) -> str:
        what = f"calls of {self.tool_name!r}" if self.tool_name else "tool calls"
        return f"The limit of {what} is reached. Do not call again; answer with what you have."


def _refusal(text: str, call: Any) -> ToolMessage:
    return ToolMessage(text, tool_call_id=call["id"], name=call["name"], status="error")


def _check(thread: int | None, run: int | None, behavior: str, known: Sequence[str]) -> None:
    if thread is None and run is None:
        raise DefinitionError("A limit needs a number.", fix="Give thread_limit= or run_limit=.")
    for limit in (thread, run):
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise DefinitionError(f"A limit is {limit!r}.", fix="Give a number of calls, 0 or more.")
    if behavior not in known:
        raise DefinitionError(f"exit_behavior is {behavior!r}.", fix=f"Use one of {', '.join(known)}.")
