"""What a store is asked to do, as plain data, and which namespaces it accepts.

1. A namespace is a tuple of labels: non-empty texts without a dot, a NUL or half a surrogate pair. They are compared
   label by label and nothing in them is a pattern.
2. One is written only under at least one label, and the first is not ``langgraph``.
3. In a MatchCondition a label ``*`` stands for any one label.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

from typing_extensions import TypedDict

from pregel.errors import InvalidInputError
from pregel.store.base.items import Item, SearchItem

NamespacePath = tuple[str | Literal["*"], ...]
NamespaceMatchType = Literal["prefix", "suffix"]
RESERVED = "langgraph"


class InvalidNamespaceError(InvalidInputError):
    """The namespace is not valid."""

    code = "INVALID_NAMESPACE"
    fix = "Give a tuple of non-empty texts without dots, e.g. ('memories', user_id)."


class NotProvided:
    """The type of NOT_PROVIDED: an argument that was left out."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "NOT_PROVIDED"


NOT_PROVIDED = NotProvided()
NOT_GIVEN = NOT_PROVIDED


class GetOp(NamedTuple):
    """One item. `refresh_ttl`: whether its time starts anew."""

    namespace: tuple[str, ...]
    key: str
    refresh_ttl: bool = True


class SearchOp(NamedTuple):
    """The items under a prefix of namespaces that match a filter; the nearest to `query` first when there is one."""

    namespace_prefix: tuple[str, ...]
    filter: dict[str, Any] | None = None
    limit: int = 10
    offset: int = 0
    query: str | None = None
    refresh_ttl: bool = True


class PutOp(NamedTuple):
    """Store a value, or delete it where that is None.

    - `index`: paths of the texts to search by meaning; None: those of the store; False: none.
    - `ttl`: minutes that it lives; None: for ever.
    """

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any] | None
    index: Literal[False] | list[str] | None = None  # type: ignore[assignment]  # tuple has a method of this name
    ttl: float | None = None


class MatchCondition(NamedTuple):
    """Namespaces that start or end with a path, in which ``*`` stands for any one label."""

    match_type: NamespaceMatchType
    path: NamespacePath


class ListNamespacesOp(NamedTuple):
    """Namespaces that hold items and meet all conditions, cut to `max_depth` labels, each once, sorted."""

    match_conditions: tuple[MatchCondition, ...] | None = None
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


Op = GetOp | SearchOp | PutOp | ListNamespacesOp
Result = Item | list[Item] | list[SearchItem] | list[tuple[str, ...]] | None


class TTLConfig(TypedDict, total=False):
    """How long items live, in minutes.

    - `refresh_on_read`: whether reading an item starts its time anew (default True).
    - `omit_expired`: whether an item that lapsed is hidden at once (default), or readable until it is swept (False).
    - `default_ttl`: for items that are put without a ttl (default: for ever).
    - `sweep_interval_minutes`: how often `start_ttl_sweeper` sweeps (default 5).
    """

    refresh_on_read: bool
    omit_expired: bool
    default_ttl: float | None
    sweep_interval_minutes: float | None


def validate_op_namespace(op: Op) -> None:
    """InvalidNamespaceError when an operation's namespace is none."""
    if isinstance(op, PutOp):
        checked_namespace(op.namespace, written=True)
    elif isinstance(op, GetOp):
        checked_namespace(op.namespace)
    elif isinstance(op, SearchOp):
        checked_namespace(op.namespace_prefix)
    else:
        for condition in op.match_conditions or ():
            checked_namespace(condition.path)


def checked_namespace(namespace: tuple[str, ...], *, written: bool = False) -> tuple[str, ...]:
    """The namespace; InvalidNamespaceError when it is none. `written`: something is put there."""
    try:
        return _checked(namespace, written)
    except TypeError:  # a list
        return _checked(tuple(namespace), written) if isinstance(namespace, list) else _check(namespace, written)


def checked_key(key: object) -> str:
    """The key as text; InvalidInputError for None, which would be the one item of all who have no key."""
    if key is None:
        raise InvalidInputError("None is no key of an item.", fix="Give a text.")
    return str(key)


def _check(namespace: tuple[str, ...], written: bool) -> tuple[str, ...]:
    if not isinstance(namespace, tuple):
        raise InvalidNamespaceError(f"{namespace!r} is no namespace.")
    for label in namespace:
        if not isinstance(label, str):
            raise InvalidNamespaceError(f"Namespace {namespace!r} has a label that is no text: {label!r}.")
        if not label or "." in label or "\0" in label or (not label.isascii() and _has_surrogate(label)):
            raise InvalidNamespaceError(f"Namespace {namespace!r} has the label {label!r}.")
    if written and not namespace:
        raise InvalidNamespaceError("Nothing is stored under the empty namespace.")
    if written and namespace[0] == RESERVED:
        raise InvalidNamespaceError(f"The first label {RESERVED!r} is reserved.")
    return namespace


_checked = lru_cache(4096)(_check)


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)
