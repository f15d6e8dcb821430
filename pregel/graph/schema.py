"""What a state schema says: its keys, and the channel or managed value behind each.

For each annotated key the first of these that applies: a managed value named last in ``Annotated``; a channel (instance
or class) anywhere in it; a reducer of two arguments named last in it; otherwise the last value wins. A schema without
annotations, like ``dict`` or ``Annotated[list, add]``, is one channel called ``__root__``.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, NotRequired, Required, TypeAlias, get_args, get_origin, get_type_hints

from typing_extensions import ReadOnly, is_typeddict

from pregel.channels import BaseChannel, BinaryOperatorAggregate, DeltaChannel, LastValue
from pregel.constants import ROOT
from pregel.errors import DefinitionError
from pregel.graph import pydantic_adapter
from pregel.managed import ManagedValueSpec, is_managed_value

Channel: TypeAlias = BaseChannel[Any, Any, Any]
Mapper: TypeAlias = Callable[[Mapping[str, Any]], Any]
KeyMap: TypeAlias = dict[str, "Channel | ManagedValueSpec"]


def read_schema(schema: Any) -> KeyMap:
    """The channel or managed value of every key of a schema."""
    if not is_annotated(schema):
        return {ROOT: _channel(schema, ROOT, schema)}
    return {key: _managed(hint) or _channel(schema, key, hint) for key, hint in annotations_of(schema).items()}


def is_annotated(schema: Any) -> bool:
    """Whether a schema has keys; otherwise it is one channel."""
    return hasattr(_class(schema), "__annotations__")


def annotations_of(schema: Any) -> dict[str, Any]:
    """The annotation of every key, inherited ones first; methods, class variables and private fields are no keys."""
    cls = _class(schema)
    try:
        # a name in what a typed dict inherits is its base's module's, whatever this module calls so
        hints = get_type_hints(cls, localns={} if is_typeddict(cls) else None, include_extras=True)
    except NameError as error:
        error.add_note(f"An annotation of the schema {cls.__name__} names a type that its module does not have.")
        raise
    if pydantic_adapter.is_model(cls):
        return {key: hints[key] for key in pydantic_adapter.field_names(cls)}
    if dataclasses.is_dataclass(cls):
        fields = {field.name for field in dataclasses.fields(cls)}
        return {key: hint for key, hint in hints.items() if key in fields}
    return {key: hint for key, hint in hints.items() if key != "__slots__" and get_origin(hint) is not ClassVar}


@lru_cache(maxsize=1024)
def instance_keys(cls: Any) -> tuple[str, ...]:
    """The keys that an instance of a class may carry into the state; its annotations need not resolve."""
    if pydantic_adapter.is_model(cls):
        return pydantic_adapter.field_names(cls)
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    found = [item for base in reversed(cls.__mro__) for item in inspect.get_annotations(base).items()]
    return tuple(dict.fromkeys(key for key, hint in found if "ClassVar" not in str(hint) and key != "__slots__"))


def mapper_of(schema: Any) -> Mapper | None:
    """What turns a dict of values into the schema's instance; None where a dict is already what a node expects."""
    cls = _class(schema)
    if not is_annotated(cls) or not isinstance(cls, type) or issubclass(cls, dict):
        return None
    if pydantic_adapter.is_model(cls):
        return pydantic_adapter.constructor(cls)
    if not dataclasses.is_dataclass(cls):
        return lambda values: cls(**values)
    arguments = {field.name for field in dataclasses.fields(cls) if field.init}
    return lambda values: cls(**{key: value for key, value in values.items() if key in arguments})


def default_of(schema: Any, key: str) -> Callable[[], Any] | None:
    """What makes the default of a key, when its schema gives it one that is not None."""
    cls = _class(schema)
    factory = None
    if pydantic_adapter.is_model(cls):
        factory = pydantic_adapter.default_factory(cls, key)
    elif dataclasses.is_dataclass(cls):
        field = next(field for field in dataclasses.fields(cls) if field.name == key)
        if field.default_factory is not dataclasses.MISSING:
            factory = field.default_factory
        elif field.default is not dataclasses.MISSING:
            factory = _constant(field.default)
    return None if factory is None or factory() is None else factory


