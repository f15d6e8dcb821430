"""User classes as stored values: enums, dataclasses, named tuples, pydantic models, messages.

1. Only a registered class is stored or loaded. Bytes that name any other are refused; nothing is imported.
2. An object comes back with the attributes it had, without its constructor. If the class has other fields now, the
   class itself decides (its constructor or its validation), and what does not fit is an error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import Enum, Flag
from typing import Any

from pregel.checkpoint.serde.codecs import DATACLASS, ENUM, FLAG, MESSAGE, NAMEDTUPLE, PYDANTIC, Codec, Refused
from pregel.checkpoint.serde.registry import is_namedtuple, is_pydantic_model, name_of

BUILTINS = (list, dict, tuple, set, frozenset, str, bytes, bytearray, int, float, complex)
MESSAGES = "pregel.messages"

Find = Callable[[str], type]
"""The registered class of that name."""


def codec_of(cls: type, allowed: Callable[[type], bool]) -> Codec:
    """How instances of a class are stored; Refused when they cannot be, with the reason."""
    name = name_of(cls)
    message = message_codec(cls)
    if message is not None and message[0]:
        return message[1]
    kind = message[1] if message else _codec_of_kind(cls, name)
    if kind is None:
        raise _refusal(cls)
    if not allowed(cls):
        raise Refused(
            f"the class {name} is not registered",
            f"Use it in the state schema, or call register_types([{cls.__name__}]) or JsonPlusSerializer(allow=[...]).",
        )
    return kind


def message_codec(cls: type) -> tuple[bool, Codec] | None:
    """For a message class: whether it is ours (always allowed), and its codec."""
    if not any(base.__module__ == f"{MESSAGES}.base" and base.__name__ == "BaseMessage" for base in cls.__mro__):
        return None
    ours = cls.__module__.startswith(f"{MESSAGES}.")
    name = cls.__name__ if ours else name_of(cls)
    return ours, Codec(MESSAGE, lambda value: [name, value.to_fields()], tuple)


def _codec_of_kind(cls: type, name: str) -> Codec | None:
    if issubclass(cls, Flag):
        return Codec(FLAG, lambda value: [name, value.value], tuple)
    if issubclass(cls, Enum):
        return Codec(ENUM, lambda value: [name, value.name], tuple)
    if is_namedtuple(cls):
        return Codec(NAMEDTUPLE, lambda value: [name, list(value)], tuple)
    if issubclass(cls, BUILTINS):
        return None
    if is_pydantic_model(cls):
        from pregel.checkpoint.serde.pydantic_models import dump_model

        return Codec(PYDANTIC, lambda value: [name, *dump_model(value)], tuple)
    if dataclasses.is_dataclass(cls):
        return Codec(DATACLASS, lambda value: [name, attributes(value)], tuple)
    return None


def _refusal(cls: type) -> Refused:
    name = f"{cls.__module__}.{cls.__qualname__}".removeprefix("builtins.")
    base = next((base for base in BUILTINS if issubclass(cls, base) and base is not cls), None)
    if base is not None:
        return Refused(
            f"a {name} would come back as a plain {base.__name__}",
            f"Store a {base.__name__}, convert it when you read.",
        )
    if issubclass(cls, BaseException):
        return Refused(f"an exception ({name}) does not survive storing", "Store repr(error) or its fields.")
    return Refused(
        f"objects of type {name} cannot be stored",
        "Store plain data, a dataclass, a pydantic model or a message; keep connections and locks out of the state.",
    )


def attributes(value: Any) -> dict[str, Any]:
    """What an instance holds: its __dict__, and its filled slots."""
    held = dict(value.__dict__) if hasattr(value, "__dict__") else {}
    for field in dataclasses.fields(value):
        if field.name not in held and hasattr(value, field.name):
            held[field.name] = getattr(value, field.name)
    return held


# -- back again --------------------------------------------------------------------------------------------------------


def load_enum(find: Find, parts: list[Any]) -> Any:
    return find(parts[0])[parts[1]]  # type: ignore[index]


def load_flag(find: Find, parts: list[Any]) -> Any:
    return find(parts[0])(parts[1])


def load_namedtuple(find: Find, parts: list[Any]) -> Any:
    cls: Any = find(parts[0])
    return tuple.__new__(cls, parts[1]) if len(parts[1]) == len(cls._fields) else cls(*parts[1])


def load_dataclass(find: Find, parts: list[Any]) -> Any:
    cls: Any = find(parts[0])
    held: dict[str, Any] = parts[1]
    fields = dataclasses.fields(cls)
    if not all(field.name in held for field in fields if field.init):
        return cls(**{field.name: held[field.name] for field in fields if field.init and field.name in held})
    value = object.__new__(cls)
    names = held if hasattr(value, "__dict__") else held.keys() & {field.name for field in fields}
    for name in names:
        object.__setattr__(value, name, held[name])
    return value


def load_pydantic(find: Find, parts: list[Any]) -> Any:
    from pregel.checkpoint.serde.pydantic_models import load_model

    return load_model(find(parts[0]), parts[1:])


def load_message(find: Find, parts: list[Any]) -> Any:
    name = parts[0]
    if ":" in name:
        cls: Any = find(name)
    else:
        from pregel import messages

        cls = getattr(messages, name, None)
        if not (isinstance(cls, type) and issubclass(cls, messages.BaseMessage)):
            raise ValueError(f"there is no message class {name!r}")
    return cls.from_fields(parts[1])


LOADERS: dict[int, Callable[[Find, list[Any]], Any]] = {
    ENUM: load_enum,
    FLAG: load_flag,
    NAMEDTUPLE: load_namedtuple,
    DATACLASS: load_dataclass,
    PYDANTIC: load_pydantic,
    MESSAGE: load_message,
}
