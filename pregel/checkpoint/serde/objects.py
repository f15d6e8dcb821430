"""User classes as stored values: enums, dataclasses, attrs classes, named tuples, models, messages, kinds of builtins.

1. Only a registered class is stored or loaded. Bytes that name any other are refused; nothing is imported.
2. An object comes back with the attributes it had, without its constructor. If the class has other fields now, the
   class itself decides (its constructor or its validation), and what does not fit is an error.
3. A class that is of another kind now than when it was stored is an error: bytes never choose what is called.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, Flag
from typing import Any

from pregel.checkpoint.serde.attributes import Attributes, builtin_base, is_plain_object
from pregel.checkpoint.serde.codecs import (
    DATACLASS,
    ENUM,
    FLAG,
    MESSAGE,
    NAMEDTUPLE,
    PYDANTIC,
    SUBCLASS,
    Codec,
    Refused,
    checked,
)
from pregel.checkpoint.serde.registry import (
    is_builtin_subclass,
    is_namedtuple,
    is_pydantic_model,
    is_record,
    name_of,
    replaced,
)

MESSAGES = "pregel.messages."

Parts = list[Any]
"""What is stored of an object; the name of its class comes first."""


@dataclass(slots=True, frozen=True)
class Kind:
    """A kind of user class. `writer` and `reader` are made once for each class and used for each object."""

    code: int
    is_a: str
    has: Callable[[type], bool]
    writer: Callable[[Any, str], Callable[[Any], Parts]]
    reader: Callable[[Any], Callable[[Parts], Any]]


def kind_of(cls: type) -> Kind | None:
    """What kind of storable class this is, if any."""
    return next((kind for kind in KINDS if kind.has(cls)), None)


def codec_of(cls: type, allowed: Callable[[type], bool]) -> Codec:
    """How instances of a class are stored; Refused when they cannot be, with the reason."""
    kind = kind_of(cls)
    if kind is None:
        raise refusal(cls)
    if kind.code == MESSAGE and cls.__module__.startswith(MESSAGES):
        return Codec(MESSAGE, kind.writer(cls, cls.__name__), tuple)
    name = name_of(cls)
    if not allowed(cls):
        raise _replaced(name) if cls in replaced else _unregistered(cls, name)
    names = cls._fields if kind.code == NAMEDTUPLE else ()  # type: ignore[attr-defined]
    return Codec(kind.code, kind.writer(cls, name), tuple, names=names)


def reader_of(cls: type, code: int) -> Callable[[Parts], Any]:
    """Makes objects of a class from what was stored of them under this code."""
    kind = kind_of(cls)
    if kind is None or kind.code != code:
        was = next((kind.is_a for kind in KINDS if kind.code == code), "something else")
        raise ValueError(f"{name_of(cls)} was stored as {was}, and is {kind.is_a if kind else 'none'} now")
    return kind.reader(cls)


def _unregistered(cls: type, name: str) -> Refused:
    ways = f"call register_types([{cls.__name__}]) or JsonPlusSerializer(allow=[...])"
    if "<locals>" in name:
        ways += "; better move it to the top of a module, so that other processes find it"
    return Refused(f"the class {name} is not registered", f"Use it in the state schema, or {ways}.")


def _replaced(name: str) -> Refused:
    return Refused(
        f"the class {name} was defined anew since, and this object is of the old one",
        "Make the object again, and give two classes two names.",
    )


def refusal(cls: type) -> Refused:
    """Why objects of a class cannot be stored at all."""
    name = f"{cls.__module__}.{cls.__qualname__}".removeprefix("builtins.")
    if issubclass(cls, BaseException):
        return Refused(f"an exception ({name}) does not survive storing", "Store repr(error) or its fields.")
    if cls.__module__.startswith("pydantic.v1"):
        return Refused(f"{name} is a model of pydantic 1", "Derive it from pydantic.BaseModel.")
    base = builtin_base(cls)
    if base is not object and base is not cls:
        return Refused(
            f"a {name} would come back as a plain {base.__name__}",
            f"Store a {base.__name__}, convert it when you read.",
        )
    return Refused(
        f"objects of type {name} cannot be stored",
        "Store plain data, a dataclass, a pydantic model or a message; keep connections and locks out of the state.",
    )


# -- enums -------------------------------------------------------------------------------------------------------------


def _enum_writer(cls: Any, name: str) -> Callable[[Any], Parts]:
    members = cls.__members__

    def dump(value: Any) -> Parts:
        if members.get(value.name) is not value:
            raise Refused(f"{value!r} is not among the members of its enum", "Store a member.")
        return [name, value.name]

    return dump


def _enum_reader(cls: Any) -> Callable[[Parts], Any]:
    members = cls.__members__
    return lambda parts: members[parts[1]]


def _flag_writer(cls: Any, name: str) -> Callable[[Any], Parts]:
    return lambda value: [name, value.value]


def _flag_reader(cls: Any) -> Callable[[Parts], Any]:
    def load(parts: Parts) -> Any:
        return cls(checked(parts[1], int))

    return load


# -- named tuples and kinds of builtins --------------------------------------------------------------------------------


def _namedtuple_writer(cls: Any, name: str) -> Callable[[Any], Parts]:
    attributes = Attributes(cls)

    def dump(value: Any) -> Parts:
        held = attributes.of(value)
        items = [*tuple.__iter__(value)]
        return [name, items, held] if held else [name, items]

    return dump


def _namedtuple_reader(cls: Any) -> Callable[[Parts], Any]:
    attributes, size = Attributes(cls), len(cls._fields)

    def load(parts: Parts) -> Any:
        items = checked(parts[1], list)
        value = tuple.__new__(cls, items) if len(items) == size else cls(*items)
        if len(parts) > 2:
            attributes.set(value, parts[2])
        return value

    return load


CONTENT: dict[type, Callable[[Any], Any]] = {
    list: lambda value: [*list.__iter__(value)],
    dict: lambda value: {key: dict.__getitem__(value, key) for key in dict.__iter__(value)},
    tuple: lambda value: (*tuple.__iter__(value),),
    set: lambda value: {*set.__iter__(value)},
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    bytearray: lambda value: bytearray(bytearray.__getitem__(value, slice(None))),
    int: int.__int__,
    float: float.__float__,
    complex: complex.__complex__,
}
FILL: dict[type, Callable[[Any, Any], None]] = {
    list: list.extend,
    dict: dict.update,
    set: set.update,
    bytearray: bytearray.extend,
}


def _subclass_writer(cls: type, name: str) -> Callable[[Any], Parts]:
    attributes, content = Attributes(cls), CONTENT[builtin_base(cls)]

    def dump(value: Any) -> Parts:
        held = attributes.of(value)
        return [name, content(value), held] if held else [name, content(value)]

    return dump


def _subclass_reader(cls: type) -> Callable[[Parts], Any]:
    attributes = Attributes(cls)
    base = builtin_base(cls)
    new: Callable[..., Any] = base.__new__
    fill = FILL.get(base)

    def load(parts: Parts) -> Any:
        content = parts[1]
        if type(content) is not base:
            raise ValueError(f"{name_of(cls)} was stored as a {type(content).__name__}, and is a {base.__name__} now")
        if fill is None:
            value = new(cls, content)
        else:
            value = new(cls)
            fill(value, content)
        if len(parts) > 2:
            attributes.set(value, parts[2])
        return value

    return load


# -- dataclasses and attrs classes -------------------------------------------------------------------------------------


def _record_writer(cls: type, name: str) -> Callable[[Any], Parts]:
    if not is_plain_object(cls):
        raise refusal(cls)
    attributes = Attributes(cls)
    return lambda value: [name, attributes.of(value)]


def _record_reader(cls: Any) -> Callable[[Parts], Any]:
    attributes = Attributes(cls)
    arguments, always = _fields(cls)
    needed = frozenset(name for name in always if _is_kept_by_name(cls, name, attributes))

    def load(parts: Parts) -> Any:
        held: dict[str, Any] = checked(parts[1], dict)
        if not needed <= held.keys():
            return cls(**{argument: held[name] for name, argument in arguments.items() if name in held})
        value = object.__new__(cls)
        attributes.set(value, held)
        return value

    return load


def _fields(cls: Any) -> tuple[dict[str, str], set[str]]:
    """The constructor's argument for each field that it takes; and the fields that it never leaves unset."""
    if not dataclasses.is_dataclass(cls):
        attrs: Any = cls.__attrs_attrs__
        return {one.name: one.alias for one in attrs if one.init}, {one.name for one in attrs}
    fields, unset = dataclasses.fields(cls), dataclasses.MISSING
    arguments = {one.name: one.name for one in fields if one.init}
    filled = {one.name for one in fields if one.default is not unset or one.default_factory is not unset}
    return arguments, filled | arguments.keys()


