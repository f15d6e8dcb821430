"""OpenTelemetry: spans and metrics of runs, from `instrument` on; nothing is done, and nothing imported, before.

How a program turns it on, once, after it has set up its exporters::

    from pregel.telemetry import instrument

    instrument()

1. A run asks `active` when it starts, a model or tool call when it is made; nobody asks in a superstep or a task.
2. What the code of a node, tool or model does, it does in the context of that span: spans of the program's own, on
   threads and in asyncio tasks that keep the context, get the right parent.
3. Every span ends, however its run ends. A question and a cancellation are no errors; their spans say what they are.
4. No content is recorded: no prompt, no answer, no argument, no state; of a node with a TracePolicy, what that gives.

Names and attributes are those of OpenTelemetry's conventions for generative AI where these have one, ``pregel.*``
otherwise. Only the API is needed (extra ``otel``); without an SDK it records nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from pregel.errors import GraphBubbleUp
from pregel.extras import extra
from pregel.version import __version__

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import TracerProvider

__all__ = ["Span", "Telemetry", "active", "gauges", "instrument", "uninstrument"]

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())

Attributes: TypeAlias = Mapping[str, Any]

STATUS = "pregel.status"
"""The attribute that says how something ended: done, failed, interrupted, cancelled, drained, exhausted or parent."""

INPUT, OUTPUT = "pregel.node.input", "pregel.node.output"
"""What a TracePolicy lets into a node's span."""

gauges: dict[str, Callable[[], int]] = {}
"""Name -> how much there is right now; filled by whoever knows it, who may be loaded after `instrument` was called."""

_GAUGES = {"pregel.saves.pending": ("{append}", "Appends of durability async that are not stored yet")}

_WAITING: tuple[tuple[str, str, str, Callable[[list[float]], float]], ...] = (
    ("pregel.thread.waiting", "{thread}", "Threads that wait for a time or an event", len),
    ("pregel.thread.waiting.longest", "s", "For how long the longest has", lambda waited: max(waited, default=0.0)),
)

_active: Telemetry | None = None


def active() -> Telemetry | None:
    """Where spans and metrics go; None while nobody asked for any."""
    return _active


def instrument(
    *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
) -> Telemetry:
    """Trace and measure every run that starts from now on, with these providers or OpenTelemetry's global ones.

    MissingExtraError without the package ``opentelemetry-api``.
    """
    global _active
    _active = Telemetry(tracer_provider, meter_provider)
    return _active


def uninstrument() -> None:
    """Trace no further runs. Those under way end their spans."""
    global _active
    _active = None


class Span:
    """A span that has begun, and the context of what happens inside of it."""

    __slots__ = ("_owner", "_span", "context")

    def __init__(self, owner: Telemetry, span: OtelSpan, context: Context) -> None:
        self._owner, self._span, self.context = owner, span, context

    def set(self, attributes: Attributes) -> None:
        """Add attributes; those that are None are left out."""
        self._span.set_attributes(_present(attributes))

    def end(self, error: BaseException | None = None, *, at: int | None = None) -> None:
        """End it, in error if it failed; `at` in unix nanoseconds, now by default. A second end changes nothing."""
        if error is not None and self._span.is_recording():
            self._span.record_exception(error)
            self._owner.mark_failed(self._span, type(error).__qualname__, str(error))
        self._span.end(end_time=at)

    def fail(self, kind: str, words: str = "") -> None:
        """Say that it failed without raising."""
        self._owner.mark_failed(self._span, kind, words)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """What this block does is done in the context of the span."""
        token = self._owner.context.attach(self.context)
        try:
            yield
        finally:
            self._owner.context.detach(token)


