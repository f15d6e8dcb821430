"""Ids, versions and names: as texts, and as a store keeps them.

1. A UUID text is 16 bytes; any other id (foreign engines use them) is its UTF-8 behind a byte that no 16-byte key has.
2. Byte order of ids is text order of UUIDs, so "newest" needs no decoding.
3. A version text is (counter, at), both zero-padded: texts compare like the pairs.
4. Names of channels and nodes are interned once per store and never change.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b, sha256

from pregel.errors import InvalidInputError, MissingThreadError


class Names:
    """The interned names of a store, in both directions. Grows only."""

    __slots__ = ("ids", "last", "texts")

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.texts: dict[int, str] = {}
        self.last = 0

    def learn(self, rows: Iterable[tuple[int, str]]) -> None:
        """Take in (id, text) rows of the store."""
        for number, text in rows:
            self.texts[number] = text
            self.ids[text] = number
            self.last = max(self.last, number)


def is_text(text: str) -> bool:
    """Whether a text can be written down at all: half a surrogate pair cannot."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def thread_text(thread: object) -> str:
    """A thread id as a run takes it: the text of whatever is given; MissingThreadError for None."""
    if thread is None:
        raise MissingThreadError("The thread id is None.", fix="Give the id of a thread.")
    return str(thread)


def checked_place(thread: str, ns: str) -> tuple[str, str]:
    """A thread id and a namespace; InvalidInputError for one that no store can keep."""
    for what, text in (("Thread id", thread), ("Namespace", ns)):
        if not is_text(text):
            raise InvalidInputError(
                f"{what} {text!r} has half a surrogate pair, which no store keeps; nothing was written.",
                fix="Keep such characters out of thread ids, names and namespaces; values may hold them.",
            )
    return thread, ns


@lru_cache(4096)
def id_bytes(text: str) -> bytes:
    """The stored form of an id."""
    if len(text) == 36 and text[8] == text[13] == text[18] == text[23] == "-" and text == text.lower():
        try:
            raw = bytes.fromhex(text.replace("-", ""))
        except ValueError:
            raw = b""
        if len(raw) == 16:
            return raw
    raw = text.encode("utf-8", "surrogatepass")
    return b"\1" + raw if len(raw) != 15 else b"\2\2" + raw


@lru_cache(4096)
def id_text(raw: bytes) -> str:
    """The id that is stored as `raw`."""
    if len(raw) == 16:
        h = raw.hex()
        return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"
    return raw[raw[0] :].decode("utf-8", "surrogatepass")


def hash16(parts: Iterable[str]) -> bytes:
    """16 bytes that name the parts."""
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def uuid_of(parts: Iterable[str]) -> str:
    """The same as the text of a UUID."""
    h = blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def lineage_after(before: bytes, parts: Iterable[str]) -> bytes:
    """16 bytes that name the work that led to a checkpoint: that which led to the one before it, and these parts."""
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16, key=before).digest()


TaskName = str | tuple[str, ...]
"""The id of a task, or the parts that it is the hash of: hashing waits until somebody needs the id."""

PULL = "__pregel_pull"
"""The kind of a task that runs because a channel of its node changed."""


def pull_text(name: str) -> str:
    """The path of such a task as text."""
    return f"~{PULL}, {name}"


def task_parts(checkpoint_id: str, ns: str, step: int, name: str, kind: str, *parts: str) -> tuple[str, ...]:
    """What the id of a task is the hash of: what runs, where, and from which checkpoint."""
    return checkpoint_id, f"{ns}|{name}" if ns else name, str(step), name, kind, *parts


def task_bytes(task: TaskName) -> bytes:
    """The stored form of a task's id."""
    return id_bytes(task) if isinstance(task, str) else hash16(task)


def task_text(task: TaskName) -> str:
    """A task's id as text."""
    return task if isinstance(task, str) else id_text(hash16(task))


def thread_digest(thread: str) -> bytes:
    """What a tombstone knows a thread by."""
    return sha256(thread.encode("utf-8", "surrogatepass")).digest()


def version_text(counter: int, at: int = 0) -> str:
    """A channel version as the saver contract shows it."""
    return f"{counter:032d}.{at:016d}"


def counter_of(version: str | int | float) -> int:
    """The counter in a version of whatever kind."""
    try:
        return int(version.split(".", 1)[0]) if isinstance(version, str) else int(version)
    except ValueError:
        raise InvalidInputError(
            f"Channel version {version!r} does not start with a counter.", fix="Take versions from get_next_version."
        ) from None
