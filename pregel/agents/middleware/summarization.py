"""A long history is replaced by a summary of its beginning and its last messages as they are.

The cut never parts a result from its call: where it would, it moves back before the call, or, when there is nothing
before, past the results. So no ToolMessage is left without its call, whatever was mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, Unpack

from typing_extensions import TypedDict

from pregel.agents.flow import AgentFlow, calling
from pregel.agents.middleware.asking import ask
from pregel.agents.middleware.base import AgentMiddleware, hook_config
from pregel.agents.models.base import ChatModel
from pregel.agents.models.errors import ContextOverflowError
from pregel.agents.models.foreign import is_foreign_model
from pregel.agents.models.init import as_model
from pregel.errors import DefinitionError
from pregel.messages import (
    REMOVE_ALL_MESSAGES,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    count_tokens_approximately,
    get_buffer_string,
    trim_messages,
    with_ids,
)
from pregel.messages.convert import kind_of

Metric = Literal["tokens", "messages", "fraction"]
Size: TypeAlias = tuple[Metric, float]
TriggerClause: TypeAlias = Mapping[Metric, float]
Trigger: TypeAlias = Size | TriggerClause | Sequence[Size | TriggerClause]

PROMPT = """The conversation below is too long to be kept whole. Write what is needed to go on with it after the rest
is gone: what was asked for, what was decided and why, facts and names and numbers that matter, what was done with which
result, what is still open. Leave out politeness and what led nowhere. Answer with the summary alone.

{messages}"""
HEADING = "A summary of the conversation so far:\n\n"
FALLBACK = 15  # messages that are summarised when none fit the budget


class Summarizing(TypedDict, total=False):
    """The options of a `Summarizer`."""

    trigger: Trigger | None
    keep: Size
    token_counter: Callable[[list[BaseMessage]], int]
    summary_prompt: str
    trim_tokens_to_summarize: int | None
    summarizer: Any


class Summarizer:
    """When a history is too long, from where it stays as it is, and what stands for the rest.

    - `trigger`: ("messages" | "tokens" | "fraction", n); a dict of them, all of which must hold; or a list, one of
      which must. None: never. A fraction is of the model's ``max_input_tokens``.
    - `keep`: how much of the end stays as it is, in the same units.
    - `summarizer`: another model, or a function of the messages, instead of `model` with `summary_prompt`.
    """

    def __init__(
        self,
        model: Any,
        *,
        trigger: Trigger | None = None,
        keep: Size = ("messages", 20),
        token_counter: Callable[[list[BaseMessage]], int] = count_tokens_approximately,
        summary_prompt: str = PROMPT,
        trim_tokens_to_summarize: int | None = 4000,
        summarizer: Any = None,
    ) -> None:
        self.model = as_model(model)
        self.clauses = [self._clause(one) for one in _listed(trigger)]
        self.keep = next(iter(self._clause(keep).items()))
        self.token_counter, self.summary_prompt = token_counter, summary_prompt
        self.trim_tokens = trim_tokens_to_summarize
        self.summarizer = _summarizer(summarizer)

    def _clause(self, given: Any) -> dict[Metric, float]:
        """A clause with fractions turned into tokens."""
        clause: dict[Metric, float] = {}
        for metric, value in dict([given] if isinstance(given, tuple) else given).items():
            if metric not in ("tokens", "messages", "fraction") or value < 0 or (metric == "fraction" and value > 1):
                raise DefinitionError(
                    f"{metric!r}: {value!r} is no size of a history.",
                    fix='Use ("tokens" | "messages", n > 0) or ("fraction", 0..1).',
                )
            if metric == "fraction":
                metric, value = "tokens", value * self._window()
            clause[metric] = value
        return clause

    def _window(self) -> int:
        size = (self.model.profile or {}).get("max_input_tokens")
        if size is None:
            raise DefinitionError(
                f"A fraction needs the size of the model's window, and {self.model!r} does not say it.",
                fix='Give the model a profile={"max_input_tokens": ...}, or use ("tokens", n).',
            )
        return size

    def is_due(self, messages: list[BaseMessage], *, share: float = 1.0) -> bool:
        """Whether the history is too long, or at a share of what is too long."""
        return any(self._holds(clause, messages, share) for clause in self.clauses)

    def _holds(self, clause: Mapping[Metric, float], messages: list[BaseMessage], share: float) -> bool:
        return all(self._size(metric, messages) >= value * share for metric, value in clause.items())

    def _size(self, metric: Metric, messages: list[BaseMessage]) -> float:
        if metric == "messages":
            return len(messages)
        return max(self.token_counter(messages), self._reported(messages))

    def _reported(self, messages: Sequence[BaseMessage]) -> int:
        """The tokens that the model itself counted for its last answer, when it was this model's provider."""
        last = next((message for message in reversed(messages) if kind_of(message) == "ai"), None)
        usage = getattr(last, "usage_metadata", None)
        if last is None or not usage or last.response_metadata.get("model_provider") != self.model.provider:
            return 0
        return int(usage.get("total_tokens", 0))

    def kept_from(self, messages: list[BaseMessage]) -> int:
        """The first message that stays."""
        metric, size = self.keep
        if metric == "messages":
            return max(len(messages) - int(size), 0)
        low, high = 0, len(messages)
        while low < high:  # the longest end that is small enough
            middle = (low + high) // 2
            if self.token_counter(messages[middle:]) <= size:
                high = middle
            else:
                low = middle + 1
        return low

    # -- the summary ---------------------------------------------------------------------------------------------------

    def summary(self, messages: list[BaseMessage]) -> AgentFlow[str]:
        """What stands for these messages."""
        if callable(self.summarizer) and not isinstance(self.summarizer, ChatModel):
            text = yield calling(self.summarizer, messages)
            if not isinstance(text, str):
                raise TypeError(f"The summarizer returned a {type(text).__name__}. Return a str.")
            return text
        model = self.summarizer or self.model
        part = self._trimmed(messages)
        try:
            answer = yield self._asked(model, part)
        except ContextOverflowError:
            quarter = max(len(part) // 4, 1)
            answer = yield self._asked(model, [*part[:quarter], *part[-quarter:]])
        return str(answer.text).strip()

    def _asked(self, model: ChatModel, messages: list[BaseMessage]) -> Any:
        return ask(model, self.summary_prompt.replace("{messages}", get_buffer_string(messages, format="xml")))

    def _trimmed(self, messages: list[BaseMessage]) -> list[BaseMessage]:
        if self.trim_tokens is None:
            return messages
        fitting = trim_messages(
            messages,
            max_tokens=self.trim_tokens,
            token_counter=self.token_counter,
            strategy="last",
            start_on="human",
            allow_partial=True,
            include_system=True,
        )
        return fitting or messages[-FALLBACK:]


class SummarizationMiddleware(AgentMiddleware):
    """Summarises all but the last messages when the history is too long; arguments as of a `Summarizer`."""

    def __init__(self, model: Any, **options: Unpack[Summarizing]) -> None:
        self.summarizer = Summarizer(model, **options)

    @hook_config(can_jump_to=[])
    def before_model(self, state: Any, runtime: Any) -> AgentFlow[Any]:
        """Replace the beginning by its summary when it is time."""
        messages = with_ids(list(state["messages"]))
        if not self.summarizer.is_due(messages):
            return None
        cut = safe_cut(messages, self.summarizer.kept_from(messages))
        if cut <= 0:
            return None
        summary = yield from self.summarizer.summary(messages[:cut])
        head = HumanMessage(f"{HEADING}{summary}", additional_kwargs={"lc_source": "summarization"})
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), head, *with_calls(messages[cut:])]}


