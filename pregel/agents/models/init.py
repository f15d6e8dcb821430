"""A model from what a user gives: a model, somebody else's model, or a text such as ``openai:gpt-5``."""

from __future__ import annotations

import importlib
from typing import Any

from pregel.agents.models.base import ChatModel
from pregel.agents.models.foreign import ForeignModel, is_foreign_model
from pregel.errors import DefinitionError

PROVIDERS: dict[str, str] = {
    "openai": "pregel.agents.models.openai:ChatOpenAI",
    "anthropic": "pregel.agents.models.anthropic:ChatAnthropic",
}
"""Provider -> "module:Class" of its adapter, whose first argument is the model's name."""

PREFIXES: dict[str, tuple[str, ...]] = {
    "openai": ("gpt-", "o1", "o3", "o4", "chatgpt"),
    "anthropic": ("claude",),
}
"""Provider -> how the names of its models begin, for a name that says no provider."""


def init_chat_model(model: str, *, model_provider: str | None = None, **settings: Any) -> ChatModel:
    """The model called ``provider:name``; the provider may be left out where the name tells it.

    Keywords go to the adapter (`base_url`, `api_key`) and into every call (`temperature`, ...).
    """
    provider, name = model_provider, model
    if provider is None:
        head, colon, rest = model.partition(":")
        provider, name = (head, rest) if colon and head in PROVIDERS else (_provider_of(model), model)
    if provider not in PROVIDERS:
        known = ", ".join(sorted(PROVIDERS)) or "none is built in yet"
        raise DefinitionError(
            f"No adapter for the model {model!r}.",
            fix=f"Write 'provider:name' with one of these providers: {known}; or pass a ChatModel.",
        )
    module, _, cls = PROVIDERS[provider].partition(":")
    made: ChatModel = getattr(importlib.import_module(module), cls)(name, **settings)
    return made


def _provider_of(model: str) -> str | None:
    return next((provider for provider, heads in PREFIXES.items() if model.startswith(heads)), None)


def as_model(thing: Any) -> ChatModel:
    """A chat model from a model, a foreign model or a text; DefinitionError for anything else."""
    if isinstance(thing, ChatModel):
        return thing
    if isinstance(thing, str):
        return init_chat_model(thing)
    if is_foreign_model(thing):
        return ForeignModel(thing)
    raise DefinitionError(
        f"{thing!r} is no chat model.", fix="Give a ChatModel, 'provider:name', or LangChain's model."
    )
