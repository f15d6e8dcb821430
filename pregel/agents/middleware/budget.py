"""What an agent may spend: tokens, calls, seconds and money; and an account of what each attempt did.

1. What was spent is written together with the answer that it was spent on: a killed process loses neither or both.
2. Counts are added, never reset: a thread that is resumed, by whomever, goes on from what was spent.
3. Time is counted while the agent works, not while it waits for a person or lies dead.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, Unpack

from typing_extensions import TypedDict

from pregel.agents.middleware.base import AgentMiddleware, hook_config, inline
from pregel.agents.middleware.requests import ExtendedModelResponse, ModelRequest
from pregel.agents.state import AgentState, OmitFromInput, PrivateStateAttr
from pregel.errors import DefinitionError, RunError
from pregel.messages import AIMessage, BaseMessage, count_tokens_approximately
from pregel.messages.convert import kind_of
from pregel.types import Command

Prices = Mapping[str, tuple[float, float]]
"""Model name -> money for a million input tokens, money for a million output tokens."""


class Spent(TypedDict):
    """What was spent so far. Time in seconds; money in the currency of the prices."""

    calls: int
    input_tokens: int
    output_tokens: int
    seconds: float
    money: float


NOTHING: Spent = {"calls": 0, "input_tokens": 0, "output_tokens": 0, "seconds": 0.0, "money": 0.0}


class BudgetExceededError(RunError):
    """The agent has spent what it may. `spent` says what."""

    code = "BUDGET"

    def __init__(self, message: str, spent: Spent, **place: Any) -> None:
        self.spent = spent
        super().__init__(message, **place)


def added(left: Spent | None, right: Spent | None) -> Spent:
    one, other = left or NOTHING, right or NOTHING
    return {key: one[key] + other[key] for key in NOTHING}  # type: ignore[literal-required, return-value]


class BudgetState(AgentState):
    """What was spent."""

    budget_spent: NotRequired[Annotated[Spent, OmitFromInput, added]]


class Caps(TypedDict, total=False):
    """The limits of a budget or of a session; seconds are those of model calls."""

    max_tokens: int | None
    max_calls: int | None
    max_seconds: float | None
    max_money: float | None
    prices: Prices | None


class Limits:
    """How much may be spent, and what models cost. DefinitionError for what limits nothing or is no amount."""

    def __init__(self, whose: str, caps: Caps) -> None:
        self.most: dict[str, float | None] = {
            "tokens": caps.get("max_tokens"),
            "calls": caps.get("max_calls"),
            "seconds": caps.get("max_seconds"),
            "money": caps.get("max_money"),
        }
        self.prices = dict(caps.get("prices") or {})
        if unknown := caps.keys() - Caps.__annotations__.keys():
            raise TypeError(f"{whose} has no {', '.join(sorted(unknown))}.")
        if all(limit is None for limit in self.most.values()):
            raise DefinitionError(
                f"{whose} needs a limit.", fix="Give max_tokens=, max_calls=, max_seconds= or max_money=."
            )
        for what, limit in self.most.items():
            if limit is not None and not _is_amount(limit):
                raise DefinitionError(f"max_{what} is {limit!r}.", fix="Give a number from 0 on, or leave it out.")
        for name, price in self.prices.items():
            if not (isinstance(price, Sequence) and len(price) == 2 and all(map(_is_amount, price))):
                raise DefinitionError(
                    f"The price of {name!r} is {price!r}.", fix="Give (input, output), for a million tokens each."
                )
        if self.most["money"] is not None and not self.prices:
            raise DefinitionError(
                "Money is limited, and no model has a price.",
                fix="Give prices={model name: (input, output)}, for a million tokens each.",
            )

    def reached(self, spent: Spent) -> tuple[float, str, float] | None:
        """The first limit that is reached: how much, of what, and what was spent."""
        used: dict[str, Any] = {**spent, "tokens": spent["input_tokens"] + spent["output_tokens"]}
        for what, limit in self.most.items():
            if limit is not None and used[what] >= limit:
                return limit, what, used[what]
        return None

    def price(self, request: ModelRequest) -> tuple[float, float]:
        """What the model of a request costs; DefinitionError where money is limited and nobody knows."""
        name = request.model.model
        if name not in self.prices and self.most["money"] is not None:
            raise DefinitionError(
                f"Money is limited, and the model {name!r} has no price.",
                fix=f"Give prices={{{name!r}: (input, output)}}, for a million tokens each.",
            )
        return self.prices.get(name, (0.0, 0.0))


class BudgetMiddleware(AgentMiddleware):
    """Ends a thread's agent, before the next model call, when it has spent its budget.

    `max_tokens`, `max_calls`, `max_seconds` (of model calls), `max_money` with `prices` by model name.
    `exit_behavior`: "end" ends with a message, "error" raises BudgetExceededError. The state's ``budget_spent`` says
    what was spent. DefinitionError when money is limited and a model that is asked has no price.
    """

    state_schema = BudgetState

    def __init__(
        self,
        *,
        exit_behavior: Literal["end", "error"] = "end",
        clock: Callable[[], float] = time.monotonic,
        **caps: Unpack[Caps],
    ) -> None:
        self.limits = Limits("A budget", caps)
        self.exit_behavior, self.clock = exit_behavior, clock
        if exit_behavior not in ("end", "error"):
            raise DefinitionError(f"exit_behavior is {exit_behavior!r}.", fix="Use 'end' or 'error'.")

    @inline
    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> Any:
        """End when the budget is spent."""
        spent = state.get("budget_spent") or NOTHING
        if (reached := self.limits.reached(spent)) is None:
            return None
        text = "The budget of {} {} is spent: {:g}.".format(*reached)
        if self.exit_behavior == "error":
            raise BudgetExceededError(text, spent, fix="Raise the budget to go on.")
        return {"jump_to": "end", "messages": [AIMessage(text)]}

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Ask, and book what it cost with the answer."""
        price = self.limits.price(request)
        began = self.clock()
        response = yield request
        spent = spent_on(request, response.result, price, self.clock() - began)
        return ExtendedModelResponse(response, Command(update={"budget_spent": spent}))


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def spent_on(request: ModelRequest, result: Sequence[BaseMessage], price: tuple[float, float], seconds: float) -> Spent:
    """What one model call cost."""
    into, out = _tokens(request, result)
    money = (into * price[0] + out * price[1]) / 1_000_000
    return {"calls": 1, "input_tokens": into, "output_tokens": out, "seconds": seconds, "money": money}


