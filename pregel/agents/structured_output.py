"""Answers that are data: which schema, how the model is asked for it, and what becomes of what it says.

1. A `ToolStrategy` gives the model one pseudo-tool a schema; a `ProviderStrategy` asks the provider for JSON; an
   `AutoStrategy` takes the provider's way where the model's profile says that it has one.
2. What the model gives is parsed into the schema's type. A dict schema checks nothing, as it has no type.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Generic, TypeAlias, TypeVar, Union, get_args, get_origin

from pregel.agents.dict_schemas import check_object
from pregel.agents.models.base import ChatModel, OutputSchema, ToolSpec
from pregel.agents.schema_pydantic import InvalidArguments, json_schema, parsed, untitled
from pregel.config import RunnableConfig
from pregel.errors import PregelError
from pregel.messages import AIMessage
from pregel.runnable import Runnable

T = TypeVar("T")
HandleErrors: TypeAlias = "bool | str | type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], str]"


class StructuredOutputError(PregelError):
    """The model did not give the data it was asked for. `ai_message` is what it said."""

    code = "STRUCTURED_OUTPUT"
    ai_message: AIMessage


class MultipleStructuredOutputsError(StructuredOutputError):
    """The model answered in several schemas at once."""

    code = "MULTIPLE_STRUCTURED_OUTPUTS"

    def __init__(self, tool_names: Sequence[str], ai_message: AIMessage) -> None:
        self.tool_names, self.ai_message = list(tool_names), ai_message
        super().__init__(f"The model gave several structured answers: {', '.join(tool_names)}. One is expected.")


class StructuredOutputValidationError(StructuredOutputError):
    """What the model gave does not fit the schema. `source` is why."""

    code = "STRUCTURED_OUTPUT_VALIDATION"

    def __init__(self, tool_name: str, source: Exception, ai_message: AIMessage) -> None:
        self.tool_name, self.source, self.ai_message = tool_name, source, ai_message
        super().__init__(f"The answer does not fit the schema {tool_name!r}: {source}")


@dataclass(frozen=True, slots=True)
class SchemaSpec(Generic[T]):
    """One schema: its name, its JSON Schema, and the type it is parsed into."""

    schema: Any
    name: str = ""
    description: str = ""
    strict: bool | None = None
    json: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Any, *, strict: bool | None = None) -> SchemaSpec[Any]:
        """The spec of a pydantic model, dataclass, TypedDict or JSON Schema; DefinitionError for a faulty one."""
        if isinstance(schema, Mapping):
            check_object(schema, f"The schema {schema['title']!r}" if "title" in schema else "The schema of the answer")
        shown = json_schema(schema)
        name = shown.get("title") if isinstance(schema, Mapping) else getattr(schema, "__name__", "")
        name = (
            name or f"response_format_{blake2b(json.dumps(shown, sort_keys=True).encode(), digest_size=2).hexdigest()}"
        )
        description = str(shown.get("description") or "")
        return cls(schema, str(name), description, strict, untitled(shown))

    def parse(self, data: Any) -> T:
        """The data as the schema's type; InvalidArguments when it does not fit."""
        value: T = parsed(self.schema, data)
        return value

    def as_tool(self) -> ToolSpec:
        """The pseudo-tool by which a model gives the data."""
        description = self.description or f"Give the final answer as {self.name}."
        return ToolSpec(name=self.name, description=description, parameters=self.json)

    def as_output(self) -> OutputSchema:
        """What a provider is asked for."""
        return OutputSchema(name=self.name, schema=self.json, description=self.description, strict=self.strict)


class ToolStrategy(Generic[T]):
    """Ask for data through a pseudo-tool; a union of schemas gives one tool each.

    `handle_errors` says what becomes of a bad answer: True tells the model and asks again, a str or a function gives
    the text, exception types limit it to those, False raises. `tool_message_content` answers the pseudo-call.
    """

    def __init__(
        self, schema: Any, *, tool_message_content: str | None = None, handle_errors: HandleErrors = True
    ) -> None:
        self.schema = schema
        self.tool_message_content = tool_message_content
        self.handle_errors = handle_errors
        self.schema_specs: list[SchemaSpec[Any]] = [SchemaSpec.of(one) for one in _variants(schema)]


