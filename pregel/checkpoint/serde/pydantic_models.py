"""Pydantic models as stored values: what a model holds, and the model again, without running its validators.

A model whose fields changed since it was stored is validated instead, so that its own rules decide.
"""

from __future__ import annotations

from typing import Any


def dump_model(model: Any) -> list[Any]:
    """Field values, the names that were set explicitly, extra values, private attributes."""
    private = model.__pydantic_private__
    return [dict(model.__dict__), sorted(model.model_fields_set), model.__pydantic_extra__, private]


def load_model(cls: Any, parts: list[Any]) -> Any:
    """The model that `dump_model` was given."""
    fields, set_names, extra, private = parts
    if not (cls.model_fields.keys() <= fields.keys() <= {*cls.model_fields, *vars(cls)}):
        return cls.model_validate({**{name: fields[name] for name in set_names if name in fields}, **(extra or {})})
    model = cls.__new__(cls)
    set_attribute = object.__setattr__
    set_attribute(model, "__dict__", fields)
    set_attribute(model, "__pydantic_fields_set__", set(set_names))
    set_attribute(model, "__pydantic_extra__", extra)
    set_attribute(model, "__pydantic_private__", private)
    return model
