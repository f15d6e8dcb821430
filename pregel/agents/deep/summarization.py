"""A long history as the model sees it: its beginning as a summary, while the state keeps every message.

1. Nothing is taken out of the state. What was summarised, and up to where, is a private key of the state, so a run that
   goes on after a kill, or on another machine, sees the same summary.
2. What the summary stands for is appended to a file first, and the summary names it.
3. A model that says its context is too long gets a summary at once, and is asked once more.
4. Where the cut is never parts a tool's result from its call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, Unpack
from xml.sax.saxutils import quoteattr

from typing_extensions import TypedDict

from pregel.agents.deep.backends.base import Backend
from pregel.agents.deep.eviction import artifacts_root, file_name
from pregel.agents.flow import AgentFlow, either
from pregel.agents.history import last_answer
from pregel.agents.middleware.base import AgentMiddleware
from pregel.agents.middleware.requests import ExtendedModelResponse, ModelRequest, ModelResponse
from pregel.agents.middleware.summarization import Size, Summarizer, Summarizing, safe_cut, with_calls
from pregel.agents.models.errors import ContextOverflowError
from pregel.agents.models.init import as_model
from pregel.agents.state import AgentState, PrivateStateAttr
from pregel.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    count_tokens_approximately,
    get_buffer_string,
)
from pregel.types import Command

EVENT = "_summarization_event"
LONGEST = 1_000_000  # lines of a history that are read to append to it
OLD_ARGUMENT, KEPT_OF_IT = 2000, 20
WRITING = frozenset({"write_file", "edit_file"})
HEADING = "A summary of the conversation so far{place}:\n\n{summary}"


class SummarizationEvent(TypedDict):
    """Where the history was cut: the id of the last message that the summary stands for, and the summary."""

    cutoff_id: str
    summary: str
    file_path: str | None


class SummarizedState(AgentState):
    """The last cut."""

    _summarization_event: NotRequired[Annotated[SummarizationEvent, PrivateStateAttr]]


class TruncateArgsSettings(TypedDict, total=False):
    """When long texts that a model once wrote to files are shown cut short: all but their first 20 characters.

    From `trigger` on (None: never) in all messages but the `keep` last ones, in the units of a `Summarizer`; for texts
    of more than `max_length` characters (2000), with `truncation_text` behind what is left.
    """

    trigger: Size | None
    keep: Size
    max_length: int
    truncation_text: str


class SummarizationMiddleware(AgentMiddleware):
    """Shows the model a summary for the beginning of a long history; see the module.

    `backend` takes the history; `truncate_args_settings` say when old arguments are shown short, which comes before any
    summary; the options are those of an `agents.middleware.summarization.Summarizer`.
    """

    state_schema = SummarizedState

    def __init__(
        self,
        model: Any,
        *,
        backend: Backend,
        truncate_args_settings: TruncateArgsSettings | None = None,
        **options: Unpack[Summarizing],
    ) -> None:
        self.backend = backend
        self.sizes = Summarizer(model, **options)
        self.cutting: TruncateArgsSettings = truncate_args_settings or {}
        counter = options.get("token_counter", count_tokens_approximately)
        sizes: Any = {key: self.cutting[key] for key in ("trigger", "keep") if key in self.cutting}
        self.old_sizes = Summarizer(model, token_counter=counter, **sizes)

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Ask with the summary; summarise before when it is time, or afterwards when the model says so."""
        event: SummarizationEvent | None = request.state.get(EVENT)
        messages = _after(event, request.messages)
        new: SummarizationEvent | None = None
        if self.sizes.is_due(self._shown(messages)):
            new, messages = yield from self._summarised(event, messages)
        try:
            response = yield request.override(messages=self._shown(messages))
        except ContextOverflowError:
            newer, shorter = yield from self._summarised(new or event, messages, hard=True)
            if newer is None:
                raise
            new = newer
            response = yield request.override(messages=shorter)
        if new is None:
            return response
        command: Command[Any] = Command(update={EVENT: new})
        return ExtendedModelResponse(_as_response(response), command)

    def _shown(self, messages: list[BaseMessage]) -> list[BaseMessage]:
        """The messages with the long arguments of old ones cut short, when it is time."""
        if not self.old_sizes.is_due(messages):
            return messages
        kept = self.old_sizes.kept_from(messages)
        return [*(_with_short_arguments(message, self.cutting) for message in messages[:kept]), *messages[kept:]]

    def compacted(self, state: Any) -> AgentFlow[SummarizationEvent | None]:
        """The next cut, for who asks for it at half of what would bring it; None when there is none to make.

        The model's last answer, which asks, and what came behind it stay.
        """
        event: SummarizationEvent | None = state.get(EVENT)
        messages = _after(event, list(state["messages"]))
        if not self.sizes.is_due(messages, share=0.5):
            return None
        answer, _ = last_answer(messages)
        before = messages if answer is None else messages[: messages.index(answer)]
        new, _ = yield from self._summarised(event, before)
        return new

    def _summarised(
        self, event: SummarizationEvent | None, messages: list[BaseMessage], *, hard: bool = False
    ) -> AgentFlow[tuple[SummarizationEvent | None, list[BaseMessage]]]:
        """The next cut, and the messages behind it; None and the same ones when nothing can be cut off."""
        wanted = self.sizes.kept_from(messages)
        if hard:  # what was to be kept is too long as well
            wanted = max(wanted, len(messages) // 2)
        cut = safe_cut(messages, wanted)
        gone = messages[:cut]
        last = next((message.id for message in reversed(gone) if message.id is not None), None)
        if cut <= 0 or last is None:
            return None, [_with_short_arguments(message, self.cutting) for message in messages] if hard else messages
        summary = yield from self.sizes.summary(gone)
        path = yield from self._offloaded(last, gone, event)
        new = SummarizationEvent(cutoff_id=last, summary=summary, file_path=path)
        kept = with_calls(messages[cut:])
        if hard:
            kept = [_with_short_arguments(message, self.cutting) for message in kept]
        return new, [_summary_message(new), *kept]

    def _offloaded(
        self, cutoff: str, gone: Sequence[BaseMessage], event: SummarizationEvent | None
    ) -> AgentFlow[str | None]:
        """Append what goes to the file of the thread's history; None when that fails."""
        told = [message for message in gone if message.additional_kwargs.get("lc_source") != "summarization"]
        section = f"<section until={quoteattr(cutoff)}>\n{get_buffer_string(told, format='xml')}\n</section>\n"
        path = f"{artifacts_root(self.backend)}/conversation_history/{file_name(cutoff, section)}.md"
        before = ""
        if event is not None and event["file_path"] is not None:
            path = event["file_path"]
            read = yield either(self.backend.read, self.backend.aread, path, 0, LONGEST)
            if read.error is not None or read.file_data is None:
                return None
            before = read.file_data["content"] + "\n"
            if before.endswith(section):  # a task that was cut off has written it
                return path
        written = yield either(self.backend.write, self.backend.awrite, path, before + section)
        return None if written.error is not None else path


def create_summarization_middleware(
    model: Any, backend: Backend, **options: Unpack[Summarizing]
) -> SummarizationMiddleware:
    """The middleware as a deep agent has it: at 85 % of the model's input tokens, of which a tenth is kept as it is.

    Long texts that were written to files more than 20 messages ago (where the profile says the size: when a summary
    would be due, before the last tenth) are shown cut short.
    """
    model = as_model(model)
    window = (model.profile or {}).get("max_input_tokens")
    large: Any = {"trigger": ("tokens", 0.85 * window), "keep": ("tokens", 0.1 * window)} if window else None
    sizes: Any = large or {"trigger": ("tokens", 170_000), "keep": ("messages", 6)}
    cutting: Any = large or {"trigger": ("messages", 20), "keep": ("messages", 20)}
    return SummarizationMiddleware(model, backend=backend, truncate_args_settings=cutting, **{**sizes, **options})


def _after(event: SummarizationEvent | None, messages: list[BaseMessage]) -> list[BaseMessage]:
    """The messages behind a cut, with the summary before them; all when the cut is not among them any more."""
    if event is None:
        return messages
    at = next((index for index, message in enumerate(messages) if message.id == event["cutoff_id"]), None)
    return messages if at is None else [_summary_message(event), *with_calls(messages[at + 1 :])]


def _summary_message(event: SummarizationEvent) -> HumanMessage:
    place = f" (the whole of it is in {event['file_path']})" if event["file_path"] else ""
    text = HEADING.replace("{place}", place).replace("{summary}", event["summary"])
    return HumanMessage(text, additional_kwargs={"lc_source": "summarization"}, id=f"summary-{event['cutoff_id']}")


def _with_short_arguments(message: BaseMessage, cutting: TruncateArgsSettings) -> BaseMessage:
    """The message with the long texts that it once wrote to files cut short."""
    if not isinstance(message, AIMessage) or not any(call["name"] in WRITING for call in message.tool_calls):
        return message
    calls = [
        {**call, "args": {key: _short(value, cutting) for key, value in call["args"].items()}}
        if call["name"] in WRITING
        else call
        for call in message.tool_calls
    ]
    return message.model_copy(update={"tool_calls": calls})


def _short(value: Any, cutting: TruncateArgsSettings) -> Any:
    if isinstance(value, str) and len(value) > cutting.get("max_length", OLD_ARGUMENT):
        return value[:KEPT_OF_IT] + cutting.get("truncation_text", f"... ({len(value)} characters were written)")
    return value


def _as_response(response: Any) -> ModelResponse:
    return response if isinstance(response, ModelResponse) else ModelResponse([response])
