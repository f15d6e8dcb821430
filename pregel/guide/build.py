"""In a process of its own: imports a workflow, compiles its graphs, and writes down what is wrong."""

from __future__ import annotations

import ast
import json
import sys
import traceback
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from pregel.checkpoint.memory import InMemorySaver
from pregel.engine.pregel import Pregel
from pregel.errors import GraphValidationError, PregelError
from pregel.graph import StateGraph

Found = tuple[int, int, str, str, str]  # line, column, rule, message, fix

NAME = "checked_workflow"
IMPORT_FIX = "Mend what it raises: a workflow has to be importable."
COMPILE_FIX = "Mend it where the graph is built; `pregel guide guide` says how graphs are built."
NO_GRAPH_FIX = "Name the StateGraph, or what its compile() returns, at the top level of the module: graph = ..."


def main(report: str, what: str, graph: str) -> None:
    """Build the module or file, and write the report."""
    found = _problems(what, graph)
    Path(report).write_text(json.dumps(found), encoding="utf-8")


def _problems(what: str, graph: str) -> list[Found]:
    try:
        module = _loaded(what)
    except (Exception, SystemExit) as error:
        return _told(error, "compile" if isinstance(error, GraphValidationError) else "import", _line(error, what))
    graphs = {name: value for name, value in vars(module).items() if isinstance(value, StateGraph | Pregel)}
    if graph:
        found = vars(module).get(graph)
        if graph not in graphs:
            has = f"It has {', '.join(graphs)}." if graphs else "It has no graph."
            kind = "is not there" if found is None else f"is of type {type(found).__name__}"
            return [(1, 1, "graph", f"The graph {graph!r} {kind}. {has}", NO_GRAPH_FIX)]
        graphs = {graph: graphs[graph]}
    if not graphs:
        return [(1, 1, "graph", "It names no graph.", NO_GRAPH_FIX)]
    return [one for name, value in graphs.items() for one in _compiled(value, _named_at(module, name))]


def _loaded(what: str) -> ModuleType:
    if not what.endswith(".py"):
        return import_module(what)
    spec = spec_from_file_location(NAME, what)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[NAME] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compiled(graph: Any, line: int) -> list[Found]:
    if isinstance(graph, Pregel):  # it was compiled as it was made
        return []
    try:
        graph.compile(checkpointer=InMemorySaver())
    except Exception as error:
        return _told(error, "compile", line)
    return []


def _told(error: BaseException, rule: str, line: int) -> list[Found]:
    fix = IMPORT_FIX if rule == "import" else COMPILE_FIX
    if isinstance(error, GraphValidationError):
        return [(line, 1, "compile", problem, error.fix or COMPILE_FIX) for problem in error.problems]
    if isinstance(error, PregelError):
        return [(line, 1, rule, error.message, error.fix or fix)]
    return [(line, 1, rule, f"{type(error).__name__}: {error}", fix)]


def _line(error: BaseException, what: str) -> int:
    """Where it was raised in the file; of a module the last line that is not the library's."""
    frames = traceback.extract_tb(error.__traceback__)
    here = [frame.lineno for frame in frames if what in (frame.filename, "") or _is_module(frame.filename, what)]
    return next((line for line in reversed(here) if line), getattr(error, "lineno", None) or 1)


def _is_module(filename: str, what: str) -> bool:
    return filename.endswith(f"{what.replace('.', '/')}.py")


def _named_at(module: ModuleType, name: str) -> int:
    """The line that gives a name its value."""
    tree = ast.parse(Path(str(module.__file__)).read_bytes())
    named = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign | ast.ImportFrom)]
    lines = [node.lineno for node in named if any(name == _called(one) for one in ast.walk(node))]
    return lines[-1] if lines else 1


def _called(node: ast.AST) -> str:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return (node.asname or node.name) if isinstance(node, ast.alias) else ""
