"""The builder: nodes and edges over a typed state. It runs nothing; `compile` makes a graph of it that does.

One builder can be compiled any number of times. What is added after that is not part of the graphs that exist already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeAlias, overload

from pregel.channels import BaseChannel
from pregel.checkpoint.serde.registry import register_types, types_of
from pregel.constants import END, START
from pregel.errors import DefinitionError, GraphValidationError, ReservedNameError
from pregel.graph.arguments import renamed
from pregel.graph.branch import BranchSpec, path_map_of
from pregel.graph.compiled import CompiledStateGraph
from pregel.graph.lower import lower
from pregel.graph.reach import unreachable
from pregel.graph.schema import Channel, KeyMap, managed_keys, merge_keys, read_schema
from pregel.graph.spec import (
    StateNodeSpec,
    command_ends_of,
    handler_name,
    input_schema_of,
    literal_ends_of,
    name_of,
)
from pregel.graph.validate import check_edge, problems
from pregel.graph.write import UnknownKeys
from pregel.managed import ManagedValueSpec
from pregel.runnable import coerce_to_runnable
from pregel.types import (
    All,
    CachePolicy,
    Checkpointer,
    RetryPolicy,
    TimeoutPolicy,
    TracePolicy,
    checked_policies,
    ensure_valid_checkpointer,
)
from pregel.typing import ContextT, InputT, OutputT, StateT
from pregel.warnings import warn_caller

if TYPE_CHECKING:
    from typing import Unpack

    from pregel.cache.base import BaseCache
    from pregel.engine.away import Executors
    from pregel.graph.action import Action, Path
    from pregel.graph.options import NodeOptions
    from pregel.store.base import BaseStore

__all__ = ["AnyStateGraph", "CompiledStateGraph", "StateGraph"]

Retry = RetryPolicy | Sequence[RetryPolicy] | None
Timeout = float | timedelta | TimeoutPolicy | None


@dataclass(slots=True)
class NodeDefaults:
    """What a node gets that does not say otherwise."""

    retry_policy: Retry = None
    timeout: TimeoutPolicy | None = None
    cache_policy: CachePolicy | None = None
    error_handler: Any = None


class StateGraph(Generic[StateT, ContextT, InputT, OutputT]):
    """A graph over a state whose keys are channels.

    Nodes take the state and return a partial update. Each key of `state_schema` is one channel: the last value wins,
    or ``Annotated[type, reducer]`` says how updates add up. `input_schema` and `output_schema` narrow what goes in and
    comes out.
    """

    def __init__(
        self,
        state_schema: type[StateT],
        context_schema: type[ContextT] | None = None,
        *,
        input_schema: type[InputT] | None = None,
        output_schema: type[OutputT] | None = None,
        **deprecated: Any,
    ) -> None:
        old = {"config_schema": "context_schema", "input": "input_schema", "output": "output_schema"}
        given = renamed("StateGraph", deprecated, **old)
        self.nodes: dict[str, StateNodeSpec] = {}
        self.edges: set[tuple[str, str]] = set()
        self.branches: defaultdict[str, dict[str, BranchSpec]] = defaultdict(dict)
        self.channels: dict[str, Channel] = {}
        self.managed: dict[str, ManagedValueSpec] = {}
        self.schemas: dict[Any, KeyMap] = {}
        self.waiting_edges: set[tuple[tuple[str, ...], str]] = set()
        self.defaults = NodeDefaults()
        self.compiled = False
        self.state_schema: Any = state_schema
        self.context_schema: Any = context_schema or given.get("context_schema")
        self.input_schema: Any = input_schema or given.get("input_schema") or state_schema
        self.output_schema: Any = output_schema or given.get("output_schema") or state_schema
        self._add_schema(self.state_schema)
        self._add_schema(self.input_schema, allow_managed=False)
        self._add_schema(self.output_schema, allow_managed=False)

    # -- nodes --

    @overload
    def add_node(self, node: Action[StateT, ContextT], action: None = None, **options: Unpack[NodeOptions]) -> Self: ...
    @overload
    def add_node(self, node: str, action: Action[StateT, ContextT], **options: Unpack[NodeOptions]) -> Self: ...
    def add_node(
        self,
        node: Any,
        action: Any = None,
        *,
        defer: bool = False,
        metadata: dict[str, Any] | None = None,
        input_schema: Any = None,
        retry_policy: Retry = None,
        cache_policy: CachePolicy | None = None,
        error_handler: Any = None,
        destinations: dict[str, str] | Sequence[str] | None = None,
        timeout: Timeout = None,
        trace_policy: TracePolicy | None = None,
        **deprecated: Any,
    ) -> Self:
        """Add a function, a runnable, a dict of those or a compiled graph as a node; a name alone may be left out.

        `defer` runs it when nothing else is left; `destinations` declares where its Commands go, for drawings and
        checks; `input_schema` (else the annotation of the first parameter) is what it reads.

        `retry_policy` (the first of several that wants the error counts), `timeout` (seconds, timedelta or
        TimeoutPolicy, for each attempt) and `cache_policy` say how it runs. `error_handler` runs in the same step when
        it has failed for good, with the same input and, in a parameter ``error: NodeError``, what happened.
        """
        if deprecated:
            given = renamed("add_node", deprecated, retry="retry_policy", input="input_schema")
            retry_policy = retry_policy or given.get("retry_policy")
            input_schema = input_schema or given.get("input_schema")
        name, action = self._named(node, action)
        if self.compiled:
            self._warn_of_late("a node")
        schema = input_schema or input_schema_of(action, self.schemas) or self.state_schema
        ends: Any = tuple(destinations) if isinstance(destinations, (list, tuple)) else destinations
        if ends is None:
            ends = command_ends_of(action)
        runnable = coerce_to_runnable(action, name)
        if schema not in self.schemas:
            self._add_schema(schema)
        handler = self._add_handler(name, error_handler, schema) if error_handler is not None else None
        self.nodes[name] = StateNodeSpec(
            runnable,
            metadata,
            schema,
            () if retry_policy is None else checked_policies(retry_policy),
            ends=ends or (),
            defer=defer,
            timeout=None if timeout is None else TimeoutPolicy.coerce(timeout),
            trace_policy=trace_policy,
            action=action,
            declared=ends is not None,
            cache_policy=cache_policy,
            error_handler=handler,
        )
        return self

    def add_sequence(self, nodes: Sequence[Action[StateT, ContextT] | tuple[str, Action[StateT, ContextT]]]) -> Self:
        """Add nodes, callables or (name, callable), and an edge from each to the next."""
        if not nodes:
            raise DefinitionError("Sequence requires at least one node.")
        before: str | None = None
        for node in nodes:
            name, action = node if isinstance(node, tuple) else (name_of(node), node)
            if name in self.nodes:
                raise DefinitionError(
                    f"Node names must be unique: node with the name {name!r} already exists.",
                    fix="Give nodes of the same name, such as lambdas, as tuples (name, callable).",
                )
            self.add_node(name, action)
            if before is not None:
                self.add_edge(before, name)
            before = name
        return self

    def set_node_defaults(
        self,
        *,
        retry_policy: Retry = None,
        cache_policy: CachePolicy | None = None,
        error_handler: Any = None,
        timeout: Timeout = None,
    ) -> Self:
        """Set what nodes get at compile that do not say otherwise.

        Error handlers get the retry policy and the timeout as well, but no handler and no cache policy.
        """
        self.defaults = NodeDefaults(
            checked_policies(retry_policy), TimeoutPolicy.coerce(timeout), cache_policy, error_handler
        )
        return self

    # -- edges --

    def add_edge(self, start_key: str | Sequence[str], end_key: str) -> Self:
        """Run `end_key` after `start_key`; after all of them, once, when it is a list."""
        if self.compiled:
            self._warn_of_late("an edge")
        check_edge(start_key, end_key)
        alone = isinstance(start_key, str)
        if start_key == END if alone else END in start_key:
            raise DefinitionError("END cannot be a start node.")
        if end_key == START:
            raise DefinitionError("START cannot be an end node.")
        if isinstance(start_key, str):
            self.edges.add((start_key, end_key))
            return self
        if not start_key:
            raise DefinitionError("An edge needs at least one start node.")
        for name in (*start_key, *([] if end_key == END else [end_key])):
            if name not in self.nodes:
                raise DefinitionError(f"Need to add_node {name!r} first: a join is made of nodes that exist.")
        self.waiting_edges.add((tuple(start_key), end_key))
        return self

    def add_conditional_edges(
        self,
        source: str,
        path: Path,
        path_map: Mapping[Any, str] | Sequence[str] | None = None,
    ) -> Self:
        """Run what `path` answers after `source`: a name, END, a Send, or a list of those.

        `path` reads the state with the writes of `source` in it. `path_map` turns its answers into names; a list, or a
        Literal as its return annotation, says which names there are.
        """
        if self.compiled:
            self._warn_of_late("a conditional edge")
        name = name_of(path)
        name = "condition" if name in ("<lambda>", "partial") else name
        if name in self.branches[source]:
            raise DefinitionError(
                f"Branch with name {name!r} already exists for node {source!r}.",
                fix="Give the paths of one node different function names.",
            )
        schema = input_schema_of(path, self.schemas)
        if schema is not None:
            self._add_schema(schema)
        ends = path_map_of(path_map) if path_map is not None else literal_ends_of(path)
        self.branches[source][name] = BranchSpec(coerce_to_runnable(path), ends, schema)
        return self

    def set_entry_point(self, key: str) -> Self:
        """The same as ``add_edge(START, key)``."""
        return self.add_edge(START, key)

    def set_conditional_entry_point(
        self, path: Path, path_map: Mapping[Any, str] | Sequence[str] | None = None
    ) -> Self:
        """The same as ``add_conditional_edges(START, path, path_map)``."""
        return self.add_conditional_edges(START, path, path_map)

    def set_finish_point(self, key: str) -> Self:
        """The same as ``add_edge(key, END)``."""
        return self.add_edge(key, END)

    # -- compiling --

    def validate(self, interrupt: Sequence[str] | None = None) -> Self:
        """The builder itself; GraphValidationError with everything that is wrong with it."""
        found = problems(self, interrupt or ())
        if found:
            raise GraphValidationError(found)
        return self

    def compile(
        self,
        checkpointer: Checkpointer = None,
        *,
        cache: BaseCache[Any] | None = None,
        store: BaseStore | None = None,
        interrupt_before: All | Sequence[str] | None = None,
        interrupt_after: All | Sequence[str] | None = None,
        debug: bool = False,
        name: str | None = None,
        transformers: Sequence[Callable[..., Any]] | None = None,
        unknown_keys: UnknownKeys = "error",
        strict: bool = False,
        concurrency: str = "reject",
        wait: float | None = None,
        journal_stream: bool | str | Sequence[str] = False,
        version: str | None = None,
        executor: Executors | None = None,
    ) -> CompiledStateGraph[StateT, ContextT, InputT, OutputT]:
        """A graph that runs. GraphValidationError when the builder has problems.

        `unknown_keys` says what happens to a key that a node returns and the state does not have; `strict` turns
        warnings about the graph and its input into errors. `concurrency` and `wait` (seconds) are what a call does when
        another run holds its thread, unless the call says otherwise. `journal_stream` names the stream modes whose
        chunks are journaled, so that others can `follow` the runs; True: updates, messages, custom and tools. Of a
        thread that a graph with a `version` began, only a graph of this version goes on. `executor`: where the code of
        the nodes runs, or of some (name -> executor): any `concurrent.futures.Executor`; here by default.
        """
        checkpointer = ensure_valid_checkpointer(checkpointer)
        if unknown_keys not in ("error", "warn", "ignore"):
            raise DefinitionError(f"unknown_keys is {unknown_keys!r}.", fix="Use 'error', 'warn' or 'ignore'.")
        pauses = [one for one in (interrupt_before, interrupt_after) if one and one != "*"]
        self.validate([node for one in pauses for node in one])
        self._warn_of_unreachable(strict)
        lowered = lower(self, unknown_keys=unknown_keys, strict=strict)
        register_types({one for schema in self.schemas for one in types_of(schema)})
        self.compiled = True
        return CompiledStateGraph(
            builder=self,
            nodes=lowered.nodes,
            channels={**lowered.channels, **self.managed},
            joins=lowered.joins,
            input_channels=START,
            output_channels=_keys_of(self.schemas[self.output_schema]),
            stream_channels=_keys_of(self.channels),
            stream_mode="updates",
            stream_transformers=transformers,
            checkpointer=checkpointer,
            interrupt_before_nodes=interrupt_before or [],
            interrupt_after_nodes=interrupt_after or [],
            debug=debug,
            store=store,
            cache=cache,
            name=name or "LangGraph",
            context_schema=self.context_schema,
            unknown_keys=unknown_keys,
            strict=strict,
            concurrency=concurrency,
            wait=wait,
            journal_stream=journal_stream,
            version=version,
            executor=executor,
        )

    # -- below --

    def _add_schema(self, schema: Any, *, allow_managed: bool = True) -> None:
        if schema in self.schemas:
            return
        if not _looks_like_a_schema(schema):
            warn_caller(f"Invalid state_schema: {schema!r}. Expected a type or Annotated[type, reducer].")
        keys = read_schema(schema)
        managed = managed_keys(keys)
        if managed and not allow_managed:
            names = ", ".join(managed)
            raise DefinitionError(
                f"Invalid managed channels detected in {getattr(schema, '__name__', schema)}: {names}."
            )
        added = merge_keys({**self.channels, **self.managed}, keys)
        self.schemas[schema] = keys
        for key, value in added.items():
            if isinstance(value, BaseChannel):
                self.channels[key] = value
            else:
                self.managed[key] = value

    def _named(self, node: Any, action: Any) -> tuple[str, Any]:
        """The name and action of a node that is about to be added."""
        if action is None:
            if isinstance(node, str):
                raise DefinitionError(f"Node {node!r} has no action.", fix="Use add_node(name, function).")
            node, action = name_of(node), node
        if not isinstance(node, str):
            raise DefinitionError(f"A node's name is a str, got {type(node).__name__}: {node!r}.")
        if node in self.nodes:
            raise DefinitionError(f"Node {node!r} already present.", fix="Give each node a name of its own.")
        if node in (START, END):
            raise ReservedNameError(f"Node {node!r} is reserved.")
        if "|" in node or ":" in node:
            character = "|" if "|" in node else ":"
            raise ReservedNameError(f"{character!r} is a reserved character and not allowed in node names: {node!r}.")
        return node, action

    def _add_handler(self, node: str, action: Any, schema: Any) -> str:
        """The name of a node's error handler, which is a node of its own that no edge leads to."""
        name = handler_name(node)
        if name in self.nodes:
            raise DefinitionError(f"Node {name!r} already present: it is the name of the error handler of {node!r}.")
        ends = command_ends_of(action)
        runnable, declared = coerce_to_runnable(action, name), ends is not None
        self.nodes[name] = StateNodeSpec(
            runnable, None, schema, ends=ends or (), action=action, declared=declared, is_error_handler=True
        )
        return name

    def _warn_of_late(self, what: str) -> None:
        import logging

        logging.getLogger(__name__).warning(
            "Adding %s to a graph that has been compiled. The compiled graph does not change.", what
        )

    def _warn_of_unreachable(self, strict: bool) -> None:
        lost = unreachable(self)
        if not lost:
            return
        message = (
            f"Nothing leads to {', '.join(map(repr, lost))}: such a node never runs. Add an edge or destinations=."
        )
        if strict:
            raise GraphValidationError([message])
        warn_caller(message)


def _looks_like_a_schema(schema: Any) -> bool:
    return isinstance(schema, type) or hasattr(schema, "__origin__")


def _keys_of(keys: Mapping[str, Channel | ManagedValueSpec]) -> Literal["__root__"] | list[str]:
    """The stored keys; the bare name when the state is one value without keys."""
    stored = [key for key, value in keys.items() if isinstance(value, BaseChannel)]
    return "__root__" if stored == ["__root__"] else stored


AnyStateGraph: TypeAlias = StateGraph[Any, Any, Any, Any]
