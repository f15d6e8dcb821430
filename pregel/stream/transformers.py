"""The projections that are built in: values, messages, lifecycle and subgraphs always, the other modes on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pregel.errors import StreamUseError
from pregel.flow import Flow
from pregel.question import Interrupt
from pregel.stream.channel import StreamChannel
from pregel.stream.encoder import speaker_of
from pregel.stream.lives import Life, Lives, hop
from pregel.stream.message import AsyncMessageStream, MessageStream
from pregel.stream.mux import Factory, Mux
from pregel.stream.protocol import LifecyclePayload, ProtocolEvent
from pregel.stream.transformer import StreamTransformer

if TYPE_CHECKING:
    from pregel.stream.run import SubgraphRunStream
    from pregel.stream.run_async import AsyncSubgraphRunStream


class ModeTransformer(StreamTransformer):
    """A projection of the chunks that the graph of its scope shows in one stream mode."""

    is_native = True
    mode: ClassVar[str]

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self.channel: StreamChannel[Any] = StreamChannel()

    def __init_subclass__(cls) -> None:
        cls.required_stream_modes = (cls.mode,)
        if "hears" not in vars(cls):  # what a subclass looks at is its own affair
            cls.hears = frozenset((cls.mode,)) if cls.process is ModeTransformer.process else None

    def init(self) -> dict[str, Any]:
        return {self.mode: self.channel}

    def process(self, event: ProtocolEvent) -> bool:
        if event["method"] == self.mode and self.is_here(event):
            self.take(event)
        return True

    def take(self, event: ProtocolEvent) -> None:
        """Show an event of the mode."""
        self.channel.push(event["params"]["data"])

    def is_here(self, event: ProtocolEvent) -> bool:
        """Whether an event is of the graph of this scope, not of one inside of it."""
        place = event["params"]["namespace"]
        return len(place) == len(self.scope) and tuple(place) == self.scope


class ValuesTransformer(ModeTransformer):
    """The values after each superstep. Keeps the newest, and the questions that the run is paused at."""

    mode = "values"

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self.output: Any = None
        self.interrupts: dict[str, Interrupt] = {}

    def take(self, event: ProtocolEvent) -> None:
        params = event["params"]
        self.output = params["data"]
        for question in params.get("interrupts", ()):
            self.interrupts[question.id] = question
        super().take(event)


class MessagesTransformer(ModeTransformer):
    """The messages that models stream and nodes write, each as a stream of its own."""

    mode = "messages"
    hears = frozenset(("messages", "tasks"))

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self._open: dict[tuple[str, str | None], MessageStream | AsyncMessageStream] = {}

    def process(self, event: ProtocolEvent) -> bool:
        if self._open and event["method"] == "tasks" and self.is_here(event):
            data = event["params"]["data"]
            if error := data.get("error"):
                self._cut(error, f"{data['name']}:{data['id']}")
        return super().process(event)

    def take(self, event: ProtocolEvent) -> None:
        said, metadata = event["params"]["data"]
        if not isinstance(said, dict):
            self._begun(said.id, metadata).tell(said)
            return
        key = (speaker_of(metadata), metadata.get("message_id"))
        if said["event"] == "message-start":
            self._open[key] = self._begun(said.get("id"), metadata)
        if (message := self._open.get(key)) is not None:
            message.dispatch(said)
            if message.done:
                del self._open[key]

    def _begun(self, id: str | None, metadata: dict[str, Any]) -> MessageStream | AsyncMessageStream:
        pump = self.mux.pump
        kind = AsyncMessageStream if pump.awaits else MessageStream
        message = kind(pump, self.scope, metadata.get("langgraph_node"), id)
        self.channel.push(message)
        return message

    def finalize(self) -> None:
        if self._open:
            self._cut(StreamUseError("The message was cut off: its run was aborted.", fix="Run it to its end."))

    def fail(self, err: BaseException) -> None:
        self._cut(err)

    def _cut(self, error: BaseException, task: str | None = None) -> None:
        """Messages that have no end: those of a task, or all."""
        for key in [key for key in self._open if task in (None, key[0])]:
            self._open.pop(key).fail(error)


class LifecycleTransformer(StreamTransformer):
    """The starts and ends of all graphs inside of the one of its scope."""

    is_native = True
    hears = frozenset(("tasks",))
    required_stream_modes = ("tasks",)

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self.channel: StreamChannel[LifecyclePayload] = StreamChannel("lifecycle")
        self._lives = Lives(scope)

    def init(self) -> dict[str, Any]:
        return {"lifecycle": self.channel}

    def process(self, event: ProtocolEvent) -> bool:
        for life in self._lives.read(event):
            self.channel.push(life.payload)
        return event["method"] != "tasks"

    def finalize(self) -> None:
        for life in self._lives.rest(None):
            self.channel.push(life.payload)

    def fail(self, err: BaseException) -> None:
        for life in self._lives.rest(err):
            self.channel.push(life.payload)


class SubgraphTransformer(StreamTransformer):
    """A run object for each graph that the one of its scope has inside of it, directly."""

    is_native = True
    supports_sync = True
    required_stream_modes = ("tasks",)

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self.channel: StreamChannel[SubgraphRunStream | AsyncSubgraphRunStream] = StreamChannel()
        self._lives = Lives(scope)
        self._inner: dict[tuple[str, ...], SubgraphRunStream | AsyncSubgraphRunStream] = {}

    def init(self) -> dict[str, Any]:
        return {"subgraphs": self.channel}

    def flow(self, event: ProtocolEvent) -> Flow[bool]:
        """Lead an event through the graph that it is of, which may begin or end with it."""
        for life in self._lives.read(event):
            if life.status != "started":
                yield from self._end(life)
            elif self.is_watched and hop(life.path, len(self.scope)) == len(life.path):
                self._begin(life)
        if self._inner and len(place := tuple(event["params"]["namespace"])) > len(self.scope):
            inner = self._inner.get(place[: hop(place, len(self.scope))])
            if inner is not None:
                yield from inner.mux.feed(event)
        return event["method"] != "tasks"

    def ending(self, error: BaseException | None) -> Flow[None]:
        """End the graphs that are left."""
        for life in self._lives.rest(error):
            yield from self._end(life, error)

    @property
    def is_watched(self) -> bool:
        """Whether anybody would notice that there are run objects for graphs inside of this one."""
        return self.channel.is_read or self.mux.has_more

    def _begin(self, life: Life) -> None:
        mux = Mux(self.mux.factories, self.mux.pump, life.path)
        if self.channel.is_read:
            mux.hold()
        inner = self.mux.pump.handle(mux, life)
        self._inner[life.path] = inner
        self.channel.push(inner)

    def _end(self, life: Life, error: BaseException | None = None) -> Flow[None]:
        inner = self._inner.pop(life.path, None)
        if inner is not None:
            inner.status, inner.error = life.status, life.payload.get("error")
            yield from inner.mux.finish(life.error or error)


class UpdatesTransformer(ModeTransformer):
    """What each node returned, as it ends."""

    mode = "updates"


class CustomTransformer(ModeTransformer):
    """What nodes give their stream writers."""

    mode = "custom"


class TasksTransformer(ModeTransformer):
    """The start and the end of each task."""

    mode = "tasks"


class CheckpointsTransformer(ModeTransformer):
    """Each stored checkpoint."""

    mode = "checkpoints"


class DebugTransformer(ModeTransformer):
    """Tasks and checkpoints, with step, kind and time."""

    mode = "debug"


BUILT_IN: tuple[Factory, ...] = (ValuesTransformer, MessagesTransformer, LifecycleTransformer, SubgraphTransformer)
