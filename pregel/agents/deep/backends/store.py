"""Files in a store, apart from any thread: what one thread wrote another one reads, for as long as the store lasts.

1. A file is an item whose key is its path and whose value is its file data. A namespace holds the files of one backend;
   what lies in namespaces below it is not seen.
2. A change is there at once, whatever becomes of the task that made it. A task that is run again after a crash finds
   its own edit done and tells its result: it is not done twice.
3. Changes of this process to one namespace come one after the other, so no edit is lost to another one. Between
   processes the last one counts.
4. Errors about files are returned. A store that fails raises its own error: that is nothing a model could mend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeAlias

from pregel.agents.deep.backends.base import DeleteResult, EditResult, FileData, FileUploadResponse, WriteResult
from pregel.agents.deep.backends.errors import told
from pregel.agents.deep.backends.once import is_again, mark_of
from pregel.agents.deep.backends.paths import checked
from pregel.agents.deep.backends.table import TableBackend, as_file_data
from pregel.config import current_task
from pregel.errors import DefinitionError, InvalidInputError, OutsideRunError
from pregel.runtime import Runtime
from pregel.store.base import BaseStore, PutOp
from pregel.store.base.batch import AsyncBatchedBaseStore
from pregel.store.base.ops import checked_namespace

Namespace = tuple[str, ...]
NamespaceFactory: TypeAlias = Callable[[Runtime[Any]], Namespace]
PAGE = 10_000
"""Files that one search brings: more than a namespace should hold, so that a listing is of one moment."""
EDITED = "edited"
"""Where a value says which edit made it, and how many places that replaced."""
_LOCKS = tuple(Lock() for _ in range(64))  # by namespace; two that share one wait for each other and that is all


class StoreBackend(TableBackend):
    """Files in the namespace of a store, for instance behind a route of a `CompositeBackend`.

    - `namespace`: a tuple of labels, or a function that gives one for the `Runtime` of the run, so that each user or
      assistant has files of their own: ``lambda runtime: ("memories", runtime.context["user_id"])``. It is asked at
      every use; outside of a run it is given an empty Runtime.
    - `store`: the store of the running graph by default.
    """

    def __init__(self, *, namespace: Namespace | NamespaceFactory, store: BaseStore | None = None) -> None:
        if not callable(namespace):
            namespace = checked_namespace(namespace, written=True)
        if store is not None and not isinstance(store, BaseStore):
            raise DefinitionError(f"{store!r} is no store.", fix="Give an instance of a BaseStore, or leave it out.")
        self.namespace, self.store = namespace, store

    # -- the table -----------------------------------------------------------------------------------------------------

    def files(self) -> Mapping[str, FileData]:
        store, namespace = self._place()
        found: dict[str, FileData] = {}
        for offset in range(0, 1 << 62, PAGE):
            page = store.search(namespace, limit=PAGE, offset=offset)
            found |= {item.key: as_file_data(item.value) for item in page if tuple(item.namespace) == namespace}
            if len(page) < PAGE:
                break
        return found

    def file(self, path: str) -> FileData | None:
        store, namespace = self._place()
        item = store.get(namespace, path)
        return None if item is None else as_file_data(item.value)

    def change(self, changes: Mapping[str, FileData | None]) -> None:
        store, namespace = self._place()
        store.batch([_put(store, namespace, path, data) for path, data in changes.items()])

    # -- changes, one after the other ----------------------------------------------------------------------------------

    def write(self, file_path: str, content: str) -> WriteResult:
        with self._alone():
            return super().write(file_path, content)

    @told(EditResult)
    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        path = checked(file_path)
        mark = mark_of(path, old_string, new_string, replace_all)
        with self._alone() as (store, namespace):
            if mark and is_again() and (item := store.get(namespace, path)) is not None:
                by, count = item.value.get(EDITED) or (None, 0)
                if by == mark:
                    return EditResult(path=path, occurrences=count)
            data, count = self._edited(path, old_string, new_string, replace_all)
            store.batch([_put(store, namespace, path, {**data, EDITED: [mark, count]} if mark else data)])
        return EditResult(path=path, occurrences=count)

    def delete(self, file_path: str) -> DeleteResult:
        with self._alone():
            return super().delete(file_path)

    def upload_files(self, files: Sequence[tuple[str, bytes]]) -> list[FileUploadResponse]:
        with self._alone():
            return super().upload_files(files)

    # -- where ---------------------------------------------------------------------------------------------------------

    def _place(self) -> tuple[BaseStore, Namespace]:
        """The store and the namespace of whoever asks."""
        running = current_task.get()
        runtime: Runtime[Any] = Runtime() if running is None else running.runtime
        store = self.store if self.store is not None else runtime.store
        if store is None and running is None:
            raise OutsideRunError(
                "The files of this StoreBackend are in the store of a running graph, and none is running.",
                fix="Give the backend a store, or use it inside of a node or tool.",
            )
        if store is None:
            raise InvalidInputError(
                "The files of a StoreBackend need a store, and this graph has none.",
                fix="Give create_deep_agent(store=...) one, or the backend.",
            )
        given = self.namespace(runtime) if callable(self.namespace) else self.namespace
        return store, checked_namespace(given, written=True)

    @contextmanager
    def _alone(self) -> Iterator[tuple[BaseStore, Namespace]]:
        """Nobody else of this process changes the namespace meanwhile."""
        store, namespace = self._place()
        if isinstance(store, AsyncBatchedBaseStore):
            store.batch(())  # an error at once on its own loop's thread, which must not wait for who waits for the loop
        with _LOCKS[hash(namespace) % len(_LOCKS)]:
            yield store, namespace


def _put(store: BaseStore, namespace: Namespace, path: str, data: Mapping[str, Any] | None) -> PutOp:
    """What stores a file; only text is searched by meaning."""
    if data is None:
        return PutOp(namespace, path, None)
    ttl = (store.ttl_config or {}).get("default_ttl")
    return PutOp(namespace, path, dict(data), None if data["encoding"] == "utf-8" else False, ttl)
