"""Typed dicts of the public face are of the kind that pydantic takes on every Python: tools and schemas name them."""

from __future__ import annotations

import importlib

import pytest
from typing_extensions import TypedDict, is_typeddict


class Known(TypedDict):
    """Of that kind."""


MODULES = (
    "pregel.types",
    "pregel.config",
    "pregel.graph",
    "pregel.messages",
    "pregel.agents",
    "pregel.agents.chat_agent_executor",
    "pregel.agents.interrupt",
    "pregel.agents.middleware",
    "pregel.agents.tool_node",
    "pregel.agents.deep",
    "pregel.checkpoint.base",
    "pregel.store.base",
    "pregel.stream",
)


@pytest.mark.parametrize("name", MODULES)
def test_typed_dicts_are_of_the_kind_that_pydantic_takes(name: str) -> None:
    module = importlib.import_module(name)
    public = [one for one in vars(module) if is_typeddict(getattr(module, one))]

    assert [] == [one for one in public if type(getattr(module, one)) is not type(Known)]
