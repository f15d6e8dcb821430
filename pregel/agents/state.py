"""The state of an agent, and how the state keys of its middleware are merged into it.

A key may be kept out of the input or the output: ``Annotated[int, PrivateStateAttr]`` is in neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, Required, cast, get_args, get_origin

from typing_extensions import TypedDict, TypeVar

from pregel.channels import EphemeralValue
from pregel.graph.schema import annotations_of
from pregel.messages import AnyMessage, add_messages

R = TypeVar("R", default=Any)
JumpTo = Literal["tools", "model", "end"]


@dataclass(frozen=True, slots=True)
class OmitFromSchema:
    """Keeps a key out of the agent's input, its output, or both."""

    input: bool = True
    output: bool = True


OmitFromInput = OmitFromSchema(input=True, output=False)
OmitFromOutput = OmitFromSchema(input=False, output=True)
PrivateStateAttr = OmitFromSchema(input=True, output=True)


class AgentState(TypedDict, Generic[R]):
    """What every agent's state has; subclass it to add keys. `R` is the type of the structured answer."""

    messages: Required[Annotated[list[AnyMessage], add_messages]]
    jump_to: NotRequired[Annotated[JumpTo | None, EphemeralValue, PrivateStateAttr]]
    structured_response: NotRequired[Annotated[R, OmitFromInput]]


class InputAgentState(TypedDict):
    """What an agent takes."""

    messages: Required[Annotated[list[AnyMessage], add_messages]]


class OutputAgentState(TypedDict, Generic[R]):
    """What an agent gives."""

    messages: Required[Annotated[list[AnyMessage], add_messages]]
    structured_response: NotRequired[R]


class Schemas(NamedTuple):
    """The merged state of an agent, what of it goes in, and what comes out."""

    state: Any
    input: Any
    output: Any
    keys: tuple[str, ...]


def merge_schemas(schemas: Sequence[Any]) -> Schemas:
    """One state from several; where two declare a key, the later one counts."""
    fields: dict[str, Any] = {}
    for schema in schemas:
        fields.update(annotations_of(schema))
    omitted = {key: _omission(hint) for key, hint in fields.items()}
    return Schemas(
        _typed_dict("AgentState", fields),
        _typed_dict("AgentInput", {key: hint for key, hint in fields.items() if not omitted[key].input}),
        _typed_dict("AgentOutput", {key: hint for key, hint in fields.items() if not omitted[key].output}),
        tuple(fields),
    )


def _typed_dict(name: str, fields: dict[str, Any]) -> Any:
    return cast(Any, TypedDict)(name, fields, total=False)


def _omission(hint: Any) -> OmitFromSchema:
    while get_origin(hint) in (Required, NotRequired):
        hint = get_args(hint)[0]
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((mark for mark in marks if isinstance(mark, OmitFromSchema)), OmitFromSchema(False, False))
