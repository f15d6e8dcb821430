"""One call of a public method: arguments and config checked and turned into a run with its journal and root frame."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pregel.checkpoint.keys import checked_place
from pregel.config import (
    COORDINATES,
    DEFAULT_RECURSION_LIMIT,
    RunnableConfig,
    check_config,
    current_task,
    inside,
    merge_configs,
)
from pregel.constants import LIFECYCLE, START
from pregel.engine.authority import ClaimMissed
from pregel.engine.chunks import checked_version, print_chunk
from pregel.engine.contend import Contender, checked_concurrency
from pregel.engine.family import family
from pregel.engine.frame import Frame, Run
from pregel.engine.heard import surrounding
from pregel.engine.ids import Ids
from pregel.engine.journal import Journal
from pregel.engine.nested import place_of
from pregel.engine.resume import Entry, Replay
from pregel.engine.running import Running
from pregel.engine.versions import VERSION, inherited
from pregel.errors import (
    InvalidInputError,
    MissingThreadError,
    NoCheckpointerError,
    NotBuiltError,
    SubgraphNotFoundError,
    ThreadBusy,
)
from pregel.tokens import connect
from pregel.types import DURABILITIES, STREAM_MODES
from pregel.warnings import warn_caller

if TYPE_CHECKING:
    from pregel.callbacks import GraphCallbacks
    from pregel.engine.calls import GraphCall
    from pregel.engine.effects import Chunk, Flow, Result
    from pregel.engine.heard import Heard
    from pregel.engine.pregel import Pregel
    from pregel.engine.streamed import CallStream

_HIDDEN_KEYS = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map", "task_id", "run_id")
_PRIMITIVE = (str, int, bool, float)
NOTHING = frozenset[Any]()  # one for all calls: each object of a run costs, where thousands go on at once


def clock() -> int:
    """Unix time in 100 ns ticks."""
    return time.time_ns() // 100


class Call:
    """What a call asks for, checked; makes a fresh run for each try at the thread."""

    __slots__ = (
        "_contender",
        "arguments",
        "around",
        "callbacks",
        "checkpoint",
        "concurrency",
        "config",
        "context",
        "durability",
        "graph",
        "heard",
        "input",
        "limit",
        "map",
        "modes",
        "nested",
        "ns",
        "output_keys",
        "printed",
        "recorded",
        "subgraphs",
        "thread",
        "version",
        "wait",
        "yields",
    )

    def __init__(
        self,
        graph: Pregel,
        input: Any = None,
        config: RunnableConfig | None = None,
        *,
        modes: Sequence[str] = (),
        output_keys: str | Sequence[str] | None = None,
        durability: str | None = None,
        subgraphs: bool = False,
        context: Any = None,
        concurrency: str | None = None,
        wait: float | None = None,
        version: str = "v1",
        print_mode: str | Sequence[str] = (),
        journal_stream: bool | str | Sequence[str] | None = None,
        **arguments: Any,
    ) -> None:
        ambient = current_task.get()
        if ambient is not None:
            graph = inherited(graph)
        self.graph = graph
        self.input = input
        self.nested: Any = ambient if isinstance(ambient, Running) and _is_inside(ambient, config) else None
        self.around: frozenset[bytes] = ambient.frame.run.held if isinstance(ambient, Running) else NOTHING
        self.config = merge_configs(_inherited(self.nested, config), graph.config, config)
        self.version = checked_version(version)
        self.recorded: frozenset[str] = NOTHING
        if journal_stream or (graph.journal_stream and journal_stream is None):
            self.recorded = _recorded(self, journal_stream or graph.journal_stream)
        self._watch(modes, print_mode)
        self.output_keys = checked_keys(graph, output_keys)
        self.subgraphs = subgraphs
        self.context = context
        self.arguments = arguments
        check_breakpoints(graph, arguments.get("interrupt_before"), arguments.get("interrupt_after"))
        self.limit = self.config.get("recursion_limit", DEFAULT_RECURSION_LIMIT)
        _check_count("recursion_limit", self.limit)
        place = self.config.get("configurable") or {}
        self.thread, self.ns, self.checkpoint = "", "", None
        self.map: Mapping[str, str] = place.get("checkpoint_map") or {}
        if self.journaled:
            self.thread, self.ns = checked_place(thread_of(place), str(place.get("checkpoint_ns") or ""))
            self.checkpoint = place.get("checkpoint_id") or None
        self.durability = checked_durability(durability or "sync")
        self.concurrency, self.wait = concurrency or graph.concurrency, graph.wait if wait is None else wait
        self._contender: Contender | None = None
        if concurrency is not None or wait is not None:
            checked_concurrency(self.concurrency, self.wait)
        if self.concurrency == "enqueue" and self.journaled and isinstance(ambient, Running):
            raise InvalidInputError(
                "concurrency='enqueue' was asked for inside a running node: two runs could wait for each other.",
                fix="Enqueue from outside of the graph, or use concurrency='reject' here.",
            )
        if durability is not None and not graph.checkpointer and self.nested is None:
            warn_caller("durability= has no effect: the graph has no checkpointer. Compile it with one.")
        if "checkpoints" in self.yields and not graph.checkpointer and self.nested is None:
            warn_caller("stream_mode='checkpoints' shows nothing: the graph has no checkpointer. Compile it with one.")
        if self.room is not None:
            _check_count("max_concurrency", self.room)

    def _watch(self, modes: Sequence[str], print_mode: str | Sequence[str]) -> None:
        """What of the run is shown: to the caller, printed, and to callbacks."""
        self.yields = checked_modes(modes)
        self.printed: frozenset[str] = NOTHING
        if print_mode or self.graph.debug:
            print_mode = print_mode or ("updates", "values")
            self.printed = checked_modes((print_mode,) if isinstance(print_mode, str) else print_mode)
        self.modes = self.yields | self.printed if self.printed else self.yields
        if self.recorded:
            self.modes |= self.recorded
        if "messages" in self.modes:
            connect()
        self.heard: Heard | None = None
        self.callbacks = _callbacks(self.config) if self.nested is None else None
        if self.callbacks is not None:
            self.modes |= {LIFECYCLE}

    def wants(self, chunk: Chunk) -> bool:
        """Whether the caller is given a chunk, which is printed if that was asked for."""
        if chunk[0] and self.recorded and not self.subgraphs:
            return False  # of a subgraph, and only journaled
        if chunk[1] in self.printed:
            print_chunk(chunk)
        return chunk[1] in self.yields

    @property
    def journaled(self) -> bool:
        """Whether this call stores anything."""
        return self.nested is None and bool(self.graph.checkpointer)

    @property
    def room(self) -> int | None:
        """How many tasks may run at once."""
        return self.config.get("max_concurrency")

    def frame(self, kind: type[Journal]) -> Frame:
        """A root frame with a run of its own."""
        ids = Ids(self.graph.clock or clock, random.getrandbits(48))
        journal: Journal | None = None
        if self.journaled:
            place = self.config.get("configurable") or {}
            saver, durability = as_journal(self.graph.saver, place, self.durability)
            if self.recorded and not hasattr(saver, "chunk_tail"):
                raise keeps_none(self.graph.saver)
            journal = kind(saver, self.thread, ids, os.urandom(16), durability, self.graph.names)
            journal.around, journal.graph = self.around, self.graph.label
        run = Run(
            ids=ids,
            config=self.config,
            limit=self.limit,
            thread=self.thread,
            journal=journal,
            modes=self.modes,
            subgraphs=self.subgraphs or (bool(self.recorded) and "messages" not in self.yields),
            context=self._context(),
            store=self._store(),
            cache=self._cache(),
            control=self._control(),
            metadata=_stored_metadata(self.config, self.graph.version) if journal is not None else None,
            before=names_of(self.arguments.get("interrupt_before")),
            after=names_of(self.arguments.get("interrupt_after")),
            around=self.around,
        )
        run.version = self.graph.version
        home, answers = "", None
        if self.nested is not None:
            run.version = run.version or self.nested.frame.run.version
            home, answers = f"{self.nested.id}:{self.nested.count('graph')}", self.nested.answers
            run.waits = self.nested.frame.run.waits
        frame = Frame(run, self.graph, self.ns, output_keys=self.output_keys, home=home, answers=answers)
        frame.inside = self.nested
        return frame

    def made(self, *, waits: bool) -> GraphCall | None:
        """This call as a part of the run whose node makes it; None where it has to run by itself, inside that node.

        `waits`: the caller awaits it. A run that blocks takes no awaited call, and none may block the loop of its run.
        """
        node = self.nested
        if node is None or node.outside or node.frame.run.host is None:
            return None
        run, loop = node.frame.run, node.frame.run.loop
        if run.journal is None and not run.subgraphs:
            return None
        if loop is None if waits else _is_here(loop):
            if run.journal is not None:
                warn_caller(
                    f"Node {node.name!r} {'awaits' if waits else 'blocks on'} graph {self.graph.get_name()!r}, which "
                    f"its run cannot hear while it {'blocks' if waits else 'is blocked itself'}: nothing of it is "
                    f"stored. {'Block in a run that blocks' if waits else 'Await it in a coroutine'}."
                )
            return None
        from pregel.engine.calls import GraphCall

        inner = run.inside(
            config=self.config,
            context=self._context(),
            limit=self.limit,
            store=self._store(),
            control=self._control(),
            before=names_of(self.arguments.get("interrupt_before")),
            after=names_of(self.arguments.get("interrupt_after")),
        )
        made = GraphCall(node, node.count("graph"), self.graph, self.input, inner)
        made.output_keys = self.output_keys
        if run.journal is not None:
            from pregel.engine.fingerprint import fingerprint  # loaded with the serialiser

            made.fingerprint = fingerprint(run.journal.saver.serde, (self.input,), {})
        return made

    def streamed(self, *, waits: bool) -> CallStream | None:
        """The same for a call whose stream is read."""
        made = self.made(waits=waits)
        if made is None:
            return None
        from pregel.engine.streamed import CallStream  # few nodes stream

        made.stream = CallStream(made, self)
        return made.stream

    def _store(self) -> Any:
        """The graph's own store; else that of the run around it."""
        if self.graph.store is None and self.nested is not None:
            return self.nested.frame.run.store
        return self.graph.store

    def start(self, kind: type[Journal]) -> tuple[Frame, Flow[Result]]:
        """The frame and the flow of one try."""
        if self.ns:  # of a subgraph: its root is what runs, from the checkpoint that the subgraph's hangs on
            self.checkpoint, self.ns = self.map.get(""), ""
        frame = self.frame(kind)
        if self.concurrency == "enqueue" and frame.run.journal is not None:
            frame.run.journal.stands_back = self._contending().stands_back
        if self.map:
            frame.run.replay = Replay(pinned=self.map)
        displaced = self._contender.displaced if self._contender is not None else None
        if displaced is None or self.checkpoint or frame.run.journal is None:
            return frame, family(frame, Entry(self.input, self.checkpoint))
        frame.run.journal.after, frame.run.journal.goes_back = displaced.epoch, displaced.pin
        return frame, family(frame, Entry(self.input, displaced.pin or None, anew=not displaced.pin))

    def contend(self, error: ClaimMissed | ThreadBusy, journal: Journal | None) -> None:
        """Return when the thread may be tried again; the error when it may not."""
        if journal is None or journal.claimed:
            raise error
        self._contending().meet_blocking(error, journal)

    async def acontend(self, error: ClaimMissed | ThreadBusy, journal: Journal | None) -> None:
        """Async twin of `contend`."""
        from asyncio import sleep  # importing asyncio costs as much as importing this package

        if journal is None or journal.claimed:
            raise error
        await self._contending().meet_awaiting(error, journal, sleep)

    def _contending(self) -> Contender:
        if self._contender is None:
            self._contender = Contender(self.thread, self.concurrency, self.wait)  # type: ignore[arg-type]  # checked
        return self._contender

    def reading(self, kind: type[Journal], *, changes: bool = False) -> Frame:
        """A frame to read or update the place that is addressed, which may be a subgraph's.

        SubgraphNotFoundError for one that is to be changed, and that no graph of this one's lives in.
        """
        found = place_of(self.graph, self.ns) if self.ns else None
        if found is None and self.ns and changes:
            known = ", ".join(name for name, _ in self.graph.get_subgraphs(recurse=True)) or "none"
            raise SubgraphNotFoundError(
                f"Subgraph {self.ns!r} not found.", fix=f"Subgraphs of this graph: {known}.", thread=self.thread
            )
        if found is None:
            return self.frame(kind)
        graph, ns = found
        frame = self.frame(kind)
        return Frame(frame.run, graph, ns, is_root=True)

    def _control(self) -> Any:
        control = self.arguments.get("control")
        return self.nested.frame.run.control if control is None and self.nested is not None else control

    def _cache(self) -> Any:
        return self.nested.frame.cache if self.graph.cache is None and self.nested is not None else self.graph.cache

    def _context(self) -> Any:
        if self.context is None and self.nested is not None:
            return self.nested.frame.run.context
        return self.graph.coerce_context(self.context)


