"""Several backends as one: the longest prefix of a path says which of them has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pregel.agents.deep.backends.base import (
    READ_LIMIT,
    Backend,
    DeleteResult,
    EditResult,
    ExecuteResponse,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    SandboxBackend,
    WriteResult,
)
from pregel.agents.deep.backends.errors import Refused, permission_denied, told
from pregel.agents.deep.backends.paths import below, checked
from pregel.errors import DefinitionError

Changed = TypeVar("Changed", WriteResult, EditResult, DeleteResult)
Found = TypeVar("Found", GrepResult, GlobResult)


class CompositeBackend(SandboxBackend):
    """`routes` maps prefixes such as ``/memories/`` to backends; all other paths are the `default`'s.

    A backend sees its paths without the prefix. Commands run in the default backend. `artifacts_root` is where an agent
    puts what it moves out of its context.
    """

    def __init__(self, default: Backend, routes: Mapping[str, Backend], *, artifacts_root: str = "/") -> None:
        self.default = default
        self.artifacts_root = _root(artifacts_root)
        by_length = sorted(((_root(prefix), backend) for prefix, backend in routes.items()), key=lambda r: -len(r[0]))
        self.routes = dict(by_length)
        if len(self.routes) < len(routes) or "/" in self.routes:
            raise DefinitionError(
                f"The routes {list(routes)!r} are not distinct prefixes.", fix="The root is the default's."
            )

    @property
    def can_execute(self) -> bool:
        """Whether the default backend runs commands."""
        return can_execute(self.default)

    @property
    def id(self) -> str:
        return self.default.id if isinstance(self.default, SandboxBackend) else "composite"

    # -- verbs ---------------------------------------------------------------------------------------------------------

    @told(LsResult)
    def ls(self, path: str) -> LsResult:
        directory = checked(path)
        prefix, backend, inside = self._route(directory)
        result = backend.ls(inside)
        entries = {entry["path"]: entry for entry in (_listed(prefix, entry) for entry in result.entries)}
        roots: list[FileInfo] = [
            {"path": root + "/", "is_dir": True}
            for root in self.routes
            if root.rpartition("/")[0] in _as_parent(directory)
        ]
        entries |= {entry["path"]: entry for entry in roots}
        error = None if roots else result.error
        return LsResult(error=error, entries=[entries[name] for name in sorted(entries)])

    @told(ReadResult)
    def read(self, file_path: str, offset: int = 0, limit: int = READ_LIMIT) -> ReadResult:
        prefix, backend, inside = self._route(checked(file_path))
        result = backend.read(inside, offset, limit)
        return replace(result, error=_named(result.error, prefix, inside))

    @told(WriteResult)
    def write(self, file_path: str, content: str) -> WriteResult:
        return self._one(file_path, lambda backend, path: backend.write(path, content))

    @told(EditResult)
    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        return self._one(file_path, lambda backend, path: backend.edit(path, old_string, new_string, replace_all))

    @told(DeleteResult)
    def delete(self, file_path: str) -> DeleteResult:
        path = checked(file_path)
        if path in self.routes or any(below(root, path) for root in self.routes):
            raise permission_denied(path, "holds another backend, which is not deleted with it.")
        return self._one(path, lambda backend, inside: backend.delete(inside))

    @told(GrepResult)
    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        found = self._all(
            path, GrepResult, lambda backend, inside: backend.grep(pattern, inside, glob, max_count=max_count)
        )
        if max_count is None or len(found.matches) <= max_count:
            return found
        return replace(found, matches=found.matches[:max_count], truncated=True)

    @told(GlobResult)
    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        if not pattern.startswith("/"):
            return self._all(path, GlobResult, lambda backend, inside: backend.glob(pattern, inside))
        prefix, backend, inside = self._route("/" + pattern.lstrip("/"))
        found = backend.glob(inside)
        return replace(found, matches=[_listed(prefix, one) for one in found.matches])

    def upload_files(self, files: Sequence[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return [self._file(path, lambda b, inside, raw=raw: b.upload_files([(inside, raw)])[0]) for path, raw in files]  # type: ignore[misc]

    def download_files(self, paths: Sequence[str]) -> list[FileDownloadResponse]:
        return [self._file(path, lambda backend, inside: backend.download_files([inside])[0]) for path in paths]

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        if isinstance(self.default, SandboxBackend):
            return self.default.execute(command, **({} if timeout is None else {"timeout": timeout}))
        raise NotImplementedError("The default backend runs no commands.")

    def real_path(self, path: str) -> str:
        prefix, backend, inside = self._route(path)
        return prefix + backend.real_path(inside)

    def at(self, path: str) -> Backend:
        """The backend that has a path."""
        return self._route(checked(path))[1]

    # -- below ---------------------------------------------------------------------------------------------------------

    def _route(self, path: str) -> tuple[str, Backend, str]:
        """The prefix, the backend, and the path as the backend sees it."""
        for prefix, backend in self.routes.items():
            if path == prefix or below(path, prefix):
                return prefix, backend, path[len(prefix) :] or "/"
        return "", self.default, path

    def _one(self, file_path: str, verb: Callable[[Backend, str], Changed]) -> Changed:
        prefix, backend, inside = self._route(checked(file_path))
        result = verb(backend, inside)
        path = None if result.path is None else prefix + result.path
        return replace(result, path=path, error=_named(result.error, prefix, inside))

    def _file(self, given: str, verb: Callable[[Backend, str], Any]) -> Any:
        try:
            prefix, backend, inside = self._route(checked(given))
        except Refused:
            prefix, backend, inside = "", self.default, given  # which refuses it in the form of its answer
        answer = verb(backend, inside)
        return replace(answer, path=prefix + answer.path if answer.error is None else given)

    def _all(self, path: str | None, kind: type[Found], verb: Callable[[Backend, str], Any]) -> Found:
        """What all backends that have a part of a directory find, or the first error."""
        start = checked(path or "/")
        prefix, backend, inside = self._route(start)
        places = [(prefix, backend, inside)]
        places += [(root, other, "/") for root, other in self.routes.items() if below(root, start)]
        matches: list[Any] = []
        results = []
        for prefix, backend, inside in places:
            result = verb(backend, inside)
            if result.error is not None and not (len(places) > 1 and result.error.startswith("file_not_found")):
                return replace(result, error=_named(result.error, prefix, inside))  # type: ignore[no-any-return]
            results.append(result)
            matches += [_listed(prefix, match) for match in result.matches]
        if kind is GrepResult:
            matches.sort(key=lambda match: (match["path"], match["line"]))
        else:
            matches.sort(key=lambda match: match["path"])
        cut = next((result for result in results if result.truncated), results[0])
        return replace(cut, error=None, matches=matches)  # type: ignore[no-any-return]


def can_execute(backend: Backend) -> bool:
    """Whether a backend runs commands."""
    if isinstance(backend, CompositeBackend):
        return backend.can_execute
    return isinstance(backend, SandboxBackend)


def can_delete(backend: Backend) -> bool:
    """Whether a backend deletes files; of several, whether any does."""
    if isinstance(backend, CompositeBackend):
        return any(map(can_delete, (backend.default, *backend.routes.values())))
    return type(backend).delete is not Backend.delete


def _root(prefix: str) -> str:
    try:
        return checked(prefix)
    except Refused as refused:
        raise DefinitionError(refused.told, fix="Give a prefix such as '/memories/'.") from None


def _named(error: str | None, prefix: str, inside: str) -> str | None:
    """An error of a backend with the path that the caller gave, not the one that the backend saw."""
    if error is None or not prefix:
        return error
    code, colon, told = error.partition(": ")
    return f"{code}{colon}{prefix}{told}" if told.startswith(inside) else error


def _as_parent(directory: str) -> tuple[str, ...]:
    return ("",) if directory == "/" else (directory,)


def _listed(prefix: str, entry: Any) -> Any:
    return {**entry, "path": prefix + entry["path"]}
