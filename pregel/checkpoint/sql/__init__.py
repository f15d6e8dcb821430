"""The statements of database savers, each written once, by name, with a line that says what it does."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.resources import files
from operator import itemgetter
from typing import Any, NamedTuple

_HEAD = re.compile(r"^-- (\w+): (.+)$", re.MULTILINE)
_NUMBERED = re.compile(r"\?(\d+)")


class Statement(NamedTuple):
    """A statement with plain ``?`` places, and what brings its arguments into their order; None when they are."""

    text: str
    arrange: Callable[[Sequence[Any]], Sequence[Any]] | None

    def ordered(self, args: Sequence[Any]) -> Sequence[Any]:
        """The arguments as the places want them."""
        return args if self.arrange is None else self.arrange(args)


def numbered(text: str) -> Statement:
    """A statement from a text with ``?1`` places, which sqlite3 of some Pythons takes for named ones."""
    places = [int(number) - 1 for number in _NUMBERED.findall(text)]
    plain = _NUMBERED.sub("?", text)
    if not places:
        return Statement(plain, None)
    if len(places) == 1:
        return Statement(plain, lambda args: (args[places[0]],))
    return Statement(plain, itemgetter(*places))


def statements(file: str, package: str = __name__) -> dict[str, str]:
    """The statements of a file of a package: name -> text. Each starts with ``-- name: what it does``."""
    text = (files(package) / file).read_text("utf-8")
    heads = list(_HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {head[1]: text[head.end() : end].strip() for head, end in zip(heads, ends, strict=True)}


GUARDS = frozenset(
    {
        "append",
        "release",
        "claim",
        "create",
        "standing",
        "add_chunks",
        "add_marks",
        "add_roused",
        "add_taken",
        "add_dropped",
        "add_waits",
        "add_kept",
        "add_items",
    }
)
"""The statements of an append, which each saver performs in its own way."""

_ASKED = """
    thread threads renew held ask look namespace newest newest_id newest_before checkpoint manifest values writes
    page_namespace page_thread page_all names name intern
    make_thread touch add_namespaces add_checkpoints add_values add_writes delete_checkpoint
    lock_thread tombstone add_tombstone
    delete_writes delete_values delete_checkpoints delete_namespaces delete_thread
    heads namespaces value_keys named_places threads_of_run stale set_parent rewrite_checkpoint bump_gen
    prune_checkpoints prune_writes delete_writes_of delete_value promote_cache drop_namespace sweep_tombstones
    copy_thread copy_namespaces copy_checkpoints copy_values copy_writes
    pending event awaited send_event count_event events due unread delete_waits delete_events
    backlog open_items held_items take_item item renew_item hand_back_item end_item delete_items
    chunks chunk_end pending_chunks empty_chunks drop_chunks delete_chunks copy_chunks
"""
ASKED = frozenset(_ASKED.split())
"""The statements that flows ask for, by name: every saver has them all."""
