"""Calls of the agents' own models and tools as runs of LangChain's handlers, inside of what makes the call.

1. There is such a run where handlers are around: in a node whose run has some, or in a chain of LangChain's.
2. What a tool does lies in its run. A model's tokens are not told one by one; its answer and its usage are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from types import TracebackType
from typing import Any, Self

from pregel.engine.heard import surrounding
from pregel.interop.langchain import as_theirs
from pregel.interop.langchain_chain import Said, ambient_config, asaid, said, under
from pregel.interop.langchain_tokens import TokenHandler

MANAGERS, MESSAGES, OUTPUTS = (f"langchain_core.{name}" for name in ("callbacks.manager", "messages.utils", "outputs"))


def model_run(name: str, about: Mapping[str, Any], messages: Sequence[Any], tags: Sequence[str]) -> HeardCall | None:
    """The run of a model call; None when nobody hears of it. `about`: ``provider``, ``model`` and its settings."""
    callbacks = _callbacks()
    return None if callbacks is None else ModelCall(callbacks, name, about, messages, tags)


def tool_run(name: str, description: str, call: Mapping[str, Any]) -> HeardCall | None:
    """The run of a tool call; None when nobody hears of it."""
    callbacks = _callbacks()
    return None if callbacks is None else ToolCall(callbacks, name, description, call)


def _callbacks() -> Any:
    """The handlers around, if one of them is not ours, which hears of our models by itself."""
    callbacks = surrounding()
    handlers = getattr(callbacks, "handlers", callbacks) or ()
    return callbacks if any(not isinstance(one, TokenHandler) for one in handlers) else None


class HeardCall:
    """A call that handlers hear of: ``with`` it, or ``async with`` it; `output` is what it gave, once it has."""

    output: Any = None
    error: BaseException | None = None  # what it failed with, when it does not raise that

    def __init__(self, callbacks: Any) -> None:
        self.callbacks = callbacks
        self.manager: Any = None
        self.inside = ExitStack()

    def begin(self, manager: Any) -> Said:
        """Tell the handlers that it starts."""
        raise NotImplementedError

    def end(self, error: BaseException | None) -> Said:
        """Tell them how it ended."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        said(self.begin(self._configured("CallbackManager")))
        self._go_inside()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        self.inside.close()
        said(self.end(error or self.error))

    async def __aenter__(self) -> Self:
        await asaid(self.begin(self._configured("AsyncCallbackManager")))
        self._go_inside()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        self.inside.close()
        await asaid(self.end(error or self.error))

    def _configured(self, kind: str) -> Any:
        manager = getattr(import_module(MANAGERS), kind).configure(self.callbacks)
        for handler in [one for one in manager.handlers if isinstance(one, TokenHandler)]:
            manager.remove_handler(handler)
        return manager

    def _go_inside(self) -> None:
        """Let what the call does find this run; nothing for a model, which calls nothing of LangChain's."""


class ModelCall(HeardCall):
    """A call of a chat model."""

    def __init__(
        self, callbacks: Any, name: str, about: Mapping[str, Any], messages: Sequence[Any], tags: Sequence[str]
    ) -> None:
        super().__init__(callbacks)
        self.name, self.about, self.tags = name, about, list(tags)
        import_module(MESSAGES)
        self.messages = [as_theirs(message) for message in messages]

    def begin(self, manager: Any) -> Said:
        told = {"ls_provider": self.about["provider"], "ls_model_name": self.about["model"], "ls_model_type": "chat"}
        manager.add_tags(self.tags, inherit=False)
        manager.add_metadata({key: value for key, value in told.items() if value}, inherit=False)
        plain = {key: value for key, value in self.about.items() if isinstance(value, str | int | float)}
        started = yield manager.on_chat_model_start({"name": self.name}, [self.messages], invocation_params=plain)
        self.manager = started[0]

    def end(self, error: BaseException | None) -> Said:
        if error is not None:
            yield self.manager.on_llm_error(error)
            return
        outputs = import_module(OUTPUTS)
        answer = outputs.ChatGeneration(message=as_theirs(self.output))
        yield self.manager.on_llm_end(outputs.LLMResult(generations=[[answer]]))


class ToolCall(HeardCall):
    """A call of a tool."""

    def __init__(self, callbacks: Any, name: str, description: str, call: Mapping[str, Any]) -> None:
        super().__init__(callbacks)
        self.about, self.call = {"name": name, "description": description}, call

    def begin(self, manager: Any) -> Said:
        args = self.call["args"]
        self.manager = yield manager.on_tool_start(self.about, str(args), inputs=args, tool_call_id=self.call["id"])

    def end(self, error: BaseException | None) -> Said:
        if error is not None:
            yield self.manager.on_tool_error(error, tool_call_id=self.call["id"])
        else:
            yield self.manager.on_tool_end(as_theirs(self.output))

    def _go_inside(self) -> None:
        config: Any = {**ambient_config(), "callbacks": self.manager.get_child()}
        self.inside.enter_context(under(self, config))
