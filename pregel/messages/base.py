"""What every message is: content, identity and metadata, and how messages compare, copy, dump and print.

1. A message is a plain object with slots. Its class lists its fields in `DEFAULTS`, in order; all else follows from it.
2. Two messages are equal when they are of one class and all fields are, the id included.
3. Unknown keyword arguments are kept in `extra` and can be read as attributes; setting an unknown attribute is an
   error, so that a typo is found.
4. The constructor checks and copies (one level) what it is given; `from_fields` takes what `to_fields` gave as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from operator import attrgetter
from typing import Any, ClassVar, Final, Self

from pregel.errors import InvalidInputError
from pregel.messages.blocks import Blocks, standard_blocks, text_of
from pregel.messages.content import Content
from pregel.messages.fields import GivenBlocks

REQUIRED: Final[Any] = object()
WIDTH = 80  # of the title line of pretty_repr, in characters


class BaseMessage:
    """A message. `content` is text or a list of texts and blocks; `id` is given when it joins a state."""

    __slots__ = ("additional_kwargs", "content", "extra", "id", "name", "response_metadata")

    type: ClassVar[str] = "base"
    DEFAULTS: ClassVar[dict[str, Any]] = {
        "content": REQUIRED,
        "additional_kwargs": dict,
        "response_metadata": dict,
        "name": None,
        "id": None,
    }
    _values: ClassVar[attrgetter[tuple[Any, ...]]]

    content: Content
    additional_kwargs: dict[str, Any]
    response_metadata: dict[str, Any]
    name: str | None
    id: str | None
    extra: dict[str, Any] | None

    def __init__(
        self,
        content: Content | None = None,
        *,
        content_blocks: GivenBlocks | None = None,
        additional_kwargs: Mapping[str, Any] | None = None,
        response_metadata: Mapping[str, Any] | None = None,
        name: str | None = None,
        id: str | float | None = None,
        **extra: Any,
    ) -> None:
        given = content if content_blocks is None else content_blocks
        self.content = given if given.__class__ is str else self._checked_content(given)
        self.additional_kwargs = dict(additional_kwargs) if additional_kwargs else {}
        self.response_metadata = dict(response_metadata) if response_metadata else {}
        self.name = name if name is None or name.__class__ is str else _checked_name(name)
        self.id = id if id is None or id.__class__ is str else _checked_id(id)
        self.extra = self._checked_extra(extra) if extra else None

    def __init_subclass__(cls) -> None:
        cls._values = attrgetter(*cls.DEFAULTS, "extra")

    @classmethod
    def _checked_content(cls, content: object) -> Content:
        if isinstance(content, str):
            return content
        if isinstance(content, (list, tuple)) and all(isinstance(part, (str, dict)) for part in content):
            return list(content)
        raise InvalidInputError(
            f"The content of a {cls.__name__} is {_shown(content)}.",
            fix="Give a str, or a list of str and dict blocks.",
        )

    @classmethod
    def _checked_extra(cls, extra: dict[str, Any]) -> dict[str, Any] | None:
        if extra.pop("type", cls.type) != cls.type:
            raise InvalidInputError(f"The type of a {cls.__name__} is {cls.type!r}.", fix="Leave `type` out.")
        return extra or None

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The text of the content; other blocks are left out."""
        return text_of(self.content)

    @property
    def content_blocks(self) -> Blocks:
        """The content as standard blocks, made anew at each access."""
        return standard_blocks(self.content, self.response_metadata.get("model_provider"))

    def __getattr__(self, name: str) -> Any:
        if name != "extra" and not name.startswith("__") and self.extra is not None and name in self.extra:
            return self.extra[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return type(self)._values(self) == type(self)._values(other)

    __hash__ = None  # type: ignore[assignment]

    # -- copies and dumps --------------------------------------------------------------------------------------------

    def to_fields(self) -> dict[str, Any]:
        """The fields that differ from their defaults, not copied: what a serialiser stores."""
        fields = {
            name: value
            for name, default in self.DEFAULTS.items()
            if not _is_default(value := getattr(self, name), default)
        }
        return {**fields, "extra": self.extra} if self.extra else fields

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """The message that `to_fields` was taken from, unchecked."""
        message = cls.__new__(cls)
        for name, default in cls.DEFAULTS.items():
            if name in fields:
                setattr(message, name, fields[name])
            else:
                setattr(message, name, default() if default is dict or default is list else default)
        message.extra = fields.get("extra")
        return message

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields replaced, unchecked. What it holds is shared unless `deep`."""
        message = self.__class__.__new__(self.__class__)
        for name, value in zip((*self.DEFAULTS, "extra"), self._values(self), strict=True):
            setattr(message, name, deepcopy(value) if deep else value)
        for name, value in (update or {}).items():
            setattr(message, name, value)
        return message

    def model_dump(self) -> dict[str, Any]:
        """All fields and the type, as a dict the constructor takes back. Containers are copied."""
        fields = {name: deepcopy(getattr(self, name)) for name in self.DEFAULTS}
        return {**fields, "type": self.type, **deepcopy(self.extra or {})}

    def __reduce__(self) -> tuple[Any, ...]:
        return self.from_fields, (self.to_fields(),)

    def __copy__(self) -> Self:
        return self.model_copy()

    # -- printing ----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        fields = self.to_fields()
        fields.update(fields.pop("extra", {}))
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in fields.items())})"

    def pretty_repr(self, html: bool = False) -> str:
        """The message for a person: a title line, the name and the content. `html` is accepted and changes nothing."""
        title = f" {self.type.title()} Message "
        name = f"\nName: {self.name}" if self.name is not None else ""
        return f"{title:=^{WIDTH}}{name}\n\n{self.content}"

    def pretty_print(self) -> None:
        """Print `pretty_repr()`."""
        print(self.pretty_repr())  # noqa: T201 (that is what it is for)

    # -- in pydantic state ---------------------------------------------------------------------------------------------

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> dict[str, Any]:
        """Lets pydantic models hold messages: an instance, or a dict as `model_dump` gives it. Needs no pydantic."""
        check: dict[str, Any] = {"type": "no-info", "function": cls._validated}
        dump: dict[str, Any] = {"type": "function-plain", "function": cls._dumped}
        return {"type": "function-plain", "function": check, "serialization": dump}

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: object, handler: object) -> dict[str, Any]:
        content = {"anyOf": [{"type": "string"}, {"type": "array"}]}
        kind = {"const": cls.type, "type": "string"}
        return {
            "title": cls.__name__,
            "type": "object",
            "properties": {"content": content, "type": kind, "id": {"type": ["string", "null"]}},
            "required": ["content"],
        }

    @classmethod
    def _validated(cls, value: Any) -> Any:
        if isinstance(value, cls) or (not isinstance(value, dict) and getattr(value, "type", None) == cls.type):
            return value
        if isinstance(value, dict) and value.get("type") == cls.type:
            return cls(**value)
        raise ValueError(f"not a {cls.type} message")

    @classmethod
    def _dumped(cls, message: Any) -> Any:
        return message.model_dump()


BaseMessage.__init_subclass__()


def _checked_name(name: object) -> str:
    if isinstance(name, str):
        return name
    raise InvalidInputError(f"The name on a message is {_shown(name)}.", fix="Give a str or None.")


def _checked_id(id: object) -> str:
    if isinstance(id, (str, int, float)):
        return str(id)
    raise InvalidInputError(f"The id of a message is {_shown(id)}.", fix="Give a str, or None to have one made.")


def _is_default(value: object, default: object) -> bool:
    if default is dict or default is list:
        return value == default()
    return value is default or (default.__class__ is str and value == default)


def _shown(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}: {value!r}"[:200]
