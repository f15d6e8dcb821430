"""What a function does only if it replays, or only if it does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pregel.lint.module import Body, Function, Module

FLAG = "is_replaying"
ENDS = ast.Return | ast.Raise | ast.Continue | ast.Break


def guarded(module: Module, function: Body) -> Iterator[Sequence[ast.AST]]:
    """What depends on each condition of a function that looks at the flag."""
    flags = _flags(function)
    for node in _inside(function):
        if isinstance(node, ast.If | ast.IfExp) and _looks(node.test, flags):
            yield _arms(node)
        elif isinstance(node, ast.While) and _looks(node.test, flags):
            yield node.body
        elif isinstance(node, ast.BoolOp):
            for number, value in enumerate(node.values[:-1]):
                if _looks(value, flags):
                    yield node.values[number + 1 :]
        for block in _blocks(node):
            for number, one in enumerate(block):
                if isinstance(one, ast.If) and _looks(one.test, flags) and isinstance(one.body[-1], ENDS):
                    yield block[number + 1 :]


def _arms(node: ast.If | ast.IfExp) -> list[ast.AST]:
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    return [*node.body, *node.orelse]


def _blocks(node: ast.AST) -> Iterator[Sequence[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block


def _flags(function: Body) -> set[str]:
    """The variables that hold the flag."""
    return {
        target.id
        for node in _inside(function)
        if isinstance(node, ast.Assign) and _looks(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _looks(node: ast.expr, flags: set[str]) -> bool:
    return any(
        (isinstance(part, ast.Attribute) and part.attr == FLAG) or (isinstance(part, ast.Name) and part.id in flags)
        for part in ast.walk(node)
    )


def _inside(scope: ast.AST) -> Iterator[ast.AST]:
    """A function and what is in it, but not what is in functions in it."""
    yield scope
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, Function | ast.Lambda | ast.ClassDef):
            yield from _inside(child)
