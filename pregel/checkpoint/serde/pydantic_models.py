"""Pydantic's own types as stored values: models, URLs, secrets, and the fixed time zones that it gives parsed times.

1. A model comes back with what it held, its validators do not run. One whose fields changed since it was stored is
   validated instead, so that its own rules decide; private attributes that are new take their defaults.
2. A secret is stored only by a serialiser that encrypts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from pregel.checkpoint.serde.attributes import Attributes
from pregel.checkpoint.serde.codecs import FIXED_ZONE, SECRET, URL, Codec, Refused, checked

Parts = list[Any]
SECRETS = ("SecretStr", "SecretBytes", "Secret")


# -- models ------------------------------------------------------------------------------------------------------------


def writer(cls: Any, name: str) -> Callable[[Any], Parts]:
    """Gives of a model: field values, the names that were set explicitly, extra values, private attributes."""
    attributes = Attributes(cls)
    slots = [slot for slot in attributes.members if not slot.startswith("__pydantic_")]
    if slots:
        raise Refused(f"the model {cls.__name__} has slots of its own ({', '.join(slots)})", "Make them fields.")

    worked_out = attributes.left_out - {"__orig_class__", *cls.model_fields}

    def dump(model: Any) -> Parts:
        held = model.__dict__.copy()
        for key in worked_out:
            held.pop(key, None)
        return [name, held, sorted(model.__pydantic_fields_set__), model.__pydantic_extra__, model.__pydantic_private__]

    return dump


def reader(cls: Any) -> Callable[[Parts], Any]:
    """Gives the model again."""
    fields = cls.model_fields.keys()
    known = {*fields, *(name for base in cls.__mro__ for name in vars(base))}  # a cached property lies beside fields
    private_names = cls.__private_attributes__.keys()
    set_attribute = object.__setattr__

    def load(parts: Parts) -> Any:
        _, held, set_names, extra, private = parts
        checked(held, dict)
        checked(set_names, list)
        if not (fields <= held.keys() <= known):
            return _validated(cls, {**{name: held[name] for name in set_names if name in held}, **(extra or {})})
        if private_names and not (private and private_names <= private.keys()):
            private = {**_private_defaults(cls), **(private or {})}
        model = cls.__new__(cls)
        set_attribute(model, "__dict__", held)
        set_attribute(model, "__pydantic_fields_set__", set(set_names))
        set_attribute(model, "__pydantic_extra__", extra)
        set_attribute(model, "__pydantic_private__", private)
        return model

    return load


def _private_defaults(cls: Any) -> dict[str, Any]:
    undefined = _named("pydantic_core", "PydanticUndefined")
    found = {name: part.get_default(call_default_factory=True) for name, part in cls.__private_attributes__.items()}
    return {name: default for name, default in found.items() if default is not undefined}


def _validated(cls: Any, values: dict[str, Any]) -> Any:
    """A model from values by field name, as its class wants it now."""
    if "by_name" in inspect.signature(cls.model_validate).parameters:
        return cls.model_validate(values, by_alias=False, by_name=True)
    alias = {name: field.validation_alias for name, field in cls.model_fields.items()}  # pydantic before 2.11
    named = {name: alias.get(name) for name in values}
    return cls.model_validate({by if isinstance(by, str) else name: values[name] for name, by in named.items()})


# -- other types -------------------------------------------------------------------------------------------------------


def codec_of(cls: type) -> Codec | None:
    """How values of one of pydantic's own types are stored; None for any other class."""
    name = cls.__name__
    if cls is _named("pydantic_core", "TzInfo"):
        return BY_CODE[FIXED_ZONE]
    if name in SECRETS and cls is _named("pydantic", name):
        return Codec(SECRET, lambda value: [name, value.get_secret_value()], _load_secret, secret=True)
    if hasattr(cls, "unicode_string") and cls is _url_class(name):
        return Codec(URL, lambda value: [name, str(value)], _load_url)
    return None


def _named(module: str, name: str) -> Any:
    return getattr(import_module(module), name, None)


def _url_class(name: str) -> Any:
    for module in ("pydantic.networks", "pydantic_core"):
        found = vars(import_module(module)).get(name)  # not getattr: bytes may hold any name, and that may load more
        if isinstance(found, type) and hasattr(found, "unicode_string"):
            return found
    return None


def _load_url(parts: Parts) -> Any:
    name, text = parts
    cls = _url_class(name)
    if cls is None:
        raise ValueError(f"pydantic has no URL class {name!r}")
    return cls(checked(text, str))


def _load_secret(parts: Parts) -> Any:
    name, value = parts
    if checked(name, str) not in SECRETS:
        raise ValueError(f"pydantic has no secret class {name!r}")
    return _named("pydantic", name)(value)


def _dump_fixed_zone(zone: Any) -> Parts:
    return [int(zone.utcoffset(None).total_seconds())]


def _load_fixed_zone(parts: Parts) -> Any:
    return _named("pydantic_core", "TzInfo")(checked(parts[0], int))


BY_CODE: dict[int, Codec] = {
    URL: Codec(URL, list, _load_url),
    FIXED_ZONE: Codec(FIXED_ZONE, _dump_fixed_zone, _load_fixed_zone),
    SECRET: Codec(SECRET, list, _load_secret, secret=True),
}
