"""A run as an object: one run, whose projections are read alone or together, by blocking."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, cast

from pregel.errors import StreamUseError, UnknownProjectionError
from pregel.stream.channel import StreamChannel, together
from pregel.stream.encoder import Encoder
from pregel.stream.message import MessageStream
from pregel.stream.mux import Factory, Mux
from pregel.stream.protocol import LifecyclePayload, ProtocolEvent, SubgraphStatus
from pregel.stream.pump import BlockingPump
from pregel.stream.reading import BlockingReader
from pregel.stream.transformers import BUILT_IN, ValuesTransformer

if TYPE_CHECKING:
    from typing import Self

    from pregel.question import Interrupt
    from pregel.stream.lives import Life


class RunStream:
    """What the run objects of blocking and awaited runs have in common."""

    extensions: Mapping[str, Any]
    """All projections by name: those that are attributes, and those of the caller's own transformers."""

    updates: StreamChannel[dict[str, Any]]
    custom: StreamChannel[Any]
    checkpoints: StreamChannel[dict[str, Any]]
    debug: StreamChannel[dict[str, Any]]
    tasks: StreamChannel[dict[str, Any]]
    values: StreamChannel[Any]
    lifecycle: StreamChannel[LifecyclePayload]

    def __init__(self, mux: Mux) -> None:
        self.mux = mux
        self.extensions = MappingProxyType(mux.projections)
        self._values = next(one for one in mux.transformers if type(one) is ValuesTransformer)
        for name in mux.native:
            setattr(self, name, mux.projections[name])

    def __getattr__(self, name: str) -> StreamChannel[Any]:
        registered = ", ".join(sorted(vars(self)["mux"].native)) if "mux" in vars(self) else ""
        raise UnknownProjectionError(
            f"{type(self).__name__!r} object has no attribute {name!r} (registered projections: {registered}).",
            fix="Give its transformer to stream_events(transformers=[...]); your own are in `extensions`.",
        )

    def _output(self) -> Any:
        if self.mux.error is not None:
            raise self.mux.error
        return self._values.output

    def _interrupts(self) -> list[Interrupt]:
        if self.mux.error is not None:
            raise self.mux.error
        return list(self._values.interrupts.values())

    def _channels(self, names: Sequence[str]) -> list[tuple[str, StreamChannel[Any]]]:
        found = [(name, self.mux.channel(name)) for name in names]
        if missing := [name for name, channel in found if channel is None]:
            raise UnknownProjectionError(
                f"There is no projection {', '.join(map(repr, missing))} to read.",
                fix=f"Use some of {', '.join(sorted(self.mux.projections))}.",
            )
        return cast("list[tuple[str, StreamChannel[Any]]]", found)


class GraphRunStream(RunStream):
    """One run, which moves while somebody reads something of it. Iterate over it for all its events.

    `values`, `messages`, `lifecycle` and `subgraphs` are always there; `updates`, `custom`, `tasks`, `checkpoints` and
    `debug` with their transformers. Each can be read once, alone or beside others: in threads, or with `interleave`.
    What ends the run with an error ends each of them with it. As a context manager it aborts what is left.
    """

    messages: StreamChannel[MessageStream]
    subgraphs: StreamChannel[SubgraphRunStream]

    def abort(self) -> None:
        """Wind the run down: what has finished is kept, what has not started never runs, projections end."""
        cast(BlockingPump, self.mux.pump).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    @property
    def output(self) -> Any:
        """The last values, when the run is over."""
        self.mux.pump.pull(self.mux)
        return self._output()

    @property
    def interrupted(self) -> bool:
        """Whether the run is paused at a question, when it is over."""
        return bool(self.interrupts)

    @property
    def interrupts(self) -> list[Interrupt]:
        """The questions that it is paused at, when it is over."""
        self.mux.pump.pull(self.mux)
        return self._interrupts()

    def __iter__(self) -> Iterator[ProtocolEvent]:
        return iter(self.mux.log)

    def interleave(self, *names: str) -> Iterator[tuple[str, Any]]:
        """What several projections show, with the name of each, as it comes."""
        return BlockingReader(*together(self._channels(names), self.mux.pump))


class SubgraphRunStream(GraphRunStream):
    """A graph inside of a run: `path` is its namespace, `graph_name` its node, `trigger_call_id` the task's.

    `status` says how it stands, `error` why it failed. It moves with the run that it is a part of.
    """

    def __init__(
        self, mux: Mux, *, path: tuple[str, ...], graph_name: str | None = None, trigger_call_id: str | None = None
    ) -> None:
        super().__init__(mux)
        self.path, self.graph_name, self.trigger_call_id = path, graph_name, trigger_call_id
        self.status: SubgraphStatus = "started"
        self.error: str | None = None

    def abort(self) -> None:
        """An error: only the whole run can be aborted."""
        raise not_alone()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing: it ends with its run."""


def not_alone() -> StreamUseError:
    """Why a graph inside of a run cannot be aborted."""
    return StreamUseError("A graph inside of a run cannot be aborted alone.", fix="Abort the run.")


def inner_run(mux: Mux, life: Life) -> SubgraphRunStream:
    """The run object of a graph inside of a blocking run."""
    return SubgraphRunStream(mux, path=life.path, graph_name=life.graph_name, trigger_call_id=life.trigger_call_id)


def open_run(
    start: Callable[[list[str]], Generator[Any, None, None]], transformers: Sequence[Factory]
) -> GraphRunStream:
    """The run object of the parts (``version="v2"``) that `start` gives for a list of stream modes."""
    pump = BlockingPump(Encoder())
    pump.handle = inner_run
    pump.mux = mux = Mux([*BUILT_IN, *transformers], pump)
    pump.parts = start(mux.modes)
    return GraphRunStream(mux)
