"""What can go wrong with a model call, the same for every provider.

::

    ModelError (PregelError)          is_retryable says whether trying again can help
    ├── ModelAuthenticationError      401
    ├── ModelPermissionDeniedError    403
    ├── ModelNotFoundError            404
    ├── ModelInvalidRequestError      400, 422
    │   └── ContextOverflowError      the prompt is longer than the model takes
    ├── ModelRefusalError             the model declined to answer
    ├── ModelRateLimitError           429; retryable, as are the next three
    ├── ModelAPIError                 5xx
    ├── ModelConnectionError          the server was not reached
    └── ModelTimeoutError             it did not answer in time
"""

from __future__ import annotations

from typing import Any, ClassVar

from pregel.errors import PregelError


class ModelError(PregelError):
    """A model call failed. `status` is the HTTP status, `retry_after` what the server asks for, in seconds."""

    code = "MODEL"
    is_retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str | None = None,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        provider: str = "",
        **place: Any,
    ) -> None:
        super().__init__(message, **place)
        self.status, self.retry_after, self.provider = status, retry_after, provider


class ModelAuthenticationError(ModelError):
    """The provider does not accept the key."""

    code = "MODEL_AUTHENTICATION"


class ModelPermissionDeniedError(ModelError):
    """The key may not do this."""

    code = "MODEL_PERMISSION_DENIED"


class ModelNotFoundError(ModelError):
    """The provider has no such model."""

    code = "MODEL_NOT_FOUND"


class ModelInvalidRequestError(ModelError):
    """The provider refused the request."""

    code = "MODEL_INVALID_REQUEST"


class ContextOverflowError(ModelInvalidRequestError):
    """The prompt is longer than the model takes."""

    code = "CONTEXT_OVERFLOW"


class ModelRefusalError(ModelError):
    """The model declined to answer."""

    code = "MODEL_REFUSAL"


class ModelRateLimitError(ModelError):
    """Too many requests, or too many tokens, for now."""

    code = "MODEL_RATE_LIMIT"
    is_retryable = True


class ModelAPIError(ModelError):
    """The provider has trouble of its own."""

    code = "MODEL_API"
    is_retryable = True


class ModelConnectionError(ModelError):
    """The provider was not reached."""

    code = "MODEL_CONNECTION"
    is_retryable = True


class ModelTimeoutError(ModelError):
    """The provider did not answer in time."""

    code = "MODEL_TIMEOUT"
    is_retryable = True


def is_retryable(error: BaseException) -> bool:
    """Whether trying again can help: a ModelError says so itself, any other Exception may pass."""
    return isinstance(error, Exception) and bool(getattr(error, "is_retryable", True))