def _is_kept_by_name(cls: type, name: str, attributes: Attributes) -> bool:
    """Whether a field's value lies under its own name: a descriptor may keep it elsewhere."""
    return name in attributes.members or not inspect.isdatadescriptor(inspect.getattr_static(cls, name, None))


# -- models and messages -----------------------------------------------------------------------------------------------


def _model_writer(cls: Any, name: str) -> Callable[[Any], Parts]:
    from pregel.checkpoint.serde.pydantic_models import writer

    return writer(cls, name)


def _model_reader(cls: Any) -> Callable[[Parts], Any]:
    from pregel.checkpoint.serde.pydantic_models import reader

    return reader(cls)


def _is_message(cls: type) -> bool:
    return any(base.__module__ == f"{MESSAGES}base" and base.__name__ == "BaseMessage" for base in cls.__mro__)


def _message_writer(cls: Any, name: str) -> Callable[[Any], Parts]:
    from pregel.checkpoint.serde.messages import writer

    return writer(cls, name)


def _message_reader(cls: Any) -> Callable[[Parts], Any]:
    from pregel.checkpoint.serde.messages import reader

    return reader(cls)


def _is_exception(cls: type) -> bool:
    return issubclass(cls, BaseException)


KINDS = (
    Kind(FLAG, "a flag", lambda cls: issubclass(cls, Flag), _flag_writer, _flag_reader),
    Kind(ENUM, "an enum", lambda cls: issubclass(cls, Enum), _enum_writer, _enum_reader),
    Kind(NAMEDTUPLE, "a named tuple", is_namedtuple, _namedtuple_writer, _namedtuple_reader),
    Kind(MESSAGE, "a message", _is_message, _message_writer, _message_reader),
    Kind(PYDANTIC, "a model", is_pydantic_model, _model_writer, _model_reader),
    Kind(SUBCLASS, "a kind of builtin", is_builtin_subclass, _subclass_writer, _subclass_reader),
    Kind(
        DATACLASS, "a dataclass", lambda cls: is_record(cls) and not _is_exception(cls), _record_writer, _record_reader
    ),
)
USER_CODES = frozenset(kind.code for kind in KINDS)
