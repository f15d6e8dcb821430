"""Where the files of an agent are: one protocol, whatever lies behind it.

1. Paths are absolute and written with slashes; `/` is the root of the backend. Directories end with a slash in answers.
2. **Errors are returned, never raised**: every answer has an `error`, a text for the model, or None. What a caller may
   act on is in `errors.ErrorCode`, which those texts begin with.
3. Lines are counted from 1 in answers; `offset` counts from 0. Text is UTF-8, everything else is base64. A list of an
   answer that is None is empty.
4. The verbs block. Their async twins run them on a thread; a backend that can await overrides the twins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from pregel.agents.deep.backends.paths import checked
from pregel.flow import on_thread

READ_LIMIT = 2000
"""Lines that `read` gives unless told otherwise."""


class FileInfo(TypedDict):
    """A file or directory in a listing. `size` in bytes, `modified_at` in ISO 8601, UTC."""

    path: str
    is_dir: NotRequired[bool]
    size: NotRequired[int]
    modified_at: NotRequired[str]


class FileData(TypedDict):
    """What a file holds: text, or bytes as base64. Times in ISO 8601, UTC."""

    content: str
    encoding: Literal["utf-8", "base64"]
    created_at: NotRequired[str]
    modified_at: NotRequired[str]


class GrepMatch(TypedDict):
    """A line that matched; `line` counts from 1."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class LsResult:
    """What a directory holds, sorted by path."""

    error: str | None = None
    entries: list[FileInfo] = field(default_factory=list)

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", self.entries or [])


@dataclass(frozen=True, slots=True)
class ReadResult:
    """A window of a file.

    `file_data` holds the lines of the window. `start_line` and `end_line` are its first and last line, None when it
    holds none; `next_offset` is where the next window begins, None at the end. For bytes there are no lines.
    """

    error: str | None = None
    file_data: FileData | None = None
    total_lines: int | None = None
    start_line: int | None = None
    end_line: int | None = None
    next_offset: int | None = None
    no_lines_requested: bool = False


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Where something was written."""

    error: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class EditResult:
    """Where and how often something was replaced."""

    error: str | None = None
    path: str | None = None
    occurrences: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """What was deleted."""

    error: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class GrepResult:
    """The lines that matched, by path and line; `truncated` when there were more."""

    error: str | None = None
    matches: list[GrepMatch] = field(default_factory=list)
    truncated: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "matches", self.matches or [])


@dataclass(frozen=True, slots=True)
class GlobResult:
    """The files that matched, sorted by path; `truncated` when there may be more, with the reason."""

    error: str | None = None
    matches: list[FileInfo] = field(default_factory=list)
    truncated: bool = False
    truncation_reason: Literal["budget", "unreadable", "transport"] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "matches", self.matches or [])


@dataclass(frozen=True, slots=True)
class FileUploadResponse:
    """What became of one uploaded file; `error` is an ErrorCode."""

    path: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class FileDownloadResponse:
    """One downloaded file; `error` is an ErrorCode."""

    path: str
    content: bytes | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ExecuteResponse:
    """What a command printed, and how it ended; `exit_code` is None when that is not known."""

    output: str
    exit_code: int | None = None
    truncated: bool = False


class Backend:
    """Files behind one protocol. Subclasses write the blocking verbs; see the module for the rules."""

    def ls(self, path: str) -> LsResult:
        """What a directory holds, not what lies deeper."""
        raise NotImplementedError

    def read(self, file_path: str, offset: int = 0, limit: int = READ_LIMIT) -> ReadResult:
        """`limit` lines after the first `offset`; all bytes of a file that is no text."""
        raise NotImplementedError

    def write(self, file_path: str, content: str) -> WriteResult:
        """Make a file, or replace it."""
        raise NotImplementedError

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        """Replace the one place where a text stands, or all of them."""
        raise NotImplementedError

    def delete(self, file_path: str) -> DeleteResult:
        """Delete a file, or a directory and all that it holds. The root is never deleted."""
        raise NotImplementedError

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        """The lines that hold a text, literally, in the files under `path` that match `glob`."""
        raise NotImplementedError

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """The files under `path` that match (see `globs`)."""
        raise NotImplementedError

    def absolute(self, path: str) -> str:
        """The checked path that a path as an agent gives it means; Refused for one that no verb takes."""
        return checked(path)

    def real_path(self, path: str) -> str:
        """Where a checked path leads when links are followed: rules hold for that place too."""
        return path

    def upload_files(self, files: Sequence[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write files as bytes; each ends well or not on its own."""
        raise NotImplementedError

    def download_files(self, paths: Sequence[str]) -> list[FileDownloadResponse]:
        """Read files as bytes; each ends well or not on its own."""
        raise NotImplementedError

    # -- awaited -------------------------------------------------------------------------------------------------------

    async def als(self, path: str) -> LsResult:
        """`ls`, awaited."""
        return await on_thread(self.ls, path)

    async def aread(self, file_path: str, offset: int = 0, limit: int = READ_LIMIT) -> ReadResult:
        """`read`, awaited."""
        return await on_thread(self.read, file_path, offset, limit)

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        """`write`, awaited."""
        return await on_thread(self.write, file_path, content)

    async def aedit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        """`edit`, awaited."""
        return await on_thread(self.edit, file_path, old_string, new_string, replace_all)

    async def adelete(self, file_path: str) -> DeleteResult:
        """`delete`, awaited."""
        return await on_thread(self.delete, file_path)

    async def agrep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        """`grep`, awaited."""
        return await on_thread(self.grep, pattern, path, glob, max_count=max_count)

    async def aglob(self, pattern: str, path: str | None = None) -> GlobResult:
        """`glob`, awaited."""
        return await on_thread(self.glob, pattern, path)

    async def aupload_files(self, files: Sequence[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """`upload_files`, awaited."""
        return await on_thread(self.upload_files, files)

    async def adownload_files(self, paths: Sequence[str]) -> list[FileDownloadResponse]:
        """`download_files`, awaited."""
        return await on_thread(self.download_files, paths)


class SandboxBackend(Backend):
    """A backend that also runs commands."""

    @property
    def id(self) -> str:
        """Which sandbox this is."""
        raise NotImplementedError

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a shell command; `timeout` in seconds."""
        raise NotImplementedError

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """`execute`, awaited."""
        return await on_thread(self.execute, command, **({} if timeout is None else {"timeout": timeout}))


BackendProtocol = Backend
SandboxBackendProtocol = SandboxBackend
