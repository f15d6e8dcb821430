"""The same run objects for runs that are awaited."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from pregel.stream.channel import StreamChannel, together
from pregel.stream.encoder import Encoder
from pregel.stream.message import AsyncMessageStream
from pregel.stream.mux import Factory, Mux
from pregel.stream.protocol import ProtocolEvent, SubgraphStatus
from pregel.stream.reading import AwaitingReader
from pregel.stream.run import RunStream, not_alone
from pregel.stream.transformers import BUILT_IN

if TYPE_CHECKING:
    from typing import Self

    from pregel.question import Interrupt
    from pregel.stream.lives import Life
    from pregel.stream.pump_async import AwaitingPump


class AsyncGraphRunStream(RunStream):
    """One awaited run, which moves while some task reads something of it. Iterate over it for all its events.

    The projections are those of `GraphRunStream`; read them with ``async for``, in tasks of their own or with
    `interleave`. A task that is cancelled leaves the run to the others: `abort` winds it down, as leaving an
    ``async with`` does. It may be awaited, which gives itself.
    """

    messages: StreamChannel[AsyncMessageStream]
    subgraphs: StreamChannel[AsyncSubgraphRunStream]

    async def abort(self) -> None:
        """Wind the run down: what has finished is kept, what has not started never runs, projections end."""
        await cast("AwaitingPump", self.mux.pump).aclose()

    def __await__(self) -> Generator[Any, None, Self]:
        return self
        yield  # it has nothing to wait for

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.abort()

    async def output(self) -> Any:
        """The last values, when the run is over."""
        await self.mux.pump.apull(self.mux)
        return self._output()

    async def interrupted(self) -> bool:
        """Whether the run is paused at a question, when it is over."""
        return bool(await self.interrupts())

    async def interrupts(self) -> list[Interrupt]:
        """The questions that it is paused at, when it is over."""
        await self.mux.pump.apull(self.mux)
        return self._interrupts()

    def __aiter__(self) -> AsyncIterator[ProtocolEvent]:
        return aiter(self.mux.log)

    def interleave(self, *names: str) -> AsyncIterator[tuple[str, Any]]:
        """What several projections show, with the name of each, as it comes."""
        return AwaitingReader(*together(self._channels(names), self.mux.pump))


class AsyncSubgraphRunStream(AsyncGraphRunStream):
    """A graph inside of an awaited run: see `SubgraphRunStream`."""

    def __init__(
        self, mux: Mux, *, path: tuple[str, ...], graph_name: str | None = None, trigger_call_id: str | None = None
    ) -> None:
        super().__init__(mux)
        self.path, self.graph_name, self.trigger_call_id = path, graph_name, trigger_call_id
        self.status: SubgraphStatus = "started"
        self.error: str | None = None

    async def abort(self) -> None:
        """An error: only the whole run can be aborted."""
        raise not_alone()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing: it ends with its run."""


def inner_run(mux: Mux, life: Life) -> AsyncSubgraphRunStream:
    """The run object of a graph inside of an awaited run."""
    return AsyncSubgraphRunStream(mux, path=life.path, graph_name=life.graph_name, trigger_call_id=life.trigger_call_id)


def open_awaited_run(
    start: Callable[[list[str]], AsyncGenerator[Any, None]], transformers: Sequence[Factory]
) -> AsyncGraphRunStream:
    """The run object of the parts (``version="v2"``) that `start` gives for a list of stream modes."""
    from pregel.stream.pump_async import AwaitingPump  # it loads asyncio, which costs as much as this package

    pump = AwaitingPump(Encoder())
    pump.handle = inner_run
    pump.mux = mux = Mux([*BUILT_IN, *transformers], pump)
    pump.parts = start(mux.modes)
    return AsyncGraphRunStream(mux)