class ProviderStrategy(Generic[T]):
    """Ask the provider for JSON by the schema. `strict`: it must guarantee it."""

    def __init__(self, schema: Any, *, strict: bool | None = None) -> None:
        self.schema, self.strict = schema, strict
        self.schema_spec: SchemaSpec[Any] = SchemaSpec.of(schema, strict=strict)

    def parse(self, answer: AIMessage) -> Any:
        """The data of an answer; StructuredOutputValidationError when its text is not the JSON that was asked for."""
        try:
            return self.schema_spec.parse(json.loads(answer.text))
        except (ValueError, InvalidArguments) as error:
            raise StructuredOutputValidationError(self.schema_spec.name, error, answer) from error


class AutoStrategy(Generic[T]):
    """The provider's way where the model has one, else a pseudo-tool; decided at each call."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.tool_strategy: ToolStrategy[Any] = ToolStrategy(schema)

    def for_model(self, model: ChatModel) -> ToolStrategy[Any] | ProviderStrategy[Any]:
        """The strategy for a model."""
        if (model.profile or {}).get("structured_output") and len(self.tool_strategy.schema_specs) == 1:
            return ProviderStrategy(self.schema)
        return self.tool_strategy


ResponseFormat: TypeAlias = ToolStrategy[Any] | ProviderStrategy[Any] | AutoStrategy[Any]


def as_strategy(response_format: Any) -> ResponseFormat | None:
    """A strategy from a strategy or a raw schema."""
    if response_format is None or isinstance(response_format, (ToolStrategy, ProviderStrategy, AutoStrategy)):
        return response_format
    return AutoStrategy(response_format)


def schemas_of(strategy: ResponseFormat | None) -> list[Any]:
    """The schemas whose data a strategy may give."""
    return [] if strategy is None else _variants(strategy.schema)


def _variants(schema: Any) -> list[Any]:
    if get_origin(schema) in (Union, types.UnionType):
        return list(get_args(schema))
    if isinstance(schema, Mapping) and "oneOf" in schema:
        return list(schema["oneOf"])
    return [schema]


class StructuredModel(Runnable):
    """A model whose output is data: what `with_structured_output` returns."""

    has_async = True

    def __init__(self, model: ChatModel, schema: Any, *, include_raw: bool) -> None:
        self.include_raw = include_raw
        strategy = AutoStrategy[Any](schema).for_model(model)
        self.provider = strategy if isinstance(strategy, ProviderStrategy) else None
        self.specs = {} if isinstance(strategy, ProviderStrategy) else {one.name: one for one in strategy.schema_specs}
        self.model = self._bound(model)

    def _bound(self, model: ChatModel) -> ChatModel:
        if self.provider is None:
            return model.bind_tools([spec.as_tool() for spec in self.specs.values()], tool_choice="any")
        bound = model.bind()
        bound.bound = bound.bound.override(output=self.provider.schema_spec.as_output())
        return bound

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The data for an input; None when the model gave none."""
        return self._output(self.model.invoke(input, **kwargs))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The data for an input, awaited."""
        return self._output(await self.model.ainvoke(input, **kwargs))

    def call(self, value: Any, running: Any) -> Any:
        return self.invoke(value)

    async def acall(self, value: Any, running: Any) -> Any:
        return await self.ainvoke(value)

    def _output(self, answer: AIMessage) -> Any:
        data, problem = None, None
        try:
            data = self._parsed(answer)
        except StructuredOutputError as error:
            problem = error
        if self.include_raw:
            return {"raw": answer, "parsed": data, "parsing_error": problem}
        if problem is not None:
            raise problem
        return data

    def _parsed(self, answer: AIMessage) -> Any:
        if self.provider is not None:
            return self.provider.parse(answer)
        for call in answer.tool_calls:
            if (spec := self.specs.get(call["name"])) is not None:
                try:
                    return spec.parse(call["args"])
                except InvalidArguments as error:
                    raise StructuredOutputValidationError(spec.name, error, answer) from error
        return None
