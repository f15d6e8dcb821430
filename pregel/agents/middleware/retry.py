"""A failed model or tool call is tried again, answered otherwise, or told to the model."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pregel.agents.flow import AgentFlow, calling, pause
from pregel.agents.middleware.base import AgentMiddleware
from pregel.agents.middleware.requests import ModelRequest, ModelResponse, ToolCallRequest
from pregel.agents.models.errors import ModelRefusalError, is_retryable
from pregel.agents.models.init import as_model
from pregel.errors import DefinitionError, GraphBubbleUp, InternalError, StoreError
from pregel.messages import AIMessage, ToolMessage

RetryOn: TypeAlias = "tuple[type[Exception], ...] | Callable[[Exception], bool]"
OnFailure: TypeAlias = "Literal['continue', 'error'] | Callable[[Exception], str]"
SIGNALS = (GraphBubbleUp, StoreError, InternalError)  # what no middleware may take for a failure of the call


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How often and after how long a call is tried again. Delays in seconds; retries come on top of the first try."""

    max_retries: int = 2
    retry_on: RetryOn = is_retryable
    backoff_factor: float = 2.0
    initial_delay: float = 1.0
    max_delay: float = 60.0
    jitter: bool = True

    def __post_init__(self) -> None:
        for name in ("max_retries", "backoff_factor", "initial_delay", "max_delay"):
            if getattr(self, name) < 0:
                raise DefinitionError(f"{name} is {getattr(self, name)}.", fix="Give a number that is not negative.")

    def wants(self, error: Exception) -> bool:
        """Whether this error is worth another try."""
        return isinstance(error, self.retry_on) if isinstance(self.retry_on, tuple) else self.retry_on(error)

    def delay(self, retry: int, error: Exception) -> float:
        """The seconds before the n-th retry, from 0: what the server asks for, or more with each one."""
        asked = getattr(error, "retry_after", None)
        if asked is not None:
            return float(min(asked, self.max_delay))
        delay = min(self.initial_delay * (self.backoff_factor**retry if self.backoff_factor else 1), self.max_delay)
        return delay * random.uniform(0.75, 1.25) if self.jitter else delay

    def flow(self, request: Any) -> AgentFlow[tuple[Any, Exception | None]]:
        """The response, or the last error; an error that is not worth a retry is raised at once."""
        for retry in range(self.max_retries + 1):
            try:
                response = yield request
            except SIGNALS:
                raise
            except Exception as error:
                if not self.wants(error):
                    raise
                if retry == self.max_retries:
                    return None, error
                yield pause(self.delay(retry, error))
            else:
                return response, None
        raise AssertionError


def _told(on_failure: OnFailure, error: Exception, tries: int, what: str) -> str:
    """What is said in the place of an answer; raises the error where nothing is to be said."""
    if on_failure == "error":
        raise error
    if callable(on_failure):
        return on_failure(error)
    return f"{what} failed {tries} times, the last time with {type(error).__name__}: {error}"


class ModelRetryMiddleware(AgentMiddleware):
    """Asks the model again when a call failed and trying again can help.

    `on_failure`, when all tries failed: "continue" ends with an AI message that says so, "error" raises the last error,
    a function of it gives the text. The other options are those of `Backoff`.
    """

    def __init__(self, *, on_failure: OnFailure = "continue", **backoff: Any) -> None:
        self.on_failure, self.backoff = on_failure, Backoff(**backoff)

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Try until it works, or not."""
        response, error = yield from self.backoff.flow(request)
        if error is None:
            return response
        return AIMessage(_told(self.on_failure, error, self.backoff.max_retries + 1, "The model call"))


class ToolRetryMiddleware(AgentMiddleware):
    """Runs a tool again when it failed; `tools` (names or tools) limits it to some. See `ModelRetryMiddleware`.

    All tries of a call have the same ``runtime.idempotency_key``.
    """

    def __init__(
        self, *, tools: Sequence[Any] | None = None, on_failure: OnFailure = "continue", **backoff: Any
    ) -> None:
        self.names = _names(tools)
        self.on_failure, self.backoff = on_failure, Backoff(**backoff)

    def wrap_tool_call(self, request: ToolCallRequest, *_: Any) -> Any:
        """Try until it works, or not."""
        call = request.tool_call
        if self.names is not None and call["name"] not in self.names:
            return (yield request)
        response, error = yield from self.backoff.flow(request)
        if error is None:
            return response
        text = _told(self.on_failure, error, self.backoff.max_retries + 1, f"The tool {call['name']!r}")
        return ToolMessage(text, tool_call_id=call["id"], name=call["name"], status="error")


class ToolErrorMiddleware(AgentMiddleware):
    """Words a tool's error for the model: `on_error(error, request)` gives the content; None raises the error."""

    def __init__(
        self,
        on_error: Callable[..., Any] | None = None,
        *,
        aon_error: Callable[..., Any] | None = None,
        tools: Sequence[Any] | None = None,
    ) -> None:
        chosen = on_error or aon_error
        if chosen is None:
            raise DefinitionError("ToolErrorMiddleware needs a function.", fix="Give on_error= or aon_error=.")
        self.on_error, self.names = chosen, _names(tools)

    def wrap_tool_call(self, request: ToolCallRequest, *_: Any) -> Any:
        """Run it, and word its error."""
        call = request.tool_call
        try:
            return (yield request)
        except SIGNALS:
            raise
        except Exception as error:
            if self.names is not None and call["name"] not in self.names:
                raise
            content = yield calling(self.on_error, error, request)
            if content is None:
                raise
            return ToolMessage(content, tool_call_id=call["id"], name=call["name"], status="error")


class ModelFallbackMiddleware(AgentMiddleware):
    """Asks other models, in order, when the agent's own fails; raises the last one's error when all do.

    Settings that only the first provider knows (prompt caching) are left out for models of another one.
    """

    OWN = ("cache_control", "prompt_cache_key", "prompt_cache_retention", "session_id")

    def __init__(self, first_model: Any, *more: Any) -> None:
        self.models = [as_model(one) for one in (first_model, *more)]

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """The first answer that any model gives."""
        tries = [request, *(self._for(request, model) for model in self.models)]
        for one in tries[:-1]:
            try:
                return (yield one)
            except SIGNALS:
                raise
            except Exception:
                continue
        return (yield tries[-1])

    def _for(self, request: ModelRequest, model: Any) -> ModelRequest:
        if model.provider == getattr(request.model, "provider", None):
            return request.override(model=model)
        settings = {key: value for key, value in request.model_settings.items() if key not in self.OWN}
        return request.override(model=model, model_settings=settings)


class ModelRefusalMiddleware(AgentMiddleware):
    """Raises ModelRefusalError when the model declined to answer, so that a fallback or the caller hears of it."""

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Look for a refusal in the answer."""
        response: ModelResponse = yield request
        for message in response.result:
            blocks = message.content if isinstance(message.content, list) else []
            refusal = message.additional_kwargs.get("refusal") or next(
                (one.get("refusal", "") for one in blocks if isinstance(one, dict) and one.get("type") == "refusal"),
                None,
            )
            if refusal is not None:
                raise ModelRefusalError(f"The model declined to answer: {refusal}")
        return response


def _names(tools: Sequence[Any] | None) -> set[str] | None:
    return None if tools is None else {tool if isinstance(tool, str) else tool.name for tool in tools}
