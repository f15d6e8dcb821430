"""Walks a syntax tree in the order in which it runs and writes down each binding and each use of a name."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from pregel.cli.demo.python.scopes import Binding, BindingKind, Names, Scope, ScopeKind, Use

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
TYPING = frozenset(("typing", "typing_extensions"))


def read_names(tree: ast.Module) -> Names:
    """All names of a file, with each use resolved to what it can mean."""
    binder = Binder(tree)
    binder.visit_all(tree.body)
    binder.names.resolve()
    return binder.names


class Binder(ast.NodeVisitor):
    """Where the walk stands: the scope, the loops around, and what is being tried."""

    def __init__(self, tree: ast.Module) -> None:
        self.scope = Scope("module", tree, None)
        self.names = Names([self.scope], [], {}, [])
        self.moments = count()
        self.loops: frozenset[int] = frozenset()
        self.expected: frozenset[str] = frozenset()  # errors that a `try` around this place handles
        self.annotation = False

    # -- what is written down --------------------------------------------------------------------------------------

    def bind(self, name: str, node: ast.AST, kind: BindingKind, origin: str = "") -> Binding:
        home = self.scope.home_of(name)
        binding = Binding(name, kind, node, _line(node), _column(node), next(self.moments), self.loops, origin)
        binding.remote = home.frame is not self.scope.frame
        binding.probing = kind == "import" and bool(self.expected & IMPORT_ERRORS)
        home.bindings.setdefault(name, []).append(binding)
        return binding

    def use(self, name: str, node: ast.AST) -> None:
        guarded = bool(self.expected & NAME_ERRORS)
        moment, timeless = next(self.moments), self.annotation
        place = (_line(node), _column(node))
        self.names.uses.append(Use(name, node, *place, self.scope, moment, self.loops, timeless, guarded))

    @contextmanager
    def inside(self, kind: ScopeKind, node: ast.AST) -> Iterator[Scope]:
        outside, loops, expected = self.scope, self.loops, self.expected
        self.scope = Scope(kind, node, outside)
        self.names.scopes.append(self.scope)
        if kind == "function":
            self.loops, self.expected = frozenset(), frozenset()
        try:
            yield self.scope
        finally:
            self.scope, self.loops, self.expected = outside, loops, expected

    @contextmanager
    def reading_types(self, on: bool = True) -> Iterator[None]:
        before, self.annotation = self.annotation, on
        try:
            yield
        finally:
            self.annotation = before

    def visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    # -- names -----------------------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.bind(node.id, node, "part")
        else:
            self.use(node.id, node)

    def target(self, node: ast.AST, kind: BindingKind = "value") -> None:
        """A place that is assigned to: a name of its own counts as `kind`, a name in a pattern as a part."""
        if isinstance(node, ast.Name):
            self.bind(node.id, node, kind)
        else:
            self.visit(node)

    def visit_Global(self, node: ast.Global) -> None:
        if self.scope.kind != "module":
            self.scope.moved.update(dict.fromkeys(node.names, "global"))

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.scope.moved.update(dict.fromkeys(node.names, "nonlocal"))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.asname:
                self.bind(alias.asname, alias, "import", alias.name)
            else:
                top = alias.name.partition(".")[0]
                self.bind(top, alias, "import", top)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        source = "." * node.level + (node.module or "")
        if source == "__future__":
            return
        for alias in node.names:
            if alias.name == "*":
                self.names.stars.append((source, node))
            else:
                origin = f"{source}{'' if source.endswith('.') else '.'}{alias.name}"
                self.bind(alias.asname or alias.name, alias, "import", origin)

    # -- assignments -----------------------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.target(target)
            self.export(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        alias = _last_name(node.annotation) == "TypeAlias"
        with self.reading_types():
            self.visit(node.annotation)
        if node.value is not None:
            with self.reading_types(alias):
                self.visit(node.value)
            self.export(node.target, node.value)
        self.target(node.target, "bare annotation" if node.value is None else "value")

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.use(node.target.id, node.target)
        self.visit(node.value)
        self.target(node.target, "part")
        self.export(node.target, node.value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        inner = self.scope
        while self.scope.kind == "comprehension" and self.scope.parent is not None:
            self.scope = self.scope.parent  # rule of the language: it binds outside the comprehension
        self.target(node.target)
        self.scope = inner

    def export(self, target: ast.AST, value: ast.AST) -> None:
        if isinstance(target, ast.Name) and target.id == "__all__" and self.scope.kind == "module":
            for constant in _listed(value):
                self.names.exported.setdefault(str(constant.value), constant.lineno)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("extend", "append"):
            values = [ast.List(elts=node.args)] if node.func.attr == "append" else node.args
            for value in values:
                self.export(node.func.value, value)
        with self.reading_types(False):
            self.visit(node.func)
            first, rest = (node.args[:1], node.args[1:]) if self.is_typing(node.func, "cast") else ([], node.args)
            with self.reading_types():
                self.visit_all(first)
            self.visit_all(rest)
            for keyword in node.keywords:
                with self.reading_types(keyword.arg == "bound" and self.is_typing(node.func, "TypeVar")):
                    self.visit(keyword.value)

    # -- statements with an order of their own -----------------------------------------------------------------------

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        with self.looping(node):
            self.target(node.target, "part")
            self.visit_all(node.body)
        self.visit_all(node.orelse)

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        with self.looping(node):
            self.visit(node.test)
            self.visit_all(node.body)
        self.visit_all(node.orelse)

    @contextmanager
    def looping(self, node: ast.AST) -> Iterator[None]:
        before, self.loops = self.loops, self.loops | {id(node)}
        yield
        self.loops = before

    def visit_withitem(self, node: ast.withitem) -> None:
        self.visit(node.context_expr)
        if node.optional_vars is not None:
            self.target(node.optional_vars)

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        caught = frozenset(name for handler in node.handlers for name in _error_names(handler))
        before, self.expected = self.expected, self.expected | caught
        self.visit_all(node.body)
        self.expected = before
        self.visit_all([*node.handlers, *node.orelse, *node.finalbody])

    visit_TryStar = visit_Try

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.visit_all([node.type])
        binding = self.bind(node.name, node, "error") if node.name else None
        self.visit_all(node.body)
        if binding is not None:
            binding.until = next(self.moments)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self.visit_all([node.pattern])
        if node.name:
            self.bind(node.name, node, "part")

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self.bind(node.name, node, "part")

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self.visit_all([*node.keys, *node.patterns])
        if node.rest:
            self.bind(node.rest, node, "part")

    # -- new scopes ------------------------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: FunctionNode) -> None:
        self.visit_all(node.decorator_list)
        self.visit_all([*node.args.defaults, *node.args.kw_defaults])
        self.bind(node.name, node, "function")
        with self.type_parameters(node):
            with self.reading_types():
                self.visit_all([*(arg.annotation for arg in _parameters(node.args)), node.returns])
            with self.inside("function", node):
                self.parameters(node.args)
                self.visit_all(node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit_all([*node.args.defaults, *node.args.kw_defaults])
        with self.reading_types(False), self.inside("function", node):
            self.parameters(node.args)
            self.visit(node.body)

    def parameters(self, args: ast.arguments) -> None:
        for arg in _parameters(args):
            self.bind(arg.arg, arg, "parameter")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.visit_all(node.decorator_list)
        with self.type_parameters(node):
            self.visit_all([*node.bases, *(keyword.value for keyword in node.keywords)])
            with self.inside("class", node):
                self.visit_all(node.body)
        self.bind(node.name, node, "class")

    def visit_TypeAlias(self, node: ast.AST) -> None:
        """``type X = ...``, which Python 3.12 brought: the value is read when it is asked for."""
        self.target(getattr(node, "name"), "type")  # noqa: B009 - the checker looks at 3.11, which has no such node
        with self.type_parameters(node), self.reading_types():
            self.visit(getattr(node, "value"))  # noqa: B009

    @contextmanager
    def type_parameters(self, node: ast.AST) -> Iterator[None]:
        parameters: Sequence[ast.AST] = getattr(node, "type_params", ())
        if not parameters:
            yield
            return
        with self.inside("types", node):
            for parameter in parameters:
                self.bind(getattr(parameter, "name"), parameter, "type")  # noqa: B009
            with self.reading_types():
                bounds = (getattr(parameter, part, None) for parameter in parameters for part in TYPE_PARTS)
                self.visit_all(bounds)
            yield

    def comprehension(self, node: Comprehension) -> None:
        first, *others = node.generators
        self.visit(first.iter)
        with self.inside("comprehension", node), self.looping(node):
            self.target(first.target, "part")
            self.visit_all(first.ifs)
            for generator in others:
                self.visit(generator.iter)
                self.target(generator.target, "part")
                self.visit_all(generator.ifs)
            self.visit_all([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    # -- annotations -----------------------------------------------------------------------------------------------

    def visit_Constant(self, node: ast.Constant) -> None:
        if not (self.annotation and isinstance(node.value, str)):
            return
        try:
            quoted = ast.parse(f"({node.value})", mode="eval").body
        except (SyntaxError, ValueError):
            return  # text that is no type: whoever reads it knows better
        for inner in ast.walk(quoted):
            ast.copy_location(inner, node)
        self.visit(quoted)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        if self.annotation and self.is_typing(node.value, "Literal"):
            with self.reading_types(False):
                self.visit(node.slice)
        elif self.annotation and self.is_typing(node.value, "Annotated") and isinstance(node.slice, ast.Tuple):
            self.visit(node.slice.elts[0])
            with self.reading_types(False):
                self.visit_all(node.slice.elts[1:])
        else:
            self.visit(node.slice)

    def is_typing(self, node: ast.AST, name: str) -> bool:
        """Whether an expression means this member of `typing`; a name that a star may have brought counts."""
        if isinstance(node, ast.Attribute):
            return node.attr == name and isinstance(node.value, ast.Name) and bool(TYPING & self.origins(node.value.id))
        if not isinstance(node, ast.Name):
            return False
        origins = self.origins(node.id)
        return any(f"{module}.{name}" in origins for module in TYPING) or (
            not origins and node.id == name and bool(self.names.stars)
        )

    def origins(self, name: str) -> set[str]:
        """What a name is bound to so far, as far as it was imported."""
        return {binding.origin for scope in self.scope.visible() for binding in scope.bindings.get(name, ())}


IMPORT_ERRORS = frozenset(("ImportError", "ModuleNotFoundError", "Exception", "BaseException"))
NAME_ERRORS = frozenset(("NameError", "UnboundLocalError", "Exception", "BaseException"))
TYPE_PARTS = ("bound", "default_value")


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 1))


def _column(node: ast.AST) -> int:
    return int(getattr(node, "col_offset", 0))


def _last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _parameters(args: ast.arguments) -> list[ast.arg]:
    named = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    return [arg for arg in named if arg is not None]


def _error_names(handler: ast.ExceptHandler) -> list[str]:
    if handler.type is None:
        return ["BaseException"]
    return [_last_name(one) for one in (handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type])]


def _listed(node: ast.AST) -> Iterator[ast.Constant]:
    """The texts in a list, a tuple, or a sum of them."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        yield from (one for one in node.elts if isinstance(one, ast.Constant) and isinstance(one.value, str))
    elif isinstance(node, ast.BinOp):
        yield from _listed(node.left)
        yield from _listed(node.right)
