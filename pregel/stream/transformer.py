"""What turns the events of a run into projections: the base of those that are built in, and of the user's own."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pregel.stream.protocol import ProtocolEvent

if TYPE_CHECKING:
    from asyncio import Task

    from pregel.stream.mux import Mux

_log = logging.getLogger(__name__)
_ASYNC = ("aprocess", "afinalize", "afail")


class StreamTransformer(ABC):
    """Sees every event of a run, or of a graph inside of it (`scope`: where that is), and makes projections of them.

    Give the class, or a function that makes one for a scope, to ``stream_events(transformers=[...])`` or
    ``compile(transformers=[...])``: each graph inside of a run gets its own. Override `process`, or, for awaited runs
    only, `aprocess`. An error of a transformer ends the run with that error.

    `required_stream_modes`: the stream modes that the run has to show for it. `before_builtins`: it sees events before
    the built-in projections do. `requires_async`: it works in awaited runs only, as one does that overrides an async
    method, unless `supports_sync` says that it has both.
    """

    requires_async: ClassVar[bool] = False
    supports_sync: ClassVar[bool] = False
    required_stream_modes: ClassVar[tuple[str, ...]] = ()
    before_builtins: ClassVar[bool] = False
    is_native: ClassVar[bool] = False  # its projections are attributes of the run object
    hears: ClassVar[frozenset[str] | None] = None  # of events of its own graph, the methods that it looks at; None: all

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        self.scope = scope
        self.mux: Mux
        self._scheduled: set[Task[Any]] = set()
        self._broken: BaseException | None = None

    @abstractmethod
    def init(self) -> dict[str, Any]:
        """The projections by name: StreamChannels, or values of any other kind, which are shown as they are."""

    def process(self, event: ProtocolEvent) -> bool:
        """See an event; whether it is shown to those who iterate over the run object."""
        return True

    async def aprocess(self, event: ProtocolEvent) -> bool:
        """The same in an awaited run."""
        return self.process(event)

    def finalize(self) -> None:
        """The run has ended well, or is paused; what is pushed now is still shown."""

    async def afinalize(self) -> None:
        """The same in an awaited run."""
        self.finalize()

    def fail(self, err: BaseException) -> None:
        """The run has ended with an error."""

    async def afail(self, err: BaseException) -> None:
        """The same in an awaited run."""
        self.fail(err)

    def schedule(self, coro: Coroutine[Any, Any, Any], *, on_error: Literal["log", "raise"] = "log") -> Task[Any]:
        """Run a coroutine beside the run, which waits for it before it ends.

        `on_error`: an error of it is logged, or ends the run ("raise").
        """
        from asyncio import create_task  # an awaited run has loaded it

        task = create_task(self._guarded(coro, on_error))
        self._scheduled.add(task)
        task.add_done_callback(self._scheduled.discard)
        return task

    async def _guarded(self, coro: Coroutine[Any, Any, Any], on_error: str) -> Any:
        try:
            return await coro
        except Exception as error:
            if on_error == "raise":
                self._broken = self._broken or error
            else:
                _log.exception("What %s had scheduled failed.", type(self).__name__)

    async def settle(self) -> None:
        """Wait for what was scheduled, and raise what broke."""
        while self._scheduled:
            from asyncio import wait

            await wait(self._scheduled)
        self.check()

    def check(self) -> None:
        """Raise what broke in the meantime."""
        if self._broken is not None:
            raise self._broken

    def withdraw(self) -> None:
        """Cancel what was scheduled."""
        for task in self._scheduled:
            task.cancel()

    def overrides(self, name: str) -> bool:
        """Whether an async method is not this class's own."""
        return name in _overridden(type(self))

    @property
    def is_async_only(self) -> bool:
        """Whether it cannot work in a blocking run."""
        return not self.supports_sync and (self.requires_async or bool(_overridden(type(self))))


@lru_cache(maxsize=256)
def _overridden(cls: type[StreamTransformer]) -> frozenset[str]:
    """The async methods that a class has of its own; asked for each run of it."""
    return frozenset(name for name in _ASYNC if getattr(cls, name) is not getattr(StreamTransformer, name))


def projections_of(transformer: StreamTransformer) -> Mapping[str, Any]:
    """What its `init` gave, which has to be a mapping."""
    made: Any = transformer.init()
    if not isinstance(made, (dict, Mapping)):  # an abstract class takes longer to answer
        raise TypeError(f"{type(transformer).__name__}.init() returned {type(made).__name__}, not a dict.")
    return made
