"""The patterns that a review looks for in a syntax tree, each a function in a table by node type."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from pregel.cli.demo.python.finding import Finding
from pregel.cli.demo.python.scopes import Names

Rule = Callable[[ast.AST, Names], Iterator[Finding]]
RULES: dict[type[ast.AST], list[Rule]] = defaultdict(list)
LITERALS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MUTABLE_TYPES = {
    "builtins": ("bytearray", "dict", "list", "set"),
    "collections": ("Counter", "OrderedDict", "defaultdict", "deque"),
}
MUTABLE = frozenset(f"{module}.{name}" for module, names in MUTABLE_TYPES.items() for name in names)
BROAD = frozenset(("builtins.Exception", "builtins.BaseException"))
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
BLOCKS = ("body", "orelse", "finalbody")


def tree_findings(tree: ast.Module, names: Names) -> Iterator[Finding]:
    """Every finding of every rule, in no particular order."""
    nodes = list(ast.walk(tree))
    # A format spec is parsed as an f-string too, one that rightly has no placeholders.
    specs = {id(node.format_spec) for node in nodes if isinstance(node, ast.FormattedValue)}
    for node in nodes:
        if id(node) not in specs:
            for rule in RULES.get(type(node), ()):
                yield from rule(node, names)
        for block in blocks_of(node):
            yield from _unreachable(block)
            yield from _redefined(block)


def on(*kinds: type[ast.AST]) -> Callable[[Rule], Rule]:
    """Puts a rule into the table for these node types."""

    def register(rule: Rule) -> Rule:
        for kind in kinds:
            RULES[kind].append(rule)
        return rule

    return register


def blocks_of(node: ast.AST) -> list[list[ast.stmt]]:
    """The lists of statements right below a node."""
    found = [getattr(node, name, None) for name in BLOCKS]
    return [block for block in found if isinstance(block, list) and block and isinstance(block[0], ast.stmt)]


# -- calls and arguments ----------------------------------------------------------------------------------------------


@on(ast.Call)
def _reduce_without_initial(node: ast.AST, names: Names) -> Iterator[Finding]:
    assert isinstance(node, ast.Call)
    starred = any(isinstance(arg, ast.Starred) for arg in node.args) or any(key.arg is None for key in node.keywords)
    given = len(node.args) + sum(key.arg == "initial" for key in node.keywords)
    if names.origin(node.func) == "functools.reduce" and not starred and given < 3:
        message = "reduce() without an initial value raises TypeError when there is nothing to reduce"
        yield Finding.at(node, "reduce-without-initial", message)


@on(*FUNCTIONS)
def _mutable_default(node: ast.AST, names: Names) -> Iterator[Finding]:
    assert isinstance(node, FUNCTIONS)
    for default in [*node.args.defaults, *node.args.kw_defaults]:
        made = isinstance(default, ast.Call) and names.origin(default.func) in MUTABLE
        if isinstance(default, LITERALS) or made:
            assert default is not None
            message = "mutable default is shared by all calls"
            yield Finding.at(default, "mutable-default", message)


# -- exceptions -------------------------------------------------------------------------------------------------------


@on(ast.ExceptHandler)
def _broad_handlers(node: ast.AST, names: Names) -> Iterator[Finding]:
    assert isinstance(node, ast.ExceptHandler)
    raised_again = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
    if node.type is None and not raised_again:
        yield Finding.at(node, "bare-except", "bare except also catches KeyboardInterrupt and SystemExit")
    elif node.type is not None and names.origin(node.type) in BROAD and all(map(_says_nothing, node.body)):
        yield Finding.at(node, "swallowed-error", "every error is caught here and nobody is told")


def _says_nothing(node: ast.stmt) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, ast.Pass | ast.Continue)


@on(ast.Raise)
def _raise_notimplemented(node: ast.AST, names: Names) -> Iterator[Finding]:
    assert isinstance(node, ast.Raise)
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    if raised is not None and names.origin(raised) == "builtins.NotImplemented":
        yield Finding.at(node, "raise-notimplemented", "NotImplemented is no exception: raise NotImplementedError")


@on(ast.Try)
def _leaving_finally(node: ast.AST, names: Names) -> Iterator[Finding]:
    assert isinstance(node, ast.Try)
    for leaving in _own_statements(node.finalbody):
        if isinstance(leaving, ast.Return):
            yield Finding.at(leaving, "return-in-finally", "return in finally drops the exception that is on its way")


def _own_statements(block: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block at any depth, but not those of functions and classes in it."""
    for statement in block:
        yield statement
        if not isinstance(statement, DEFINITIONS):
            for nested in _nested_blocks(statement):
                yield from _own_statements(nested)


