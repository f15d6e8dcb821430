"""Running a compiled graph: `invoke` and `stream`, and their async twins.

A call that another run gets in the way of is tried again, with a driver of its own for each try.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Unpack, overload

from pregel.config import RunnableConfig
from pregel.constants import LIFECYCLE
from pregel.engine.above import above
from pregel.engine.authority import ClaimMissed
from pregel.engine.call import Call
from pregel.engine.chunks import chunk_shape
from pregel.engine.events import EventStreams
from pregel.engine.heard import heard
from pregel.engine.running import Running
from pregel.engine.tries import awaiting_driver, blocking_driver, let_go, output_of, parked_at, unparked
from pregel.errors import ThreadBusy
from pregel.owned import Owned
from pregel.typing import AnyContextT, InputT, OutputT, StateT

if TYPE_CHECKING:
    from pregel.engine.effects import Result
    from pregel.engine.options import CallOptions
    from pregel.types import Command, GraphOutput, StreamMode, StreamPart


class Verbs(EventStreams, Generic[StateT, AnyContextT, InputT, OutputT]):
    """The verbs that run a graph."""

    stream_mode: str

    @property
    def stream_channels_asis(self) -> str | Sequence[str]:
        """The channels that streams show."""
        raise NotImplementedError

    def call(self, value: Any, running: Any) -> Any:
        """The output, as a step of a chain: inside a node it runs as part of that node."""
        return self.invoke(value, None if isinstance(running, Running) else running.config)

    async def acall(self, value: Any, running: Any) -> Any:
        """The same, awaited."""
        return await self.ainvoke(value, None if isinstance(running, Running) else running.config)

    @overload  # type: ignore[override]  # a graph takes more than a runnable
    def invoke(
        self,
        input: InputT | Command[Any] | None,
        config: RunnableConfig | None = None,
        *,
        context: AnyContextT | None = None,
        stream_mode: StreamMode | Sequence[StreamMode] = "values",
        subgraphs: bool = False,
        debug: bool | None = None,
        version: Literal["v1"] = "v1",
        **options: Unpack[CallOptions],
    ) -> Any: ...

    @overload
    def invoke(
        self,
        input: InputT | Command[Any] | None,
        config: RunnableConfig | None = None,
        *,
        context: AnyContextT | None = None,
        stream_mode: StreamMode | Sequence[StreamMode] = "values",
        subgraphs: bool = False,
        debug: bool | None = None,
        version: Literal["v2"],
        **options: Unpack[CallOptions],
    ) -> GraphOutput[OutputT]: ...

    def invoke(
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
        subgraphs: bool = False,
        debug: bool | None = None,
        version: str = "v1",
        print_mode: str | Sequence[str] = (),
    ) -> Any:
        """The output of a run: the values of the output channels, None when nothing was ever written to them.

        When the run paused on questions, the dict has them under ``__interrupt__``; ``version="v2"`` returns a
        `GraphOutput` instead. Another `stream_mode` returns the list of chunks, with those of `subgraphs` if asked.
        `print_mode` prints chunks of these modes, `debug` those of updates and values. Raises what a node raised, and
        the named errors of `pregel.errors`.

        `concurrency` says what happens when another run holds the thread: "reject", "enqueue", "interrupt" or
        "rollback"; `wait` is how many seconds the last three wait for it. `journal_stream` names the stream modes whose
        chunks are journaled for those who `follow` (True: the usual ones). All three default to those of the graph.
        """
        arguments = _arguments(
            context, output_keys, interrupt_before, interrupt_after, durability, control, version, print_mode, debug
        )
        arguments |= {"concurrency": concurrency, "wait": wait, "journal_stream": journal_stream}
        if stream_mode != "values":
            return list(self._stream(input, config, stream_mode, {**arguments, "subgraphs": subgraphs}))
        call = Call(self, input, config, **arguments)  # type: ignore[arg-type]  # it is a Pregel
        if call.nested is not None and (made := call.made(waits=False)) is not None:
            try:
                return made.push().result()
            finally:
                if made.frame.run.heard is not None:
                    made.frame.run.heard.catch_up()
        handlers = call.heard = heard(call)
        try:
            if handlers is not None:
                handlers.begin()
            result = _result(call)
            if result.error is not None:
                raise let_go(result)
            output = output_of(call, result)
        except BaseException as error:
            if handlers is not None:
                handlers.failed(error)
            raise
        if handlers is not None:
            handlers.ended(result.values)
        return output

    @overload  # type: ignore[override]  # a graph takes more than a runnable
    async def ainvoke(
        self,
        input: InputT | Command[Any] | None,
        config: RunnableConfig | None = None,
        *,
        context: AnyContextT | None = None,
        stream_mode: StreamMode | Sequence[StreamMode] = "values",
        subgraphs: bool = False,
        debug: bool | None = None,
        version: Literal["v1"] = "v1",
        **options: Unpack[CallOptions],
    ) -> Any: ...

    @overload
    async def ainvoke(
        self,
        input: InputT | Command[Any] | None,
        config: RunnableConfig | None = None,
        *,
        context: AnyContextT | None = None,
        stream_mode: StreamMode | Sequence[StreamMode] = "values",
        subgraphs: bool = False,
        debug: bool | None = None,
        version: Literal["v2"],
        **options: Unpack[CallOptions],
    ) -> GraphOutput[OutputT]: ...

    async def ainvoke(
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
        subgraphs: bool = False,
        debug: bool | None = None,
        version: str = "v1",
        print_mode: str | Sequence[str] = (),
    ) -> Any:
        """Like `invoke`, awaited."""
        arguments = _arguments(
            context, output_keys, interrupt_before, interrupt_after, durability, control, version, print_mode, debug
        )
        arguments |= {"concurrency": concurrency, "wait": wait, "journal_stream": journal_stream}
        if stream_mode != "values":
            async with Owned(
                self._astream(input, config, stream_mode, {**arguments, "subgraphs": subgraphs})
            ) as chunks:
                return [chunk async for chunk in chunks]
        call = Call(self, input, config, **arguments)  # type: ignore[arg-type]  # it is a Pregel
        if call.nested is not None and (made := call.made(waits=True)) is not None:
            try:
                return await made.push()
            finally:
                if made.frame.run.heard is not None:
                    await made.frame.run.heard.acatch_up()
        handlers = call.heard = heard(call)
        try:
            if handlers is not None:
                await handlers.abegin()
            result = await _aresult(call)
            if result.error is not None:
                raise let_go(result)
            output = output_of(call, result)
        except BaseException as error:
            if handlers is not None:
                await handlers.afailed(error)
            raise
        if handlers is not None:
            await handlers.aended(result.values)
        return output

    @overload  # type: ignore[override]  # a graph takes more than a runnable
    def stream(
        self,
        input: InputT | Command[Any] | None,
        config: RunnableConfig | None = None,
        *,
        context: AnyContextT | None = None,
        stream_mode: StreamMode | Sequence[StreamMode] | None = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: Literal["v1"] = "v1",
        **options: Unpack[CallOptions],
    ) -> Iterator[Any]: ...

    @overload
    def stream(
        self,
        input: InputT | Command[Any] | None,
        config: RunnableConfig | None = None,
        *,
        context: AnyContextT | None = None,
        stream_mode: StreamMode | Sequence[StreamMode] | None = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: Literal["v2"],
        **options: Unpack[CallOptions],
    ) -> Iterator[StreamPart[OutputT, StateT]]: ...

    def stream(
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

    @overload  # type: ignore[override]  # a graph takes more than a runnable
    def astream(
        self,
        input: InputT | Command[Any] | None,
        config: RunnableConfig | None = None,
        *,
        context: AnyContextT | None = None,
        stream_mode: StreamMode | Sequence[StreamMode] | None = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: Literal["v1"] = "v1",
        **options: Unpack[CallOptions],
    ) -> AsyncIterator[Any]: ...

    @overload
    def astream(
        self,
        input: InputT | Command[Any] | None,
        config: RunnableConfig | None = None,
        *,
        context: AnyContextT | None = None,
        stream_mode: StreamMode | Sequence[StreamMode] | None = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: Literal["v2"],
        **options: Unpack[CallOptions],
    ) -> AsyncIterator[StreamPart[OutputT, StateT]]: ...

    def astream(
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
        if call.nested is not None and (streamed := call.streamed(waits=False)) is not None:
            try:
                yield from (shape(chunk) for chunk in streamed if call.wants(chunk))
            finally:
                if call.nested.frame.run.heard is not None:
                    call.nested.frame.run.heard.catch_up()
            return
        handlers = call.heard = heard(call)
        try:
            if handlers is not None:
                handlers.begin()
            while True:
                driver = blocking_driver(call)
                chunks = driver.chunks()
                parked = parked_at(driver, chunks)
                try:
                    for chunk in chunks:
                        if call.callbacks is not None and chunk[1] == LIFECYCLE:
                            call.callbacks.tell(chunk[2])
                        elif call.wants(chunk):
                            if parked is not None:
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
                break
        except BaseException as error:
            if handlers is not None:
                handlers.failed(error)
            raise
        if handlers is not None:
            handlers.ended(None if driver.result is None else driver.result.values)

    async def _astream(self, input: Any, config: Any, mode: Any, arguments: dict[str, Any]) -> AsyncIterator[Any]:
        call, shape = self._streaming(input, config, mode, arguments)
        if call.nested is not None and (streamed := call.streamed(waits=True)) is not None:
            try:
                async with Owned(streamed.awaited()) as inside:
                    async for chunk in inside:
                        if call.wants(chunk):
                            yield shape(chunk)
            finally:
                if call.nested.frame.run.heard is not None:
                    await call.nested.frame.run.heard.acatch_up()
            return
        handlers = call.heard = heard(call)
        try:
            if handlers is not None:
                await handlers.abegin()
            while True:
                driver = awaiting_driver(call)
                chunks = driver.chunks()
                parked = parked_at(driver, chunks)
                try:
                    async for chunk in chunks:
                        if call.callbacks is not None and chunk[1] == LIFECYCLE:
                            await call.callbacks.atell(chunk[2])
                        elif call.wants(chunk):
                            if parked is not None:
                                parked.touch()
                            yield shape(chunk)
                except (ClaimMissed, ThreadBusy) as error:
                    await call.acontend(error, driver.journal)
                    continue
                finally:
                    await chunks.aclose()
                    unparked(driver)
                if driver.result is not None and driver.result.error is not None:
                    raise let_go(driver.result)
                if driver.result is not None and driver.result.status == "parent":
                    raise above(call.nested, driver.result.command)
                break
        except BaseException as error:
            if handlers is not None:
                await handlers.afailed(error)
            raise
        if handlers is not None:
            await handlers.aended(None if driver.result is None else driver.result.values)

    def _streaming(self, input: Any, config: Any, mode: Any, arguments: dict[str, Any]) -> tuple[Call, Any]:
        if mode is None:  # who hands the config of a node on asks for what that node's graph would show
            mode = "values" if _is_forwarded(config) else self.stream_mode
        modes = (mode,) if isinstance(mode, str) else tuple(mode)
        if arguments.get("output_keys") is None:
            arguments["output_keys"] = self.stream_channels_asis
        call = Call(self, input, config, modes=modes, **arguments)  # type: ignore[arg-type]  # it is a Pregel
        tagged = not isinstance(mode, str)
        return call, chunk_shape(call.graph, version=call.version, tagged=tagged, subgraphs=call.subgraphs)


def _is_forwarded(config: Any) -> bool:
    """Whether a config is that of a node; one that is none at all is refused later."""
    try:
        return "__pregel_task_id" in ((config or {}).get("configurable") or {})
    except (AttributeError, TypeError):
        return False


def _result(call: Call) -> Result:
    """How a call ends that shows nothing; its error is the caller's to raise."""
    while True:
        driver = blocking_driver(call)
        try:
            tell = None if call.callbacks is None else call.callbacks.tell
            result = driver.run(call.wants, tell)
        except (ClaimMissed, ThreadBusy) as error:
            call.contend(error, driver.journal)
            continue
        return result


async def _aresult(call: Call) -> Result:
    """The same, awaited."""
    while True:
        driver = awaiting_driver(call)
        try:
            atell = None if call.callbacks is None else call.callbacks.atell
            result = await driver.run(call.wants, atell)
        except (ClaimMissed, ThreadBusy) as error:
            await call.acontend(error, driver.journal)
            continue
        return result


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
