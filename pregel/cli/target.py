"""The graph that ``module:graph`` names, compiled so that its thread is kept in the database of the command."""

from __future__ import annotations

import sys
import traceback
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol, cast

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.cli.usage import CallError
from pregel.config import RunnableConfig
from pregel.engine.starts import RunHandle
from pregel.engine.threads import Threads
from pregel.errors import DefinitionError
from pregel.runtime import RunControl
from pregel.types import StateSnapshot


class Graph(Protocol):
    """What the command asks of a compiled graph. Inputs, outputs and updates are the user's own values."""

    checkpointer: Any
    nodes: Mapping[str, Any]
    output_channels: str | Sequence[str]

    @property
    def stream_channels_asis(self) -> str | Sequence[str]: ...

    @property
    def threads(self) -> Threads: ...

    def invoke(self, input: Any, config: RunnableConfig, *, control: RunControl | None = None) -> Any: ...

    async def ainvoke(self, input: Any, config: RunnableConfig, *, control: RunControl | None = None) -> Any: ...

    def stream(
        self,
        input: Any,
        config: RunnableConfig,
        *,
        stream_mode: list[str],
        output_keys: str | Sequence[str] | None = None,
        subgraphs: bool = False,
        control: RunControl | None = None,
    ) -> Iterator[Any]: ...

    def astream(
        self,
        input: Any,
        config: RunnableConfig,
        *,
        stream_mode: list[str],
        output_keys: str | Sequence[str] | None = None,
        subgraphs: bool = False,
        control: RunControl | None = None,
    ) -> AsyncIterator[Any]: ...

    def get_state(self, config: RunnableConfig) -> StateSnapshot: ...

    def get_state_history(self, config: RunnableConfig, *, limit: int | None = None) -> Iterator[StateSnapshot]: ...

    def aget_state_history(self, config: RunnableConfig, *, limit: int | None = None) -> AsyncIterator[Any]: ...

    def update_state(self, config: RunnableConfig, values: Any, as_node: str | None = None) -> RunnableConfig: ...

    def start(self, input: Any, config: RunnableConfig | None = None, *, key: str | None = None) -> RunHandle: ...

    def copy(self, update: Mapping[str, Any]) -> Graph: ...


@contextmanager
def open_graph(target: str, database: str, journal_stream: bool = False) -> Iterator[Graph]:
    """A graph whose saver is the database, whatever it was compiled with; `journal_stream`: its stream is journaled."""
    found = load(target)
    with SqliteSaver.from_conn_string(database) as saver:
        graph = compiled(found, saver, target)
        yield graph.copy(update={"journal_stream": True}) if journal_stream else graph


def compiled(found: Any, saver: SqliteSaver, target: str) -> Graph:
    """A builder compiled with the saver, or a compiled graph with the saver in the place of its own."""
    if not hasattr(found, "get_state"):
        try:
            return cast(Graph, found.compile(checkpointer=saver))
        except DefinitionError as error:
            raise CallError(f"{target} does not compile: {error}") from error
    return cast(Graph, found).copy(update={"checkpointer": saver})


def is_async(graph: Graph) -> bool:
    """Whether some node, at any depth, can only be awaited."""
    bound = [node.bound for node in graph.nodes.values()]
    return any(is_async(one) if hasattr(one, "nodes") else not getattr(one, "has_sync", True) for one in bound)


def load(target: str) -> object:
    """A builder or a compiled graph; the current directory is importable."""
    name, colon, attribute = target.partition(":")
    if not (name and colon and attribute):
        raise CallError(f"{target!r} names no graph.", "Write MODULE:GRAPH, e.g. shop.refunds:graph.")
    if "" not in sys.path and "." not in sys.path:
        sys.path.insert(0, "")
    found: object = _module(name)
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise CallError(f"{name} has no attribute {attribute!r}.", _candidates(found)) from None
    if not _is_graph(found):
        raise CallError(f"{target} is no graph; it is {_kind(found)}.", _candidates(sys.modules[name]))
    return found


def _module(name: str) -> object:
    if name.startswith("."):
        raise _no_module(name, is_file=True)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            raise _no_module(missing, is_file="/" in name or name.endswith(".py")) from None
        raise CallError(_failed(name)) from error
    except (Exception, SystemExit) as error:
        raise CallError(_failed(name)) from error


def _no_module(name: str, *, is_file: bool) -> CallError:
    fix = "Name a module, not a file." if is_file else "Start where it is importable."
    return CallError(f"There is no module {name!r}.", f"{fix} For ./shop/refunds.py: shop.refunds:graph.")


def _failed(name: str) -> str:
    return f"Importing {name} failed:\n{traceback.format_exc().rstrip()}"


def _is_graph(value: object) -> bool:
    if isinstance(value, type):
        return False
    is_compiled = all(hasattr(value, name) for name in ("invoke", "get_state", "copy"))
    return is_compiled or all(hasattr(value, name) for name in ("compile", "add_node"))


def _candidates(module: object) -> str:
    graphs = (
        sorted(name for name, value in vars(module).items() if _is_graph(value)) if hasattr(module, "__dict__") else []
    )
    return (
        f"It has these graphs: {', '.join(graphs)}." if graphs else "Name a StateGraph, or what its compile() returns."
    )


def _kind(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"of type {type(value).__name__}"