# -- comparisons and texts --------------------------------------------------------------------------------------------


@on(ast.Compare)
def _comparisons(node: ast.AST, names: Names) -> Iterator[Finding]:
    assert isinstance(node, ast.Compare)
    sides = [node.left, *node.comparators]
    for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
        equal = isinstance(operator, ast.Eq)
        constants = [one.value for one in (left, right) if isinstance(one, ast.Constant)]
        if isinstance(operator, ast.Eq | ast.NotEq) and None in constants:
            yield Finding.at(left, "none-comparison", f"compare to None with '{'is' if equal else 'is not'}'")
        elif isinstance(operator, ast.Eq | ast.NotEq) and any(isinstance(value, bool) for value in constants):
            yield Finding.at(left, "bool-comparison", "compare to True or False by truth, or with 'is'")
        elif isinstance(operator, ast.Is | ast.IsNot) and any(map(_has_no_identity, (left, right))):
            yield Finding.at(left, "is-literal", "'is' compares identity, which equal literals need not share")


def _has_no_identity(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | bytes | int | float | complex) and not isinstance(node.value, bool)
    return isinstance(node, LITERALS)


@on(ast.JoinedStr)
def _empty_fstring(node: ast.AST, names: Names) -> Iterator[Finding]:
    assert isinstance(node, ast.JoinedStr)
    if not any(isinstance(part, ast.FormattedValue) for part in node.values):
        yield Finding.at(node, "empty-fstring", "f-string without placeholders")


@on(ast.Assert)
def _assert_tuple(node: ast.AST, names: Names) -> Iterator[Finding]:
    assert isinstance(node, ast.Assert)
    if isinstance(node.test, ast.Tuple) and node.test.elts:
        yield Finding.at(node, "assert-tuple", "assertion on a tuple is always true")


@on(ast.Dict)
def _repeated_key(node: ast.AST, names: Names) -> Iterator[Finding]:
    assert isinstance(node, ast.Dict)
    seen: dict[tuple[type, object], str] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant):
            identity, shown = (type(key.value), key.value), ast.dump(value)
            if seen.get(identity, shown) != shown:
                yield Finding.at(key, "repeated-key", f"key {key.value!r} appears again with another value")
            seen[identity] = shown


# -- statements in a row ----------------------------------------------------------------------------------------------


def _unreachable(block: list[ast.stmt]) -> Iterator[Finding]:
    for index, statement in enumerate(block[:-1]):
        if _never_goes_on(statement):
            rest = block[index + 1 :]
            if not (len(rest) == 1 and _is_bare_yield(rest[0])):  # the idiom for an empty generator
                yield Finding.at(rest[0], "unreachable-code", "code after this point never runs")
            return


def _never_goes_on(node: ast.stmt) -> bool:
    match node:
        case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.If():
            return _ends(node.body) and _ends(node.orelse)
        case ast.Try():
            handled = all(_ends(handler.body) for handler in node.handlers)
            return _ends(node.finalbody) or (handled and (_ends(node.body) or _ends(node.orelse)))
        case ast.While():
            forever = isinstance(node.test, ast.Constant) and bool(node.test.value)
            return forever and not any(map(_breaks, node.body))
    return False


def _ends(block: list[ast.stmt]) -> bool:
    return any(map(_never_goes_on, block))


def _breaks(node: ast.stmt) -> bool:
    """Whether a statement can break out of the loop around it."""
    if isinstance(node, ast.Break):
        return True
    if isinstance(node, DEFINITIONS):
        return False
    inner = [node.orelse] if isinstance(node, ast.For | ast.AsyncFor | ast.While) else _nested_blocks(node)
    return any(_breaks(statement) for block in inner for statement in block)


def _nested_blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    parts = [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]
    return [*blocks_of(node), *(block for part in parts for block in blocks_of(part))]


def _is_bare_yield(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield | ast.YieldFrom)


def _redefined(block: list[ast.stmt]) -> Iterator[Finding]:
    defined: dict[str, ast.stmt] = {}
    for statement in block:
        own = statement.name if isinstance(statement, DEFINITIONS) else ""
        mentioned = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} - {own}
        for name in mentioned & defined.keys():
            del defined[name]
        if isinstance(statement, DEFINITIONS) and not statement.decorator_list:
            if own in defined:
                message = f"'{own}' of line {defined[own].lineno} is defined again and was never used"
                yield Finding.at(statement, "redefined-name", message)
            defined[own] = statement
