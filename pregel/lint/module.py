"""What a module holds: its functions by role, and the dotted names that its imports and variables stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef
Body = Function | ast.Lambda
OURS = ("pregel", "langgraph", "langchain")
ROLES = {"entrypoint": "entrypoint", "task": "task", "tool": "tool"}


@dataclass(slots=True)
class Names:
    """What names stand for in a scope, and around it: a dotted path, or a function of the module."""

    around: Names | None = None
    dotted: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)

    def function(self, name: str) -> Function | None:
        """The function of the module that a name means here."""
        scope: Names | None = self
        while scope is not None:
            if name in scope.functions:
                return scope.functions[name]
            if name in scope.dotted:
                return None
            scope = scope.around
        return None

    def path(self, node: ast.expr) -> str:
        """The dotted name of an expression: through imports, and variables that hold what a call made."""
        if isinstance(node, ast.Name):
            scope: Names | None = self
            while scope is not None:
                if node.id in scope.dotted:
                    return scope.dotted[node.id]
                scope = scope.around
            return node.id
        if isinstance(node, ast.Attribute):
            return f"{self.path(node.value)}.{node.attr}"
        if isinstance(node, ast.Call):
            return self.path(node.func)
        if isinstance(node, ast.Subscript):
            return self.path(node.value)
        return self.path(node.value) if isinstance(node, ast.Await) else "?"


class Module:
    """The functions of a module that a run calls, by role, each with the names that it sees."""

    def __init__(self, tree: ast.Module) -> None:
        self.scopes: dict[ast.AST, Names] = {}
        self.roles: dict[Body, str] = {}
        self.labels: dict[Body, str] = {}
        top = Names()
        self.scopes[tree] = top
        self._enter(tree, top)
        if self._is_about_runs():
            self._find(tree, top)

    def role(self, function: Body | None) -> str:
        """node, task, tool, entrypoint; empty for any other function."""
        return self.roles.get(function, "") if function is not None else ""

    def names(self, function: Body) -> Names:
        """The names that the code of a function sees."""
        return self.scopes[function]

    def _is_about_runs(self) -> bool:
        return any(path.startswith(OURS) for names in self.scopes.values() for path in names.dotted.values())

    def _enter(self, scope: ast.AST, names: Names) -> None:
        """Learn the names of a scope, then of those inside."""
        inner: list[Body | ast.ClassDef] = []
        for node in _of_scope(scope):
            if isinstance(node, Function | ast.Lambda | ast.ClassDef):
                inner.append(node)
                if isinstance(node, Function):
                    names.functions[node.name] = node
            else:
                _learn(node, names)
        for node in inner:
            self.scopes[node] = below = Names(names)
            if not isinstance(node, ast.ClassDef):
                _learn_parameters(node, below)
            self._enter(node, below)

    def _find(self, scope: ast.AST, names: Names) -> None:
        for node in _of_scope(scope):
            if isinstance(node, Function):
                for decorator in node.decorator_list:
                    path = names.path(decorator)
                    if path.startswith(OURS) and (role := ROLES.get(path.rpartition(".")[2])):
                        self._add(node, role, node.name)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr == "add_node":
                    self._add_node(node, names)
                elif node.func.attr == "add_sequence" and node.args and isinstance(node.args[0], ast.List | ast.Tuple):
                    for one in node.args[0].elts:
                        self._add_named(
                            one.elts[1] if isinstance(one, ast.Tuple) and len(one.elts) == 2 else one, names
                        )
            if isinstance(node, Function | ast.Lambda | ast.ClassDef):
                self._find(node, self.scopes[node])

    def _add_node(self, call: ast.Call, names: Names) -> None:
        for given in call.args[:2]:
            self._add_named(given, names)
        for keyword in call.keywords:
            if keyword.arg in ("node", "action", "error_handler"):
                self._add_named(keyword.value, names)

    def _add_named(self, given: ast.expr, names: Names) -> None:
        if isinstance(given, ast.Lambda):
            self._add(given, "node", "this node")
        elif isinstance(given, ast.Name) and (function := names.function(given.id)) is not None:
            self._add(function, "node", given.id)

    def _add(self, function: Body, role: str, name: str) -> None:
        self.roles.setdefault(function, role)
        self.labels.setdefault(function, f"{role} {name!r}" if role != "node" or name != "this node" else name)


def _of_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """Everything in a scope in the order of the source; of the functions and classes in it only that they are there."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, Function | ast.Lambda | ast.ClassDef):
            yield from _of_scope(child)
        elif isinstance(child, Function | ast.ClassDef):
            for decorator in child.decorator_list:
                yield from _of_scope(decorator)


def _learn(node: ast.AST, names: Names) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            names.dotted[alias.asname or alias.name.partition(".")[0]] = (
                alias.name if alias.asname else alias.name.partition(".")[0]
            )
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            names.dotted[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        _learn_value(node.targets[0], node.value, names)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        _learn_value(node.target, node.value, names)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        _learn_value(node.optional_vars, node.context_expr, names)


def _learn_value(target: ast.expr, value: ast.expr, names: Names) -> None:
    value = value.value if isinstance(value, ast.Await) else value
    if isinstance(target, ast.Name) and isinstance(value, ast.Call) and target.id not in names.dotted:
        path = names.path(value.func)
        if "." in path and "?" not in path:
            names.dotted[target.id] = path


def _learn_parameters(function: Body, names: Names) -> None:
    arguments = function.args
    for parameter in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        around = names.around
        path = around.path(parameter.annotation) if around is not None and parameter.annotation is not None else "?"
        names.dotted[parameter.arg] = path if "." in path and "?" not in path else f"?{parameter.arg}"
