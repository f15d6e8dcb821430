"""Managed values: keys of a state schema that the engine computes when a node reads them, and never stores."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Annotated, Any, Generic, Protocol, TypeGuard, TypeVar, get_origin

V = TypeVar("V")


class Steps(Protocol):
    """How far a run is: the step that runs now, and the one at which it must have ended."""

    step: int
    stop: int


class ManagedValue(ABC, Generic[V]):
    """A value that is computed when it is read. Name a subclass last in ``Annotated[type, ...]``."""

    @staticmethod
    @abstractmethod
    def get(scratchpad: Steps) -> V:
        """The value at this step."""


class IsLastStepManager(ManagedValue[bool]):
    """Whether this is the last step that the recursion limit allows."""

    @staticmethod
    def get(scratchpad: Steps) -> bool:
        return scratchpad.step == scratchpad.stop - 1


class RemainingStepsManager(ManagedValue[int]):
    """How many steps the recursion limit allows from here, this one included."""

    @staticmethod
    def get(scratchpad: Steps) -> int:
        return scratchpad.stop - scratchpad.step


IsLastStep = Annotated[bool, IsLastStepManager]
RemainingSteps = Annotated[int, RemainingStepsManager]

ManagedValueSpec = type[ManagedValue[Any]]


def is_managed_value(value: object) -> TypeGuard[ManagedValueSpec]:
    """Whether this is a ManagedValue class, or one with type arguments."""
    cls = get_origin(value) or value
    return inspect.isclass(cls) and issubclass(cls, ManagedValue)