def _check_count(name: str, count: Any) -> None:
    """InvalidInputError for a limit in a config that leaves room for nothing."""
    try:
        if count >= 1:
            return
    except TypeError:
        pass
    raise InvalidInputError(f"{name} must be at least 1, and is {count!r}.", fix="Leave it out, or give a larger one.")


def _is_inside(node: Running, config: RunnableConfig | None) -> bool:
    """Whether a call belongs to the node that makes it: it has no place of its own, or says where the node is."""
    check_config(config)
    configurable = (config or {}).get("configurable") or {}
    if not _has_place(configurable):
        return True
    own = node.config["configurable"]
    return configurable.get("__pregel_task_id") == node.id and all(
        configurable.get(key) == own.get(key) for key in ("thread_id", "checkpoint_ns", "checkpoint_id")
    )


def _is_here(loop: Any) -> bool:
    """Whether this code runs on that event loop."""
    asyncio = sys.modules.get("asyncio")  # importing it costs as much as importing this package
    return asyncio is not None and loop is not None and asyncio._get_running_loop() is loop


def _inherited(node: Running | None, given: RunnableConfig | None) -> RunnableConfig | None:
    """What a graph that a node calls has from that node: its config, without what says where the node is."""
    if node is None:
        return None
    known = set((given or {}).get("tags") or ())
    inherited: Any = inside(node.config)
    if (callbacks := surrounding()) is not None:
        inherited["callbacks"] = callbacks
    inherited["tags"] = [tag for tag in inherited.get("tags") or () if tag not in known]
    for part, own in (("metadata", "langgraph_"), ("configurable", "__pregel_")):
        values = (inherited.get(part) or {}).items()
        inherited[part] = {k: v for k, v in values if not k.startswith(own) and k not in COORDINATES}
    return inherited  # type: ignore[no-any-return]  # it has the keys of one


