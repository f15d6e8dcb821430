"""`stream_events` and `astream_events`: a run of a graph as an object of `pregel.stream`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from typing_extensions import Unpack

from pregel.config import RunnableConfig
from pregel.engine.options import CallOptions
from pregel.errors import NotBuiltError, StreamUseError
from pregel.runnable import Runnable

if TYPE_CHECKING:
    from pregel.stream import AsyncGraphRunStream, GraphRunStream, StreamTransformer
    from pregel.stream.mux import Factory

Transformers = Sequence["Callable[[tuple[str, ...]], StreamTransformer]"]


class RunOptions(CallOptions, total=False):
    """What `stream` takes beside its input, config, modes and version."""

    context: Any
    debug: bool | None


class EventStreams(Runnable):
    """What a graph has for consumers of more than one projection. `stream_transformers` are those of every run."""

    stream_transformers: tuple[Factory, ...] = ()

    def stream_events(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        version: str = "v2",
        transformers: Transformers | None = None,
        **options: Unpack[RunOptions],
    ) -> GraphRunStream:
        """A run object (``version="v3"``): values, messages, subgraphs and more of one run, read alone or together.

        The run moves while somebody reads. `transformers` make further projections, after those that the graph was
        compiled with. The other options are those of `stream`. NotBuiltError for the versions of LangChain's events.
        """
        from pregel.stream.run import open_run  # few programs read runs this way

        _check(version, "stream", options)
        start = partial(self.stream, input, config, subgraphs=True, version="v2", **options)
        return open_run(lambda modes: start(stream_mode=modes), self._all(transformers))  # type: ignore[arg-type, return-value]  # it is a generator

    def astream_events(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        version: str = "v2",
        transformers: Transformers | None = None,
        **options: Unpack[RunOptions],
    ) -> AsyncGraphRunStream:
        """Like `stream_events`, for a run that is awaited; may be awaited itself, which gives the run object."""
        from pregel.stream.run_async import open_awaited_run

        _check(version, "astream", options)
        start = partial(self.astream, input, config, subgraphs=True, version="v2", **options)
        return open_awaited_run(lambda modes: start(stream_mode=modes), self._all(transformers))  # type: ignore[arg-type, return-value]  # it is a generator

    def _all(self, transformers: Transformers | None) -> list[Factory]:
        return list(dict.fromkeys([*self.stream_transformers, *(transformers or ())]))


def _check(version: str, other: str, options: object) -> None:
    if version != "v3":
        raise NotBuiltError(
            f"{other}_events(version={version!r}) is not supported: it is LangChain's protocol.",
            fix=f'Use version="v3" for a run object, or {other}() for chunks.',
        )
    assert isinstance(options, dict)
    if owned := [name for name in ("stream_mode", "subgraphs") if name in options]:
        raise StreamUseError(
            f"{other}_events(version='v3') does not accept {' and '.join(owned)}.",
            fix="Its transformers say which modes it needs, and subgraphs always show.",
        )
