"""Who may read and write what: rules over paths, kept by a backend in front of the backend.

The first rule whose operations and paths match decides; without one everything is allowed. What may not be read is
neither listed nor found, and a search shows nothing that a person is to be asked about unless its own path is asked
about. Deleting a directory needs the right to write everything that it may hold. A link stands for where it leads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pregel.agents.deep.backends import globs
from pregel.agents.deep.backends.base import (
    READ_LIMIT,
    Backend,
    DeleteResult,
    EditResult,
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    SandboxBackend,
    WriteResult,
)
from pregel.agents.deep.backends.composite import CompositeBackend, can_execute
from pregel.agents.deep.backends.errors import Refused, permission_denied, told
from pregel.agents.deep.backends.paths import below
from pregel.errors import DefinitionError

Operation = Literal["read", "write"]
Mode = Literal["allow", "deny", "interrupt"]


@dataclass(frozen=True, slots=True)
class FilesystemPermission:
    """A rule: whether these operations on these paths (globs from the root) are allowed, denied, or asked about.

    A name with a leading dot is covered like any other.
    """

    operations: Sequence[Operation]
    paths: Sequence[str]
    mode: Mode = "allow"

    def __post_init__(self) -> None:
        for path in self.paths:
            if not path.startswith("/") or (path != "/" and {"", ".", ".."} & set(path[1:].split("/"))):
                raise DefinitionError(
                    f"{path!r} is no path of a permission: it would cover nothing.",
                    fix="Begin it with '/', leave out '.' and '..', and write '/x/**' for what is in /x.",
                )
        wrong = [one for one in self.operations if one not in ("read", "write")]
        if wrong or self.mode not in ("allow", "deny", "interrupt"):
            raise DefinitionError(
                f"{self!r} is no permission.", fix="Operations are 'read' and 'write'; modes allow, deny, interrupt."
            )

    def covers(self, path: str) -> bool:
        """Whether a path is one of its paths."""
        return any(globs.matcher(pattern, hidden=True)(path[1:]) for pattern in self.paths)

    def may_cover_below(self, directory: str) -> bool:
        """Whether something in a directory may be one of its paths, as far as the patterns say."""
        return any(_reaches(pattern, directory) for pattern in self.paths)


class Permissions:
    """Rules, in order, over the paths of a backend. Where a path is a link, they hold for where it leads as well."""

    def __init__(self, rules: Sequence[FilesystemPermission], backend: Backend) -> None:
        self.rules = tuple(rules)
        self.backend = backend

    def mode(self, operation: Operation, path: str) -> Mode:
        """What the first matching rule says; the stricter one for a path that leads elsewhere."""
        found = {self._first(operation, place) for place in {path, self.backend.real_path(path)}}
        return "deny" if "deny" in found else "interrupt" if "interrupt" in found else "allow"

    def _first(self, operation: Operation, path: str) -> Mode:
        for rule in self.rules:
            if operation in rule.operations and rule.covers(path):
                return rule.mode
        return "allow"

    def may_meet(self, mode: Mode, directory: str) -> bool:
        """Whether something below a directory may be denied, or asked about, when all of it is to be written."""
        wanted = (rule for rule in self.rules if rule.mode == mode and "write" in rule.operations)
        return any(rule.may_cover_below(directory) for rule in wanted)

    def asks(self, operation: Operation, given: str, *, whole: bool = False) -> bool:
        """Whether a person decides about a path, or, with `whole`, about all that it holds."""
        try:
            path = self.backend.absolute(given)
        except Refused:
            return False  # which the backend refuses by itself
        return self.mode(operation, path) == "interrupt" or (whole and self.may_meet("interrupt", path))

    @property
    def ask(self) -> bool:
        """Whether any rule asks a person."""
        return any(rule.mode == "interrupt" for rule in self.rules)


class GuardedBackend(SandboxBackend):
    """A backend behind permissions."""

    def __init__(self, backend: Backend, permissions: Permissions) -> None:
        self.backend, self.permissions = backend, permissions

    @property
    def id(self) -> str:
        return self.backend.id if isinstance(self.backend, SandboxBackend) else "guarded"

    def absolute(self, path: str) -> str:
        return self.backend.absolute(path)

    def real_path(self, path: str) -> str:
        return self.backend.real_path(path)

    @told(LsResult)
    def ls(self, path: str) -> LsResult:
        self._need("read", path)
        result = self.backend.ls(path)
        return replace(result, entries=[one for one in result.entries if self._visible(one)])

    @told(ReadResult)
    def read(self, file_path: str, offset: int = 0, limit: int = READ_LIMIT) -> ReadResult:
        self._need("read", file_path)
        return self.backend.read(file_path, offset, limit)

    @told(WriteResult)
    def write(self, file_path: str, content: str) -> WriteResult:
        self._need("write", file_path)
        return self.backend.write(file_path, content)

    @told(EditResult)
    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        self._need("write", file_path)
        return self.backend.edit(file_path, old_string, new_string, replace_all)

    @told(DeleteResult)
    def delete(self, file_path: str) -> DeleteResult:
        path = self._need("write", file_path)
        if self.permissions.may_meet("deny", path):
            raise permission_denied(path, "it may hold files that may not be written.")
        return self.backend.delete(path)

    @told(GrepResult)
    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        start = self._need("read", path or "/")
        asked = self.permissions.mode("read", start) == "interrupt"  # then a person let this search through
        shown: set[Mode] = {"allow", "interrupt"} if asked else {"allow"}
        result = self.backend.grep(pattern, path, glob)  # whole: what is hidden does not count
        matches = [one for one in result.matches if self.permissions.mode("read", one["path"]) in shown]
        cut = max_count is not None and len(matches) > max_count
        return replace(result, matches=matches[:max_count], truncated=result.truncated or cut)

    @told(GlobResult)
    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        self._need("read", path or "/")
        result = self.backend.glob(pattern, path)
        return replace(result, matches=[one for one in result.matches if self._visible(one)])

    def upload_files(self, files: Sequence[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return [
            self._each(
                "write",
                path,
                lambda raw=raw, path=path: self.backend.upload_files([(path, raw)])[0],  # type: ignore[misc]
                lambda code, path=path: FileUploadResponse(path, code),  # type: ignore[misc]
            )
            for path, raw in files
        ]

    def download_files(self, paths: Sequence[str]) -> list[FileDownloadResponse]:
        return [
            self._each(
                "read",
                path,
                lambda path=path: self.backend.download_files([path])[0],  # type: ignore[misc]
                lambda code, path=path: FileDownloadResponse(path, None, code),  # type: ignore[misc]
            )
            for path in paths
        ]

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        if isinstance(self.backend, SandboxBackend):
            return self.backend.execute(command, **({} if timeout is None else {"timeout": timeout}))
        raise NotImplementedError("The backend runs no commands.")

    def _need(self, operation: Operation, path: str) -> str:
        wanted = self.absolute(path)
        if self.permissions.mode(operation, wanted) == "deny":
            raise permission_denied(wanted, f"you may not {operation} it.")
        return wanted

    def _each(self, operation: Operation, path: str, verb: Callable[[], Any], refuse: Callable[[str], Any]) -> Any:
        try:
            self._need(operation, path)
        except Refused as refused:
            return refuse(refused.code)
        return verb()

    def _visible(self, entry: Any) -> bool:
        return self.permissions.mode("read", entry["path"].rstrip("/") or "/") != "deny"


def guarded(backend: Backend, rules: Sequence[FilesystemPermission]) -> Backend:
    """The backend behind rules; DefinitionError where a shell would go around them."""
    if not rules:
        return backend
    if can_execute(backend):
        routed = list(backend.routes) if isinstance(backend, CompositeBackend) else []
        loose = [p for rule in rules for p in rule.paths if not any(below(p, root) or p == root for root in routed)]
        if loose:
            raise DefinitionError(
                f"The shell of the backend goes around permissions for {', '.join(loose)}.",
                fix="Put those paths behind a route of a CompositeBackend, or use a backend that runs no commands.",
            )
    return GuardedBackend(backend, Permissions(rules, backend))


def _reaches(pattern: str, directory: str) -> bool:
    """Whether a pattern may mean something below a directory: segment by segment, in doubt yes."""
    wanted = [part for part in directory.split("/") if part]
    given = [part for part in pattern.split("/") if part]
    for index, segment in enumerate(wanted):
        if index >= len(given):
            return False
        if given[index] == "**" or "{" in given[index]:
            return True
        if not globs.matcher(given[index])(segment):
            return False
    return len(given) > len(wanted)
