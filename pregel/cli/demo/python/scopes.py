"""The scopes of a Python file: what each binds, what is used where, and which binding a use means.

1. A scope binds a name anywhere in its body or not at all; `global` and `nonlocal` move a binding outwards.
2. A use looks in its own scope, then outwards past class scopes, then in the builtins.
3. Moments number bindings and uses in the order in which they run. They are compared inside one frame only: a
   function body runs later than what surrounds it, a class body and a comprehension run in place.
4. A binding in the same loop may be of the last round, one made from another frame may be older than it looks.
5. What only tools read (annotations, quoted or not) is timeless: any binding serves it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

ScopeKind = Literal["module", "class", "function", "comprehension", "types"]
BindingKind = Literal["import", "value", "part", "parameter", "function", "class", "error", "type", "bare annotation"]
Verdict = Literal["found", "builtin", "undefined", "too early"]

BUILTINS = frozenset(dir(builtins)) | {"WindowsError"}
IMPLICIT = frozenset({
    "__annotations__", "__builtins__", "__debug__", "__doc__", "__file__",
    "__loader__", "__name__", "__package__", "__path__", "__spec__",
})  # fmt: skip
IMPLICIT_IN_CLASS = frozenset(("__class__", "__module__", "__qualname__"))


@dataclass(slots=True, eq=False)
class Binding:
    """One place that gives a name a value. `origin` is the dotted thing that an import binds."""

    name: str
    kind: BindingKind
    node: ast.AST
    line: int
    column: int
    moment: int
    loops: frozenset[int]
    origin: str = ""
    until: int | None = None  # the moment at which `except ... as name` takes the name away again
    remote: bool = False  # made from another frame, through `global` or `nonlocal`
    probing: bool = False  # an import that is tried, and does without when it fails
    used: bool = False

    def serves(self, use: Use, same_frame: bool) -> bool:
        """Whether the name can have this value when it is used."""
        if self.until is not None and not self.moment <= use.moment <= self.until:
            return False
        if not same_frame or use.timeless or self.remote:
            return True
        return self.moment < use.moment or bool(self.loops & use.loops)


@dataclass(slots=True, eq=False)
class Use:
    """One place that reads a name. `guarded` means that a NameError is expected there."""

    name: str
    node: ast.AST
    line: int
    column: int
    scope: Scope
    moment: int
    loops: frozenset[int]
    timeless: bool
    guarded: bool
    verdict: Verdict = "undefined"
    found: list[Binding] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Scope:
    """A region with names of its own. `moved` holds its `global` and `nonlocal` names."""

    kind: ScopeKind
    node: ast.AST
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    moved: dict[str, Literal["global", "nonlocal"]] = field(default_factory=dict)
    reads_locals: bool = False

    @property
    def frame(self) -> Scope:
        """The scope whose code runs when this one's does."""
        scope = self
        while scope.parent is not None and scope.kind not in ("module", "function"):
            scope = scope.parent
        return scope

    @property
    def module(self) -> Scope:
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def home_of(self, name: str) -> Scope:
        """The scope in which a binding of the name made here lives."""
        match self.moved.get(name):
            case "global":
                return self.module
            case "nonlocal":
                return next((s for s in self.outer() if s.kind == "function" and name in s.bindings), self)
        return self

    def outer(self) -> Iterator[Scope]:
        scope = self.parent
        while scope is not None:
            yield scope
            scope = scope.parent

    def visible(self) -> Iterator[Scope]:
        """Where a name that is used here is looked for, in order."""
        yield self
        own = self.kind == "types"
        for scope in self.outer():
            if own or scope.kind != "class":
                yield scope
            own = own and scope.kind == "types"

    def in_class(self) -> bool:
        return self.kind == "class" or any(scope.kind == "class" for scope in self.outer())


@dataclass(slots=True)
class Names:
    """All names of one file, resolved."""

    scopes: list[Scope]
    uses: list[Use]
    exported: dict[str, int]  # what `__all__` lists, and on which line
    stars: list[tuple[str, ast.AST]]  # the modules that are imported with a star

    def resolve(self) -> None:
        """Settle what each use means, and mark the bindings that are used."""
        self._by_node = {id(use.node): use for use in self.uses}
        for use in self.uses:
            use.verdict = _look_up(use)
            for binding in use.found:
                binding.used = True
        for name in self.exported:
            for binding in self.scopes[0].bindings.get(name, ()):
                binding.used = True

    _by_node: dict[int, Use] = field(default_factory=dict)

    def origin(self, node: ast.AST) -> str:
        """The dotted name of what an expression imports or takes from the builtins, else ''."""
        if isinstance(node, ast.Attribute):
            base = self.origin(node.value)
            return f"{base}.{node.attr}" if base else ""
        use = self._by_node.get(id(node))
        if use is None:
            return ""
        if use.verdict == "builtin":
            return f"builtins.{use.name}"
        return use.found[0].origin if use.found else ""


def _look_up(use: Use) -> Verdict:
    start = use.scope.home_of(use.name)
    late = False
    for scope in start.visible():
        bound = scope.bindings.get(use.name, [])
        same_frame = scope.frame is use.scope.frame
        use.found = [binding for binding in bound if binding.serves(use, same_frame)]
        if use.found:
            return "found"
        late = late or any(binding.until is None for binding in bound)
        if late and scope.kind == "function":
            use.found = bound
            return "too early"  # a local name hides what is outside even before it has a value
    if use.name in BUILTINS or use.name in IMPLICIT or (use.name in IMPLICIT_IN_CLASS and use.scope.in_class()):
        if use.name == "locals":
            use.scope.frame.reads_locals = True
        return "builtin"
    return "too early" if late else "undefined"
