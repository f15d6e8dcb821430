"""What a function does, in order: the calls that matter, also in the functions of its module that it calls.

1. What stands in a loop is met twice, so that the end of a turn comes before the beginning of the next.
2. Two arms of a branch never follow each other, and nothing follows what a `return` or `raise` ends.
3. What is given to `runtime.step` or `runtime.effect` is inside of it: `within` says so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pregel.lint.catalogue import CALL, GRAPH, QUESTION, STEP, TOOL, Kind, kind_of
from pregel.lint.module import OURS, Body, Function, Module, Names

Arm = tuple[int, int]
BOUNDARIES = {"step": "step", "astep": "step", "effect": "effect", "aeffect": "effect"}
PAUSES = {"interrupt", "sleep", "sleep_until", "wait_for_event"}  # the node runs again from its top after them
ENDS = ast.Return | ast.Raise | ast.Continue | ast.Break
_KEY = re.compile(r"(.*_)?key", re.I)
_OTHER_KEY = re.compile(r"(.*_)?(api|secret|public|private|access|dict|primary|cache)_?key", re.I)


@dataclass(slots=True)
class Event:
    """A call that matters; `keyed` when an idempotency key goes with it, `within` names the boundary around it."""

    kind: str
    node: ast.Call
    needs_key: bool
    keyed: bool
    within: str
    arms: tuple[Arm, ...]
    until: int | None = None  # the number of the event that can no longer follow

    @property
    def what(self) -> str:
        """The call as it stands in the source, without its arguments."""
        return f"`{ast.unparse(self.node.func)}()`" if len(ast.unparse(self.node.func)) < 60 else "This call"


class Scan:
    """The events of a function, or of some of its statements."""

    def __init__(self, module: Module, function: Body, part: Iterable[ast.AST] | None = None) -> None:
        self.module = module
        self.events: list[Event] = []
        self.arms: tuple[Arm, ...] = ()
        self.within = ""
        self.stack: list[Body] = []
        self.loops = self.branches = 0
        self._in(function, part)

    def follows(self, number: int) -> list[Event]:
        """The events that may come after one in the same run of the function."""
        event = self.events[number]
        rest = self.events[number + 1 : event.until]
        return [one for one in rest if not _exclude(event.arms, one.arms)]

    def _in(self, function: Body, part: Iterable[ast.AST] | None = None) -> None:
        self.stack.append(function)
        names = self.module.names(function)
        self._block(part if part is not None else _body(function), names, _key_names(function))
        self.stack.pop()

    def _block(self, nodes: Iterable[ast.AST], names: Names, keys: set[str]) -> None:
        for node in nodes:
            self._visit(node, names, keys)

    def _visit(self, node: ast.AST, names: Names, keys: set[str]) -> None:
        if isinstance(node, Function | ast.ClassDef):
            return
        if isinstance(node, ast.If | ast.IfExp):
            self._visit(node.test, names, keys)
            self._branch([_several(node.body), _several(node.orelse)], names, keys)
        elif isinstance(node, ast.Match):
            self._visit(node.subject, names, keys)
            self._branch([case.body for case in node.cases], names, keys)
        elif isinstance(node, ast.Try | ast.TryStar):
            handlers = [handler.body for handler in node.handlers]
            self._branch([[*node.body, *node.orelse], *handlers], names, keys)
            self._block(node.finalbody, names, keys)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            self._loop(node, names, keys)
        elif isinstance(node, ast.Call):
            self._call(node, names, keys)
        else:
            self._block(ast.iter_child_nodes(node), names, keys)

    def _branch(self, arms: Sequence[Sequence[ast.AST]], names: Names, keys: set[str]) -> None:
        self.branches += 1
        around, place = self.arms, self.branches
        for number, body in enumerate(arms):
            start, self.arms = len(self.events), (*around, (place, number))
            self._block(body, names, keys)
            if body and isinstance(body[-1], ENDS):
                for event in self.events[start:]:
                    event.until = len(self.events) if event.until is None else event.until
        self.arms = around

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, names: Names, keys: set[str]) -> None:
        turn = [node.test, *node.body] if isinstance(node, ast.While) else node.body
        if not isinstance(node, ast.While):
            self._visit(node.iter, names, keys)
        self.loops += 1
        for _ in range(2 if self.loops < 4 else 1):
            self._block(turn, names, keys)
        self.loops -= 1
        self._block(node.orelse, names, keys)

    def _call(self, call: ast.Call, names: Names, keys: set[str]) -> None:
        path = names.path(call.func)
        boundary = self._boundary(call, path)
        if boundary:
            self._block(call.args[:1], names, keys)
            self._inside(boundary, call, names, keys)
            self._add(Kind(STEP), call, keys)
            return
        self._block(ast.iter_child_nodes(call), names, keys)
        if path.startswith(OURS) and path.rpartition(".")[2] in PAUSES:
            self._add(Kind(QUESTION), call, keys)
        elif (function := self._function(call.func, names)) is not None:
            self._called(function, call, keys)
        elif (kind := kind_of(path, call)) is not None:
            self._add(kind, call, keys)
        elif isinstance(call.func, ast.Attribute) and call.func.attr in ("invoke", "ainvoke", "stream", "astream"):
            self._add(Kind(GRAPH), call, keys)

    def _boundary(self, call: ast.Call, path: str) -> str:
        receiver, _, method = path.rpartition(".")
        is_runtime = (
            receiver.endswith(("Runtime", "get_runtime")) or receiver.rpartition(".")[2].lstrip("?") == "runtime"
        )
        return BOUNDARIES.get(method, "") if is_runtime and isinstance(call.func, ast.Attribute) else ""

    def _inside(self, boundary: str, call: ast.Call, names: Names, keys: set[str]) -> None:
        around, self.within = self.within, boundary
        producers = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
        for producer in producers:
            function = self._function(producer, names)
            if function is not None and function not in self.stack:
                self._in(function)
            elif isinstance(producer, ast.Lambda):
                self._in(producer)
            elif isinstance(producer, ast.Name | ast.Attribute):  # `runtime.step("paid", client.pay)` calls it
                made = ast.copy_location(ast.Call(producer, [], []), producer)
                if (kind := kind_of(names.path(producer), made)) is not None:
                    self._add(kind, made, keys)
            else:
                self._visit(producer, names, keys)
        self.within = around

    def _function(self, called: ast.expr, names: Names) -> Function | None:
        if isinstance(called, ast.Attribute) and called.attr in ("invoke", "ainvoke", "run", "arun"):
            function = self._function(called.value, names)
            return function if self.module.role(function) in ("tool", "entrypoint") else None
        return names.function(called.id) if isinstance(called, ast.Name) else None

    def _called(self, function: Function, call: ast.Call, keys: set[str]) -> None:
        role = self.module.role(function)
        if role in ("task", "entrypoint"):
            self._add(Kind(CALL), call, keys)
        elif role == "tool":
            self._add(Kind(TOOL), call, keys)
        elif function not in self.stack and len(self.stack) < 20:
            self._in(function)

    def _add(self, kind: Kind, call: ast.Call, keys: set[str]) -> None:
        keyed = kind.needs_key and _has_key(call, keys)
        self.events.append(Event(kind.kind, call, kind.needs_key, keyed, self.within, self.arms))


def _body(function: Body) -> Sequence[ast.AST]:
    return [function.body] if isinstance(function, ast.Lambda) else function.body


def _several(arm: Sequence[ast.AST] | ast.AST) -> Sequence[ast.AST]:
    return [arm] if isinstance(arm, ast.AST) else arm


def _exclude(one: tuple[Arm, ...], other: tuple[Arm, ...]) -> bool:
    """Whether two places stand in different arms of one branch."""
    arms = dict(one)
    return any(arms.get(place, arm) != arm for place, arm in other)


def _key_names(function: Body) -> set[str]:
    """The variables of a function that hold an idempotency key, or something with one in it."""
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and (_tells_key(node.value) or any(_tells_key(one) for one in node.targets)):
            found |= {part.id for one in node.targets for part in ast.walk(one) if isinstance(part, ast.Name)}
    return found


def _has_key(call: ast.Call, keys: set[str]) -> bool:
    names = [node.id for node in ast.walk(call) if isinstance(node, ast.Name)]
    return _tells_key(call) or any(
        name in keys or (_KEY.fullmatch(name) and not _OTHER_KEY.fullmatch(name)) for name in names
    )


def _tells_key(node: ast.AST) -> bool:
    """Whether the text of an expression speaks of an idempotency key."""
    return any("idempoten" in text.lower() for part in ast.walk(node) for text in _texts(part))


def _texts(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.Name):
        return [node.id]
    return [node.arg or ""] if isinstance(node, ast.keyword) else []
