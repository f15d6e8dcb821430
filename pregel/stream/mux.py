"""Leads the events of a run, or of a graph inside of it, through its transformers and into its log.

1. Every transformer sees every event; one that says no keeps it from the log, not from the others.
2. An event of an inner graph goes through that graph's own mux first (`SubgraphTransformer`), then through this one.
3. However the run ends, each transformer is told, then every projection ends: with the error, if there is one.
4. It is written as flows that yield the coroutines of async transformers, so it works in blocking runs as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeGuard

from pregel.errors import InvalidInputError, StreamUseError, told
from pregel.flow import Flow
from pregel.stream.channel import StreamChannel
from pregel.stream.protocol import ProtocolEvent, made_event
from pregel.stream.pump import Pump
from pregel.stream.transformer import StreamTransformer, projections_of

Factory = Callable[[tuple[str, ...]], StreamTransformer]


class Mux:
    """The transformers and projections of one scope."""

    def __init__(self, factories: Sequence[Factory], pump: Pump, scope: tuple[str, ...] = ()) -> None:
        self.factories = factories
        self.pump = pump
        self.scope = scope
        self.is_over = False
        self.error: BaseException | None = None
        self.count = 0
        self.log: StreamChannel[ProtocolEvent] = StreamChannel("events")
        self.log.bind(pump)
        self.projections: dict[str, Any] = {}
        self.native: set[str] = set()
        self.transformers = _in_order(_made(factory, scope) for factory in factories)
        self._owners: dict[str, str] = {}
        for transformer in self.transformers:
            self._register(transformer)
        self.has_more = any(not one.is_native for one in self.transformers)  # some of the user's own
        self._flows = [(one, getattr(one, "flow", None)) for one in self.transformers]
        self._hearing: dict[str, list[Callable[[ProtocolEvent], bool]]] = {}  # by method, of events of this graph
        self._awaited = {one for one in self.transformers if pump.awaits and one.overrides("aprocess")}

    @property
    def ready(self) -> bool:
        """Whether it has ended, for those who wait for that."""
        return self.is_over

    @property
    def modes(self) -> list[str]:
        """The stream modes that its transformers need."""
        return list(dict.fromkeys(mode for one in self.transformers for mode in one.required_stream_modes))

    def channel(self, name: str) -> StreamChannel[Any] | None:
        """The projection of a name that can be read."""
        found = self.projections.get(name)
        return found if isinstance(found, StreamChannel) else None

    def hold(self) -> None:
        """Keep what its projections show until somebody reads them."""
        for channel in self._channels():
            channel.hold()

    def _channels(self) -> list[StreamChannel[Any]]:
        return [one for one in [*self.projections.values(), self.log] if isinstance(one, StreamChannel)]

    # -- events ------------------------------------------------------------------------------------------------------

    def took(self, event: ProtocolEvent) -> bool:
        """Show an event at once, if it is one that nobody awaits and that concerns no graph inside of this one.

        It is false when it is not; then it has to be fed.
        """
        method = event["method"]
        if method == "tasks" or len(event["params"]["namespace"]) != len(self.scope) or self._awaited:
            return False
        if (hearing := self._hearing.get(method)) is None:
            hearing = self._hearing[method] = [
                one.process for one, flow in self._flows if flow is None and (one.hears is None or method in one.hears)
            ]
        kept = True
        for process in hearing:
            kept = bool(process(event)) and kept
        if kept:
            self.emit(event)
        return True

    def feed(self, event: ProtocolEvent) -> Flow[None]:
        """Show an event to the transformers, and then in the log."""
        kept = True
        of_itself = event["method"] != "tasks" and len(event["params"]["namespace"]) == len(self.scope)
        for transformer, flow in self._flows:
            if flow is not None:  # it has graphs inside of this one to feed
                keeps = of_itself or (yield from flow(event))
            elif transformer in self._awaited:
                keeps = yield transformer.aprocess(event)
            else:
                keeps = transformer.process(event)
            kept = kept and bool(keeps)
        if kept:
            self.emit(event)
        for transformer in self._awaited:
            transformer.check()

    def emit(self, event: ProtocolEvent) -> None:
        """Show an event in the log."""
        self.count += 1
        if self.log.is_read:
            self.log.push({**event, "seq": self.count})

    def finish(self, error: BaseException | None = None) -> Flow[None]:
        """Tell everybody that the run has ended. An error of one of them is the run's, if it has no other."""
        if self.is_over:
            return
        for transformer in self.transformers:
            try:
                yield from self._end(transformer, error)
            except Exception as failure:
                if error is None:
                    error = failure
                else:
                    error.add_note(f"Beside it, {type(transformer).__name__} failed: {told(failure)}")
        self.is_over, self.error = True, error
        for channel in self._channels():
            channel.close() if error is None else channel.fail(error)

    def _end(self, transformer: StreamTransformer, error: BaseException | None) -> Flow[None]:
        if error is not None:
            transformer.withdraw()
        elif self.pump.awaits:
            yield transformer.settle()
        if (flow := getattr(transformer, "ending", None)) is not None:
            yield from flow(error)
        if not self.pump.awaits:
            transformer.finalize() if error is None else transformer.fail(error)
        elif error is None:
            yield transformer.afinalize()
            yield transformer.settle()
        else:
            yield transformer.afail(error)

    # -- set-up ------------------------------------------------------------------------------------------------------

    def _register(self, transformer: StreamTransformer) -> None:
        kind = type(transformer).__name__
        if transformer.is_async_only and not self.pump.awaits:
            raise StreamUseError(
                f"{kind} works in awaited runs only: it requires or overrides an async method.",
                fix="Use astream_events(), or override process, finalize and fail.",
            )
        made = projections_of(transformer)
        if not self.projections.keys().isdisjoint(made):
            taken = sorted(set(made) & set(self.projections))
            owners = ", ".join(f"{name!r} (of {self._owners[name]})" for name in taken)
            raise InvalidInputError(
                f"{kind} has projections that are there already: {owners}.", fix="Give each a name of its own."
            )
        for name, projection in made.items():
            self._owners[name] = kind
            self.projections[name] = projection
            if transformer.is_native:
                self.native.add(name)
            if isinstance(projection, StreamChannel):
                projection.bind(self.pump, self._forward(projection, native=transformer.is_native))
        transformer.mux = self

    def _forward(self, channel: StreamChannel[Any], *, native: bool) -> Callable[[Any], None] | None:
        """What shows a named projection in the log too."""
        if channel.name is None:
            return None
        method = channel.name if native else f"custom:{channel.name}"
        return lambda item: self.emit(made_event(method, self.scope, item))


def _made(factory: Any, scope: tuple[str, ...]) -> StreamTransformer:
    if _transforms(factory):
        raise StreamUseError(
            f"transformers holds an instance of {type(factory).__name__}.",
            fix="Give the class, or a function of the scope that makes one: each graph inside of a run gets its own.",
        )
    made = factory(scope)
    if not _transforms(made):
        raise StreamUseError(
            f"A transformer factory made {type(made).__name__}.", fix="It has to make a StreamTransformer."
        )
    return made


def _transforms(made: object) -> TypeGuard[StreamTransformer]:
    """Whether it is a transformer. An abstract class takes ten times as long to say."""
    return StreamTransformer in type(made).__mro__


def _in_order(made: Iterable[StreamTransformer]) -> list[StreamTransformer]:
    return sorted(made, key=lambda one: not one.before_builtins)