def _callbacks(config: RunnableConfig) -> GraphCallbacks | None:
    if not config.get("callbacks"):
        return None
    from pregel.callbacks import lifecycle_callbacks  # few calls have handlers, and what these need is dear to import

    return lifecycle_callbacks(config)


def _has_place(configurable: dict[str, Any]) -> bool:
    return any(key in configurable for key in ("thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"))


def thread_of(place: dict[str, Any]) -> str:
    thread = place.get("thread_id")
    if thread is None or thread == "":
        raise MissingThreadError()
    return str(thread)


def checked_modes(modes: Sequence[str]) -> frozenset[str]:
    """The modes as a set; a named error for one that does not exist."""
    for mode in modes:
        if mode not in STREAM_MODES:
            raise InvalidInputError(f"Unknown stream mode {mode!r}.", fix=f"Use one of {', '.join(STREAM_MODES)}.")
    return frozenset(modes) if modes else NOTHING


def checked_recorded(journal_stream: bool | str | Sequence[str] | frozenset[str]) -> frozenset[str]:
    """The stream modes that are to be journaled; a named error for one that does not exist."""
    if journal_stream is True:
        from pregel.engine.recorder import RECORDED  # few runs are followed

        return frozenset(RECORDED)
    if isinstance(journal_stream, str):
        journal_stream = (journal_stream,)
    elif journal_stream and not isinstance(journal_stream, Iterable):
        raise InvalidInputError(
            f"journal_stream is {journal_stream!r}.", fix="Give True, or the names of stream modes."
        )
    return checked_modes(tuple(journal_stream or ()))


