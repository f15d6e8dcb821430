"""What the adapters of providers share: their clients, the settings of a call, and their errors as ours.

1. A blocking client serves one process (after a fork a new one is made) and is closed with the model that it serves.
   An awaiting one serves one event loop and is closed by the end of that loop.
2. A setting that the client's method does not know goes into the body as it is: a compatible server may know it, the
   provider's own refuses it by name.
3. Whatever the client raises becomes an error of `pregel.agents.models.errors`; both client packages have the same
   shapes (``status_code``, ``response``, ``body``), which are read here once.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import weakref
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from pregel.agents.models.errors import (
    ContextOverflowError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelError,
    ModelInvalidRequestError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
    ModelRateLimitError,
    ModelTimeoutError,
)


class Closable(Protocol):
    """A blocking client, as far as it matters here."""

    def close(self) -> None: ...


class AsyncClosable(Protocol):
    """An awaiting client, as far as it matters here."""

    async def close(self) -> None: ...


Client = TypeVar("Client", bound=Closable)
AsyncClient = TypeVar("AsyncClient", bound=AsyncClosable)

_BY_STATUS: dict[int, type[ModelError]] = {
    400: ModelInvalidRequestError,
    401: ModelAuthenticationError,
    403: ModelPermissionDeniedError,
    404: ModelNotFoundError,
    408: ModelTimeoutError,
    409: ModelAPIError,
    413: ContextOverflowError,
    422: ModelInvalidRequestError,
    429: ModelRateLimitError,
}
_KEYLESS = ("api_key client option", "resolve authentication method", "Missing credentials")
_TOO_LONG = ("context_length_exceeded", "maximum context length", "context window", "prompt is too long")


class Clients(Generic[Client, AsyncClient]):
    """The clients of one model, made when they are first needed."""

    def __init__(self, make: Callable[[], Client], make_async: Callable[[], AsyncClient]) -> None:
        self._make, self._make_async = make, make_async
        self._blocking: dict[int, Client] = {}
        self._awaiting: weakref.WeakKeyDictionary[
            asyncio.AbstractEventLoop, tuple[AsyncClient, AsyncGenerator[AsyncClient]]
        ] = weakref.WeakKeyDictionary()

    def blocking(self) -> Client:
        """The client of this process."""
        pid = os.getpid()
        if pid not in self._blocking:
            self._blocking[pid] = client = self._make()
            weakref.finalize(self, client.close)
        return self._blocking[pid]

    async def awaiting(self) -> AsyncClient:
        """The client of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._awaiting:
            held = _held(self._make_async())
            self._awaiting[loop] = await anext(held), held
        return self._awaiting[loop][0]


async def _held(client: AsyncClient) -> AsyncGenerator[AsyncClient]:
    """Gives the client, and closes it when the loop ends: a loop closes the generators that are still open."""
    try:
        yield client
    finally:
        await client.close()


def call_settings(method: Callable[..., Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords for a client's method; what it does not know goes into ``extra_body``."""
    known = inspect.signature(method).parameters
    given = {name: value for name, value in settings.items() if name in known}
    others = {name: value for name, value in settings.items() if name not in known}
    return {**given, "extra_body": {**(given.get("extra_body") or {}), **others}} if others else given


@contextmanager
def translated(provider: str) -> Iterator[None]:
    """Raises what a client raises inside as one of our errors, from it."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        theirs = type(error).__module__.partition(".")[0].startswith(("openai", "anthropic", "httpx", "httpcore"))
        if theirs or _lacks_key(error):
            raise model_error(error, provider) from error
        raise


def model_error(error: Exception, provider: str) -> ModelError:
    """A client's error as ours."""
    text, name = str(error) or type(error).__name__, type(error).__name__
    status = getattr(error, "status_code", None)
    if _lacks_key(error):
        fix = f"Pass api_key=, or set {provider.upper()}_API_KEY."
        return ModelAuthenticationError("There is no key for the provider.", fix=fix, provider=provider)
    if not isinstance(status, int):
        lost = ModelTimeoutError if "Timeout" in name else ModelConnectionError
        return (lost if _is_transport(error) else ModelAPIError)(text, provider=provider)
    kind = _BY_STATUS.get(status, ModelAPIError if status >= 500 else ModelInvalidRequestError)
    said = f"{text} {getattr(error, 'code', '')}"
    if kind is ModelInvalidRequestError and any(sign in said for sign in _TOO_LONG):
        kind = ContextOverflowError
    return kind(text, status=status, retry_after=_retry_after(error), provider=provider)


def _lacks_key(error: Exception) -> bool:
    """Whether a client says, each in its own way, that it was given no key."""
    text = str(error)
    unsent = getattr(error, "status_code", None) is None and not _is_transport(error)
    return unsent and any(sign in text for sign in _KEYLESS)


def _is_transport(error: Exception) -> bool:
    return "Connection" in type(error).__name__ or type(error).__module__.startswith(("httpx", "httpcore"))


def _retry_after(error: Exception) -> float | None:
    headers: Any = getattr(getattr(error, "response", None), "headers", {})
    try:
        return float(headers["retry-after"])
    except (KeyError, TypeError, ValueError):
        return None