def safe_cut(messages: Sequence[BaseMessage], wanted: int) -> int:
    """Where the history may be cut, at or before `wanted`, without parting a result from its call.

    When that would be the very beginning: behind the last result that would be parted.
    """
    owners = _owners(messages)
    cut = wanted
    while parted := [owner for result, owner in owners.items() if owner < cut <= result]:
        cut = min(parted)
    if cut > 0:
        return cut
    cut = wanted
    while behind := [result + 1 for result, owner in owners.items() if owner < cut <= result]:
        cut = max(behind)
    return cut


def with_calls(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages without results whose call is not among them."""
    owned = _owners(messages)
    return [message for at, message in enumerate(messages) if kind_of(message) != "tool" or at in owned]


def _owners(messages: Sequence[BaseMessage]) -> dict[int, int]:
    """Where each result's call is: index of the result -> index of the AI message."""
    asked: dict[str, int] = {}
    owners: dict[int, int] = {}
    for at, message in enumerate(messages):
        kind = kind_of(message)
        if kind == "ai":
            calls: Any = message
            asked.update({call["id"]: at for call in (*calls.tool_calls, *calls.invalid_tool_calls) if call["id"]})
        elif kind == "tool" and (owner := asked.get(getattr(message, "tool_call_id", ""))) is not None:
            owners[at] = owner
    return owners


def _listed(trigger: Trigger | None) -> list[Any]:
    if trigger is None:
        return []
    return [trigger] if isinstance(trigger, (tuple, Mapping)) else list(trigger)


def _summarizer(given: Any) -> Any:
    if isinstance(given, (str, ChatModel)) or is_foreign_model(given):
        return as_model(given)
    if given is not None and not callable(given) and hasattr(given, "invoke"):
        return given.invoke
    return given
