"""An event loop on a thread of its own, so that an async saver can be asked from outside."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def entered(opening: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """What an async context manager gives, entered and left on a loop that runs meanwhile."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def on_loop(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    try:
        value: T = on_loop(opening.__aenter__())
        try:
            yield value
        finally:
            on_loop(opening.__aexit__(None, None, None))
    finally:
        on_loop(loop.shutdown_default_executor())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
