"""The source of the installed package as its modules and what each of them imports, read by ast and never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

import pregel

ROOT = Path(pregel.__file__).parent


class When(Enum):
    """When an import statement is executed."""

    LOADED = "as the module is loaded"
    CALLED = "as a function is called"
    CHECKED = "never: only a type checker reads it"


@dataclass(frozen=True, slots=True)
class Import:
    """`name` of `module`, or the whole module where `name` is None, as it stands in `importer`."""

    importer: str
    module: str
    name: str | None
    when: When
    line: int

    def __str__(self) -> str:
        what = f"import {self.module}" if self.name is None else f"from {self.module} import {self.name}"
        return f"{self.importer}:{self.line}: {what}"

    @property
    def inside(self) -> bool:
        return self.module.split(".")[0] == "pregel"

    @property
    def package(self) -> str:
        """The first level under pregel that it reaches: `checkpoint` for pregel.checkpoint.base, else ''."""
        return package_of(self.target) if self.inside else ""

    @property
    def target(self) -> str:
        """The module that is loaded for it: the name itself where that is a module."""
        named = f"{self.module}.{self.name}"
        return named if named in modules() else self.module


def package_of(module: str) -> str:
    """The first level under pregel of a module's dotted name; '' for the face itself."""
    return module.split(".")[1] if "." in module else ""


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    files = sorted(ROOT.rglob("*.py"))
    return {_dotted(path): path for path in files}


def _dotted(path: Path) -> str:
    parts = ["pregel", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports() -> tuple[Import, ...]:
    """Every import statement of the package, one per name."""
    return tuple(found for module in modules() for found in imports_of(module))


def imports_of(module: str) -> Iterator[Import]:
    path = modules()[module]
    base = module if path.name == "__init__.py" else module.rpartition(".")[0]
    yield from _walk(ast.parse(path.read_text(encoding="utf-8")), module, base, When.LOADED)


def _walk(node: ast.AST, module: str, base: str, when: When) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(module, alias.name, None, when, child.lineno) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            source = _absolute(child, base)
            yield from (Import(module, source, alias.name, when, child.lineno) for alias in child.names)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for kept in child.body:
                yield from _walk(ast.Module([kept], []), module, base, When.CHECKED)
            for other in child.orelse:
                yield from _walk(ast.Module([other], []), module, base, when)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and when is When.LOADED:
            yield from _walk(child, module, base, When.CALLED)
        else:
            yield from _walk(child, module, base, when)


def _absolute(node: ast.ImportFrom, base: str) -> str:
    if not node.level:
        return node.module or ""
    parts = base.split(".")
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, *([node.module] if node.module else [])])
