"""What the names of a file give away: undefined, unused and shadowing ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pregel.cli.demo.python.finding import Finding
from pregel.cli.demo.python.scopes import BUILTINS, IMPLICIT, Binding, Names, Scope

# What only an interactive session has; a module may well call something of its own `license`.
SESSION_ONLY = frozenset(("copyright", "credits", "exit", "help", "license", "quit"))
WORTH_USING = frozenset(("value", "function"))  # a local class may be there for what its definition does


def name_findings(names: Names, *, is_package: bool) -> Iterator[Finding]:
    """Every finding about a name; a package's imports are its interface and its `__all__` may list submodules."""
    yield from _undefined(names)
    if not is_package:
        yield from _missing_exports(names)
    yield from _stars(names)
    for scope in names.scopes:
        yield from _shadowed(scope)
        yield from _unused_errors(scope)
        if scope.kind == "function":
            yield from _unused_locals(scope)
        if scope.kind == "function" or (scope.kind == "module" and not is_package):
            yield from _unused_imports(scope)


def _undefined(names: Names) -> Iterator[Finding]:
    for use in names.uses:
        if use.guarded or use.verdict in ("found", "builtin"):
            continue
        local = use.scope.frame.kind == "function" and use.name in use.scope.frame.bindings
        if names.stars and not local:
            continue  # a star may have brought it
        if use.verdict == "undefined":
            yield Finding(use.line, use.column, "undefined-name", f"undefined name '{use.name}'")
        else:
            what = "local name" if local else "name"
            message = f"{what} '{use.name}' is used before it has a value"
            yield Finding(use.line, use.column, "used-before-assignment", message)


def _missing_exports(names: Names) -> Iterator[Finding]:
    module = names.scopes[0]
    dynamic = names.stars or "__getattr__" in module.bindings
    for name, line in names.exported.items():
        if not dynamic and name not in module.bindings and name not in IMPLICIT:
            yield Finding(line, 0, "undefined-export", f"undefined name '{name}' in __all__")


def _stars(names: Names) -> Iterator[Finding]:
    for source, node in names.stars:
        yield Finding.at(node, "star-import", f"'from {source} import *' hides which names exist")


def _shadowed(scope: Scope) -> Iterator[Finding]:
    if scope.kind == "class":
        return  # reached through the class, it hides nothing
    for name, bindings in scope.bindings.items():
        if name in BUILTINS and name not in SESSION_ONLY and not name.startswith("_"):
            first = bindings[0]
            yield _finding(first, "shadowed-builtin", f"{_called(first)} '{name}' hides the builtin")


def _unused_imports(scope: Scope) -> Iterator[Finding]:
    for bindings in scope.bindings.values():
        for binding in bindings:
            if binding.kind == "import" and not (binding.used or binding.probing) and not _is_reexport(binding.node):
                yield _finding(binding, "unused-import", f"unused import '{_imported(binding)}'")


def _unused_errors(scope: Scope) -> Iterator[Finding]:
    for bindings in scope.bindings.values():
        for binding in bindings:
            if binding.kind == "error" and not binding.used and not binding.name.startswith("_"):
                yield _finding(binding, "unused-name", f"unused name '{binding.name}' for the caught exception")


def _unused_locals(scope: Scope) -> Iterator[Finding]:
    if scope.reads_locals:
        return
    for name, bindings in scope.bindings.items():
        if name.startswith("_") or name in scope.moved or any(binding.used for binding in bindings):
            continue
        kinds = {binding.kind for binding in bindings}
        if kinds <= WORTH_USING and not any(getattr(one.node, "decorator_list", ()) for one in bindings):
            yield _finding(bindings[0], "unused-name", f"unused {_called(bindings[0])} '{name}'")


def _finding(binding: Binding, rule: str, message: str) -> Finding:
    return Finding(binding.line, binding.column, rule, message)


def _called(binding: Binding) -> str:
    return {"value": "name", "part": "name", "bare annotation": "name", "error": "name"}.get(binding.kind, binding.kind)


def _is_reexport(node: ast.AST) -> bool:
    return isinstance(node, ast.alias) and node.asname == node.name


def _imported(binding: Binding) -> str:
    whole = binding.node.name if isinstance(binding.node, ast.alias) and "." in binding.node.name else binding.origin
    last = whole.rpartition(".")[2]
    return whole if binding.name in (last, whole.partition(".")[0]) else f"{whole} as {binding.name}"
