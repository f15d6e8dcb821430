"""Whose fault: the graph's definition."""

from __future__ import annotations

from collections.abc import Sequence

from pregel.errors.base import PregelError


class DefinitionError(PregelError, ValueError):
    """The graph is built wrong."""

    code = "DEFINITION"


class GraphValidationError(DefinitionError):
    """The graph has problems that must be mended before it can be compiled."""

    code = "GRAPH_VALIDATION"

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        lines = "\n".join(f"  - {p}" for p in problems)
        title = self.problems[0] if len(problems) == 1 else f"The graph has {len(problems)} problems:\n{lines}"
        super().__init__(title)


class ReservedNameError(DefinitionError):
    """This name is reserved by the engine."""

    code = "RESERVED_NAME"
