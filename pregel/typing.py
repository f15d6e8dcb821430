"""The type variables of graphs: state, input, output, context."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeVar

StateT = TypeVar("StateT", default=Any)
StateT_co = TypeVar("StateT_co", covariant=True, default=Any)
StateT_contra = TypeVar("StateT_contra", contravariant=True, default=Any)
ContextT = TypeVar("ContextT", default=None)
AnyContextT = TypeVar("AnyContextT", default=Any)  # where a graph that is only called a Pregel may have any
ValueT = TypeVar("ValueT", default=Any)
InputT = TypeVar("InputT", default=StateT)
OutputT = TypeVar("OutputT", default=StateT)