def _tokens(request: ModelRequest, result: Sequence[BaseMessage]) -> tuple[int, int]:
    """Input and output tokens: what the provider counted, else an estimate."""
    answers: list[Any] = [one for one in result if kind_of(one) == "ai"]
    usage = [one.usage_metadata for one in answers if getattr(one, "usage_metadata", None)]
    if usage:
        return sum(one["input_tokens"] for one in usage), sum(one["output_tokens"] for one in usage)
    return count_tokens_approximately(request.messages), count_tokens_approximately(answers)


# -- the account -------------------------------------------------------------------------------------------------------


class Attempt(TypedDict):
    """What one owner of the thread did. Times in unix seconds; `active_ms` is the time of its model calls."""

    id: str
    phase: str
    status: Literal["running", "done", "interrupted"]
    model: str
    started: float
    completed: float | None
    active_ms: float
    tokens: int


def _by_id(left: dict[str, Attempt] | None, right: dict[str, Attempt] | None) -> dict[str, Attempt]:
    return {**(left or {}), **(right or {})}


class AccountState(AgentState):
    """The attempts by id, and the one that runs."""

    attempts: NotRequired[Annotated[dict[str, Attempt], OmitFromInput, _by_id]]
    attempt_input: NotRequired[Annotated[int, PrivateStateAttr]]


class AccountMiddleware(AgentMiddleware):
    """Keeps a row for each attempt of the agent in the state key ``attempts``: id, phase, status, model, times, tokens.

    An attempt is one owner's work on one input. When a process died, the next owner closes its row as interrupted.
    """

    state_schema = AccountState

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock

    @inline
    @hook_config(can_jump_to=[])
    def before_agent(self, state: Any, runtime: Any) -> Any:
        """A new input: what still runs was given up, and a new row begins."""
        turn = state.get("attempt_input", 0) + 1
        rows = {**self._closed(state, ""), **self._opened(turn, runtime, "started")}
        return {"attempt_input": turn, "attempts": rows}

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Book the call in the row of this owner, which may be another than began."""
        state, began = request.state, self.clock()
        response = yield request
        turn = state.get("attempt_input", 0)
        id = _row_id(turn, request.runtime)
        row = (state.get("attempts") or {}).get(id) or self._opened(turn, request.runtime, "model")[id]
        into, out = _tokens(request, response.result)
        booked: Attempt = {
            **row,
            "phase": "model",
            "model": request.model.model,
            "active_ms": row["active_ms"] + (self.clock() - began) * 1000,
            "tokens": row["tokens"] + into + out,
        }
        news = {**self._closed(state, id), id: booked}
        return ExtendedModelResponse(response, Command(update={"attempts": news}))

    @inline
    @hook_config(can_jump_to=[])
    def after_agent(self, state: Any, runtime: Any) -> Any:
        """Close the row."""
        id = _row_id(state.get("attempt_input", 0), runtime)
        row = (state.get("attempts") or {}).get(id) or self._opened(state.get("attempt_input", 0), runtime, "end")[id]
        done: Attempt = {**row, "phase": "end", "status": "done", "completed": self.clock()}
        return {"attempts": {**self._closed(state, id), id: done}}

    def _opened(self, turn: int, runtime: Any, phase: str) -> dict[str, Attempt]:
        id = _row_id(turn, runtime)
        row: Attempt = {
            "id": id,
            "phase": phase,
            "status": "running",
            "model": "",
            "started": self.clock(),
            "completed": None,
            "active_ms": 0.0,
            "tokens": 0,
        }
        return {id: row}

    def _closed(self, state: Any, mine: str) -> dict[str, Attempt]:
        """The rows of others that still say they run."""
        rows: Mapping[str, Attempt] = state.get("attempts") or {}
        now = self.clock()
        return {
            id: {**row, "status": "interrupted", "completed": now}
            for id, row in rows.items()
            if row["status"] == "running" and id != mine
        }


def _row_id(turn: int, runtime: Any) -> str:
    return f"{turn}.{runtime.fence}"
