"""What the reviewer of the demo finds, on which line, and what it leaves alone."""

from __future__ import annotations

from textwrap import dedent

import pytest

from pregel.cli.demo.reviewer import report, review_file, review_source


def found(source: str, name: str = "module.py") -> list[tuple[int, str]]:
    return [(one.line, one.rule) for one in review_source(dedent(source), name)]


# A finding is expected where a line ends with its rule, as a comment.
WRONG = {
    "undefined names": """
        print(nowhere)  # undefined-name
        def f(x: Nothing) -> "list[Missing]":  # undefined-name undefined-name
            return x + y  # undefined-name
        class A(Base):  # undefined-name
            def method(self):
                return inner  # undefined-name
            inner = 1
        [one for one in ones]  # undefined-name
        text = f"{hidden}"  # undefined-name
        @decorate  # undefined-name
        def g(): ...
        del gone  # undefined-name
    """,
    "names in a text over several lines": '''
        text = f"""
        {first_missing}
        {second_missing:{width_missing}}
        """  # 3:undefined-name 4:undefined-name 4:undefined-name
    ''',
    "names that end": """
        try:
            pass
        except ValueError as error:
            print(error)
        print(error)  # undefined-name
        [inner for inner in [1]]
        print(inner)  # undefined-name
    """,
    "names before they have a value": """
        print(late)  # used-before-assignment
        late = 1
        def f():
            print(local)  # used-before-assignment
            local = late
            return local
        count = 0
        def g():
            count += 1  # used-before-assignment
        class A:
            me = A  # used-before-assignment
    """,
    "exports that do not exist": """
        __all__ = ["f", "nowhere"]  # undefined-export
        __all__ += ["neither"]  # undefined-export
        __all__.extend(["nor"])  # undefined-export
        def f(): ...
    """,
    "unused imports": """
        import os  # unused-import
        import os.path as path  # unused-import
        import json, re  # unused-import
        from typing import Any, TYPE_CHECKING  # unused-import
        from collections import (
            abc,
            deque,  # unused-import
        )
        if TYPE_CHECKING:
            from decimal import Decimal  # unused-import
        def f():
            import sys  # unused-import
            return json, abc
    """,
    "unused names": """
        def f():
            kept = 1  # unused-name
            with open("file") as handle:  # unused-name
                pass
            if (found := 1):  # unused-name
                pass
            def helper(): ...  # unused-name
            typed: int = 3  # unused-name
            try:
                pass
            except ValueError as error:  # unused-name
                pass
    """,
    "reduce without an initial value": """
        import functools
        from functools import reduce as fold
        functools.reduce(max, [])  # reduce-without-initial
        fold(max, [])  # reduce-without-initial
    """,
    "handlers that hide errors": """
        try:
            pass
        except:  # bare-except
            print("?")
        try:
            pass
        except Exception:  # swallowed-error
            pass
        def f():
            try:
                pass
            finally:
                if f:
                    return 1  # return-in-finally
        raise NotImplemented  # raise-notimplemented
    """,
    "mutable defaults": """
        from collections import defaultdict
        def f(a, b=[], *, c={}): ...  # mutable-default mutable-default
        def g(d=list(), e=defaultdict(int)): ...  # mutable-default mutable-default
        h = lambda x={1}: x  # mutable-default
    """,
    "comparisons": """
        x = 1
        x == None  # none-comparison
        None != x  # none-comparison
        x == True  # bool-comparison
        x is "text"  # is-literal
        x is not 5  # is-literal
        assert (x, "message")  # assert-tuple
    """,
    "texts and tables": """
        f"nothing"  # empty-fstring
        {"a": 1, "b": 2, "a": 3}  # repeated-key
    """,
    "hidden builtins": """
        list = 3  # shadowed-builtin
        def f(id): ...  # shadowed-builtin
        def max(): ...  # shadowed-builtin
        from os import open  # shadowed-builtin unused-import
        for input in []: ...  # shadowed-builtin
        [type for type in []]  # shadowed-builtin
    """,
    "code that never runs": """
        def f(x):
            if x:
                return 1
            else:
                raise ValueError
            print("never")  # unreachable-code
        def g(xs):
            for x in xs:
                continue
                print(x)  # unreachable-code
            while True:
                pass
            print("never")  # unreachable-code
        def h():
            try:
                return 1
            except ValueError:
                return 2
            h()  # unreachable-code
    """,
    "definitions that replace each other": """
        def f(): ...
        def f(): ...  # redefined-name
        class A:
            def m(self): ...
            def n(self): ...
            def m(self): ...  # redefined-name
    """,
    "stars": """
        from os import *  # star-import
        print(anything)
        def f():
            print(local)  # used-before-assignment
            local = 1
    """,
    "quoted types": """
        from typing import Annotated, Literal, TypeAlias, cast
        Good: TypeAlias = "list[Missing]"  # undefined-name
        def f(x: Literal["word"], y: Annotated["Missing", "words of any kind"]): ...  # undefined-name
        cast("Missing", f)  # undefined-name
    """,
}


def expected(source: str) -> list[tuple[int, str]]:
    rules = []
    for number, line in enumerate(dedent(source).splitlines(), start=1):
        for word in line.partition("  # ")[2].split():
            place, colon, rule = word.rpartition(":")
            rules.append((int(place) if colon else number, rule))
    return sorted(rules)


