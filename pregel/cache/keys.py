"""Cache keys: which calls share a result.

1. Two inputs share a key only if they are equal and of the same types, all the way down: ``1``, ``True`` and ``1.0``
   differ, and so do two arrays with the same bytes and another dtype. The order of a dict or set does not matter.
2. A function is its name, its code, its defaults and what it closes over: a changed function starts anew, and two
   closures of one definition are two functions. A class or function that no module knows by name has a name of its own
   in this process.
3. What cannot be told for certain (a generator, an open file) is refused: a wrong hit is worse than no cache.

An object is told by what pickle would store of it; nothing is ever loaded.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from pregel.errors import InvalidInputError, told

NODE_RESULTS = "__pregel_ns_writes"
DIGEST = 16  # bytes


def node_namespace(graph: str, node: str) -> tuple[str, ...]:
    """Where the results of a node are kept: the same for every version of its function, so it clears them all."""
    return (NODE_RESULTS, graph, node)


def input_key(function: bytes, *args: Any, **kwargs: Any) -> str:
    """32 hex characters for a call of a function; InvalidInputError names an argument that cannot be told.

    `function` comes from `function_identity`.
    """
    return hashlib.blake2b(_Telling().tell((function, args, kwargs)), digest_size=DIGEST).hexdigest()


def function_identity(function: Callable[..., Any]) -> bytes:
    """Which function this is, as bytes; compute it once per function and keep it.

    The same in every process where that can be told. A callable object that cannot be told gets bytes of its own.
    """
    try:
        identity = _Telling().tell(function)
    except InvalidInputError:
        return uuid4().bytes
    return hashlib.blake2b(identity, digest_size=DIGEST).digest()


class _Telling:
    """Values as bytes that no other value has. Each part is its kind, its length and itself."""

    def __init__(self) -> None:
        self.inside: set[int] = set()

    def tell(self, value: Any) -> bytes:
        kind = type(value)
        if (scalar := _SCALARS.get(kind)) is not None:
            return _part(kind.__name__, scalar(value))
        if id(value) in self.inside:
            raise _untellable(value, "it contains itself")
        self.inside.add(id(value))
        try:
            return _TELLERS.get(kind, _Telling._other)(self, value)
        except RecursionError:
            raise _untellable(value, "it is nested too deeply") from None
        finally:
            self.inside.discard(id(value))

    def _parts(self, kind: str, values: Iterable[Any]) -> bytes:
        return _part(kind, b"".join(map(self.tell, values)))

    def _items(self, value: Iterable[Any]) -> bytes:
        return self._parts(type(value).__name__, value)

    def _unordered(self, value: Iterable[Any]) -> bytes:
        return _part(type(value).__name__, b"".join(sorted(map(self.tell, value))))

    def _dict(self, value: dict[Any, Any]) -> bytes:
        return _part("dict", b"".join(sorted(self._parts("pair", pair) for pair in value.items())))

    def _function(self, function: FunctionType) -> bytes:
        name = function.__module__, function.__qualname__
        try:
            closed_over = tuple(cell.cell_contents for cell in function.__closure__ or ())
            parts = function.__defaults__, function.__kwdefaults__, function.__code__, closed_over
            return self._parts("function", (*name, *parts))
        except (InvalidInputError, ValueError):  # ValueError: it closes over a name that has no value yet
            return self._parts("function here", (*name, _token(function)))

    def _code(self, code: CodeType) -> bytes:
        return self._parts("code", (code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_consts))

    def _method(self, method: MethodType) -> bytes:
        return self._parts("method", (method.__func__, method.__self__))

    def _partial(self, partial: functools.partial[Any]) -> bytes:
        return self._parts("partial", (partial.func, partial.args, partial.keywords))

    def _named(self, value: Any, name: str) -> bytes:
        module = getattr(value, "__module__", None)
        found: Any = sys.modules.get(module) if isinstance(module, str) else None
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is value:
            return self._parts("named", (module, name))
        return self._parts("named here", (module, name, _token(value)))

    def _other(self, value: Any) -> bytes:
        """A class by its name; an object by its class, what it is made from and what it holds."""
        if isinstance(value, type):
            return self._named(value, value.__qualname__)
        if isinstance(value, BuiltinFunctionType) and isinstance(value.__self__, ModuleType | None):
            return self._named(value, value.__qualname__)
        try:
            reduced = value.__reduce_ex__(4)
        except Exception as error:
            raise _untellable(value, told(error)) from error
        if isinstance(reduced, str):
            return self._named(value, reduced)
        made: tuple[Any, ...] = reduced
        make, args, state, items, pairs = (*made, None, None, None)[:5]
        listed = None if items is None else list(items)
        mapped = None if pairs is None else [tuple(pair) for pair in pairs]
        return self._parts("object", (type(value), make, args, state, listed, mapped))


def _part(kind: str, content: bytes) -> bytes:
    return b"%s:%d:%s" % (kind.encode(), len(content), content)


def _text(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


_SCALARS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: b"",
    type(...): lambda value: b"",
    bool: lambda value: b"%d" % value,
    int: lambda value: b"%x" % value,
    float: lambda value: value.hex().encode(),
    complex: lambda value: f"{value.real.hex()},{value.imag.hex()}".encode(),
    str: _text,
    bytes: bytes,
    bytearray: bytes,
}


_TELLERS: dict[type, Callable[[_Telling, Any], bytes]] = {
    tuple: _Telling._items,
    list: _Telling._items,
    dict: _Telling._dict,
    set: _Telling._unordered,
    frozenset: _Telling._unordered,
    FunctionType: _Telling._function,
    CodeType: _Telling._code,
    MethodType: _Telling._method,
    functools.partial: _Telling._partial,
}

_tokens: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()


def _token(value: Any) -> bytes:
    """A name for something that has none elsewhere: the same for as long as it lives, never given again."""
    try:
        return _tokens.setdefault(value, uuid4().bytes)
    except TypeError as error:
        raise _untellable(value, told(error)) from error


def _untellable(value: object, why: str) -> InvalidInputError:
    return InvalidInputError(
        f"No cache key can be made of a {type(value).__qualname__}: {why}.",
        fix="Give CachePolicy(key_func=...), which returns a text or bytes for an input.",
    )
