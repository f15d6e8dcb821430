"""What may be a node of a graph, as a type checker sees it.

1. A node's input is its own: it may read a part of the state, a schema of its own, or what a Send brings.
2. Its output is an update: a mapping or an instance with the state's keys, Commands, or nothing. A number or a text is
   none. Which keys there are is checked where the node says what it returns, since a node may write keys that only
   another node's schema has.
3. What it is given beside its input is given by name: there is one protocol for each choice of names, since a function
   that takes one of them need not take the others. A `Runtime` has the context of the graph.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

from typing_extensions import TypeVar

from pregel.config import RunnableConfig
from pregel.runnable import Runnable
from pregel.runtime import Runtime
from pregel.store.base import BaseStore
from pregel.types import Command, Send, StreamWriter

S_co = TypeVar("S_co", covariant=True)
S = TypeVar("S")
C = TypeVar("C")


class DataclassLike(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class ModelLike(Protocol):
    """An instance of a pydantic model."""

    def model_dump(self) -> dict[str, Any]: ...


class RunnableLike(Protocol):
    """Somebody else's object with `invoke`."""

    def invoke(self, input: Any, config: Any = None) -> Any: ...


Part: TypeAlias = Mapping[str, object] | DataclassLike | ModelLike | Command[Any]
Update: TypeAlias = S | Part | Sequence[Part] | None
Output: TypeAlias = Update[S] | Awaitable[Update[S]] | Iterator[object] | AsyncIterator[object] | Runnable
Where: TypeAlias = Hashable | Send | Sequence[Hashable | Send]
"""What a path answers: a name, END, a Send, a key of its path map, or several."""


class TakesInput(Protocol[S_co]):
    def __call__(self, state: Any, /) -> Output[S_co]: ...


class TakesConfig(Protocol[S_co]):
    def __call__(self, state: Any, /, *, config: RunnableConfig) -> Output[S_co]: ...


class TakesWriter(Protocol[S_co]):
    def __call__(self, state: Any, /, *, writer: StreamWriter) -> Output[S_co]: ...


class TakesConfigWriter(Protocol[S_co]):
    def __call__(self, state: Any, /, *, config: RunnableConfig, writer: StreamWriter) -> Output[S_co]: ...


class TakesStore(Protocol[S_co]):
    def __call__(self, state: Any, /, *, store: BaseStore) -> Output[S_co]: ...


class TakesConfigStore(Protocol[S_co]):
    def __call__(self, state: Any, /, *, config: RunnableConfig, store: BaseStore) -> Output[S_co]: ...


class TakesWriterStore(Protocol[S_co]):
    def __call__(self, state: Any, /, *, writer: StreamWriter, store: BaseStore) -> Output[S_co]: ...


class TakesConfigWriterStore(Protocol[S_co]):
    def __call__(
        self, state: Any, /, *, config: RunnableConfig, writer: StreamWriter, store: BaseStore
    ) -> Output[S_co]: ...


class TakesRuntime(Protocol[S_co, C]):
    def __call__(self, state: Any, /, *, runtime: Runtime[C]) -> Output[S_co]: ...


class TakesConfigRuntime(Protocol[S_co, C]):
    def __call__(self, state: Any, /, *, config: RunnableConfig, runtime: Runtime[C]) -> Output[S_co]: ...


class TakesWriterRuntime(Protocol[S_co, C]):
    def __call__(self, state: Any, /, *, writer: StreamWriter, runtime: Runtime[C]) -> Output[S_co]: ...


class TakesConfigWriterRuntime(Protocol[S_co, C]):
    def __call__(
        self, state: Any, /, *, config: RunnableConfig, writer: StreamWriter, runtime: Runtime[C]
    ) -> Output[S_co]: ...


class TakesStoreRuntime(Protocol[S_co, C]):
    def __call__(self, state: Any, /, *, store: BaseStore, runtime: Runtime[C]) -> Output[S_co]: ...


class TakesConfigStoreRuntime(Protocol[S_co, C]):
    def __call__(
        self, state: Any, /, *, config: RunnableConfig, store: BaseStore, runtime: Runtime[C]
    ) -> Output[S_co]: ...


class TakesWriterStoreRuntime(Protocol[S_co, C]):
    def __call__(
        self, state: Any, /, *, writer: StreamWriter, store: BaseStore, runtime: Runtime[C]
    ) -> Output[S_co]: ...


class TakesConfigWriterStoreRuntime(Protocol[S_co, C]):
    def __call__(
        self, state: Any, /, *, config: RunnableConfig, writer: StreamWriter, store: BaseStore, runtime: Runtime[C]
    ) -> Output[S_co]: ...


Action: TypeAlias = (
    TakesInput[S]
    | TakesConfig[S]
    | TakesWriter[S]
    | TakesConfigWriter[S]
    | TakesStore[S]
    | TakesConfigStore[S]
    | TakesWriterStore[S]
    | TakesConfigWriterStore[S]
    | TakesRuntime[S, C]
    | TakesConfigRuntime[S, C]
    | TakesWriterRuntime[S, C]
    | TakesConfigWriterRuntime[S, C]
    | TakesStoreRuntime[S, C]
    | TakesConfigStoreRuntime[S, C]
    | TakesWriterStoreRuntime[S, C]
    | TakesConfigWriterStoreRuntime[S, C]
    | Runnable
    | RunnableLike
    | Mapping[str, object]
)
"""A node of a graph whose state is S and whose context is C."""
Path: TypeAlias = Callable[..., Where | Awaitable[Where]] | Runnable | RunnableLike
"""What a conditional edge asks."""
