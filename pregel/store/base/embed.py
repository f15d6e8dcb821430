"""What turns texts into vectors: a function of texts, or an object with the methods of a common embedding class."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, cast, runtime_checkable

from typing_extensions import TypedDict

from pregel.errors import AsyncOnlyError, InvalidInputError
from pregel.flow import on_thread

Vector = Sequence[float]
EmbeddingsFunc = Callable[[Sequence[str]], Sequence[Vector]]
AEmbeddingsFunc = Callable[[Sequence[str]], Awaitable[Sequence[Vector]]]


@runtime_checkable
class Embeddings(Protocol):
    """Texts to vectors. The async methods may be missing: then the blocking ones are called in a thread."""

    def embed_documents(self, texts: list[str]) -> Sequence[Vector]: ...

    def embed_query(self, text: str) -> Vector: ...


class IndexConfig(TypedDict, total=False):
    """How items are searched by meaning.

    - `dims`: the length of a vector. `embed`: see `ensure_embeddings`.
    - `fields`: paths of the texts, e.g. ``["title", "notes[*].text"]``; default ``["$"]``, the whole document.
      `text_fields` is another word for it.
    - `distance_type`: ``cosine`` (default), ``l2`` or ``inner_product``.
    - `hybrid`: how much the words of a query count beside its meaning, from 0 (default: not at all) to 1. Needs cosine.
    """

    dims: int
    embed: Embeddings | EmbeddingsFunc | AEmbeddingsFunc | str
    fields: list[str] | None
    text_fields: list[str] | None
    distance_type: str
    hybrid: float


def ensure_embeddings(embed: Embeddings | EmbeddingsFunc | AEmbeddingsFunc | str | None) -> Embeddings:
    """An object with `embed_documents` and `embed_query`, made from what has such methods or does the same.

    That is a function of texts, blocking or awaited; an object with `encode`, such as a SentenceTransformer; or a text
    like ``openai:text-embedding-3-small``, which needs langchain.
    """
    if embed is None:
        raise InvalidInputError("An index needs `embed`.", fix="Give a function from texts to vectors.")
    if isinstance(embed, str):
        return _named(embed)
    if hasattr(embed, "embed_documents") and hasattr(embed, "embed_query"):
        return cast("Embeddings", embed)
    if hasattr(embed, "encode"):
        return PlainFunction(embed.encode)
    if not callable(embed):
        raise InvalidInputError(
            f"`embed` is of type {type(embed).__name__}.", fix="Give a function from a list of texts to their vectors."
        )
    if inspect.iscoroutinefunction(embed) or inspect.iscoroutinefunction(getattr(embed, "__call__", None)):  # noqa: B004
        return AwaitedFunction(cast("AEmbeddingsFunc", embed))
    return PlainFunction(cast("EmbeddingsFunc", embed))


def _named(name: str) -> Embeddings:
    try:
        from langchain.embeddings import init_embeddings
    except ImportError as error:
        raise InvalidInputError(
            f"The embedding {name!r} is made by langchain, which is not installed.",
            fix="Install langchain and the provider's package, or give a function.",
        ) from error
    return cast("Embeddings", init_embeddings(name))


class PlainFunction:
    """The embedding that a blocking function is."""

    def __init__(self, function: EmbeddingsFunc) -> None:
        self.function = function

    def embed_documents(self, texts: list[str]) -> Sequence[Vector]:
        """A vector for each text."""
        return self.function(list(texts))

    def embed_query(self, text: str) -> Vector:
        """The vector of one text."""
        return self.function([text])[0]


class AwaitedFunction:
    """The embedding that a coroutine function is: only awaiting stores can use it."""

    def __init__(self, function: AEmbeddingsFunc) -> None:
        self.function = function

    def embed_documents(self, texts: list[str]) -> Sequence[Vector]:
        """AsyncOnlyError."""
        raise AsyncOnlyError("The embedding function is awaited.", fix="Call the store's async methods.")

    def embed_query(self, text: str) -> Vector:
        """AsyncOnlyError."""
        raise AsyncOnlyError("The embedding function is awaited.", fix="Call the store's async methods.")

    async def aembed_documents(self, texts: list[str]) -> Sequence[Vector]:
        """A vector for each text."""
        return await self.function(texts)

    async def aembed_query(self, text: str) -> Vector:
        """The vector of one text."""
        return (await self.function([text]))[0]


async def awaited(embeddings: Any, verb: str, argument: Any) -> Any:
    """`aembed_documents` or `aembed_query` of an embedding; in a thread where it has only the blocking one."""
    method = getattr(embeddings, f"a{verb}", None)
    if method is not None:
        return await method(argument)
    return await on_thread(getattr(embeddings, verb), argument)
