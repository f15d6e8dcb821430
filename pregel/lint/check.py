"""Checks a source file: each function that a run calls, by the rules for its role."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

from pregel.lint.catalogue import (
    CALL,
    CLOCK,
    DATABASE,
    FILE,
    GRAPH,
    QUESTION,
    RANDOM,
    READ,
    SLEEP,
    STEP,
    TOOL,
    WRITE,
)
from pregel.lint.guards import guarded
from pregel.lint.module import Body, Module
from pregel.lint.rules import RULES, Problem
from pregel.lint.scan import Event, Scan

__all__ = ["check_file", "check_source"]

_IGNORES = re.compile(r"#\s*pregel:\s*ignore(\[(?P<rules>[^\]]*)\])?")
_AGAIN = {CLOCK: "PG101", RANDOM: "PG102", SLEEP: "PG103", FILE: "PG104", READ: "PG104"}
_OUTSIDE = {TOOL, WRITE, DATABASE}
_GUARDED = {QUESTION, CALL, STEP, GRAPH, *_OUTSIDE}


def check_file(path: str | Path) -> list[Problem]:
    """The problems of a source file, in the order of its lines; OSError when it cannot be read."""
    with tokenize.open(path) as file:
        try:
            return check_source(file.read(), str(path))
        except UnicodeDecodeError as error:
            return [_problem("PG001", str(path), 1, 1, f"This is not text: {error}.")]


def check_source(source: str, file: str = "<source>") -> list[Problem]:
    """The problems of a module given as text; nothing of it runs."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line, column = getattr(error, "lineno", None) or 1, getattr(error, "offset", None) or 1
        what = f"This is not Python: {getattr(error, 'msg', error)}."
        return [_problem("PG001", file, line, column, what)]
    module, found = Module(tree), set[Problem]()
    ignored = _ignored(source)
    for function, role in module.roles.items():
        for rule, event in _broken(module, function, role):
            node = event.node
            if not _is_ignored(ignored, node, rule):
                where = module.labels[function]
                found.add(_problem(rule, file, node.lineno, node.col_offset + 1, event.what, where))
    return sorted(found)


def _broken(module: Module, function: Body, role: str) -> Iterator[tuple[str, Event]]:
    """(rule, event) for what a function does that it should not."""
    scan = Scan(module, function)
    asks = [n for n, event in enumerate(scan.events) if event.kind in (QUESTION, CALL) and not event.within]
    for number, event in enumerate(scan.events):
        if event.needs_key and not event.keyed and event.within != "effect":
            yield "PG202", event
        if event.within or role in ("task", "tool"):
            continue
        goes_on = scan.follows(number)
        again = role == "entrypoint" or (bool(asks) and any(scan.events[n] in goes_on for n in asks))
        if again and event.kind in _AGAIN:
            yield _AGAIN[event.kind], event
        elif again and event.kind in (WRITE, DATABASE) and not event.needs_key:
            yield "PG104", event
        elif _is_outside(event, goes_on, again=again):
            yield "PG201", event
    for nodes in guarded(module, function):
        for event in Scan(module, function, nodes).events:
            if event.kind in _GUARDED:
                yield "PG301", event


def _is_outside(event: Event, following: Sequence[Event], *, again: bool) -> bool:
    """Whether a call is done again for what comes after it: one that a provider can tell from its repetition is not."""
    if event.kind not in _OUTSIDE or (event.kind != TOOL and (not event.needs_key or (event.keyed and not again))):
        return False
    goes_on = {QUESTION, CALL, STEP, TOOL, WRITE, *(() if event.kind == DATABASE else (DATABASE,))}
    return any(one.kind in goes_on and not one.within for one in following)


def _problem(rule: str, file: str, line: int, column: int, what: str, where: str = "") -> Problem:
    made = RULES[rule]
    message = made.message.format(what=what, where=where)
    return Problem(file, line, column, rule, message[0].upper() + message[1:], made.fix)


def _ignored(source: str) -> dict[int, set[str] | None]:
    """line -> the rules that a comment there switches off; None for all."""
    found: dict[int, set[str] | None] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and (match := _IGNORES.search(token.string)):
            rules = match["rules"]
            found[token.start[0]] = None if rules is None else {rule.strip() for rule in rules.split(",")}
    return found


def _is_ignored(ignored: dict[int, set[str] | None], node: ast.expr, rule: str) -> bool:
    lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    return any(line in ignored and (ignored[line] is None or rule in (ignored[line] or ())) for line in lines)
