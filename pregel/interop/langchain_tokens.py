"""LangChain chat models called anywhere inside a node report their tokens to the run, as our own models do.

LangChain asks hooks for a callback handler whenever something of its runs. Ours gives one only inside of a node whose
run streams messages; everywhere else, and in every other run, LangChain does not notice that we are here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pregel.config import current_task
from pregel.tokens import Sink, token_sink

T = TypeVar("T")


def connect() -> type:
    """Hook into LangChain, which is loaded; the class of its messages."""
    from langchain_core.messages import BaseMessage
    from langchain_core.tracers.context import register_configure_hook

    register_configure_hook(Listening(), True)
    message: type = BaseMessage
    return message


class Listening:
    """Stands where LangChain expects a context variable with a handler."""

    def __init__(self) -> None:
        self.handler = TokenHandler()

    def get(self) -> TokenHandler | None:
        """The handler, where somebody listens."""
        task = current_task.get()
        return self.handler if task is not None and task.listens("messages") else None


class TokenHandler:
    """A callback handler that passes the chunks of each model call on to the node it was made in.

    It has what LangChain asks of a handler by name; the two `tap` methods make a model stream when it is invoked.
    """

    raise_error = False
    run_inline = True  # in the context of the node
    ignore_llm = ignore_chat_model = False
    ignore_agent = ignore_chain = ignore_retriever = ignore_retry = ignore_custom_event = True

    def __init__(self) -> None:
        self.calls: dict[Any, Sink] = {}
        self.streamed: set[Any] = set()

    def on_chat_model_start(
        self,
        serialized: Mapping[str, Any] | None,
        messages: Sequence[Any],
        *,
        run_id: Any,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A call begins: find the node around it."""
        if (sink := token_sink(tags=tags or (), metadata=metadata)) is not None:
            self.calls[run_id] = sink

    def on_llm_start(self, *args: Any, **kwargs: Any) -> None:
        """A model of plain text shows nothing."""

    def on_llm_new_token(self, token: str, *, chunk: Any = None, run_id: Any, **kwargs: Any) -> None:
        """A chunk came."""
        sink, message = self.calls.get(run_id), getattr(chunk, "message", None)
        if sink is not None and message is not None:
            self.streamed.add(run_id)
            if message.id is None:  # from `stream_events(version="v3")`, whose answer has the id of the call
                message = message.model_copy(update={"id": f"lc_run--{run_id}"})
            sink(message)

    def on_stream_event(self, event: Any, **kwargs: Any) -> None:
        """What LangChain's own event streams tell beside the chunks."""

    def on_llm_end(self, response: Any, *, run_id: Any, **kwargs: Any) -> None:
        """The answer is whole: it shows where its chunks have not."""
        sink, streamed = self.calls.pop(run_id, None), run_id in self.streamed
        self.streamed.discard(run_id)
        if sink is None or streamed or not (response.generations and response.generations[0]):
            return
        message = getattr(response.generations[0][0], "message", None)
        if message is not None:
            sink(message)

    def on_llm_error(self, error: BaseException, *, run_id: Any, **kwargs: Any) -> None:
        """The call failed."""
        self.calls.pop(run_id, None)
        self.streamed.discard(run_id)

    def tap_output_iter(self, run_id: Any, output: Iterator[T]) -> Iterator[T]:
        """The output as it is."""
        return output

    def tap_output_aiter(self, run_id: Any, output: AsyncIterator[T]) -> AsyncIterator[T]:
        """The output as it is."""
        return output
