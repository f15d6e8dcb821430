"""The only file that touches pydantic: it is never loaded by us for a graph that does not use it.

1. A schema is a model only when somebody loaded pydantic, so `sys.modules` says all there is to know.
2. One field is checked the way its model would check it: annotation, constraints and field validators. Validators of
   the whole model need all fields; they run when a node's input is built.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Annotated, Any

from pregel.extras import extra

Check = Callable[[Any], Any]
NO_KEYS: Mapping[str, tuple[Any, Any]] = {}


def is_model(schema: Any) -> bool:
    """Whether it is a pydantic model class or a pydantic dataclass."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or not isinstance(schema, type):
        return False
    return issubclass(schema, pydantic.BaseModel) or hasattr(schema, "__pydantic_fields__")


def field_names(schema: Any) -> tuple[str, ...]:
    """The names of a model's fields."""
    return tuple(_fields(schema))


def default_factory(schema: Any, key: str) -> Callable[[], Any] | None:
    """What makes the default of a field; None when it has none, or one that depends on other fields."""
    field = _fields(schema)[key]
    if field.is_required() or getattr(field, "default_factory_takes_validated_data", False):
        return None
    return lambda: field.get_default(call_default_factory=True)


def field_metadata(schema: Any, key: str) -> list[Any]:
    """What stands beside the type in the annotation of a field: constraints, a reducer."""
    found: list[Any] = _fields(schema)[key].metadata
    return found


def fields_set(instance: Any) -> frozenset[str] | None:
    """The fields that were given or assigned; None for a pydantic dataclass, which does not know."""
    given = getattr(instance, "__pydantic_fields_set__", None)
    return None if given is None else frozenset(given)


def constructor(schema: Any) -> Callable[[Mapping[str, Any]], Any]:
    """What makes the instance from values by field name, also where a field has an alias."""
    inputs = {key: _input_name(schema, key, field) for key, field in _fields(schema).items()}
    if all(key == name for key, name in inputs.items()):
        return lambda values: schema(**values)
    return lambda values: schema(**{inputs.get(key, key): value for key, value in values.items()})


def field_check(schema: Any, key: str) -> Check:
    """What a field makes of a value; pydantic's ValidationError when it does not fit."""
    pydantic = sys.modules["pydantic"]
    field = copy.copy(_fields(schema)[key])
    annotation = Annotated[(field.annotation, *_validators(pydantic, schema, key))] if _own(schema, key) else None
    config = getattr(schema, "model_config", None) or getattr(schema, "__pydantic_config__", None)
    model = pydantic.create_model(
        schema.__name__,
        __config__=config,
        __module__=schema.__module__,
        **{key: (annotation or field.annotation, field)},
    )
    name = _input_name(model, key, _fields(model)[key])
    return lambda value: getattr(model.model_validate({name: value}), key)


def json_schema(schema: Any) -> dict[str, Any] | None:
    """The JSON schema of a type as pydantic sees it; None when pydantic is not installed or does not know the type."""
    try:
        import pydantic
    except ImportError:
        return None
    try:
        return pydantic.TypeAdapter(schema).json_schema()
    except (pydantic.PydanticUserError, pydantic.errors.PydanticSchemaGenerationError):
        return None


def model_of(schema: Any, name: str, keys: Mapping[str, tuple[Any, Any]] = NO_KEYS) -> type:
    """A model with these keys, each an annotation and a default (``...``: none); a schema that is a model itself.

    Without keys it is a model of one value, the schema's.
    """
    with extra("agents", f"the model {name}", instead="get_input_jsonschema()"):
        import pydantic
    if isinstance(schema, type) and issubclass(schema, pydantic.BaseModel):
        return schema
    fields: dict[str, Any] = {key: (_known(pydantic, hint), default) for key, (hint, default) in keys.items()}
    if not fields:
        root: Any = pydantic.RootModel
        return type(name, (root[_known(pydantic, schema)],), {"__module__": __name__})
    model: type = pydantic.create_model(name, __config__=pydantic.ConfigDict(arbitrary_types_allowed=True), **fields)
    return model


def _known(pydantic: ModuleType, hint: Any) -> Any:
    """The annotation; Any for one that pydantic does not take."""
    try:
        pydantic.TypeAdapter(hint, config=None)
    except (pydantic.PydanticUserError, pydantic.errors.PydanticSchemaGenerationError):
        return Any
    return hint


def _fields(schema: Any) -> Mapping[str, Any]:
    fields: Mapping[str, Any] | None = schema.__dict__.get("__pydantic_fields__")
    return schema.model_fields if fields is None else fields


def _decorators(schema: Any) -> Mapping[str, Any]:
    decorators = getattr(schema, "__pydantic_decorators__", None)
    return decorators.field_validators if decorators is not None else {}


def _own(schema: Any, key: str) -> list[Any]:
    """The field validators of a class that look at this field."""
    return [one for one in _decorators(schema).values() if {key, "*"} & set(one.info.fields)]


def _validators(pydantic: ModuleType, schema: Any, key: str) -> list[Any]:
    kinds = {
        "before": pydantic.BeforeValidator,
        "after": pydantic.AfterValidator,
        "plain": pydantic.PlainValidator,
        "wrap": pydantic.WrapValidator,
    }
    return [kinds[one.info.mode](one.func) for one in _own(schema, key)]


def _input_name(schema: Any, key: str, field: Any) -> str:
    """The name under which a constructor takes a field."""
    config = getattr(schema, "model_config", None) or getattr(schema, "__pydantic_config__", None) or {}
    if config.get("populate_by_name") or config.get("validate_by_name"):
        return key
    alias = field.validation_alias or field.alias
    return alias if isinstance(alias, str) else key
