"""What every class of laws has: a store that is opened for each test."""

from __future__ import annotations

from typing import Any, cast

from pregel.checkpoint.conformance.verbs import Opening, Verbs
from pregel.errors import PregelError
from pregel.store.base import Item, Op, SearchItem, TTLConfig

Namespace = tuple[str, ...]


class Laws:
    """Subclass it in a test file, define `open` and `pass_time`."""

    awaited: bool = False
    """Whether the async twins are called."""

    newest_first: bool = True
    """Whether a search without a query shows what was put last first, instead of last."""

    ttl: TTLConfig = {"refresh_on_read": True, "default_ttl": None}

    examples: int = 40
    """How many series of random calls are drawn."""

    store: Verbs

    def open(self) -> Opening:
        """A context manager, blocking or async, that gives a store on empty storage."""
        raise NotImplementedError(f"{type(self).__name__} must define open().")

    def pass_time(self, seconds: float) -> None:
        """Let the store see that so many seconds are over."""
        raise NotImplementedError(f"{type(self).__name__} must define pass_time().")

    def setup_method(self) -> None:
        """Open the store of one test. pytest calls it."""
        self.store = Verbs(self.open(), awaited=self.awaited)

    def teardown_method(self) -> None:
        """Close the store of one test. pytest calls it."""
        self.store.close()

    # -- verbs -------------------------------------------------------------------------------------------------------

    def put(self, namespace: Namespace, key: str, value: Any, *args: Any, **options: Any) -> None:
        """Store a value; a moment passes, so that no two puts have one time."""
        self.store.call("put", namespace, key, value, *args, **options)
        self.pass_time(0.001)

    def get(self, namespace: Namespace, key: str, **options: Any) -> Item | None:
        """The item."""
        return cast("Item | None", self.store.call("get", namespace, key, **options))

    def value(self, namespace: Namespace, key: str) -> Any:
        """The item's value, None when there is no item."""
        found = self.get(namespace, key)
        return None if found is None else found.value

    def search(self, prefix: Namespace, **options: Any) -> list[SearchItem]:
        """What a search finds."""
        return cast("list[SearchItem]", self.store.call("search", prefix, **options))

    def keys(self, prefix: Namespace = (), **options: Any) -> list[str]:
        """The keys of what a search finds, sorted."""
        return sorted(item.key for item in self.search(prefix, **{"limit": 1_000, **options}))

    def namespaces(self, **options: Any) -> list[Namespace]:
        """The namespaces."""
        return cast("list[Namespace]", self.store.call("list_namespaces", **options))

    def batch(self, *ops: Op) -> list[Any]:
        """The results of a batch."""
        results: list[Any] = self.store.call("batch", ops)
        self.pass_time(0.001)
        return results

    def refused(self, verb: str, *args: Any, **options: Any) -> BaseException | None:
        """The error of a call, None when there is none."""
        try:
            self.store.call(verb, *args, **options)
        except (PregelError, TypeError, ValueError) as error:
            return error
        return None
