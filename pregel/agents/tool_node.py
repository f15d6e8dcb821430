"""The node that runs tool calls.

1. It takes the state (the unanswered calls of its last AI message), a list of messages, or a list of tool calls: an
   agent sends each call as a task of its own, so that a result is stored as soon as it is there.
2. Calls of one task run side by side, and all of them to their end. Their questions are scoped by call id, so every one
   surfaces and gets its own answer.
3. The state that a tool sees is read when it runs, not carried in the call.
4. Each call is answered by exactly one ToolMessage: its result, or the error that `ErrorPolicy` tells.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import TypedDict

from pregel.agents.flow import AgentFlow, block, wait
from pregel.agents.history import last_answer, malformed_calls, pending_calls, unreadable
from pregel.agents.middleware.base import AgentMiddleware, Hook
from pregel.agents.middleware.compose import compose
from pregel.agents.middleware.requests import ToolCallRequest
from pregel.agents.tool_errors import ErrorPolicy, HandleToolErrors
from pregel.agents.tools.base import Tool, ToolException, ToolInvocationError, runtime_of
from pregel.agents.tools.foreign import as_tool, as_tools
from pregel.agents.tools.inject import InjectedState, InjectedStore, ToolRuntime
from pregel.agents.tools.result import answer, is_answer, msg_content_output
from pregel.config import RunnableConfig, current_task, question_scope
from pregel.engine.heard import surrounding
from pregel.errors import GraphBubbleUp, GraphInterrupt, InvalidInputError, told
from pregel.flow import arun, run
from pregel.messages import REMOVE_ALL_MESSAGES, ToolCall, ToolMessage, whole_messages, with_ids
from pregel.messages.convert import kind_of
from pregel.runnable import Runnable, is_async_callable
from pregel.runnable.base import Detached
from pregel.telemetry import Span, active
from pregel.tokens import Sink, tool_sink
from pregel.types import Command

if TYPE_CHECKING:
    from asyncio import Semaphore

    from pregel.interop.langchain_calls import HeardCall

__all__ = [
    "AsyncToolCallWrapper",
    "InjectedState",
    "InjectedStore",
    "ToolCallRequest",
    "ToolCallWithContext",
    "ToolCallWrapper",
    "ToolInvocationError",
    "ToolNode",
    "ToolRuntime",
    "msg_content_output",
    "tools_condition",
]

ToolCallWrapper = Callable[..., Any]
AsyncToolCallWrapper = Callable[..., Any]


class ToolCallWithContext(TypedDict):
    """A tool call together with the state that its tool shall see."""

    __type: Literal["tool_call_with_context"]
    tool_call: ToolCall
    state: Any


class ToolNode(Runnable):
    """Runs the tool calls of an AI message.

    - `tools`: tools, functions, or tools of other libraries. `tools_by_name` has them.
    - `handle_tool_errors`: "default" tells the model of bad arguments and of ToolException and raises all else; True
      tells it every error, False none; a text or a function words it; exception types limit it.
    - `wrap_tool_call`: a function (request, handler), or a generator function of the request, around each call.
    """

    has_async = True
    makes_calls = True  # its tools may

    def __init__(
        self,
        tools: Sequence[Any],
        *,
        name: str = "tools",
        tags: Sequence[str] | None = None,
        handle_tool_errors: HandleToolErrors = "default",
        messages_key: str = "messages",
        wrap_tool_call: ToolCallWrapper | None = None,
        awrap_tool_call: AsyncToolCallWrapper | None = None,
        hooks: Sequence[Hook] = (),
    ) -> None:
        self.name, self.tags, self.messages_key = name, list(tags or ()), messages_key
        self.tools_by_name: dict[str, Tool] = {one.name: one for one in as_tools(tools)}
        self.policy = ErrorPolicy.of(handle_tool_errors)
        own = _own_hook(wrap_tool_call, awrap_tool_call)
        self.hooks = [*hooks, *([own] if own is not None else [])]
        self._chain = compose(self.hooks, self._run_tool, _same, _as_answer)

    # -- as a node -----------------------------------------------------------------------------------------------------

    def call(self, value: Any, running: Any) -> Any:
        calls, state, listed = self._given(value, running)
        base = self._runtime(running, state)
        if len(calls) == 1:
            return self._output([self._blocking(calls[0], base)], listed)
        return self._output(_side_by_side([(self._blocking, (call, base)) for call in calls], base.config), listed)

    async def acall(self, value: Any, running: Any) -> Any:
        import asyncio

        calls, state, listed = self._given(value, running)
        base = self._runtime(running, state)
        if len(calls) == 1:
            return self._output([await self._awaiting(calls[0], base)], listed)
        room = asyncio.Semaphore(base.config.get("max_concurrency") or len(calls) or 1)
        results = await asyncio.gather(*(self._awaiting(call, base, room) for call in calls), return_exceptions=True)
        return self._output(_all_or_raise(results), listed)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The results, inside of a running node or, for a test, by hand: with neither store nor context then."""
        return self.call(input, current_task.get() or Detached(config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The results, awaited."""
        return await self.acall(input, current_task.get() or Detached(config))

    def _given(self, value: Any, running: Any) -> tuple[list[Any], Any, bool]:
        """The calls, the state that their tools see, and whether the output is a bare list."""
        if isinstance(value, Mapping) and value.get("__type") == "tool_call_with_context":
            return [value["tool_call"]], value["state"], False
        if isinstance(value, list):
            if value and isinstance(value[-1], Mapping) and value[-1].get("type") in ("tool_call", "invalid_tool_call"):
                return value, _state_of(running), False
            return self._pending(whole_messages(value)), value, True
        messages = (
            value.get(self.messages_key) if isinstance(value, Mapping) else getattr(value, self.messages_key, None)
        )
        return self._pending(messages), value, False

    def _runtime(self, running: Any, state: Any) -> ToolRuntime[Any, Any]:
        tools = tuple(self.tools_by_name.values())
        if _is_in_a_run(running):
            return runtime_of(running, state=state, tools=tools)
        return ToolRuntime(state=state, config=running.config, tools=tools)

    def _pending(self, messages: Any) -> list[Any]:
        if not messages:
            raise InvalidInputError(
                "No message found in input.", fix=f"Give a list of messages, or a state with {self.messages_key!r}."
            )
        found, after = last_answer(messages)
        if found is None:
            raise InvalidInputError("The input has no AIMessage, so there is no tool call.", fix="Give one.")
        return [*pending_calls(found, after), *malformed_calls(found, after)]

    # -- one call ------------------------------------------------------------------------------------------------------

    def _blocking(self, call: Any, base: ToolRuntime[Any, Any]) -> Any:
        token = question_scope.set(str(call["id"]))
        try:
            if (heard := self._heard(call)) is None:
                return self._traced(call, base)
            with heard:
                return _heard_as(heard, self._traced(call, base))
        finally:
            question_scope.reset(token)

    async def _awaiting(self, call: Any, base: ToolRuntime[Any, Any], room: Semaphore | None = None) -> Any:
        if room is not None:
            async with room:
                return await self._awaiting(call, base)
        token = question_scope.set(str(call["id"]))
        try:
            if (heard := self._heard(call)) is None:
                return await self._atraced(call, base)
            async with heard:
                return _heard_as(heard, await self._atraced(call, base))
        finally:
            question_scope.reset(token)

    def _traced(self, call: Any, base: ToolRuntime[Any, Any]) -> Any:
        if (telemetry := active()) is None:
            return run(self._call_flow(call, base), block)
        with telemetry.tool(call) as span:
            return _told_to(span, run(self._call_flow(call, base), block))

    async def _atraced(self, call: Any, base: ToolRuntime[Any, Any]) -> Any:
        if (telemetry := active()) is None:
            return await arun(self._call_flow(call, base), wait)
        with telemetry.tool(call) as span:
            return _told_to(span, await arun(self._call_flow(call, base), wait))

    def _heard(self, call: Any) -> HeardCall | None:
        """The run of a call for LangChain's handlers; None when nobody hears of it, or the tool tells by itself."""
        if surrounding() is None or call.get("type") == "invalid_tool_call":
            return None
        tool = self.tools_by_name.get(call["name"])
        if tool is None or tool.tells_by_itself:
            return None
        from pregel.interop.langchain_calls import tool_run  # it is needed where LangChain is loaded

        return tool_run(tool.name, tool.description, call)

    def _call_flow(self, call: Any, base: ToolRuntime[Any, Any]) -> AgentFlow[Any]:
        """The answer to one call, whatever happens to its tool."""
        if call.get("type") == "invalid_tool_call":
            return unreadable(call)
        shown = _Shown.of(call)
        runtime = base.override(tool_call_id=call["id"], **({} if shown is None else {"_emit": shown.delta}))
        tool = self.tools_by_name.get(call["name"])
        request = ToolCallRequest(tool_call=call, tool=tool, state=base.state, runtime=runtime)
        try:
            result = self._checked((yield from self._chain(request)), call)
        except GraphBubbleUp:
            raise
        except Exception as error:
            if shown is not None:
                shown.failed(error)
            if not self.policy.tells(error):
                raise
            return _error(self.policy.words(error), call)
        if shown is not None:
            shown.finished(result)
        return result

    def _run_tool(self, request: ToolCallRequest) -> AgentFlow[Any]:
        """The innermost step: the tool itself."""
        call, tool = request.tool_call, request.tool if request.tool is None else as_tool(request.tool)
        if tool is None:
            names = ", ".join(name for name, one in self.tools_by_name.items() if one.is_offered) or "none"
            return _error(f"Error: there is no tool {call['name']!r}. The tools are: {names}.", call)
        whole, runtime = {**call, "type": "tool_call"}, request.runtime
        if runtime.state is not request.state:
            runtime = runtime.override(state=request.state)
        try:
            result = yield from tool.call_flow(whole, runtime)
        except ToolInvocationError as error:  # told before any wrap hook can take it for a failure of the tool
            if not self.policy.tells(error):
                raise
            return _error(self.policy.words(error), call)
        return _as_answer(result, None, request)

    def _checked(self, result: Any, call: Any) -> Any:
        """The answer with its name, and with ids on what it writes; InvalidInputError when it answers nothing."""
        if isinstance(result, list):
            checked = [self._one(one, call) for one in result]
            answers = sum(found for _, found, _ in checked)
            self._require(answers == 1 or (not answers and any(free for *_, free in checked)), call)
            return [one for one, *_ in checked]
        one, answers, free = self._one(result, call)
        self._require(answers > 0 or free, call)
        return one

    def _require(self, holds: bool, call: Any) -> None:
        if not holds:
            raise InvalidInputError(
                f"What the tool {call['name']!r} returned holds not one ToolMessage for the call {call['id']!r}.",
                fix=f"Give ToolMessage(..., tool_call_id={call['id']!r}), in a Command within "
                f"update[{self.messages_key!r}]; an InjectedToolCallId tells the tool which call it is.",
            )

    def _one(self, result: Any, call: Any) -> tuple[Any, int, bool]:
        """A result, how many answers to its call it holds, and whether it needs none: it leaves the graph or clears."""
        if not isinstance(result, Command):
            return _titled(_legible(result), call), int(result.tool_call_id == call["id"]), False
        leaves, update = result.graph is not None, result.update
        given = update.get(self.messages_key) if isinstance(update, Mapping) else update
        if not given:
            return result, 0, leaves
        messages = [_titled(message, call) for message in with_ids(given)]
        mine = sum(kind_of(one) == "tool" and one.tool_call_id == call["id"] for one in messages)
        clears = len(messages) == 1 and messages[0].id == REMOVE_ALL_MESSAGES
        news = {**update, self.messages_key: messages} if isinstance(update, Mapping) else messages
        return replace(result, update=news), mine, leaves or clears

    def _output(self, results: Sequence[Any], listed: bool) -> Any:
        flat = [one for result in results for one in (result if isinstance(result, list) else [result])]
        if not any(isinstance(one, Command) for one in flat):
            return flat if listed else {self.messages_key: with_ids(flat)}
        rest = (lambda one: [one]) if listed else (lambda one: {self.messages_key: with_ids([one])})
        return [one if isinstance(one, Command) else rest(one) for one in flat]


class _Shown:
    """What a stream in mode ``tools`` is told of one call."""

    def __init__(self, sink: Sink, call: Any) -> None:
        self.sink, self.id = sink, {"tool_call_id": call["id"]}
        self.sink({"event": "tool-started", **self.id, "tool_name": call["name"], "input": call["args"]})

    @classmethod
    def of(cls, call: Any) -> _Shown | None:
        """The teller for a call; None when nobody listens."""
        sink = tool_sink()
        return None if sink is None else cls(sink, call)

    def delta(self, delta: Any) -> None:
        self.sink({"event": "tool-output-delta", **self.id, "delta": delta})

    def failed(self, error: Exception) -> None:
        self.sink({"event": "tool-error", **self.id, "message": told(error, str)})

    def finished(self, result: Any) -> None:
        if getattr(result, "status", "success") == "error":
            self.sink({"event": "tool-error", **self.id, "message": result.text})
        else:
            self.sink({"event": "tool-finished", **self.id, "output": result})


def _heard_as(heard: HeardCall, result: Any) -> Any:
    """A call's answer, after its run was told of it, or of the error in it."""
    for one in result if isinstance(result, list) else [result]:
        if getattr(one, "status", "success") == "error":
            heard.error = ToolException(one.text)
    heard.output = result
    return result


def _told_to(span: Span, result: Any) -> Any:
    """A call's answer, after its span was told of an error in it."""
    for one in result if isinstance(result, list) else [result]:
        if getattr(one, "status", "success") == "error":
            span.fail("tool_error")
    return result


def tools_condition(state: Any, messages_key: str = "messages") -> Literal["tools", "__end__"]:
    """ "tools" when the last message has tool calls, else END."""
    messages: Any = state
    if not isinstance(state, list):
        messages = state.get(messages_key) if isinstance(state, Mapping) else getattr(state, messages_key, None)
    if not messages:
        raise InvalidInputError(f"No messages found in input state to tools_condition: {state!r}.", fix="Give some.")
    return "tools" if getattr(messages[-1], "tool_calls", None) else "__end__"


def _own_hook(wrap: ToolCallWrapper | None, awrap: AsyncToolCallWrapper | None) -> Hook | None:
    """The hook of the functions that were given to the node itself."""
    if wrap is None and awrap is None:
        return None
    holder = AgentMiddleware()
    if wrap is not None:
        name = "awrap_tool_call" if is_async_callable(wrap) else "wrap_tool_call"
        setattr(holder, name, wrap)
    if awrap is not None:
        holder.awrap_tool_call = awrap  # type: ignore[method-assign]
    return Hook(holder, "wrap_tool_call")


def _same(answered: Any) -> Any:
    return answered


def _as_answer(result: Any, last: Any, request: ToolCallRequest) -> Any:
    """What a wrap hook or a tool returned, as an answer to its call."""
    call = request.tool_call
    return result if is_answer(result) else answer(result, None, call_id=str(call["id"]), name=call["name"])


def _error(text: str, call: Any) -> ToolMessage:
    return ToolMessage(text, tool_call_id=str(call["id"]), name=call["name"], status="error")


def _legible(message: Any) -> Any:
    content = message.content
    if not isinstance(content, list) or (told := msg_content_output(content)) is content:
        return message
    return message.model_copy(update={"content": told})


def _titled(message: Any, call: Any) -> Any:
    if kind_of(message) == "tool" and message.name is None and message.tool_call_id == call["id"]:
        return message.model_copy(update={"name": call["name"]})
    return message


def _is_in_a_run(running: Any) -> bool:
    return hasattr(running, "state_values")


def _state_of(running: Any) -> Any:
    """The state as a node gets it: an instance of its schema where that is a class; None outside of a graph."""
    if not _is_in_a_run(running):
        return None
    node = getattr(running, "node", None)
    if node is None or node.mapper is None:
        return running.state_values()
    return node.mapper({**running.fresh_values(tuple(node.keys)), **running.managed_values(node.managed or {})})


def _side_by_side(jobs: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]], config: RunnableConfig) -> list[Any]:
    """The results of jobs on threads, in order, when all have ended; raises what `_all_or_raise` does."""
    from concurrent.futures import ThreadPoolExecutor  # dear to import, and one call needs none

    if not jobs:
        return []
    with ThreadPoolExecutor(config.get("max_concurrency") or min(len(jobs), 32)) as pool:
        futures = [pool.submit(contextvars.copy_context().run, job, *args) for job, args in jobs]
    return _all_or_raise([future.exception() or future.result() for future in futures])


def _all_or_raise(results: Sequence[Any]) -> list[Any]:
    """The results; when some are exceptions: every question, else the first exception."""
    errors = [one for one in results if isinstance(one, BaseException)]
    asked = [question for one in errors if isinstance(one, GraphInterrupt) for question in one.interrupts]
    if asked:
        raise GraphInterrupt(asked)
    if errors:
        raise errors[0]
    return list(results)