@pytest.mark.parametrize("source", WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_found_on_its_line(source: str) -> None:
    assert expected(source) == sorted(found(source))


RIGHT = {
    "scopes": """
        class A:
            size = 2
            cells = [None for _ in range(size)]
            def method(self):
                return __class__, A
        def outer():
            def inner():
                nonlocal total
                total = total + 1
            total = 0
            return inner
        def uses_later():
            return defined_later
        defined_later = __name__, __file__
        def declares():
            global made_elsewhere
            made_elsewhere = 1
        print(made_elsewhere)
    """,
    "comprehensions": """
        rows = [[1]]
        flat = [cell for row in rows for cell in row if cell]
        table = {key: value for key, value in zip(rows, rows)}
        print(last) if any((last := row) for row in rows) else None
        nested = [[cell * factor for cell in row] for row in rows for factor in row]
    """,
    "loops": """
        def f(xs):
            for x in xs:
                if x:
                    print(previous)
                previous = x
            while xs:
                for _ in xs:
                    print(current)
                current = 1
    """,
    "patterns": """
        def f(command):
            match command:
                case {"go": where, **rest}:
                    return where, rest
                case [first, *others] as whole:
                    return first, others, whole
    """,
    "imports that are used": """
        from __future__ import annotations
        import os.path
        import xml.dom, xml.sax
        from json import dumps as dumps
        from typing import TYPE_CHECKING
        try:
            import ujson
        except ImportError:
            ujson = None
        if TYPE_CHECKING:
            from decimal import Decimal
            from fractions import Fraction
        def f(x: Decimal) -> "list[Fraction]":
            return os.path.join(x, xml)
        __all__ = ["f"] + ["re"]
        import re
    """,
    "names that need not be used": """
        def f(unused_parameter):
            _ignored = 1
            one, two = unused_parameter
            for index in range(3):
                pass
            @register
            def handler(): ...
            def g():
                value = 1
                return locals()
            return g
        def register(function): return function
    """,
    "expected errors": """
        try:
            text = unicode
        except NameError:
            text = str
    """,
    "reduce with an initial value": """
        from functools import reduce
        reduce(max, [], 0)
        reduce(*[max, []])
        def own(reduce): reduce(max, [])
    """,
    "handlers that tell": """
        try:
            pass
        except:
            raise
        try:
            pass
        except Exception as error:
            print(error)
        try:
            pass
        except ValueError:
            pass
    """,
    "defaults that stay": """
        def f(a=(), b=None, c=frozenset(), d="text"): ...
    """,
    "comparisons by identity": """
        x = 1
        x is None or x is not None or x is True or x == 0
    """,
    "texts with values": """
        x = 1
        print(f"{x:>10}", f"{x!r}" "text", f"text" f"{x}")
    """,
    "members called like builtins": """
        class A:
            id = 1
            type: str
            def list(self): ...
        license = "MIT"
    """,
    "an empty generator": """
        def nothing():
            return
            yield
    """,
    "loops that end": """
        def f(xs):
            while True:
                if xs.pop():
                    break
            return xs
        def g(xs):
            try:
                return xs
            except ValueError:
                pass
            return None
    """,
    "definitions that belong together": """
        from typing import overload
        @overload
        def f(x: int) -> int: ...
        @overload
        def f(x: str) -> str: ...
        def f(x): return x
        class A:
            @property
            def size(self): ...
            @size.setter
            def size(self, value): ...
        if f:
            def g(): ...
        else:
            def g(): ...
        def h(): ...
        h = f(h)
        def h(): ...
    """,
    "silenced lines": """
        import os  # noqa: F401
        print(nowhere)  # NOQA
    """,
    "types of methods": """
        class Tree:
            left: "Tree | None"
            def join(self, other: "Tree") -> Tree: ...
            def walk(self) -> Later: ...
        class Later: ...
    """,
}


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT.keys())
def test_what_is_right_is_left_alone(source: str) -> None:
    assert [] == found(source)


def test_the_imports_of_a_package_are_its_interface() -> None:
    source = "from os import sep\n__all__ = ['submodule']"

    assert [(1, "unused-import"), (2, "undefined-export")] == found(source)
    assert [] == found(source, "shop/__init__.py")


@pytest.mark.parametrize(
    ("source", "line"),
    [("def f(:\n", 1), ("x = 1\n  y = 2\n", 2), ("x = '\0'", 1), ("# coding: nonsense\n", 1)],
)
def test_a_file_that_is_no_python_has_one_finding(source: str, line: int) -> None:
    assert [(line, "syntax-error")] == [(one.line, one.rule) for one in review_source(source.encode())]


def test_a_file_that_is_nested_too_deeply_is_said_to_be() -> None:
    [finding] = review_source("x = " + "+".join("1" * 20_000))

    assert "too-deep" == finding.rule


def test_bytes_are_read_in_the_encoding_that_they_declare() -> None:
    assert [] == review_source("# coding: latin-1\nname = 'café'\nprint(name)".encode("latin-1"))


def test_line_ends_of_any_kind_count_as_lines() -> None:
    assert [3] == [one.line for one in review_source("x = 1\r\ny = '\x0c\u2028'\r\nprint(nowhere)\r\n")]


def test_a_review_reads_as_a_headline_and_a_line_for_each_finding() -> None:
    findings = review_source("import os\nprint(nowhere)\n")

    assert "shop.py: no findings" == report("shop.py", [])
    assert (
        "shop.py: 2 findings\n"
        "shop.py:1: unused import 'os' [unused-import]\n"
        "shop.py:2: undefined name 'nowhere' [undefined-name]"
    ) == report("shop.py", findings)


def test_the_same_file_gets_the_same_review_and_is_not_run() -> None:
    first, second = review_file(__file__, "tests.py"), review_file(__file__, "tests.py")

    assert "tests.py: no findings" == first == second
