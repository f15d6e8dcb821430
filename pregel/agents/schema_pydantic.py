"""JSON Schemas and validation, by pydantic: the only file of the agents that touches it.

1. `Arguments` is what a tool takes: read off a function's signature, a model, a TypedDict or a JSON Schema.
2. What the model is shown has no titles. What it sends is validated, and the function gets the validated objects,
   never their dumps. A JSON Schema given as a dict is shown; only what it requires has to be there.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from pregel.agents.dict_schemas import missing
from pregel.agents.typed_dicts import checkable
from pregel.errors import DefinitionError
from pregel.extras import extra

if TYPE_CHECKING:
    from pydantic import BaseModel


def _pydantic() -> ModuleType:
    with extra("agents", "A schema of a tool or an answer"):
        import pydantic
        import pydantic.errors
        import pydantic.fields
    return pydantic


class InvalidArguments(ValueError):
    """What a schema found wrong: `problems` are (where, what) pairs."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        self.problems = problems
        super().__init__("\n".join(f"{where}: {what}" for where, what in problems))


class Arguments:
    """The arguments of a tool: `json_schema` shows them, `validated` checks and completes them.

    `is_checked`: False leaves it to whoever takes them to say what is missing.
    """

    def __init__(self, schema: Any, *, is_checked: bool = True) -> None:
        self.schema = schema
        self.is_checked = is_checked

    @classmethod
    def of_function(
        cls, name: str, function: Callable[..., Any], hints: Mapping[str, Any], texts: Mapping[str, str]
    ) -> Arguments:
        """The parameters named in `hints`, with the descriptions in `texts`."""
        parameters = inspect.signature(function).parameters
        fields = {key: _field(parameters[key], checkable(hint), texts.get(key)) for key, hint in hints.items()}
        takes_all = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
        config = {"arbitrary_types_allowed": True, "extra": "allow" if takes_all else "ignore"}
        return cls(_pydantic().create_model(name, __config__=config, **dict(_named(*one) for one in fields.items())))

    @cached_property
    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of an object, without titles."""
        if isinstance(self.schema, Mapping):
            return dict(self.schema)
        shown: dict[str, Any] = untitled(json_schema(self.schema))
        shown.pop("description", None)
        return shown

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments."""
        return tuple(self.json_schema.get("properties", {}))

    def validated(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function takes them: those given and those with a default. InvalidArguments."""
        if isinstance(self.schema, Mapping):
            if self.is_checked and (names := missing(self.schema, arguments)):
                raise InvalidArguments([(name, "Field required") for name in names])
            return dict(arguments)
        made = parsed(self.schema, dict(arguments))
        if not hasattr(type(made), "model_fields"):
            return dict(made) if isinstance(made, Mapping) else dict(vars(made))
        model: BaseModel = made
        fields = type(model).model_fields
        values = {
            field.alias or key: getattr(model, key) for key, field in fields.items() if _counts(model, key, field)
        }
        return {**values, **(model.model_extra or {})}

    def closed(self) -> Arguments:
        """The same arguments of a function, with any other one refused."""
        fields = {key: (field.annotation, field) for key, field in self.schema.model_fields.items()}
        config = {**self.schema.model_config, "extra": "forbid"}
        return Arguments(_pydantic().create_model(self.schema.__name__, __config__=config, **fields))

    def without(self, hidden: set[str]) -> Arguments:
        """The same arguments without some of them."""
        if isinstance(self.schema, Mapping):
            properties = {key: one for key, one in self.schema.get("properties", {}).items() if key not in hidden}
            required = [key for key in self.schema.get("required", []) if key not in hidden]
            return Arguments(
                {**self.schema, "properties": properties, "required": required}, is_checked=self.is_checked
            )
        fields = {
            key: (field.annotation, field) for key, field in self.schema.model_fields.items() if key not in hidden
        }
        made = _pydantic().create_model(self.schema.__name__, __config__=self.schema.model_config, **fields)
        return Arguments(made)


def _counts(model: BaseModel, key: str, field: Any) -> bool:
    return key in model.model_fields_set or not field.is_required()


def _field(parameter: inspect.Parameter, hint: Any, text: str | None) -> tuple[Any, Any]:
    pydantic = _pydantic()
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    text = text or next((one for one in _metadata(hint) if isinstance(one, str)), None)
    if isinstance(default, pydantic.fields.FieldInfo):
        return hint, default
    return (Annotated[hint, pydantic.Field(description=text)] if text else hint), default


def _metadata(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def _named(key: str, field: tuple[Any, Any]) -> tuple[str, tuple[Any, Any]]:
    """A field under a name that pydantic takes; an alias says what it is really called."""
    pydantic = _pydantic()
    hint, default = field
    if not (key.startswith(("_", "model_")) or hasattr(pydantic.BaseModel, key)):
        return key, field
    return f"{key.strip('_')}_argument", (hint, pydantic.Field(default, alias=key))


# -- any schema --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _adapter(schema: Any) -> Any:
    return _pydantic().TypeAdapter(checkable(schema))


def parsed(schema: Any, value: Any) -> Any:
    """The value as the schema's type; a dict schema checks nothing. InvalidArguments when it does not fit."""
    if isinstance(schema, Mapping):
        return value
    pydantic = _pydantic()
    try:
        return _adapter(schema).validate_python(value)
    except pydantic.ValidationError as error:
        raise InvalidArguments(_problems(error)) from error


def json_schema(schema: Any) -> dict[str, Any]:
    """The JSON Schema of a type, a model or a TypedDict; a dict is one already."""
    if isinstance(schema, Mapping):
        return dict(schema)
    pydantic = _pydantic()
    try:
        return dict(_adapter(schema).json_schema())
    except (pydantic.PydanticUserError, pydantic.errors.PydanticSchemaGenerationError) as error:
        raise DefinitionError(
            f"{schema!r} has no JSON Schema: {error}", fix="Annotate with types that JSON can carry."
        ) from error


def is_validation_error(error: BaseException) -> bool:
    """Whether pydantic raised it."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(error, pydantic.ValidationError)


def dumped(value: Any) -> Any:
    """What a pydantic model holds, for JSON; anything else as it is."""
    return value.model_dump(mode="json") if hasattr(type(value), "model_dump") else value


def _problems(error: Any) -> list[tuple[str, str]]:
    return [(".".join(map(str, one["loc"])), one["msg"]) for one in error.errors(include_url=False)]


def untitled(schema: Any) -> Any:
    """A JSON Schema without its titles; a property that is called title stays."""
    if isinstance(schema, list):
        return [untitled(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: untitled(one) for name, one in value.items()} if key in ("properties", "$defs") else untitled(value)
        for key, value in schema.items()
        if key != "title" or not isinstance(value, str)
    }