def _recorded(call: Call, journal_stream: bool | str | Sequence[str] | frozenset[str]) -> frozenset[str]:
    """The same for a call; a graph inside of a run belongs to that run, which says what is journaled."""
    if call.nested is not None:
        return frozenset()
    require_saver(call.graph)
    return checked_recorded(journal_stream)


def keeps_none(saver: object) -> NotBuiltError:
    """The error for a saver without chunks."""
    return NotBuiltError(
        f"{type(saver).__name__} keeps no chunks: it has only the verbs of the reference, or overrides some of them.",
        fix="Leave journal_stream out, or use InMemorySaver, SqliteSaver or PostgresSaver.",
    )


def checked_durability(durability: str) -> Any:
    """The durability; a named error for one that does not exist."""
    if durability not in DURABILITIES:
        raise InvalidInputError(f"Unknown durability {durability!r}.", fix=f"Use one of {', '.join(DURABILITIES)}.")
    return durability


def checked_keys(graph: Pregel, keys: str | Sequence[str] | None) -> str | tuple[str, ...] | None:
    """Output keys; a named error for a channel that does not exist."""
    if keys is None:
        return None
    for key in (keys,) if isinstance(keys, str) else keys:
        if key not in graph.channels:
            raise InvalidInputError(
                f"Unknown output key {key!r}.", fix=f"Known keys: {', '.join(graph.stream_channels_list)}."
            )
    return keys if isinstance(keys, str) else tuple(keys)


