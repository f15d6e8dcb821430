"""A tool: a function that a model may call, with the schema of its arguments.

1. The model sees `name`, `description` and `parameters`. What is injected (`tools.inject`) it never sees, and what it
   sends under such a name is thrown away.
2. `invoke` with plain arguments returns what the function returned; with a whole tool call (``"type": "tool_call"``)
   the `ToolMessage` that answers it.
3. A `ToolException` is for the model: `handle_tool_error` says how it is told. Any other exception is the caller's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, ClassVar, Literal, Self

from pregel.agents.dict_schemas import check_object
from pregel.agents.flow import AgentFlow, block, either, wait
from pregel.agents.schema_pydantic import Arguments, InvalidArguments
from pregel.agents.tools.docstring import parse_docstring
from pregel.agents.tools.inject import Injection, ToolRuntime, hints_of, injected_values, injections_of
from pregel.agents.tools.result import answer
from pregel.config import RunnableConfig, current_task, question_scope
from pregel.errors import DefinitionError, InvalidInputError, PregelError
from pregel.flow import arun, run
from pregel.messages import ToolMessage
from pregel.runnable import Runnable, is_async_callable

ResponseFormat = Literal["content", "content_and_artifact"]
HandleError = bool | str | Callable[[Any], Any]


class ToolException(PregelError):
    """A tool tells the model that it failed, and why."""

    code = "TOOL"


class ToolInvocationError(PregelError, ValueError):
    """The arguments of a tool call do not fit; `problems` are (where, what) pairs."""

    code = "TOOL_INVOCATION"

    def __init__(self, tool_name: str, tool_kwargs: Mapping[str, Any], problems: Sequence[tuple[str, str]]) -> None:
        self.tool_name, self.tool_kwargs, self.problems = tool_name, dict(tool_kwargs), list(problems)
        told = "\n".join(f"- {where or 'arguments'}: {what}" for where, what in problems)
        super().__init__(f"The arguments {self.tool_kwargs!r} do not fit the tool {tool_name!r}:\n{told}")


class Tool(Runnable):
    """A function that a model may call. Make one with `@tool`, or subclass it with a `_run` (and `_arun`) method.

    - `args_schema`: a pydantic model, TypedDict or JSON Schema instead of the function's signature.
    - `response_format`: "content_and_artifact" when the function returns the pair (content, artifact).
    - `return_direct`: the agent ends with this tool's answer.
    - `handle_tool_error`, `handle_validation_error`: True, a text or a function make the error a message to the model.
    - `extras`: what a provider wants to know beside, e.g. ``{"cache_control": ...}``.
    """

    name: str = ""
    description: str = ""
    args_schema: Any = None
    return_direct: bool = False
    response_format: ResponseFormat = "content"
    handle_tool_error: HandleError | None = False
    handle_validation_error: HandleError | None = False
    tags: Sequence[str] | None = None
    metadata: Mapping[str, Any] | None = None
    extras: Mapping[str, Any] | None = None
    tells_by_itself = False  # it has a run of its own for LangChain's handlers
    is_own_schema = True  # one of a server is taken as it is, and checked there
    is_offered = True  # whether models are told of it; a call of one that is not is still answered by it
    has_async = True
    FIELDS: ClassVar[tuple[str, ...]] = (
        *("name", "description", "args_schema", "return_direct", "response_format"),
        *("handle_tool_error", "handle_validation_error", "tags", "metadata", "extras"),
    )

    def __init__(
        self,
        func: Callable[..., Any] | None = None,
        coroutine: Callable[..., Any] | None = None,
        *,
        infer_schema: bool = True,
        parse_docstring: bool = False,
        error_on_invalid_docstring: bool = True,
        **fields: Any,
    ) -> None:
        for name, value in fields.items():
            if name not in self.FIELDS:
                raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {name!r}")
            if value is not None:
                setattr(self, name, value)
        if func is not None and is_async_callable(func):
            func, coroutine = None, coroutine or func
        own = type(self)
        self.func = func or getattr(self, "_run", None)
        self.coroutine = coroutine or getattr(self, "_arun", None)
        source = self.func or self.coroutine
        if source is None:
            raise DefinitionError("A tool needs a function.", fix="Pass one, or subclass Tool with a _run method.")
        self.has_sync = self.func is not None
        self.name = self.name or getattr(source, "__name__", own.__name__)
        hints = hints_of(source)
        self.injections: tuple[Injection, ...] = injections_of(source, hints)
        hidden = {one.name for one in self.injections}
        shown = {name: hint for name, hint in hints.items() if name not in hidden}
        self._describe(source, shown, parse_docstring, error_on_invalid_docstring)
        if self.args_schema is None and not infer_schema:
            self.args_schema = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
        self.arguments = self._arguments(source, shown, hidden)

    def _describe(self, source: Any, shown: Mapping[str, Any], parse: bool, strict: bool) -> None:
        text = inspect.getdoc(type(self) if inspect.ismethod(source) and source.__self__ is self else source)
        self._texts: dict[str, str] = {}
        if parse and text:
            found = parse_docstring(self.name, text, shown, strict=strict)
            text, self._texts = found.summary, found.arguments
        described = (
            self.description or text or (inspect.getdoc(self.args_schema) if _is_class(self.args_schema) else "")
        )
        if isinstance(self.args_schema, Mapping):
            described = described or self.args_schema.get("description", "")
        if not described:
            raise DefinitionError(
                f"The tool {self.name!r} has no description.", fix="Give the function a docstring, or description=."
            )
        self.description = described

    def _arguments(self, source: Any, shown: Mapping[str, Any], hidden: set[str]) -> Arguments:
        if self.args_schema is None:
            return Arguments.of_function(self.name, source, shown, self._texts)
        if isinstance(self.args_schema, Mapping) and self.is_own_schema:
            check_object(self.args_schema, f"The args_schema of the tool {self.name!r}")
        arguments = Arguments(self.args_schema, is_checked=self.is_own_schema)
        # A schema may name injected arguments as well: the model sees none of them.
        return arguments.without(hidden & set(arguments.names)) if hidden & set(arguments.names) else arguments

    # -- what the model sees -------------------------------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of the arguments that a model gives."""
        return self.arguments.json_schema

    @property
    def args(self) -> dict[str, Any]:
        """The JSON Schema of each argument."""
        return dict(self.parameters.get("properties", {}))

    @property
    def tool_call_schema(self) -> Any:
        """What the arguments are validated with."""
        return self.arguments.schema

    # -- calling -------------------------------------------------------------------------------------------------------

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The result for arguments; the ToolMessage for a whole tool call."""
        return run(self.call_flow(input, _ambient(config)), block)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The result for arguments, awaited; the ToolMessage for a whole tool call."""
        return await arun(self.call_flow(input, _ambient(config)), wait)

    def call(self, value: Any, running: Any) -> Any:
        return self.invoke(value)

    async def acall(self, value: Any, running: Any) -> Any:
        return await self.ainvoke(value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself, called plainly."""
        function = self.func or self.coroutine
        assert function is not None
        return function(*args, **kwargs)

    def call_flow(self, given: Any, runtime: ToolRuntime[Any, Any]) -> AgentFlow[Any]:
        """The flow behind `invoke`; `runtime` is what is injected."""
        call_id: str | None = None
        arguments = given
        if isinstance(given, Mapping) and given.get("type") == "tool_call":
            call_id, arguments = given.get("id"), given["args"]
            runtime = runtime.override(tool_call_id=call_id)
        try:
            kwargs = self._kwargs(arguments, call_id, runtime)
            result = yield either(self._bound(self.func, kwargs), self._bound(self.coroutine, kwargs), name=self.name)
            content, artifact = self._split(result)
        except (ToolException, ToolInvocationError) as error:
            text = self._handled(error)
            return ToolMessage(text, tool_call_id=call_id, name=self.name, status="error") if call_id else text
        return content if call_id is None else answer(content, artifact, call_id=call_id, name=self.name)

    def _kwargs(self, arguments: Any, call_id: str | None, runtime: ToolRuntime[Any, Any]) -> dict[str, Any]:
        if isinstance(arguments, str):
            arguments = self._of_text(arguments)
        if call_id is None and any(one.kind == "call id" for one in self.injections):
            raise InvalidInputError(
                f"The tool {self.name!r} wants the id of its call.",
                fix='Invoke it with a whole call: {"name": ..., "args": {...}, "id": "...", "type": "tool_call"}.',
            )
        hidden = {one.name: one for one in self.injections}
        by_caller = {key: value for key, value in arguments.items() if key in hidden and call_id is None}
        visible = {key: value for key, value in arguments.items() if key not in hidden}
        missing = [one for one in self.injections if one.name not in by_caller]
        try:
            return {**self.arguments.validated(visible), **injected_values(self.name, missing, runtime), **by_caller}
        except InvalidArguments as error:
            raise ToolInvocationError(self.name, visible, error.problems) from error.__cause__

    def _of_text(self, text: str) -> dict[str, Any]:
        names = self.arguments.names
        if len(names) != 1:
            raise InvalidInputError(
                f"The tool {self.name!r} takes {', '.join(names) or 'nothing'}, and got a text.",
                fix="Pass a dict of its arguments.",
            )
        return {names[0]: text}

    def _bound(self, function: Callable[..., Any] | None, kwargs: dict[str, Any]) -> Callable[[], Any] | None:
        return None if function is None else lambda: function(**kwargs)

    def _split(self, result: Any) -> tuple[Any, Any]:
        if self.response_format == "content":
            return result, None
        if isinstance(result, tuple) and len(result) == 2:
            return result
        raise InvalidInputError(
            f"The tool {self.name!r} has response_format='content_and_artifact' and returned {type(result).__name__}.",
            fix="Return the pair (content, artifact).",
        )

    def _handled(self, error: ToolException | ToolInvocationError) -> Any:
        is_tool = isinstance(error, ToolException)
        handle = self.handle_tool_error if is_tool else self.handle_validation_error
        if not handle:
            raise error
        if handle is True:
            return error.message or "The tool failed." if is_tool else "The arguments of the tool call do not fit."
        return handle if isinstance(handle, str) else handle(error)

    @classmethod
    def from_function(
        cls, func: Callable[..., Any] | None = None, coroutine: Callable[..., Any] | None = None, **options: Any
    ) -> Self:
        """A tool from a function, its async twin, or both."""
        return cls(func, coroutine, **options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


BaseTool = Tool
StructuredTool = Tool


def _is_class(schema: Any) -> bool:
    return isinstance(schema, type)


def _ambient(config: RunnableConfig | None) -> ToolRuntime[Any, Any]:
    """What is injected when a tool is called by hand: what the running node has, if there is one."""
    running = current_task.get()
    if running is None:
        return ToolRuntime(config=config or {})
    return runtime_of(running, state=None, tools=()).override(config=config or running.config)


def runtime_of(running: Any, *, state: Any, tools: Sequence[Any]) -> ToolRuntime[Any, Any]:
    """The runtime of a tool that is called in a running node."""
    runtime = running.runtime
    return ToolRuntime(
        state=state,
        context=runtime.context,
        config=running.config,
        stream_writer=runtime.stream_writer,
        store=runtime.store,
        tools=tools,
        execution_info=runtime.execution_info,
        server_info=runtime.server_info,
        _key=_once(lambda: runtime.idempotency_key),
        _node=runtime,
    )


def _once(make: Callable[[], str]) -> Callable[[], str]:
    """What `make` gives, made when it is first asked for: all calls of a task share one key of it."""
    made: list[str] = []
    lock = Lock()

    def key() -> str:
        with lock:
            if not made:
                token = question_scope.set("")  # whichever call asks first
                try:
                    made.append(make())
                finally:
                    question_scope.reset(token)
        return made[0]

    return key
