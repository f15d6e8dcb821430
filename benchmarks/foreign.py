"""A LangChain chat model that answers by a rule, for the side of a benchmark that needs one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Call = tuple[str, dict[str, Any]]


def foreign_model(words: str, calls: Callable[[Sequence[Any]], Call | None]) -> Any:
    """The model: it makes the call that the messages ask for, and says the words when they ask for none."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Fake(BaseChatModel):  # type: ignore[misc]  # it may not be installed
        @property
        def _llm_type(self) -> str:
            return "fake"

        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self

        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
            called = calls(messages)
            made = [{"name": called[0], "args": called[1], "id": f"call_{len(messages)}"}] if called else []
            return ChatResult(generations=[ChatGeneration(message=AIMessage("" if made else words, tool_calls=made))])

    return Fake()