class Telemetry:
    """A tracer and the instruments, as OpenTelemetry's API has them."""

    def __init__(self, tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None) -> None:
        with extra("otel", "instrument()"):
            from opentelemetry import context, metrics, trace

        self.context, self._trace = context, trace
        self._tracer = trace.get_tracer("pregel", __version__, tracer_provider)
        meter = metrics.get_meter("pregel", __version__, meter_provider)
        self.tasks = meter.create_histogram("pregel.task.duration", "s", "Attempts of nodes and tasks")
        self.running = meter.create_up_down_counter("pregel.task.running", "{task}", "Nodes and tasks that run now")
        self.steps = meter.create_histogram("pregel.step.duration", "s", "From the start of a superstep to its merge")
        self.retries = meter.create_counter("pregel.task.retries", "{attempt}", "Attempts that follow a failure")
        self.takeovers = meter.create_counter("pregel.run.takeovers", "{run}", "Runs that go on for a dead process")
        self.calls = meter.create_histogram("gen_ai.client.operation.duration", "s", "Calls of chat models")
        self.tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of chat models")
        for name, (unit, what) in _GAUGES.items():
            meter.create_observable_gauge(name, [self._observer(metrics.Observation, name)], unit, what)
        self._watched: list[tuple[Any, Callable[[], float]]] = []
        for name, unit, what, told in _WAITING:
            meter.create_observable_gauge(name, [self._waiting(metrics.Observation, told)], unit, what)

    def watch(self, *graphs: Any, now: Callable[[], float] = time.time) -> Self:
        """Also measure how many threads of these compiled graphs wait, and for how long the longest has.

        Their store is read at each collection, by the thread that collects: their savers have to block. `now` gives
        unix seconds.
        """
        self._watched += [(graph, now) for graph in graphs]
        return self

    def _waiting(self, observation: Any, told: Callable[[list[float]], float]) -> Callable[[Any], list[Any]]:
        def observed(options: Any) -> list[Any]:
            found = []
            for graph, now in self._watched if _active is self else ():
                name = graph.get_name()
                rows = [row for row in graph.saver.threads(status="waiting") if row.graph == graph.label]
                waited = [max(0.0, now() - row.updated_at) for row in rows]
                found.append(observation(told(waited), {"pregel.graph": name}))
            return found

        return observed

    def _observer(self, observation: Any, name: str) -> Callable[[Any], list[Any]]:
        return lambda options: [observation(gauges[name]())] if _active is self and name in gauges else []

    def begin(
        self,
        name: str,
        attributes: Attributes,
        *,
        within: Span | None = None,
        remote: bool = False,
        at: int | None = None,
    ) -> Span:
        """A span inside another one, by default inside that of the running code.

        `remote`: it asks another service; `at`: when it began, in unix nanoseconds, now by default.
        """
        around = self.context.get_current() if within is None else within.context
        kind = self._trace.SpanKind.CLIENT if remote else self._trace.SpanKind.INTERNAL
        span = self._tracer.start_span(name, around, kind, _present(attributes), start_time=at)
        return Span(self, span, self._trace.set_span_in_context(span, around))

    def record(self, key: str, value: Any, process: Callable[[Any], Any] | None) -> None:
        """Set an attribute of the running code's span to what `process` makes of a value, as JSON.

        Nothing is recorded without it, or when it raises, which is logged.
        """
        if process is None:
            return
        import json  # few programs trace

        try:
            text = json.dumps(process(value), default=repr, ensure_ascii=False)
        except Exception:
            log.exception("A processor of a TracePolicy failed; %s is not recorded.", key)
            return
        self._trace.get_current_span().set_attribute(key, text)

    def mark_failed(self, span: OtelSpan, kind: str, words: str) -> None:
        """Set a span's status."""
        span.set_attribute("error.type", kind)
        span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, words or None))

    @contextmanager
    def during(self, name: str, attributes: Attributes, *, remote: bool = False, attach: bool = True) -> Iterator[Span]:
        """A span around a block; what leaves the block is its error, unless it asked.

        The block is done in the span's context, unless it is a generator's, whose context is that of whoever pulls.
        """
        span = self.begin(name, attributes, remote=remote)
        error: BaseException | None = None
        try:
            with span.inside() if attach else nullcontext():
                yield span
        except GraphBubbleUp:
            span.set({STATUS: "interrupted"})
            raise
        except Exception as raised:
            error = raised
            raise
        except BaseException:
            span.set({STATUS: "cancelled"})
            raise
        finally:
            span.end(error)

    @contextmanager
    def tool(self, call: Mapping[str, Any]) -> Iterator[Span]:
        """The span of one tool call."""
        about = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call["name"],
            "gen_ai.tool.call.id": call["id"],
        }
        with self.during(f"execute_tool {call['name']}", about) as span:
            yield span

    @contextmanager
    def chat(self, provider: str, model: str, settings: Attributes, *, attach: bool = True) -> Iterator[Chat]:
        """The span of one call of a chat model, and its metrics; `attach`: whether the block is in its context."""
        about = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider or None,
            "gen_ai.request.model": model or None,
        }
        asked = {f"gen_ai.request.{key}": settings[key] for key in _ASKED if isinstance(settings.get(key), int | float)}
        began, failed = time.perf_counter(), {}
        with self.during(f"chat {model}".rstrip(), {**about, **asked}, remote=True, attach=attach) as span:
            try:
                yield Chat(self, span, about)
            except Exception as error:
                failed = {"error.type": type(error).__qualname__}
                raise
            finally:
                self.calls.record(time.perf_counter() - began, _present({**about, **failed}))


_ASKED = ("temperature", "top_p", "max_tokens")


class Chat:
    """One call of a chat model that is under way."""

    __slots__ = ("_about", "_owner", "span")

    def __init__(self, owner: Telemetry, span: Span, about: Attributes) -> None:
        self._owner, self.span, self._about = owner, span, about

    def answered(self, message: Any) -> None:
        """What is known of the answer: its id, its model, why it ended, and the tokens it took."""
        told: Mapping[str, Any] = message.response_metadata or {}
        finish = told.get("finish_reason") or told.get("stop_reason")
        self.span.set(
            {
                "gen_ai.response.id": message.id,
                "gen_ai.response.model": told.get("model_name") or None,
                "gen_ai.response.finish_reasons": [str(finish)] if finish else None,
            }
        )
        for kind in ("input", "output"):
            count = (message.usage_metadata or {}).get(f"{kind}_tokens")
            if count is not None:
                self.span.set({f"gen_ai.usage.{kind}_tokens": count})
                self._owner.tokens.record(count, _present({**self._about, "gen_ai.token.type": kind}))


def _present(attributes: Attributes) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if value is not None}
