"""Pregel: a compiled graph, and everything that can be done with one.

Each pair of methods (``invoke`` and ``ainvoke``, ``get_state`` and ``aget_state``, ...) is two thin ends over one
flow: the one drives it blocking, the other awaiting.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pregel.channels import BaseChannel, Topic
from pregel.channels.base import of_kind
from pregel.checkpoint.serde.registry import register_types, types_of
from pregel.config import RunnableConfig, merge_configs
from pregel.constants import LIFECYCLE
from pregel.engine.above import above
from pregel.engine.admin import history_flow, state_flow, update_flow
from pregel.engine.authority import ClaimMissed
from pregel.engine.call import Call, checked_recorded, names_of, require_saver
from pregel.engine.check import check_graph, checked_updates
from pregel.engine.chunks import chunk_shape
from pregel.engine.contend import checked_concurrency
from pregel.engine.events import EventStreams
from pregel.engine.follow import afollow, follow
from pregel.engine.frame import Frame
from pregel.engine.journal import BlockingJournal
from pregel.engine.nested import stable_namespace, subgraphs
from pregel.engine.node import NodeBuilder, PregelNode
from pregel.engine.plan import TASKS, Plan, Policies
from pregel.engine.running import Running
from pregel.engine.snapshot import empty_snapshot
from pregel.engine.tries import (
    adriven,
    awaiting_driver,
    awaiting_journal,
    blocking_driver,
    driven,
    let_go,
    output_of,
    parked_at,
    unparked,
)
from pregel.errors import DefinitionError, InvalidInputError, ThreadBusy
from pregel.types import (
    FollowedChunk,
    Send,
    StateSnapshot,
    StateUpdate,
    checked_policies,
    ensure_valid_cache,
    ensure_valid_checkpointer,
    ensure_valid_store,
)

if TYPE_CHECKING:
    from pregel.engine.threads import Threads


class Pregel(EventStreams):
    """A compiled graph over named channels.

    `nodes` wake on channels and write to channels; `input_channels` take the input, `output_channels` make the output,
    `stream_channels` (default: all) are what streams and snapshots show. With a `checkpointer` every run needs a
    ``thread_id`` and survives its process.
    """

    is_graph = True
    operation = "invoke_workflow"  # what traces call a run of it
    has_async = True

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
        self.concurrency, self.wait = checked_concurrency(concurrency, wait), wait
        self.journal_stream = checked_recorded(journal_stream)
        self.unknown_keys, self.strict, self.joins = unknown_keys, strict, dict(joins or {})
        self.stream_transformers = tuple(stream_transformers or ())
        if auto_validate:
            self.validate()
        self.register_types()
        self._prepare()

    def register_types(self) -> None:
        """Let savers store the classes that the channels' types mention."""
        types = [getattr(channel, "typ", None) for channel in self._data_channels().values()]
        register_types({one for typ in types for one in types_of(typ)})

    def _prepare(self) -> None:
        """The indexes that runs use; made again for each copy."""
        policies = Policies(
            self.retry_policy, self.cache_policy, self.step_timeout, self.node_error_handler_map, self.get_name()
        )
        self.plan = Plan(self.nodes, self._data_channels(), self.output_channels, self.joins, policies)
        stream = self.stream_channels_asis
        self.output_keys = _keys(self.output_channels)
        self.stream_keys = _keys(stream)
        self.before, self.after = names_of(self.interrupt_before_nodes), names_of(self.interrupt_after_nodes)
        self.outputs_expire = any(self.plan.channels[key].expires for key in self.plan.output_keys)
        self.names = (*self.channels, *self.nodes)

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

    def validate(self) -> Pregel:
        """This graph; GraphValidationError with everything that is wrong with it."""
        check_graph(self)
        return self

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

    def copy(self, update: Mapping[str, Any] | None = None) -> Pregel:
        """Another instance with some attributes replaced."""
        clone = copy.copy(self)
        for name, value in (update or {}).items():
            setattr(clone, name, value)
        clone._prepare()
        return clone

    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> Pregel:
        """Another instance whose calls start from this config."""
        return self.copy({"config": merge_configs(self.config, config, kwargs)})

    def call(self, value: Any, running: Any) -> Any:
        """The output, as a step of a chain: inside a node it runs as part of that node."""
        return self.invoke(value, None if isinstance(running, Running) else running.config)

    async def acall(self, value: Any, running: Any) -> Any:
        """The same, awaited."""
        return await self.ainvoke(value, None if isinstance(running, Running) else running.config)

    # -- running -----------------------------------------------------------------------------------------------------

    def invoke(  # type: ignore[override]  # a graph takes more than a runnable
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] = "values",
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: str | Sequence[str] | None = None,
        interrupt_after: str | Sequence[str] | None = None,
        durability: str | None = None,
        control: Any = None,
        concurrency: str | None = None,
        wait: float | None = None,
        journal_stream: bool | str | Sequence[str] | None = None,
        version: str = "v1",
        print_mode: str | Sequence[str] = (),
    ) -> Any:
        """The output of a run: the values of the output channels, None when nothing was ever written to them.

        When the run paused on questions, the dict has them under ``__interrupt__``; ``version="v2"`` returns a
        `GraphOutput` instead. Another `stream_mode` returns the list of chunks. `print_mode` prints chunks of these
        modes. Raises what a node raised, and the named errors of `pregel.errors`.

        `concurrency` says what happens when another run holds the thread: "reject", "enqueue", "interrupt" or
        "rollback"; `wait` is how many seconds the last three wait for it. `journal_stream` names the stream modes whose
        chunks are journaled for those who `follow` (True: the usual ones). All three default to those of the graph.
        """
        arguments = _arguments(
            context, output_keys, interrupt_before, interrupt_after, durability, control, version, print_mode
        )
        arguments |= {"concurrency": concurrency, "wait": wait, "journal_stream": journal_stream}
        if stream_mode != "values":
            return list(self._stream(input, config, stream_mode, arguments))
        call = Call(self, input, config, **arguments)
        if call.nested is not None and (made := call.made(waits=False)) is not None:
            return made.push().result()
        while True:
            driver = blocking_driver(call)
            try:
                tell = None if call.callbacks is None else call.callbacks.tell
                result = driver.run(call.wants, tell)
            except (ClaimMissed, ThreadBusy) as error:
                call.contend(error, driver.journal)
                continue
            if result.error is not None:
                raise let_go(result)
            return output_of(call, result)

    async def ainvoke(  # type: ignore[override]  # a graph takes more than a runnable
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] = "values",
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: str | Sequence[str] | None = None,
        interrupt_after: str | Sequence[str] | None = None,
        durability: str | None = None,
        control: Any = None,
        concurrency: str | None = None,
        wait: float | None = None,
        journal_stream: bool | str | Sequence[str] | None = None,
        version: str = "v1",
        print_mode: str | Sequence[str] = (),
    ) -> Any:
        """Like `invoke`, awaited."""
        arguments = _arguments(
            context, output_keys, interrupt_before, interrupt_after, durability, control, version, print_mode
        )
        arguments |= {"concurrency": concurrency, "wait": wait, "journal_stream": journal_stream}
        if stream_mode != "values":
            return [chunk async for chunk in self._astream(input, config, stream_mode, arguments)]
        call = Call(self, input, config, **arguments)
        if call.nested is not None and (made := call.made(waits=True)) is not None:
            return await made.push()
        while True:
            driver = awaiting_driver(call)
            try:
                atell = None if call.callbacks is None else call.callbacks.atell
                result = await driver.run(call.wants, atell)
            except (ClaimMissed, ThreadBusy) as error:
                await call.acontend(error, driver.journal)
                continue
            if result.error is not None:
                raise let_go(result)
            return output_of(call, result)

    def stream(  # type: ignore[override]  # a graph takes more than a runnable
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] | None = None,
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: str | Sequence[str] | None = None,
        interrupt_after: str | Sequence[str] | None = None,
        durability: str | None = None,
        control: Any = None,
        concurrency: str | None = None,
        wait: float | None = None,
        journal_stream: bool | str | Sequence[str] | None = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: str = "v1",
        print_mode: str | Sequence[str] = (),
    ) -> Iterator[Any]:
        """What a run shows while it goes. The run moves only while somebody pulls; closing the iterator winds it down.

        One mode gives payloads, a sequence of modes gives ``(mode, payload)``; with `subgraphs` each is led by its
        namespace tuple. With ``version="v2"`` each is a dict with `type`, `ns` and `data`. `print_mode` prints chunks
        of these modes as well; `debug` prints updates and values.
        """
        arguments = _arguments(
            context, output_keys, interrupt_before, interrupt_after, durability, control, version, print_mode, debug
        )
        arguments |= {"concurrency": concurrency, "wait": wait, "journal_stream": journal_stream}
        return self._stream(input, config, stream_mode, {**arguments, "subgraphs": subgraphs})

    def astream(  # type: ignore[override]  # a graph takes more than a runnable
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] | None = None,
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: str | Sequence[str] | None = None,
        interrupt_after: str | Sequence[str] | None = None,
        durability: str | None = None,
        control: Any = None,
        concurrency: str | None = None,
        wait: float | None = None,
        journal_stream: bool | str | Sequence[str] | None = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: str = "v1",
        print_mode: str | Sequence[str] = (),
    ) -> AsyncIterator[Any]:
        """Like `stream`, awaited."""
        arguments = _arguments(
            context, output_keys, interrupt_before, interrupt_after, durability, control, version, print_mode, debug
        )
        arguments |= {"concurrency": concurrency, "wait": wait, "journal_stream": journal_stream}
        return self._astream(input, config, stream_mode, {**arguments, "subgraphs": subgraphs})

    def _stream(self, input: Any, config: Any, mode: Any, arguments: dict[str, Any]) -> Iterator[Any]:
        call, shape = self._streaming(input, config, mode, arguments)
        while True:
            driver = blocking_driver(call)
            chunks = driver.chunks()
            parked = parked_at(driver, chunks)
            try:
                for chunk in chunks:
                    if call.callbacks is not None and chunk[1] == LIFECYCLE:
                        call.callbacks.tell(chunk[2])
                    elif call.wants(chunk):
                        parked.touch()
                        yield shape(chunk)
            except (ClaimMissed, ThreadBusy) as error:
                call.contend(error, driver.journal)
                continue
            finally:
                chunks.close()  # type: ignore[attr-defined]  # it is a generator
                unparked(driver)
            if driver.result is not None and driver.result.error is not None:
                raise let_go(driver.result)
            if driver.result is not None and driver.result.status == "parent":
                raise above(call.nested, driver.result.command)
            return

    async def _astream(self, input: Any, config: Any, mode: Any, arguments: dict[str, Any]) -> AsyncIterator[Any]:
        call, shape = self._streaming(input, config, mode, arguments)
        while True:
            driver = awaiting_driver(call)
            chunks = driver.chunks()
            parked = parked_at(driver, chunks)
            try:
                async for chunk in chunks:
                    if call.callbacks is not None and chunk[1] == LIFECYCLE:
                        await call.callbacks.atell(chunk[2])
                    elif call.wants(chunk):
                        parked.touch()
                        yield shape(chunk)
            except (ClaimMissed, ThreadBusy) as error:
                await call.acontend(error, driver.journal)
                continue
            finally:
                await chunks.aclose()  # type: ignore[attr-defined]  # it is a generator
                unparked(driver)
            if driver.result is not None and driver.result.error is not None:
                raise let_go(driver.result)
            if driver.result is not None and driver.result.status == "parent":
                raise above(call.nested, driver.result.command)
            return

    def _streaming(self, input: Any, config: Any, mode: Any, arguments: dict[str, Any]) -> tuple[Call, Any]:
        mode = self.stream_mode if mode is None else mode
        modes = (mode,) if isinstance(mode, str) else tuple(mode)
        if arguments.get("output_keys") is None:
            arguments["output_keys"] = self.stream_channels_asis
        call = Call(self, input, config, modes=modes, **arguments)
        tagged = not isinstance(mode, str)
        return call, chunk_shape(self, version=call.version, tagged=tagged, subgraphs=call.subgraphs)

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

    def follow(self, config: RunnableConfig, *, offset: int = 0, wait: float | None = None) -> Iterator[FollowedChunk]:
        """What the runs of a thread journaled (`journal_stream`), from an offset on, and what they go on to show.

        It ends when the thread has come to rest, or when nothing was new for `wait` seconds (None: never), with a
        chunk of mode ``status``. It reads only: from any process, before, during and after the run.
        """
        return follow(self.saver, config, offset=offset, wait=wait)

    def afollow(
        self, config: RunnableConfig, *, offset: int = 0, wait: float | None = None
    ) -> AsyncIterator[FollowedChunk]:
        """Like `follow`, awaited."""
        return afollow(self.saver, config, offset=offset, wait=wait)

    # -- state -------------------------------------------------------------------------------------------------------

    def get_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """The state of a thread, or of one of its checkpoints when the config has a ``checkpoint_id``.

        An unknown thread has an empty state. NoCheckpointerError without a saver.
        """
        call, frame = self._reading(config, BlockingJournal)
        flow = state_flow(frame, call.checkpoint, subgraphs=subgraphs)
        return driven(flow, frame) or empty_snapshot(config)

    async def aget_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """Like `get_state`, awaited."""
        call, frame = self._reading(config, awaiting_journal())
        flow = state_flow(frame, call.checkpoint, subgraphs=subgraphs)
        return await adriven(flow, frame) or empty_snapshot(config)

    def get_state_history(
        self,
        config: RunnableConfig,
        *,
        filter: Mapping[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[StateSnapshot]:
        """The checkpoints of a thread, newest first, over all branches; just the one that the config addresses, if any.

        `filter` compares metadata, `before` is a config whose checkpoint comes after those returned.
        """
        call, frame = self._reading(config, BlockingJournal)
        yield from driven(history_flow(frame, call.page(filter, before, limit), call.checkpoint), frame)

    async def aget_state_history(
        self,
        config: RunnableConfig,
        *,
        filter: Mapping[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[StateSnapshot]:
        """Like `get_state_history`, awaited."""
        call, frame = self._reading(config, awaiting_journal())
        for snapshot in await adriven(history_flow(frame, call.page(filter, before, limit), call.checkpoint), frame):
            yield snapshot

    def update_state(
        self, config: RunnableConfig, values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> RunnableConfig:
        """The config of a new checkpoint, made as if `as_node` (inferred when it is clear) had returned `values`."""
        return self.bulk_update_state(config, [[StateUpdate(values, as_node, task_id)]])

    async def aupdate_state(
        self, config: RunnableConfig, values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> RunnableConfig:
        """Like `update_state`, awaited."""
        return await self.abulk_update_state(config, [[StateUpdate(values, as_node, task_id)]])

    def bulk_update_state(self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]) -> RunnableConfig:
        """The config of the last of several supersteps of updates, one checkpoint each, stored together."""
        checked = checked_updates(supersteps)
        call = self._addressed(config)
        while True:
            frame = call.reading(BlockingJournal)
            try:
                result = driven(update_flow(frame, call.checkpoint, checked), frame)
            except ClaimMissed as error:
                call.contend(error, frame.run.journal)
                continue
            if result.error is not None:
                raise let_go(result)
            config_of_last: RunnableConfig = result.values
            return config_of_last

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Like `bulk_update_state`, awaited."""
        checked = checked_updates(supersteps)
        call = self._addressed(config)
        while True:
            frame = call.reading(awaiting_journal())
            try:
                result = await adriven(update_flow(frame, call.checkpoint, checked), frame)
            except ClaimMissed as error:
                await call.acontend(error, frame.run.journal)
                continue
            if result.error is not None:
                raise let_go(result)
            config_of_last: RunnableConfig = result.values
            return config_of_last

    def _reading(self, config: RunnableConfig, kind: Any) -> tuple[Call, Frame]:
        call = self._addressed(config)
        return call, call.reading(kind)

    def _addressed(self, config: RunnableConfig) -> Call:
        """A call about a thread, which runs no node."""
        require_saver(self)
        call = Call(self, None, config)
        call.nested = None
        return call


def _keys(channels: str | Sequence[str]) -> str | tuple[str, ...]:
    return channels if isinstance(channels, str) else tuple(channels)


def _arguments(
    context: Any,
    output_keys: Any,
    before: Any,
    after: Any,
    durability: Any,
    control: Any,
    version: str,
    print_mode: Any,
    debug: bool | None = None,
) -> dict[str, Any]:
    return {
        "context": context,
        "output_keys": output_keys,
        "interrupt_before": before,
        "interrupt_after": after,
        "durability": durability,
        "control": control,
        "version": version,
        "print_mode": ("updates", "values") if debug else print_mode,
    }
