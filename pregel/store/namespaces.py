"""Namespaces as one text each, in which those under a prefix are one range; and conditions on them.

Labels hold no dot, so ".a.b." is only ("a", "b"), and what starts with ".a." is exactly what lies under ("a",). The dot
at the beginning makes all namespaces what lies under (), with a bound behind it like any other.
"""

from __future__ import annotations

from collections.abc import Iterable

from pregel.store.base.ops import ListNamespacesOp, MatchCondition

Namespace = tuple[str, ...]
AFTER_DOT = chr(ord(".") + 1)
EVERYWHERE = "."  # the text of ()


def joined(namespace: Namespace) -> str:
    """A namespace as text."""
    return "." + "".join(f"{label}." for label in namespace)


def split(text: str) -> Namespace:
    """The namespace that a text stands for."""
    return tuple(text.split(".")[1:-1])


def under(prefix: Namespace) -> tuple[str, str]:
    """The texts of all namespaces under a prefix, itself among them: from the first on, up to before the second."""
    text = joined(prefix)
    return text, text[:-1] + AFTER_DOT


def literal_prefix(op: ListNamespacesOp) -> Namespace:
    """The labels that every namespace of a listing starts with."""
    longest: Namespace = ()
    for condition in op.match_conditions or ():
        if condition.match_type == "prefix":
            stars = [place for place, label in enumerate(condition.path) if label == "*"]
            literal = condition.path[: stars[0]] if stars else condition.path
            longest = max(longest, tuple(literal), key=len)
    return longest


def listed(namespaces: Iterable[Namespace], op: ListNamespacesOp) -> list[Namespace]:
    """The namespaces that a listing shows."""
    conditions = op.match_conditions or ()
    found = {
        namespace[: op.max_depth] if op.max_depth is not None else namespace
        for namespace in namespaces
        if all(_meets(namespace, condition) for condition in conditions)
    }
    return sorted(found)[op.offset : op.offset + op.limit]


def _meets(namespace: Namespace, condition: MatchCondition) -> bool:
    length = len(condition.path)
    if len(namespace) < length:
        return False
    part = namespace[:length] if condition.match_type == "prefix" else namespace[len(namespace) - length :]
    return all(wanted in ("*", label) for label, wanted in zip(part, condition.path, strict=True))