def merge_keys(known: KeyMap, news: KeyMap) -> KeyMap:
    """The keys of `news` that are not known yet; DefinitionError where the two disagree."""
    added = {key: value for key, value in news.items() if key not in known}
    for key, value in news.items():
        if key in known and not _agrees(known[key], value):
            raise DefinitionError(
                f"Channel {key!r} already exists with a different type.",
                fix="Declare the key with the same reducer in every schema, in the first one at least.",
            )
    return added


def channel_keys(keys: KeyMap) -> list[str]:
    """The keys that are stored, in order."""
    return [key for key, value in keys.items() if isinstance(value, BaseChannel)]


def managed_keys(keys: KeyMap) -> dict[str, ManagedValueSpec]:
    """The keys that are computed, in order."""
    return {key: value for key, value in keys.items() if not isinstance(value, BaseChannel)}


def _agrees(known: Channel | ManagedValueSpec, new: Channel | ManagedValueSpec) -> bool:
    if isinstance(known, BaseChannel) and isinstance(new, BaseChannel):
        return new == known or isinstance(new, LastValue)
    return known is new


def _class(schema: Any) -> Any:
    """The class of a generic alias such as ``State[int]``; anything else as it is."""
    if isinstance(schema, type):
        return schema
    origin: Any = get_origin(schema)
    is_class = isinstance(origin, type) and origin is not Annotated and hasattr(origin, "__annotations__")
    return origin if is_class else schema


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def _bare(annotation: Any) -> Any:
    while get_origin(annotation) in (Required, NotRequired, ReadOnly):
        annotation = get_args(annotation)[0]
    return annotation


def _metadata(annotation: Any) -> tuple[Any, ...]:
    annotation = _bare(annotation)
    return annotation.__metadata__ if get_origin(annotation) is Annotated else ()


def _managed(annotation: Any) -> ManagedValueSpec | None:
    metadata = _metadata(annotation)
    if metadata and is_managed_value(metadata[-1]):
        return metadata[-1]
    return None


def _channel(schema: Any, key: str, annotation: Any) -> Channel:
    annotation = _bare(annotation)
    metadata = _metadata(annotation)
    typ = _bare(annotation.__origin__) if metadata else annotation
    default = default_of(schema, key) if key != ROOT else None
    channel = _declared(typ, metadata, default) or _reduced(key, typ, metadata, default) or LastValue(annotation)
    if channel.key not in ("", key):
        channel = copy.copy(channel)
    channel.key = key
    return channel


def _declared(typ: Any, metadata: Iterable[Any], default: Callable[[], Any] | None) -> Channel | None:
    """The channel that an annotation names."""
    for item in metadata:
        if isinstance(item, DeltaChannel):
            return DeltaChannel(
                item.reducer,
                typ,
                snapshot_frequency=item.snapshot_frequency,
                name=item.name,
                default_factory=item.default_factory or default,
            )
        if isinstance(item, BaseChannel):
            return item
        if inspect.isclass(item) and issubclass(item, BaseChannel):
            return item(typ)
    return None


def _reduced(key: str, typ: Any, metadata: tuple[Any, ...], default: Callable[[], Any] | None) -> Channel | None:
    """The channel of a reducer."""
    if not metadata or not callable(metadata[-1]):
        return None
    reducer = metadata[-1]
    if _positional(reducer) != 2:
        raise DefinitionError(
            f"Invalid reducer signature of key {key!r}: {reducer!r} must take two positional arguments.",
            fix="Expected (current, update) -> new.",
        )
    return BinaryOperatorAggregate(typ, reducer, default_factory=default)


def _positional(reducer: Callable[..., Any]) -> int:
    """How many positional arguments a reducer takes; built-ins such as ``max`` do not say, and pass."""
    try:
        parameters = inspect.signature(reducer).parameters.values()
    except ValueError:
        return 2
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in kinds for parameter in parameters)