def check_breakpoints(graph: Pregel, *given: str | Sequence[str] | None) -> None:
    """A named error for a breakpoint at a node that the graph does not have: it would run through."""
    for nodes in given:
        for name in () if not nodes or nodes == "*" else (nodes,) if isinstance(nodes, str) else nodes:
            if name not in graph.nodes:
                known = ", ".join(node for node in graph.nodes if node != START)
                raise InvalidInputError(f"Interrupt node {name!r} is not a node of the graph.", fix=f"Known: {known}.")


def names_of(nodes: str | Sequence[str] | None) -> frozenset[str] | str | None:
    """Breakpoint nodes as a set, or ``*``."""
    return nodes if nodes is None or nodes == "*" else frozenset((nodes,) if isinstance(nodes, str) else nodes)


def _stored_metadata(config: RunnableConfig, version: str | None) -> dict[str, Any]:
    """What of a config goes into checkpoint metadata: primitives, without coordinates and private keys."""
    found: dict[str, Any] = {}
    for source in (config.get("configurable") or {}, config.get("metadata") or {}):  # the latter is the stronger one
        for key, value in source.items():
            if isinstance(value, _PRIMITIVE) and key not in _HIDDEN_KEYS and not key.startswith(("__", "langgraph_")):
                found[key] = value.replace("\0", "") if isinstance(value, str) else value
    if run_id := (config.get("run_id") or (config.get("configurable") or {}).get("run_id")):
        found["run_id"] = str(run_id)
    if version is not None:
        found[VERSION] = version
    return found


def require_saver(graph: Pregel) -> None:
    """A named error when the graph has no checkpointer of its own."""
    saver = graph.checkpointer
    if not saver or saver is True:
        raise NoCheckpointerError()


def as_journal(saver: object, place: dict[str, Any], durability: Any) -> tuple[Any, Any]:
    """What takes this call's appends, and the durability: a saver without appends has none in the background."""
    from pregel.checkpoint.base import is_journal  # loaded with the saver

    if is_journal(type(saver)):  # type: ignore[arg-type]  # a class has a hash
        return saver, durability
    from pregel.checkpoint.first_tier import FirstTier

    return FirstTier(saver, place), "sync" if durability == "async" else durability
