"""`pregel draw`: a graph as a picture or as text, with how far a thread has come in it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pregel.cli.screen import Screen
from pregel.cli.target import load, open_graph
from pregel.cli.usage import CallError
from pregel.config import RunnableConfig
from pregel.graph.draw import Graph, whole_history
from pregel.types import StateSnapshot

Run = list[StateSnapshot] | None
_KINDS: dict[str, Callable[[Graph, Run, str], bytes]] = {
    ".svg": lambda graph, run, title: graph.draw_svg(run=run, title=title).encode(),
    ".png": lambda graph, run, title: graph.draw_png(run=run),
    ".mmd": lambda graph, run, title: graph.draw_mermaid().encode(),
    ".txt": lambda graph, run, title: graph.draw_ascii(run=run).encode(),
}


def draw(options: argparse.Namespace, screen: Screen) -> int:
    """Write the picture to the file, or the text to the screen."""
    kind = Path(options.output).suffix.lower() if options.output else ".txt"
    if kind not in _KINDS:
        raise CallError(f"No picture is called {options.output!r}.", f"Name it {', '.join(_KINDS)}.")
    if options.thread is None:
        found: Any = load(options.graph)
        compiled = found if hasattr(found, "get_graph") else found.compile()
        picture = _picture(compiled, None, options, kind)
    else:
        if not Path(options.db).exists():
            raise CallError(f"There is no file {options.db!r}.", "Name the database of the thread with --db.")
        with open_graph(options.graph, options.db) as graph:
            config: RunnableConfig = {"configurable": {"thread_id": options.thread}}
            history = whole_history(graph, config) if options.xray else graph.get_state_history(config)
            picture = _picture(graph, history, options, kind)
    if options.output:
        Path(options.output).write_bytes(picture)
    else:
        sys.stdout.write(picture.decode())
    return 0


def _picture(graph: Any, run: Iterable[StateSnapshot] | None, options: argparse.Namespace, kind: str) -> bytes:
    drawn: Graph = graph.get_graph(xray=options.xray)
    return _KINDS[kind](drawn, None if run is None else list(run), options.graph)
