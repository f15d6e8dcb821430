"""Pregel: a compiled graph, and everything that can be done with one.

How it runs is `engine.verbs`, how its threads are read and changed `engine.states`. Each pair of methods there
(``invoke`` and ``ainvoke``, ``get_state`` and ``aget_state``, ...) is two thin ends over one flow: the one drives it
blocking, the other awaiting.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from pregel.channels import BaseChannel, Topic
from pregel.channels.base import of_kind
from pregel.checkpoint.labels import label
from pregel.checkpoint.serde.registry import register_types, types_of
from pregel.config import RunnableConfig, merge_configs
from pregel.engine.call import checked_recorded, names_of, require_saver
from pregel.engine.check import check_graph
from pregel.engine.contend import checked_concurrency
from pregel.engine.followable import Followable
from pregel.engine.nested import stable_namespace, subgraphs
from pregel.engine.node import NodeBuilder, PregelNode
from pregel.engine.plan import TASKS, Plan, Policies
from pregel.engine.startable import Startable
from pregel.engine.states import States
from pregel.engine.verbs import Verbs
from pregel.engine.versions import checked_version, know
from pregel.errors import DefinitionError, InvalidInputError
from pregel.types import (
    Send,
    checked_policies,
    ensure_valid_cache,
    ensure_valid_checkpointer,
    ensure_valid_store,
)
from pregel.typing import AnyContextT, InputT, OutputT, StateT

if TYPE_CHECKING:
    from pregel.engine.away import Executor, Executors
    from pregel.engine.threads import Threads


class Pregel(Verbs[StateT, AnyContextT, InputT, OutputT], States, Followable, Startable):
    """A compiled graph over named channels.

    `nodes` wake on channels and write to channels; `input_channels` take the input, `output_channels` make the output,
    `stream_channels` (default: all) are what streams and snapshots show. With a `checkpointer` every run needs a
    ``thread_id`` and survives its process. Of a thread that one `version` began no other version goes on.
    """

    is_graph = True
    makes_calls = True  # code that refers to it does
    operation = "invoke_workflow"  # what traces call a run of it
    has_async = True
    tasks_on: Executor | None = None
    """Where the tasks (`@task`) that its code calls run; None: here."""
    clock: Callable[[], int] | None = None
    """Unix time in ticks of 100 ns, by which waits are due and ids are made; may be set. None: the machine's."""
    hand_over: Callable[[Any, Any], Any] | None = None
    """(input, values) -> what a node that calls this graph in a run gets and what is stored for it, in their place."""

    def __init__(
        self,
        *,
        nodes: Mapping[str, PregelNode | NodeBuilder],
        channels: Mapping[str, Any] | None = None,
        auto_validate: bool = True,
        stream_mode: str = "values",
        stream_eager: bool = False,
        output_channels: str | Sequence[str],
        stream_channels: str | Sequence[str] | None = None,
        interrupt_after_nodes: str | Sequence[str] = (),
        interrupt_before_nodes: str | Sequence[str] = (),
        input_channels: str | Sequence[str],
        step_timeout: float | None = None,
        debug: bool | None = None,
        checkpointer: Any = None,
        store: Any = None,
        cache: Any = None,
        retry_policy: Any = (),
        cache_policy: Any = None,
        context_schema: type | None = None,
        config: RunnableConfig | None = None,
        trigger_to_nodes: Mapping[str, Sequence[str]] | None = None,
        node_error_handler_map: Mapping[str, str] | None = None,
        name: str = "LangGraph",
        stream_transformers: Any = None,
        unknown_keys: str = "error",
        strict: bool = False,
        joins: Mapping[str, str] | None = None,
        concurrency: str = "reject",
        wait: float | None = None,
        journal_stream: bool | str | Sequence[str] = False,
        version: str | None = None,
        executor: Executors | None = None,
    ) -> None:
        self.nodes = {n: node.build() if isinstance(node, NodeBuilder) else node for n, node in nodes.items()}
        self.channels: dict[str, Any] = dict(channels or {})
        if TASKS in self.channels and not isinstance(self.channels[TASKS], Topic):
            raise DefinitionError(f"Channel {TASKS!r} is reserved.", fix="Name your channel otherwise.")
        self.channels[TASKS] = Topic(Send, accumulate=False)
        self.stream_mode, self.stream_eager, self._step_timeout = stream_mode, stream_eager, step_timeout
        self.input_channels, self.output_channels = input_channels, output_channels
        self.stream_channels = stream_channels
        self.interrupt_before_nodes, self.interrupt_after_nodes = interrupt_before_nodes, interrupt_after_nodes
        self.debug, self.cache, self.cache_policy = debug, ensure_valid_cache(cache), cache_policy
        self.store = ensure_valid_store(store)
        self.checkpointer = ensure_valid_checkpointer(checkpointer)
        self.retry_policy = checked_policies(retry_policy)
        self.node_error_handler_map = dict(node_error_handler_map or {})
        self.context_schema, self.config, self.name = context_schema, config, name
        self.version = None if version is None else checked_version(self.get_name(), version)
        self.concurrency, self.wait = checked_concurrency(concurrency, wait), wait
        self.journal_stream = checked_recorded(journal_stream)
        self.executor = executor
        self.unknown_keys, self.strict, self.joins = unknown_keys, strict, dict(joins or {})
        self.stream_transformers = tuple(stream_transformers or ())
        if auto_validate:
            self.validate()
        self.register_types()
        self._prepare()
        if self.version is not None:
            know(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A graph of its own over the same saver, store and cache, which hold what no copy could: a connection."""
        executors = self.executor.values() if isinstance(self.executor, Mapping) else (self.executor,)
        for shared in (self.checkpointer, self.store, self.cache, *executors):
            memo[id(shared)] = shared
        made = object.__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made

    def register_types(self) -> None:
        """Let savers store the classes that the channels' types mention."""
        types = [getattr(channel, "typ", None) for channel in self._data_channels().values()]
        register_types({one for typ in types for one in types_of(typ)})

    def _prepare(self) -> None:
        """The indexes that runs use; made again for each copy."""
        policies = Policies(
            self.retry_policy, self.cache_policy, self.step_timeout, self.node_error_handler_map, self.get_name()
        )
        self.plan = Plan(self._placed(), self._data_channels(), self.output_channels, self.joins, policies)
        stream = self.stream_channels_asis
        self.output_keys = _keys(self.output_channels)
        self.stream_keys = _keys(stream)
        self.before, self.after = names_of(self.interrupt_before_nodes), names_of(self.interrupt_after_nodes)
        self.outputs_expire = any(self.plan.channels[key].expires for key in self.plan.output_keys)
        self.names = (*self.channels, *self.nodes)

    def _placed(self) -> Mapping[str, PregelNode]:
        """The nodes as they run, each where its code does."""
        if self.executor is None:
            return self.nodes
        from pregel.engine.away import placed  # which few programs need

        return placed(self.nodes, self.executor)

    @property
    def step_timeout(self) -> float | None:
        """The seconds that each superstep may take; may be set. None: any number."""
        return self._step_timeout

    @step_timeout.setter
    def step_timeout(self, seconds: float | None) -> None:
        self._step_timeout = seconds
        self.validate()
        self._prepare()

    def _data_channels(self) -> dict[str, BaseChannel[Any, Any, Any]]:
        return of_kind(self.channels, BaseChannel)  # type: ignore[type-abstract]

    def validate(self) -> Self:
        """This graph; GraphValidationError with everything that is wrong with it."""
        check_graph(self)
        return self

    @property
    def label(self) -> str:
        """Its name, and its version where it has one, as the rows of its threads say them."""
        return label(self.get_name(), self.version)

    @property
    def saver(self) -> Any:
        """The saver of this graph; NoCheckpointerError when it has none of its own."""
        require_saver(self)
        return self.checkpointer

    @property
    def stream_channels_list(self) -> list[str]:
        """The channels that streams and snapshots show."""
        stream = self.stream_channels_asis
        return [stream] if isinstance(stream, str) else list(stream)

    @property
    def stream_channels_asis(self) -> str | Sequence[str]:
        """The same, as a name when it is one bare channel."""
        return self.stream_channels or [name for name in self._data_channels() if name != TASKS]

    def checked(self, writes: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """The writes of a Command from outside, as the keys take them; a graph with a typed state checks them."""
        return writes

    def typed_output(self, values: Any) -> Any:
        """Values as ``version="v2"`` shows them; a graph with a typed output makes its instances."""
        return values

    def typed_state(self, values: Any) -> Any:
        """The same for the values of a checkpoint."""
        return values

    def coerce_context(self, context: Any) -> Any:
        """The context as an instance of the context schema, when that is a class to be made from a dict."""
        schema = self.context_schema
        if isinstance(context, dict) and schema is not None and not issubclass(schema, dict):
            return schema(**context)
        return context

    def clear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """Forget the cached results of these nodes, or of all. ValueError when the graph has no cache."""
        namespaces = self._cached(nodes)
        self.cache.clear(namespaces)

    async def aclear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """Like `clear_cache`, awaited."""
        namespaces = self._cached(nodes)
        await self.cache.aclear(namespaces)

    def _cached(self, nodes: Sequence[str] | None) -> list[tuple[str, ...]]:
        from pregel.cache.keys import node_namespace

        if self.cache is None:
            raise InvalidInputError("No cache is set for this graph.", fix="Compile it with cache=InMemoryCache().")
        names = list(self.nodes) if nodes is None else [nodes] if isinstance(nodes, str) else list(nodes)
        if unknown := [name for name in names if name not in self.nodes]:
            raise InvalidInputError(f"No node is called {', '.join(map(repr, unknown))}.", fix="Give names of nodes.")
        return [node_namespace(self.get_name(), name) for name in names]

    def copy(self, update: Mapping[str, Any] | None = None) -> Self:
        """Another instance with some attributes replaced."""
        clone = copy.copy(self)
        for name, value in (update or {}).items():
            setattr(clone, name, value)
        clone._prepare()
        return clone

    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> Self:
        """Another instance whose calls start from this config."""
        return self.copy({"config": merge_configs(self.config, config, kwargs)})

    def get_subgraphs(self, *, namespace: str | None = None, recurse: bool = False) -> Iterator[tuple[str, Pregel]]:
        """(namespace, graph) of the graphs that are nodes of this one, or that a node's code refers to.

        `recurse`: those inside of them too. `namespace`: only the one that lives there.
        """
        place = None if namespace is None else stable_namespace(namespace)
        return subgraphs(self, place, recurse=recurse or namespace is not None)

    async def aget_subgraphs(
        self, *, namespace: str | None = None, recurse: bool = False
    ) -> AsyncIterator[tuple[str, Pregel]]:
        """Like `get_subgraphs`."""
        for found in self.get_subgraphs(namespace=namespace, recurse=recurse):
            yield found

    @property
    def threads(self) -> Threads:
        """The threads of this graph's saver: list, status, resume, delete, copy, prune."""
        from pregel.engine.threads import Threads  # few programs ask, and it is loaded with the saver

        return Threads(self)


def _keys(channels: str | Sequence[str]) -> str | tuple[str, ...]:
    return channels if isinstance(channels, str) else tuple(channels)
