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
BASE = ("content", "additional_kwargs", "response_metadata", "name", "id")


def message_class(name: str) -> type[BaseMessage]:
    """The message class of ours that has this name."""
    cls = getattr(messages, name, None)
    if not (isinstance(cls, type) and issubclass(cls, BaseMessage)):
        raise ValueError(f"there is no message class {name!r}")
    return cls


def _is_usual(cls: type[BaseMessage]) -> bool:
    """Whether the fields of every message have their usual defaults."""
    return all(cls.DEFAULTS.get(name, cls) is BaseMessage.DEFAULTS[name] for name in BASE)


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
    if cls.to_fields is not BaseMessage.to_fields or not _is_usual(cls):
        return cls.to_fields
    beside = [(name, default) for name, default in cls.DEFAULTS.items() if name not in BASE]
    if not beside:
        return _base_fields
    names, defaults = tuple(name for name, _ in beside), tuple(default for _, default in beside)
    values_of = attrgetter("id", *names)  # with one more, so that it always gives a tuple

    def fields_of(message: BaseMessage) -> Fields:
        fields = _base_fields(message)
        for name, value, default in zip(names, values_of(message)[1:], defaults, strict=True):
            if value is default or (type(value) is default and not value):  # an empty dict where the default is `dict`
                continue
            if type(value) is not str or value != default:
                fields[name] = value
        return fields

    return fields_of


def _base_fields(message: BaseMessage) -> Fields:
    """The fields of every message that differ from their defaults; written out, since each message passes here."""
    fields: Fields = {"content": message.content}
    value: Any
    if (value := message.additional_kwargs) or type(value) is not dict:
        fields["additional_kwargs"] = value
    if (value := message.response_metadata) or type(value) is not dict:
        fields["response_metadata"] = value
    if (value := message.name) is not None:
        fields["name"] = value
    if (value := message.id) is not None:
        fields["id"] = value
    if (value := message.extra) is not None:
        fields["extra"] = value
    return fields


# -- reading -----------------------------------------------------------------------------------------------------------


def reader(cls: type[BaseMessage]) -> Callable[[list[Any]], BaseMessage]:
    """Gives the message that `writer` took apart."""
    if cls.from_fields.__func__ is not BaseMessage.from_fields.__func__ or not _is_usual(cls):  # type: ignore[attr-defined]
        build: Callable[[list[Any]], BaseMessage] = lambda parts: cls.from_fields(parts[1])  # noqa: E731
    else:
        build = _builder(cls)
    if cls.__module__.startswith("pregel.messages."):
        return build
    attributes = Attributes(cls)

    def load(parts: list[Any]) -> BaseMessage:
        message = build(parts)
        if len(parts) > 2:
            attributes.set(message, parts[2])
        return message

    return load


def _builder(cls: type[BaseMessage]) -> Callable[[list[Any]], BaseMessage]:
    make: Callable[[type[BaseMessage]], BaseMessage] = object.__new__
    beside = [(name, default) for name, default in cls.DEFAULTS.items() if name not in BASE]
    made = [(name, default) for name, default in beside if default is dict or default is list]
    fixed = [(name, default) for name, default in beside if default is not dict and default is not list]
    required = [name for name, default in cls.DEFAULTS.items() if default is REQUIRED]

    def build(parts: list[Any]) -> BaseMessage:
        fields = parts[1]
        for name in required:
            if name not in fields:
                raise ValueError(f"a {cls.__name__} lacks its {name}")
        message = make(cls)
        message.additional_kwargs = {}
        message.response_metadata = {}
        message.name = message.id = message.extra = None
        for name, factory in made:
            setattr(message, name, factory())
        for name, default in fixed:
            setattr(message, name, default)
        for name, value in fields.items():
            setattr(message, name, value)
        return message

    return build
