"""LangChain beside us: its pipes take our runnables, its objects run in our nodes with the config of the run.

1. Nothing of LangChain is imported here. What it has loaded already is found in `sys.modules`, so a process without it
   pays for none of this.
2. Our runnables, compiled graphs among them, count as its Runnables: ``prompt | model | graph`` works.
3. While a node runs, LangChain's ambient config is the task's, so callbacks (tracing, tokens), tags and metadata reach
   objects that the node calls without a config. That graphs and nodes are runs for these is `langchain_runs`.
4. Whatever of it takes messages, its models and prompts called anywhere, takes ours: its one function that makes a
   message of what it is given is told of them, since it has no hook for that. What its models answer is left as it is.
5. A key that is declared to hold its messages holds them: what is written there is made one of its messages first.
6. Its tools may return our commands and tool messages: its function that makes a text of any other value hears of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, get_args

from pregel.channels import MISSING
from pregel.channels.overwrite import overwrite_of
from pregel.config import inside
from pregel.errors import PregelError
from pregel.messages import (
    BaseMessage,
    ToolMessage,
    add_messages,
    convert_to_openai_messages,
    messages_delta_reducer,
    messages_to_dict,
    whole_messages,
)
from pregel.runnable import Runnable
from pregel.runnable.compose import ADAPTERS
from pregel.types import Command, Overwrite

BASE, CONFIG, MODELS = (f"langchain_core.{name}" for name in ("runnables.base", "runnables.config", "language_models"))
MESSAGES = "langchain_core.messages.utils"
TOOLS, FORMATTER = "langchain_core.tools.base", "_format_output"  # looked up whenever a tool has run
CONVERTER = "_convert_to_message"  # what all of its functions that take messages look up when they are called


def connect() -> bool:
    """Whether LangChain is loaded; what there is to connect is connected then."""
    theirs = getattr(sys.modules.get(BASE), "Runnable", None)
    if theirs is None or not hasattr(sys.modules.get(CONFIG), "var_child_runnable_config"):
        return False
    theirs.register(Runnable)
    if _with_their_messages not in ADAPTERS:
        ADAPTERS.append(_with_their_messages)
    _wrap(MESSAGES, CONVERTER, _taking_ours)
    _wrap(TOOLS, FORMATTER, _passing_ours)
    return True


def _wrap(module: str, name: str, wrapped: Callable[[Any], Any]) -> None:
    """Put the wrapped function in the place of a function of a loaded module, once; nothing where there is none."""
    function = getattr(sys.modules.get(module), name, None)
    if function is not None and not hasattr(function, "takes_ours"):
        made = wrapped(function)
        made.takes_ours = True
        setattr(sys.modules[module], name, made)


class InLangChain(Runnable):
    """A node's runnable, under LangChain's ambient config."""

    def __init__(self, bound: Runnable) -> None:
        self.bound = bound
        self.name = bound.get_name()
        self.has_sync, self.has_async = bound.has_sync, bound.has_async

    def call(self, value: Any, running: Any) -> Any:
        ambient = sys.modules[CONFIG].var_child_runnable_config
        token = ambient.set(inside(running.config))
        try:
            return self.bound.call(value, running)
        finally:
            ambient.reset(token)

    async def acall(self, value: Any, running: Any) -> Any:
        ambient = sys.modules[CONFIG].var_child_runnable_config
        token = ambient.set(inside(running.config))
        try:
            return await self.bound.acall(value, running)
        finally:
            ambient.reset(token)


def under_langchain(bound: Runnable) -> Runnable:
    """What a node calls: under LangChain's ambient config where that is loaded. A graph stays what it is."""
    return InLangChain(bound) if not getattr(bound, "is_graph", False) and connect() else bound


class InTheirMessages:
    """Makes messages of LangChain's of what is written to a key, before `check`, if the key has one, sees it."""

    def __init__(self, check: Callable[[Any], Any] | None) -> None:
        self.check = check

    def __call__(self, update: Any) -> Any:
        whole = overwrite_of(update)
        made = self._made(update) if whole is MISSING else Overwrite(self._made(whole))
        return made if self.check is None else self.check(made)

    def _made(self, update: Any) -> Any:
        """The update in LangChain's messages; a check takes a list only, else one alone stays alone."""
        made = _in_theirs(update)
        is_one = self.check is None and not isinstance(update, list) and isinstance(made, list) and len(made) == 1
        return made[0] if is_one else made


def holds_their_messages(channel: Any) -> bool:
    """Whether a channel merges messages, and its type names a class of LangChain's messages."""
    reducer = getattr(channel, "reducer", None) or getattr(channel, "operator", None)
    theirs = getattr(sys.modules.get(MESSAGES), "BaseMessage", None)
    if theirs is None or getattr(reducer, "func", reducer) not in (add_messages, messages_delta_reducer):
        return False
    waiting = [channel.typ]
    while waiting:
        hint = waiting.pop()
        if isinstance(hint, type) and issubclass(hint, theirs):
            return True
        waiting.extend(get_args(hint))
    return False


def _in_theirs(update: Any) -> Any:
    """An update as a list of LangChain's messages; what is no message is left to the reducer."""
    try:
        return [as_theirs(message) for message in whole_messages(update)]
    except (PregelError, TypeError, ValueError):
        return update


def as_theirs(message: Any) -> Any:
    """A message of ours as one of LangChain's with the same fields; any other object as it is."""
    if not isinstance(message, BaseMessage):
        return message
    return sys.modules[MESSAGES].messages_from_dict(messages_to_dict([message]))[0]


def _taking_ours(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """LangChain's function that makes a message of something like one, which takes our messages too."""

    def converted(message: Any) -> Any:
        return convert(as_theirs(message))

    return converted


def _passing_ours(shape: Callable[..., Any]) -> Callable[..., Any]:
    """LangChain's function that makes a tool's answer of what its function returned, which leaves our answers alone."""

    def shaped(content: Any, *args: Any, **kwargs: Any) -> Any:
        answers = (Command, ToolMessage, getattr(sys.modules[TOOLS], "ToolOutputMixin", Command))
        many = content if isinstance(content, list) and content else [content]
        return content if all(isinstance(one, answers) for one in many) else shape(content, *args, **kwargs)

    return shaped


def _with_their_messages(bound: Any, value: Any) -> Any:
    """The value as a model of LangChain takes it; anything else as it is."""
    model = bound
    while isinstance(model, sys.modules[BASE].RunnableBindingBase):  # a model with tools or a config bound to it
        model = model.bound
    theirs = getattr(sys.modules.get(MODELS), "BaseLanguageModel", None)
    if theirs is None or not isinstance(model, theirs):
        return value
    if isinstance(value, BaseMessage):
        return convert_to_openai_messages([value])
    if isinstance(value, Sequence) and any(isinstance(item, BaseMessage) for item in value):
        return [
            item
            for one in value
            for item in (convert_to_openai_messages([one]) if isinstance(one, BaseMessage) else [one])
        ]
    return value
