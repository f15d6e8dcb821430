"""A compiled state graph: a Pregel that remembers which builder it came from, so that it can be drawn and described."""

from __future__ import annotations

from typing import Any, Generic

from pregel.channels import BaseChannel
from pregel.config import RunnableConfig
from pregel.engine.pregel import Pregel
from pregel.graph.draw import Graph, describe
from pregel.graph.json_schema import json_schema
from pregel.graph.schema import Mapper, mapper_of
from pregel.typing import ContextT, InputT, OutputT, StateT


class CompiledStateGraph(Pregel, Generic[StateT, ContextT, InputT, OutputT]):
    """What `StateGraph.compile` returns: ``invoke``, ``stream``, ``get_state`` and the rest are Pregel's.

    `output_mapper` makes the output schema's instance from a dict; None where the output is a dict.
    """

    def __init__(
        self, *, builder: Any, schema_to_mapper: dict[Any, Mapper | None] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.builder = builder
        self.schema_to_mapper = schema_to_mapper or {}
        self.output_mapper = mapper_of(builder.output_schema)

    @property
    def InputType(self) -> Any:
        """The schema of the input."""
        return self.builder.input_schema

    @property
    def OutputType(self) -> Any:
        """The schema of the output."""
        return self.builder.output_schema

    def get_input_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """The JSON schema of the input."""
        return self._json_schema(self.builder.input_schema, "Input")

    def get_output_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """The JSON schema of the output."""
        return self._json_schema(self.builder.output_schema, "Output")

    def get_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """The nodes and edges, found again in what the nodes write; `xray` looks into subgraphs."""
        return describe(self, xray=xray)

    async def aget_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """The nodes and edges."""
        return describe(self, xray=xray)

    def _json_schema(self, schema: Any, side: str) -> dict[str, Any]:
        keys = {key: value for key, value in self.builder.schemas[schema].items() if isinstance(value, BaseChannel)}
        return json_schema(schema, getattr(schema, "__name__", f"{self.get_name()}{side}"), keys)
