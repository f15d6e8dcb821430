"""Runnables: things with invoke and ainvoke that compose with ``|``."""

from pregel.runnable.base import Detached, Runnable
from pregel.runnable.compose import (
    RunnableBinding,
    RunnableForeign,
    RunnableParallel,
    RunnableSequence,
    acall_anywhere,
    coerce_to_runnable,
)
from pregel.runnable.function import (
    RunnableCallable,
    RunnableLambda,
    callable_name,
    declares,
    injections,
    is_async_callable,
)
from pregel.runnable.pieces import (
    RunnableAssign,
    RunnableBranch,
    RunnableEach,
    RunnablePassthrough,
    RunnablePick,
)

__all__ = [
    "Detached",
    "Runnable",
    "RunnableAssign",
    "RunnableBinding",
    "RunnableBranch",
    "RunnableCallable",
    "RunnableEach",
    "RunnableForeign",
    "RunnableLambda",
    "RunnableParallel",
    "RunnablePassthrough",
    "RunnablePick",
    "RunnableSequence",
    "acall_anywhere",
    "callable_name",
    "coerce_to_runnable",
    "declares",
    "injections",
    "is_async_callable",
]

for _name in __all__:
    globals()[_name].__module__ = __name__  # where users find it
