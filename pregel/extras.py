"""Optional packages: what of the library needs them, and the extra that installs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pregel.errors import MissingExtraError


@contextmanager
def extra(name: str, what: str, *, instead: str = "") -> Iterator[None]:
    """Around the imports of an extra's packages: MissingExtraError when one of them cannot be imported.

    `what` begins its message, as in "McpServer needs mcp, which is not installed"; `instead` is another way out.
    """
    try:
        yield
    except MissingExtraError:
        raise
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package == __package__:
            raise  # a fault of our own, which no package mends
        is_absent = package and isinstance(error, ModuleNotFoundError)
        raise MissingExtraError(
            f"{what} needs {package}, which is not installed." if is_absent else f"{what} cannot be used: {error}",
            fix=f"pip install 'pregel[{name}]'" + (f", or {instead}" if instead else ""),
            name=package or None,
        ) from error
