"""Messages as stored values: the fields that differ from their defaults, and the message again, unchecked.

A conversation is read and written whole, so both ways are worked out once for each class, not for each message.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from pregel import messages
from pregel.checkpoint.serde.attributes import Attributes
from pregel.messages import BaseMessage
from pregel.messages.base import REQUIRED

Fields = dict[str, Any]


def message_class(name: str) -> type[BaseMessage]:
    """The message class of ours that has this name."""
    cls = getattr(messages, name, None)
    if not (isinstance(cls, type) and issubclass(cls, BaseMessage)):
        raise ValueError(f"there is no message class {name!r}")
    return cls


# -- writing -----------------------------------------------------------------------------------------------------------


def writer(cls: type[BaseMessage], name: str) -> Callable[[Any], list[Any]]:
    """Gives the parts to store of a message: the name, its fields, and what a class of the user's holds beside them."""
    fields_of = _fields_of(cls)
    if ":" not in name:
        return lambda message: [name, fields_of(message)]
    attributes = Attributes(cls)

    def dump(message: Any) -> list[Any]:
        fields = fields_of(message)
        beside = {key: part for key, part in attributes.of(message).items() if key not in cls.DEFAULTS}
        del beside["extra"]
        return [name, fields, beside] if beside else [name, fields]

    return dump


def _fields_of(cls: type[BaseMessage]) -> Callable[[Any], Fields]:
    if cls.to_fields is not BaseMessage.to_fields:
        return cls.to_fields
    names, defaults = tuple(cls.DEFAULTS), tuple(cls.DEFAULTS.values())
    values_of: Callable[[Any], tuple[Any, ...]] = attrgetter(*names)

    def fields_of(message: BaseMessage) -> Fields:
        fields = {
            name: value
            for name, value, default in zip(names, values_of(message), defaults, strict=True)
            if value is not default
            and (value or value.__class__ is not default)  # {} where the default is `dict`
            and (value.__class__ is not str or value != default)
        }
        if message.extra is not None:
            fields["extra"] = message.extra
        return fields

    return fields_of


# -- reading -----------------------------------------------------------------------------------------------------------


def reader(cls: type[BaseMessage]) -> Callable[[list[Any]], BaseMessage]:
    """Gives the message that `writer` took apart."""
    build = _built(cls)
    if cls.__module__.startswith("pregel.messages."):
        return lambda parts: build(parts[1])
    attributes = Attributes(cls)

    def load(parts: list[Any]) -> BaseMessage:
        message = build(parts[1])
        if len(parts) > 2:
            attributes.set(message, parts[2])
        return message

    return load


def _built(cls: type[BaseMessage]) -> Callable[[Fields], BaseMessage]:
    if cls.from_fields.__func__ is not BaseMessage.from_fields.__func__:  # type: ignore[attr-defined]
        return cls.from_fields
    make: Callable[[type[BaseMessage]], BaseMessage] = object.__new__
    made = [(name, default) for name, default in cls.DEFAULTS.items() if default is dict or default is list]
    fixed = [(name, default) for name, default in cls.DEFAULTS.items() if (name, default) not in made]
    fixed = [(name, default) for name, default in fixed if default is not REQUIRED]
    required = {name for name, default in cls.DEFAULTS.items() if default is REQUIRED}

    def build(fields: Fields) -> BaseMessage:
        if not required <= fields.keys():
            raise ValueError(f"a {cls.__name__} lacks {', '.join(sorted(required - fields.keys()))}")
        message = make(cls)
        for name, factory in made:
            setattr(message, name, factory())
        for name, default in fixed:
            setattr(message, name, default)
        message.extra = None
        for name, value in fields.items():
            setattr(message, name, value)
        return message

    return build
