"""From a builder to what runs: nodes that read and write channels. No edge survives this.

- an edge a -> b is a write of ``branch:to:b`` by a's writers, and that channel wakes b;
- a join [a, b] -> c is one channel that both write and that opens when it has seen both;
- a conditional edge is one more writer of its source, the only kind that calls user code.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pregel.channels import (
    DeltaChannel,
    EphemeralValue,
    LastValueAfterFinish,
    NamedBarrierValue,
    NamedBarrierValueAfterFinish,
)
from pregel.channels.base import of_kind
from pregel.constants import END, ROOT, START, TAG_HIDDEN
from pregel.engine.node import AskingWriter, ConstantWrite, PregelNode, Writer
from pregel.engine.pregel import Pregel
from pregel.graph import pydantic_adapter
from pregel.graph.branch import BranchSpec, BranchWriter
from pregel.graph.check import Checks, KeyCheck, checks_of, with_messages
from pregel.graph.route import Router, join_channel, wakes_of
from pregel.graph.schema import Channel, Mapper, channel_keys, managed_keys, mapper_of
from pregel.graph.spec import DEFAULT_HANDLER, StateNodeSpec, command_ends_of
from pregel.graph.write import InputWriter, RootWriter, StateWriter, UnknownKeys
from pregel.runnable import Runnable, coerce_to_runnable
from pregel.types import TracePolicy

if TYPE_CHECKING:
    from pregel.graph.state import AnyStateGraph


@dataclass(slots=True)
class Lowered:
    """What a compiled graph is made of. `joins` says which node each join channel wakes."""

    nodes: dict[str, PregelNode] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    joins: dict[str, str] = field(default_factory=dict)


def lower(builder: AnyStateGraph, *, unknown_keys: UnknownKeys = "error", strict: bool = False) -> Lowered:
    """The nodes and channels of a builder that has no problems."""
    return Lowering(builder, unknown_keys, strict).run()


class Lowering:
    """One builder on its way down, with what its nodes share."""

    def __init__(self, builder: AnyStateGraph, unknown_keys: UnknownKeys, strict: bool) -> None:
        self.builder = builder
        self.unknown_keys: UnknownKeys = unknown_keys
        self.strict = strict
        self.checks = checks_of(builder.schemas, builder.channels)
        self.keys = {schema: tuple(channel_keys(keys)) for schema, keys in builder.schemas.items()}
        self.joins = sorted(
            builder.waiting_edges, key=lambda join: [self.places.get(n, -1) for n in (*join[0], join[1])]
        )
        self.joined: dict[str, list[str]] = defaultdict(list)  # the channels of the joins that end in a node
        self.joining: dict[str, list[str]] = defaultdict(list)  # and of those that start in one
        for starts, end in self.joins:
            if end != END:
                self.joined[end].append(join_channel(starts, end))
                for start in dict.fromkeys(starts):
                    self.joining[start].append(join_channel(starts, end))
        self.managed = {schema: managed_keys(keys) for schema, keys in builder.schemas.items()}
        self.mappers = {schema: mapper_of(schema) for schema in builder.schemas}
        self.langchain = "langchain_core" in sys.modules
        self.managed_names = frozenset(builder.managed)
        self.writer_kind = RootWriter if tuple(builder.channels) == (ROOT,) else StateWriter
        self.wakes = wakes_of([name for name, spec in builder.nodes.items() if not spec.is_error_handler])
        self.default_handler = DEFAULT_HANDLER if builder.defaults.error_handler is not None else None
        self.targets: dict[str, list[str]] = defaultdict(list)  # of the plain edges, by source
        for start, end in builder.edges:
            if end != END:
                self.targets[start].append(end)

    @cached_property
    def places(self) -> dict[str, int]:
        """Which node was added when, for edges whose order nothing else tells."""
        return {name: place for place, name in enumerate(self.builder.nodes)}

    def run(self) -> Lowered:
        """The nodes and channels."""
        start = EphemeralValue[Any](self.builder.input_schema)
        lowered = Lowered(channels={**self.builder.channels, START: start})
        nodes, channels, wakes = lowered.nodes, lowered.channels, self.wakes
        nodes[START] = self.start()
        for name, spec in self.builder.nodes.items():
            nodes[name] = self.node(name, spec)
            if not spec.is_error_handler:
                channels[wakes[name][0]] = trigger_of(spec)
        if self.default_handler is not None:
            lowered.nodes[DEFAULT_HANDLER] = self.node(DEFAULT_HANDLER, self.default_handler_spec())
        for starts, end in self.joins:
            if end != END:
                name = join_channel(starts, end)
                lowered.channels[name] = barrier_of(starts, self.builder.nodes[end])
                lowered.joins[name] = end
        for name, channel in lowered.channels.items():
            channel.key = name
        for name, delta in of_kind(lowered.channels, DeltaChannel).items():
            lowered.channels[name] = delta.on_trial(strict=self.strict)
        return lowered

    def start(self) -> PregelNode:
        """The node that brings the input in; user code runs in it only to check a typed input, or to branch."""
        writer = self.input_writer()
        node = PregelNode(channels=START, triggers=[START], tags=[TAG_HIDDEN], writers=[writer, *self.routes(START)])
        node.pure = node.pure and not writer.checks
        node.admit = None if node.pure else writer.admit
        return node

    def node(self, name: str, spec: StateNodeSpec) -> PregelNode:
        """A user's node."""
        subgraph = spec.runnable if isinstance(spec.runnable, Pregel) else None
        keys = self.keys[spec.input_schema]
        handles, defaults = spec.is_error_handler, self.builder.defaults
        return PregelNode(
            channels=ROOT if keys == (ROOT,) else keys,
            triggers=[] if handles else [self.wakes[name][0], *self.joined.get(name, ())],
            bound=self.bound(spec.runnable, None if subgraph is not None else spec.trace_policy),
            mapper=self.mappers[spec.input_schema] or (None if subgraph is None else _picker(subgraph)),
            managed=self.managed[spec.input_schema],
            writers=[self.writer(name, spec, surplus=subgraph is not None), *self.routes(name)],
            retry_policy=spec.retry_policy or defaults.retry_policy,
            timeout=spec.timeout or defaults.timeout,
            cache_policy=spec.cache_policy or (None if handles else defaults.cache_policy),
            error_handler=spec.error_handler or (None if handles else self.default_handler),
            is_error_handler=handles,
            metadata=spec.metadata,
            subgraphs=[subgraph] if subgraph is not None else (),
            trace_policy=spec.trace_policy if subgraph is not None else None,
        )

    def bound(self, runnable: Runnable, policy: TracePolicy | None = None) -> Runnable:
        """What a node calls; in a process that uses LangChain its ambient config is set around it."""
        if self.langchain:
            from pregel.interop.langchain import under_langchain

            runnable = under_langchain(runnable)
        if policy is None:
            return runnable
        from pregel.graph.recorded import Recorded  # few nodes have a policy

        return Recorded(runnable, policy)

    def default_handler_spec(self) -> StateNodeSpec:
        """The handler of all nodes that have none of their own; it reads the whole state."""
        action = self.builder.defaults.error_handler
        ends = command_ends_of(action)
        runnable, declared = coerce_to_runnable(action, DEFAULT_HANDLER), ends is not None
        return StateNodeSpec(
            runnable,
            None,
            self.builder.state_schema,
            ends=ends or (),
            action=action,
            declared=declared,
            is_error_handler=True,
        )

    def input_writer(self) -> StateWriter:
        """What writes the input's keys."""
        schema = self.builder.input_schema
        checks: Checks = self.checks
        if pydantic_adapter.is_model(schema):
            fields = {key: pydantic_adapter.field_check(schema, key) for key in self.keys[schema]}
            typed = {key: KeyCheck(check, self.builder.channels[key]) for key, check in fields.items()}
            checks = with_messages(typed, {key: self.builder.channels[key] for key in typed})
        channels = {key: self.builder.channels[key] for key in self.keys[schema]}
        if tuple(channels) == (ROOT,):
            return RootWriter(START, channels, self.wakes, checks=checks)
        declared = {*self.builder.channels, *self.builder.managed}
        return InputWriter(channels, self.wakes, declared=declared, checks=checks, strict=self.strict)

    def writer(self, name: str, spec: StateNodeSpec, *, surplus: bool) -> StateWriter:
        """What writes a node's output."""
        return self.writer_kind(
            name,
            self.builder.channels,
            self.wakes,
            managed=self.managed_names,
            checks=self.checks,
            unknown_keys=self.unknown_keys,
            surplus=surplus,
            ends=spec.ends,
        )

    def routes(self, source: str) -> list[Writer | AskingWriter]:
        """The writers for the edges that leave a node."""
        targets = self.targets.get(source, ())
        if len(targets) > 1:
            targets = sorted(targets, key=self.places.__getitem__)
        writes = [self.wakes[target] for target in targets]
        if joins := self.joining.get(source):
            writes += [(join, source) for join in joins]
        static: list[Writer | AskingWriter] = [ConstantWrite(writes)] if writes else []
        if branches := self.builder.branches.get(source):
            static += [self.branch(source, name, spec) for name, spec in branches.items()]
        return static

    def branch(self, source: str, name: str, spec: BranchSpec) -> BranchWriter:
        """The writer of a conditional edge; its path reads its own schema, else what its source reads."""
        inherited = self.builder.state_schema if source == START else self.builder.nodes[source].input_schema
        schema = inherited if spec.input_schema is None else spec.input_schema
        router = Router(source, self.wakes)
        return BranchWriter(name, spec, router, keys=self.builder.schemas[schema], mapper=self.mappers[schema])


def trigger_of(spec: StateNodeSpec) -> Channel:
    """The channel that wakes a node: at once, or when nothing else is left to run."""
    return LastValueAfterFinish(Any) if spec.defer else EphemeralValue(Any, guard=False)


def barrier_of(starts: Sequence[str], end: StateNodeSpec) -> Channel:
    """The channel that wakes a node when all of `starts` are done."""
    names = set(starts)
    return NamedBarrierValueAfterFinish[str](str, names) if end.defer else NamedBarrierValue[str](str, names)


def _picker(subgraph: Pregel) -> Mapper | None:
    """What hands a subgraph the keys that it knows, and nothing else of its parent's."""
    start = subgraph.nodes.get(START)
    writer = start.writers[0] if start is not None and start.writers else None
    return _Pick({*writer.channels, *writer.managed}) if isinstance(writer, InputWriter) else None


class _Pick:
    """Keeps the keys that are known; `plain` tells the engine that no user code is called."""

    plain = True

    def __init__(self, known: Collection[str]) -> None:
        self.known = frozenset(known)

    def __call__(self, values: Any) -> Any:
        return {key: value for key, value in values.items() if key in self.known}
