"""A compiled state graph: a Pregel that remembers which builder it came from, so that it can be drawn and described."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, cast

from pregel.channels import BaseChannel
from pregel.config import RunnableConfig
from pregel.engine.pregel import Pregel
from pregel.graph import pydantic_adapter
from pregel.graph.branch import BranchSpec
from pregel.graph.check import checks_of
from pregel.graph.lower import lower
from pregel.graph.schema import Mapper, mapper_of
from pregel.graph.spec import StateNodeSpec
from pregel.graph.write import UnknownKeys
from pregel.interop import connected as connected
from pregel.typing import ContextT, InputT, OutputT, StateT

if TYPE_CHECKING:
    from pregel.graph.draw import Graph


class CompiledStateGraph(Pregel[StateT, ContextT, InputT, OutputT], Generic[StateT, ContextT, InputT, OutputT]):
    """What `StateGraph.compile` returns: ``invoke``, ``stream``, ``get_state`` and the rest are Pregel's.

    `output_mapper` makes the output schema's instance from a dict; None where the output is a dict.
    """

    def __init__(
        self, *, builder: Any, schema_to_mapper: dict[Any, Mapper | None] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.builder = builder
        self.schema_to_mapper = schema_to_mapper or {}
        self.checks = checks_of(builder.schemas, builder.channels)
        self.output_mapper = mapper_of(builder.output_schema)
        self.state_mapper = mapper_of(builder.state_schema)

    def register_types(self) -> None:
        """Nothing: the builder knows the schemas, which say more than the channels."""

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
        from pregel.graph.draw import describe

        return describe(self, xray=xray)

    def get_context_jsonschema(self) -> dict[str, Any] | None:
        """The JSON schema of the context; None without a context schema."""
        from pregel.graph.json_schema import json_schema

        schema = self.context_schema
        return None if schema is None else json_schema(schema, getattr(schema, "__name__", "Context"))

    def get_input_schema(self, config: RunnableConfig | None = None) -> type:
        """The input as a pydantic model (extra ``agents``): the schema itself when it is one."""
        return self._model(self.builder.input_schema, self.get_name("Input"))

    def get_output_schema(self, config: RunnableConfig | None = None) -> type:
        """The same for the output; none of its keys is required."""
        return self._model(self.builder.output_schema, self.get_name("Output"), optional=True)

    @property
    def input_schema(self) -> type:
        """What `get_input_schema` returns."""
        return self.get_input_schema()

    @property
    def output_schema(self) -> type:
        """What `get_output_schema` returns."""
        return self.get_output_schema()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The graph as a notebook shows it: a picture."""
        return self.get_graph()._repr_mimebundle_(**kwargs)

    async def aget_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """The nodes and edges."""
        return self.get_graph(config, xray=xray)

    def attach_node(self, key: str, node: StateNodeSpec) -> None:
        """Add a node to the builder, and to this graph."""
        self.builder.nodes[key] = node
        self._lower_again()

    def attach_edge(self, starts: str | Sequence[str], end: str) -> None:
        """Add an edge to the builder, and to this graph."""
        self.builder.add_edge(starts, end)
        self._lower_again()

    def attach_branch(self, start: str, name: str, branch: BranchSpec) -> None:
        """Add a conditional edge to the builder, and to this graph."""
        self.builder.branches[start][name] = branch
        self._lower_again()

    def _lower_again(self) -> None:
        unknown_keys = cast(UnknownKeys, self.unknown_keys)
        lowered = lower(self.builder, unknown_keys=unknown_keys, strict=self.strict)
        self.nodes, self.joins = lowered.nodes, lowered.joins
        self.channels = {**self.channels, **lowered.channels}
        self._prepare()

    def checked(self, writes: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """The writes as typed keys take them; pydantic's ValidationError for a value that a key cannot hold."""
        return [(key, self.checks[key](value) if key in self.checks else value) for key, value in writes]

    def typed_output(self, values: Any) -> Any:
        """Values as an instance of the output schema; as they are where they do not make one."""
        return _made(self.output_mapper, values)

    def typed_state(self, values: Any) -> Any:
        """Values as an instance of the state schema; as they are where they do not make one."""
        return _made(self.state_mapper, values)

    def _model(self, schema: Any, name: str, *, optional: bool = False) -> type:
        from pregel.graph.json_schema import fields_of

        stored = [key for key, value in self.builder.schemas[schema].items() if isinstance(value, BaseChannel)]
        return pydantic_adapter.model_of(schema, name, fields_of(schema, stored, optional=optional))

    def _json_schema(self, schema: Any, side: str) -> dict[str, Any]:
        from pregel.graph.json_schema import json_schema

        keys = {key: value for key, value in self.builder.schemas[schema].items() if isinstance(value, BaseChannel)}
        return json_schema(schema, getattr(schema, "__name__", f"{self.get_name()}{side}"), keys)


def _made(mapper: Mapper | None, values: Any) -> Any:
    if mapper is None or not isinstance(values, dict):
        return values
    try:
        return mapper(values)
    except Exception:  # a state that is not whole yet, or that its schema refuses: whoever reads it hears of that
        return values
