"""Which part of a history a model sees: trimmed to a budget, filtered, with runs of one speaker merged."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, cast, overload

from pregel.config import RunnableConfig
from pregel.errors import InvalidInputError
from pregel.messages.base import BaseMessage
from pregel.messages.combine import merge_content, merge_dicts
from pregel.messages.content import Content
from pregel.messages.convert import MessageLikeRepresentation, convert_to_messages, kind_of
from pregel.messages.transcript import count_tokens_approximately


class CountsTokens(Protocol):
    """A chat model that counts the tokens of messages."""

    def get_num_tokens_from_messages(self, messages: list[BaseMessage]) -> int: ...


Given: TypeAlias = Iterable[MessageLikeRepresentation]
Kinds: TypeAlias = str | type[BaseMessage] | Sequence[str | type[BaseMessage]]
Counter: TypeAlias = Callable[[list[BaseMessage]], int]
TokenCounter: TypeAlias = Counter | Callable[[BaseMessage], int] | CountsTokens | Literal["approximate"]
Options = ParamSpec("Options")


class Change:
    """A function of messages alone, its options given; `invoke` and `ainvoke` let it stand in a pipe."""

    def __init__(self, function: Callable[..., list[BaseMessage]], options: dict[str, Any]) -> None:
        self.function, self.options = function, options

    def __call__(self, messages: Given) -> list[BaseMessage]:
        return self.function(messages, **self.options)

    def invoke(self, messages: Given, config: RunnableConfig | None = None) -> list[BaseMessage]:
        return self(messages)

    async def ainvoke(self, messages: Given, config: RunnableConfig | None = None) -> list[BaseMessage]:
        return self(messages)


class Changes(Protocol[Options]):
    """A function of messages; called without them it returns one of messages alone."""

    @overload
    def __call__(self, messages: Given, *args: Options.args, **options: Options.kwargs) -> list[BaseMessage]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, *args: Options.args, **options: Options.kwargs) -> Change: ...


def _changes(function: Callable[Concatenate[Given, Options], list[BaseMessage]]) -> Changes[Options]:
    @wraps(function)
    def with_or_without(messages: Given | None = None, **options: Any) -> Any:
        return Change(function, options) if messages is None else function(messages, **options)  # type: ignore[call-arg]

    return cast("Changes[Options]", with_or_without)


def _is_kind(message: BaseMessage, kinds: Kinds) -> bool:
    listed = [kinds] if isinstance(kinds, (str, type)) else kinds
    return any(isinstance(message, kind) if isinstance(kind, type) else kind_of(message) == kind for kind in listed)


# -- filter ----------------------------------------------------------------------------------------------------------


@_changes
def filter_messages(
    messages: Given,
    *,
    include_names: Sequence[str] | None = None,
    exclude_names: Sequence[str] | None = None,
    include_types: Kinds | None = None,
    exclude_types: Kinds | None = None,
    include_ids: Sequence[str] | None = None,
    exclude_ids: Sequence[str] | None = None,
    exclude_tool_calls: Sequence[str] | bool | None = None,
) -> list[BaseMessage]:
    """The messages that no `exclude_*` matches and, when there is any, at least one `include_*` does.

    `exclude_tool_calls`: True leaves out calls and their results, with the messages that hold them; ids leave out
    those calls alone.
    """
    included = (include_names, include_types, include_ids)
    kept = []
    for message in convert_to_messages(messages):
        if _matches(message, exclude_names, exclude_types, exclude_ids):
            continue
        left = _without_calls(message, exclude_tool_calls) if exclude_tool_calls else message
        if left is not None and (not any(included) or _matches(left, *included)):
            kept.append(left)
    return kept


def _matches(message: BaseMessage, names: Sequence[str] | None, kinds: Kinds | None, ids: Sequence[str] | None) -> bool:
    return bool(
        (names and message.name in names) or (kinds and _is_kind(message, kinds)) or (ids and message.id in ids)
    )


def _without_calls(message: BaseMessage, ids: Sequence[str] | Literal[True]) -> BaseMessage | None:
    answered = getattr(message, "tool_call_id", None)
    calls = getattr(message, "tool_calls", None)
    if answered is not None:
        return None if ids is True or answered in ids else message
    if not calls:
        return message
    left = [] if ids is True else [call for call in calls if call["id"] not in ids]
    if not left or len(left) == len(calls):
        return message if left else None
    known = {call["id"] for call in left}
    content: Any = message.content
    if not isinstance(content, str):
        content = [part for part in content if not _is_call(part) or part.get("id") in known]
    return message.model_copy(update={"tool_calls": left, "content": content})


def _is_call(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("tool_use", "tool_call")


# -- merge runs ------------------------------------------------------------------------------------------------------


@_changes
def merge_message_runs(messages: Given, *, chunk_separator: str = "\n") -> list[BaseMessage]:
    """The messages, consecutive ones of one class made one; tool messages stay apart. The first one's id and name win.

    Texts are joined by the separator.
    """
    merged: list[BaseMessage] = []
    for message in convert_to_messages(messages):
        if merged and type(merged[-1]) is type(message) and kind_of(message) not in ("tool", "remove"):
            merged[-1] = _joined(merged[-1], message, chunk_separator)
        else:
            merged.append(message)
    return merged


def _joined(left: BaseMessage, right: BaseMessage, separator: str) -> BaseMessage:
    both_text = isinstance(left.content, str) and isinstance(right.content, str)
    between: tuple[Content, ...] = (separator,) if both_text and left.content and right.content else ()
    update: dict[str, Any] = {
        "content": merge_content(left.content, *between, right.content),
        "additional_kwargs": merge_dicts(left.additional_kwargs, right.additional_kwargs),
    }
    for field in ("tool_calls", "invalid_tool_calls"):
        if getattr(right, field, None):
            update[field] = [*getattr(left, field), *getattr(right, field)]
    return left.model_copy(update=update)


# -- trim ------------------------------------------------------------------------------------------------------------


@_changes
def trim_messages(
    messages: Given,
    *,
    max_tokens: int,
    token_counter: TokenCounter,
    strategy: Literal["first", "last"] = "last",
    allow_partial: bool = False,
    end_on: Kinds | None = None,
    start_on: Kinds | None = None,
    include_system: bool = False,
    text_splitter: Callable[[str], list[str]] | None = None,
) -> list[BaseMessage]:
    """The first or last messages that fit into `max_tokens`.

    - `token_counter`: `len` counts messages; "approximate", a chat model, or a function of one message or of a list.
    - `allow_partial`: the message at the cut is shortened, by blocks, else by lines (or what `text_splitter` gives).
    - `end_on`, `start_on`: kinds ("human", HumanMessage) that the result ends, begins with; others there are left out.
    - `include_system`: a leading system message is kept whatever it takes. Only for "last", as is `start_on`.


    """
    _check_strategy(strategy, start_on, include_system)
    listed = convert_to_messages(messages)
    trim = _Trim(max_tokens, _counter(token_counter), strategy == "last", text_splitter or _lines)
    if strategy == "first":
        return _ending(trim.kept([], listed, allow_partial), end_on)
    head = listed[:1] if include_system and listed and kind_of(listed[0]) == "system" else []
    kept = trim.kept(head, _ending(listed[len(head) :], end_on), allow_partial)
    return head + _starting(kept, start_on)


def _check_strategy(strategy: str, start_on: Kinds | None, include_system: bool) -> None:
    if strategy not in ("first", "last"):
        raise InvalidInputError(f"{strategy!r} is no strategy of trim_messages.", fix="Use 'first' or 'last'.")
    if strategy == "first" and (start_on or include_system):
        name = "start_on" if start_on else "include_system"
        raise InvalidInputError(f"{name} goes only with strategy='last'.", fix=f"Leave {name} out.")


def _ending(messages: list[BaseMessage], kinds: Kinds | None) -> list[BaseMessage]:
    end = len(messages)
    while kinds and end and not _is_kind(messages[end - 1], kinds):
        end -= 1
    return messages[:end]


def _starting(messages: list[BaseMessage], kinds: Kinds | None) -> list[BaseMessage]:
    start = 0
    while kinds and start < len(messages) and not _is_kind(messages[start], kinds):
        start += 1
    return messages[start:]


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _counter(given: TokenCounter) -> Counter:
    if given == "approximate":
        return count_tokens_approximately
    if hasattr(given, "get_num_tokens_from_messages"):
        return given.get_num_tokens_from_messages
    if not callable(given):
        raise InvalidInputError(
            f"A {type(given).__name__} counts no tokens.", fix="Give a function, a chat model, len or 'approximate'."
        )
    if _counts_one(given):
        return lambda messages: sum(map(cast("Callable[[BaseMessage], int]", given), messages))
    return cast(Counter, given)


def _counts_one(function: Any) -> bool:
    """Whether the first parameter is annotated as one message."""
    try:
        first = next(iter(inspect.signature(function).parameters.values()), None)
    except (ValueError, TypeError):  # a builtin without a signature
        return False
    annotation = getattr(first, "annotation", None)
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return name.rpartition(".")[2] in ("BaseMessage", "AnyMessage")


class _Trim:
    """Finds the longest end (or beginning) of a history that fits."""

    def __init__(self, budget: int, count: Counter, last: bool, split: Callable[[str], list[str]]) -> None:
        self.budget, self.count, self.last, self.split = budget, count, last, split

    def kept(self, head: list[BaseMessage], messages: list[BaseMessage], allow_partial: bool) -> list[BaseMessage]:
        """As many of the messages as fit together with the head."""
        n = self._most(len(messages), lambda n: head + self._take(messages, n))
        whole = self._take(messages, n)
        if not allow_partial or n == len(messages):
            return whole
        part = self._part(messages[-n - 1 if self.last else n], lambda part: head + self._put(part, whole))
        return whole if part is None else self._put(part, whole)

    def _take(self, parts: list[Any], n: int) -> list[Any]:
        return parts[len(parts) - n :] if self.last else parts[:n]

    def _put(self, part: BaseMessage, whole: list[BaseMessage]) -> list[BaseMessage]:
        return [part, *whole] if self.last else [*whole, part]

    def _most(self, limit: int, taken: Callable[[int], list[BaseMessage]]) -> int:
        """The largest n up to the limit whose messages fit; counts only log(limit) times."""
        low, high = 0, limit
        while low < high:
            middle = (low + high + 1) // 2
            if self.count(taken(middle)) <= self.budget:
                low = middle
            else:
                high = middle - 1
        return low

    def _part(self, message: BaseMessage, around: Callable[[BaseMessage], list[BaseMessage]]) -> BaseMessage | None:
        """The largest part of the message that fits: whole blocks, else pieces of the outermost text."""

        def shortened(content: Content) -> list[BaseMessage]:
            return around(message.model_copy(update={"content": content}))

        content = message.content
        if isinstance(content, list):
            blocks: list[Any] = content
            n = self._most(len(blocks), lambda n: shortened(self._take(blocks, n)))
            if n:
                return message.model_copy(update={"content": self._take(blocks, n)})
            outermost = blocks[-1 if self.last else 0] if blocks else ""
            content = outermost if isinstance(outermost, str) else outermost.get("text") or ""
        pieces = self.split(content)
        n = self._most(len(pieces), lambda n: shortened("".join(self._take(pieces, n))))
        return message.model_copy(update={"content": "".join(self._take(pieces, n))}) if n else None
