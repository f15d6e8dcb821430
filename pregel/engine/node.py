"""What a compiled node is: what it reads, what wakes it, what it calls, and what its output becomes.

1. Reading and waking are separate: `channels` are read, `triggers` wake.
2. Writers turn the output into channel writes. A writer that asks (a branch) has a path, which is user code: whoever
   runs the node calls or awaits it between `read` and `writes`. Every other writer is a plain function of the output.
3. `pure` says that running the node calls no user code at all, so the core may run it by itself (START, mostly).
4. `direct` says that a lone task of the node may run without a Barrier: nothing about it is watched or counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from pregel.errors import DefinitionError
from pregel.runnable import Runnable, RunnableSequence, coerce_to_runnable
from pregel.types import CachePolicy, RetryPolicy, TimeoutPolicy, TracePolicy, checked_policies

if TYPE_CHECKING:
    from pregel.engine.caching import Caching

Writes = list[tuple[str, Any]]


class Passthrough:
    """Stands for "the node's own output" in a ChannelWriteEntry."""

    def __repr__(self) -> str:
        return "PASSTHROUGH"

    def __reduce__(self) -> str:
        return "PASSTHROUGH"  # a copy is the same object


PASSTHROUGH = Passthrough()


class ChannelWriteEntry(NamedTuple):
    """One write: `value` (default: the node's output), through `mapper`; `skip_none` drops a None."""

    channel: str
    value: Any = PASSTHROUGH
    skip_none: bool = False
    mapper: Callable[[Any], Any] | None = None


class Writer(Protocol):
    """Turns a node's output into channel writes."""

    @property
    def asks(self) -> Literal[False]: ...

    def write(self, output: Any, out: Writes) -> None:
        """Append the writes for this output."""


class AskingWriter(Protocol):
    """Turns a node's output into channel writes by asking a path of the user."""

    @property
    def asks(self) -> Literal[True]: ...

    @property
    def path(self) -> Runnable: ...

    def read(self, output: Any, running: Any) -> Any:
        """The path's input."""

    def writes(self, answer: Any) -> Writes:
        """The writes for the path's answer."""


class ChannelWrite:
    """Fixed writes to named channels."""

    asks: Literal[False] = False

    def __init__(self, entries: Iterable[ChannelWriteEntry]) -> None:
        self.entries = tuple(entries)
        self.maps = any(entry.mapper is not None for entry in self.entries)  # writing calls user code
        plain = all(e.value is not PASSTHROUGH and e.mapper is None and not e.skip_none for e in self.entries)
        self.constant = [(e.channel, e.value) for e in self.entries] if plain else None
        self.plain = not self.maps

    def write(self, output: Any, out: Writes) -> None:
        if self.constant is not None:
            out.extend(self.constant)
            return
        for channel, value, skip_none, mapper in self.entries:
            value = output if value is PASSTHROUGH else value
            value = value if mapper is None else mapper(value)
            if value is not None or not skip_none:
                out.append((channel, value))

    def __repr__(self) -> str:
        return f"ChannelWrite<{','.join(entry.channel for entry in self.entries)}>"


class ConstantWrite:
    """The writes of plain edges: the same for every output."""

    __slots__ = ("constant",)
    asks: Literal[False] = False
    maps = False
    plain = True

    def __init__(self, writes: Writes) -> None:
        self.constant = writes

    @property
    def entries(self) -> tuple[ChannelWriteEntry, ...]:
        """The same as a ChannelWrite has them."""
        return tuple(ChannelWriteEntry(channel, value) for channel, value in self.constant)

    def write(self, output: Any, out: Writes) -> None:
        out.extend(self.constant)

    def __repr__(self) -> str:
        return f"ConstantWrite<{','.join(channel for channel, _ in self.constant)}>"


class PregelNode:
    """A node of a compiled graph.

    `channels`: a name (its bare value is the input) or a list (a dict of the available ones is); `mapper` turns that
    dict into the node's input. `writers` are applied to the output in order.
    """

    __slots__ = (
        "admit",
        "asks",
        "bound",
        "cache_policy",
        "caching",
        "calls",
        "changing",
        "channels",
        "constant",
        "direct",
        "error_handler",
        "is_error_handler",
        "keys",
        "managed",
        "mapper",
        "metadata",
        "plain",
        "pure",
        "pure_input",
        "pure_output",
        "retry_policy",
        "subgraph",
        "subgraphs",
        "tags",
        "timeout",
        "trace_policy",
        "triggers",
        "writers",
    )

    def __init__(
        self,
        *,
        channels: str | Sequence[str],
        triggers: Sequence[str],
        bound: Runnable | None = None,
        mapper: Callable[[Any], Any] | None = None,
        writers: Sequence[Writer | AskingWriter] = (),
        managed: dict[str, Any] | None = None,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = (),
        cache_policy: CachePolicy | None = None,
        timeout: TimeoutPolicy | None = None,
        tags: Sequence[str] = (),
        metadata: dict[str, Any] | None = None,
        subgraphs: Sequence[Any] = (),
        is_error_handler: bool = False,
        error_handler: str | None = None,
        trace_policy: TracePolicy | None = None,
    ) -> None:
        self.channels: str | list[str]
        self.keys: tuple[str, ...]
        if isinstance(channels, str):
            self.channels, self.keys = channels, ()
        else:
            self.channels, self.keys = list(channels), tuple(channels)
        self.triggers = list(triggers)
        self.bound = bound
        self.mapper = mapper
        self.writers = list(writers)
        self.managed = {} if managed is None else managed
        self.retry_policy = checked_policies(retry_policy) if retry_policy else ()
        self.cache_policy = cache_policy
        self.caching: Caching | None = None  # in a graph: what stands before `bound` when there is a cache policy
        self.timeout = timeout
        self.tags = list(tags)
        self.metadata = metadata or {}
        self.subgraphs = list(subgraphs)
        self.is_error_handler = is_error_handler
        self.error_handler = error_handler  # the node that runs when this one has failed for good
        self.trace_policy = trace_policy  # of a subgraph; other nodes record by themselves
        self.subgraph: Any = bound if getattr(bound, "is_graph", False) else None
        self.pure_input = mapper is None or getattr(mapper, "plain", False)  # reading calls no user code
        # Raises for an input that this node, START, would refuse; a pure one runs before anything is stored anyway.
        self.admit: Callable[[Any], None] | None = None
        self.changing, self.constant = _split(writers)
        asks, maps, plain = False, False, True
        for writer in self.changing:
            asks = asks or writer.asks
            maps = maps or getattr(writer, "maps", False)
            plain = plain and getattr(writer, "plain", False)
        self.asks = asks
        self.pure = bound is None and mapper is None and not asks and not maps
        self.pure_output = plain and not asks  # writing calls none
        self.plain = bound.plain if bound is not None else None
        self.direct = not (self.pure or timeout or self.retry_policy)
        self.calls: bool | None = None  # whether its code calls tasks or graphs; None: nobody has looked yet

    @property
    def may_call(self) -> bool:
        """Whether its code calls tasks or graphs, so far as is known: it refers to one, or has called one before."""
        if self.calls is None:
            from pregel.engine.nested import refers_to_calls

            self.calls = refers_to_calls(self.bound)
        return self.calls

    @property
    def policed(self) -> bool:
        """Whether attempts of this node are watched or counted: then its step has a Barrier from the start."""
        return bool(self.timeout or self.retry_policy)

    def under(self, **policies: Any) -> PregelNode:
        """A copy with other policies."""
        node = copy(self)
        for name, policy in policies.items():
            setattr(node, name, policy)
        node.direct = not (node.pure or node.policed)
        return node

    def behind(self, caching: Caching) -> PregelNode:
        """A copy that looks into the cache before it calls anything."""
        node = copy(self)
        node.caching = caching
        node.plain, node.asks, node.pure_input, node.pure_output = None, True, False, False
        if node.subgraph is None:
            node.bound = caching
        return node

    def __repr__(self) -> str:
        return f"PregelNode(channels={self.channels!r}, triggers={self.triggers!r}, bound={self.bound!r})"


_FIXED = (ConstantWrite, ChannelWrite)


def _split(writers: Sequence[Writer | AskingWriter]) -> tuple[list[Writer | AskingWriter], Writes]:
    """The writers that look at the output, and the fixed writes of those after them."""
    changing = list(writers)
    fixed: Writes = []
    while changing and isinstance(last := changing[-1], _FIXED) and last.constant is not None:
        fixed = [*last.constant, *fixed] if fixed else last.constant
        changing.pop()
    return changing, fixed


class NodeBuilder:
    """Builds a node for a raw `Pregel`, step by step; every method returns the builder."""

    def __init__(self) -> None:
        self._channels: str | list[str] = []
        self._triggers: list[str] = []
        self._tags: list[str] = []
        self._metadata: dict[str, Any] = {}
        self._writes: list[ChannelWriteEntry] = []
        self._bound: Runnable | None = None
        self._retry: list[RetryPolicy] = []
        self._cache: CachePolicy | None = None
        self._timeout: TimeoutPolicy | None = None

    def subscribe_only(self, channel: str) -> NodeBuilder:
        """Wake on one channel and take its bare value as the input."""
        if self._channels:
            raise DefinitionError("Cannot subscribe to single channels when other channels are already subscribed to.")
        self._channels = channel
        self._triggers.append(channel)
        return self

    def subscribe_to(self, *channels: str, read: bool = True) -> NodeBuilder:
        """Wake on these channels, and read them unless `read` is False."""
        if isinstance(self._channels, str):
            raise DefinitionError("Cannot subscribe to channels when subscribed to a single channel.")
        if read:
            self._channels.extend(c for c in channels if c not in self._channels)
        self._triggers.extend(c for c in channels if c not in self._triggers)
        return self

    def read_from(self, *channels: str) -> NodeBuilder:
        """Read these channels without waking on them."""
        if isinstance(self._channels, str):
            raise DefinitionError("Cannot read additional channels when subscribed to a single channel.")
        self._channels.extend(c for c in channels if c not in self._channels)
        return self

    def do(self, node: Any) -> NodeBuilder:
        """Call this; several calls are chained."""
        step = coerce_to_runnable(node)
        self._bound = step if self._bound is None else RunnableSequence(self._bound, step)
        return self

    def write_to(self, *channels: str | ChannelWriteEntry, **kwargs: Any) -> NodeBuilder:
        """Write the output to channels; keywords map it (a callable) or write a constant."""
        self._writes.extend(c if isinstance(c, ChannelWriteEntry) else ChannelWriteEntry(c) for c in channels)
        for channel, value in kwargs.items():
            entry = ChannelWriteEntry(channel, mapper=value) if callable(value) else ChannelWriteEntry(channel, value)
            self._writes.append(entry)
        return self

    def meta(self, *tags: str, **metadata: Any) -> NodeBuilder:
        """Tags and metadata of the node."""
        self._tags.extend(tags)
        self._metadata.update(metadata)
        return self

    def add_retry_policies(self, *policies: RetryPolicy) -> NodeBuilder:
        """Retry by the first policy that matches."""
        self._retry.extend(policies)
        return self

    def add_cache_policy(self, policy: CachePolicy) -> NodeBuilder:
        """Cache results by this policy."""
        self._cache = policy
        return self

    def set_timeout(self, timeout: Any) -> NodeBuilder:
        """Limit each attempt: seconds, timedelta or TimeoutPolicy."""
        self._timeout = TimeoutPolicy.coerce(timeout)
        return self

    def build(self) -> PregelNode:
        """The node."""
        return PregelNode(
            channels=self._channels,
            triggers=self._triggers,
            bound=self._bound,
            writers=[ChannelWrite(self._writes)] if self._writes else [],
            retry_policy=self._retry,
            cache_policy=self._cache,
            timeout=self._timeout,
            tags=self._tags,
            metadata={**self._metadata},
        )
