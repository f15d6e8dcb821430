"""Files of a directory of this machine.

1. With `virtual_mode` (the default) the directory is the root: no path, link or race leads out of it. A path is
   resolved first and then opened one segment at a time without following links: what is opened is what was checked.
2. A file is replaced as a whole: a reader, or the next process after a kill, sees the old text or the new one.
3. Deleting a link deletes the link. The root is never deleted.
4. A file says which edit made it, in an extended attribute that comes and goes with its content: a task that is run
   again after a crash finds its own edit done. Where there are none (outside of Linux, on some file systems) the edit
   is tried again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import uuid4

from pregel.agents.deep.backends import globs, text
from pregel.agents.deep.backends.base import (
    READ_LIMIT,
    Backend,
    DeleteResult,
    EditResult,
    FileData,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from pregel.agents.deep.backends.errors import (
    Refused,
    invalid_path,
    is_directory,
    not_found,
    permission_denied,
    told,
)
from pregel.agents.deep.backends.once import is_again, mark_of
from pregel.agents.deep.backends.paths import checked, relative
from pregel.agents.deep.backends.table import searched
from pregel.errors import DefinitionError

BUDGET = 5.0
"""Seconds that a search may take before it gives what it has."""
EDITED = "user.pregel.edited"
"""Which edit made a file, and how many places that replaced."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe with nobody at its other end must not hang
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FilesystemBackend(Backend):
    """Files below `root_dir` (default: the working directory), addressed from ``/``.

    Without `virtual_mode` paths are those of the machine, and relative ones start at `root_dir`: the agent can then
    reach whatever the process can. Larger files than `max_file_size_mb` are not searched or read.
    """

    def __init__(
        self, root_dir: str | Path | None = None, virtual_mode: bool = True, max_file_size_mb: float = 10
    ) -> None:
        directory = os.path.realpath(root_dir or os.getcwd())
        if not os.path.isdir(directory):
            raise DefinitionError(f"{directory} is no directory.", fix="Create it first, or give another root_dir.")
        self.cwd = Path(directory)
        self.virtual_mode = virtual_mode
        self.max_bytes = int(max_file_size_mb * 1024 * 1024)
        self._root = directory if virtual_mode else "/"

    # -- verbs ---------------------------------------------------------------------------------------------------------

    @told(LsResult)
    def ls(self, path: str) -> LsResult:
        directory = self.absolute(path)
        with self._opened(self._inside(directory), _DIRECTORY) as fd:
            names = sorted(os.listdir(fd))
        prefix = "" if directory == "/" else directory
        found = (self._info(f"{prefix}/{name}") for name in names if _is_text(name))
        return LsResult(entries=[info for info in found if info is not None])

    @told(ReadResult)
    def read(self, file_path: str, offset: int = 0, limit: int = READ_LIMIT) -> ReadResult:
        return text.window(self._data(self.absolute(file_path)), offset, limit)

    @told(WriteResult)
    def write(self, file_path: str, content: str) -> WriteResult:
        path = self.absolute(file_path)
        text.check(content)
        self._put(path, content.encode("utf-8"))
        return WriteResult(path=path)

    @told(EditResult)
    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        path = self.absolute(file_path)
        mark = mark_of(path, old_string, new_string, replace_all)
        if mark and is_again() and (before := self._count_of(path, mark)) is not None:
            return EditResult(path=path, occurrences=before)
        data = self._data(path)
        if data["encoding"] == "base64":
            raise Refused("invalid_edit", f"{path} is not text.")
        content, count = text.replaced(data["content"], old_string, new_string, every=replace_all)
        self._put(path, content.encode("utf-8"), made_by=f"{mark} {count}" if mark else None)
        return EditResult(path=path, occurrences=count)

    @told(DeleteResult)
    def delete(self, file_path: str) -> DeleteResult:
        path = self.absolute(file_path)
        place, name = os.path.split(self._root + path)
        if path == "/" or os.path.realpath(self._root + path) == self._root:
            raise permission_denied(path, "the root cannot be deleted.")
        with self._opened(self._resolved(place, path), _DIRECTORY, path) as above, _refusing(path):
            if stat.S_ISDIR(os.lstat(name, dir_fd=above).st_mode):
                shutil.rmtree(name, dir_fd=above)
            else:
                os.unlink(name, dir_fd=above)
        return DeleteResult(path=path)

    @told(GrepResult)
    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        walk = _Walk(self, self.absolute(path or "/"))
        matches = globs.matcher(glob) if glob else None
        found = searched(self._texts(walk, matches), pattern, max_count)
        return GrepResult(matches=found.matches, truncated=found.truncated or walk.stopped is not None)

    @told(GlobResult)
    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        walk = _Walk(self, "/" if pattern.startswith("/") else self.absolute(path or "/"))
        matches = globs.matcher(pattern)
        infos = [info for one in walk if matches(walk.seen(one)) if (info := self._info(one)) is not None]
        return GlobResult(
            matches=sorted(infos, key=lambda info: info["path"]),
            truncated=walk.stopped is not None,
            truncation_reason=walk.stopped,
        )

    def upload_files(self, files: Sequence[tuple[str, bytes]]) -> list[FileUploadResponse]:
        answers = []
        for given, raw in files:
            try:
                path = self.absolute(given)
                self._put(path, raw)
                answers.append(FileUploadResponse(path))
            except Refused as refused:
                answers.append(FileUploadResponse(given, refused.code))
        return answers

    def download_files(self, paths: Sequence[str]) -> list[FileDownloadResponse]:
        answers = []
        for given in paths:
            try:
                path = self.absolute(given)
                answers.append(FileDownloadResponse(path, self._bytes(path)))
            except Refused as refused:
                answers.append(FileDownloadResponse(given, None, refused.code))
        return answers

    # -- where a path leads --------------------------------------------------------------------------------------------

    def absolute(self, path: str) -> str:
        if self.virtual_mode or path.startswith("/"):
            return checked(path)
        return checked(f"{self.cwd}/{path}")

    def real_path(self, path: str) -> str:
        try:
            real = self._inside(path)
        except Refused:
            return path  # no verb goes there
        return (real if self._root == "/" else real[len(self._root) :]) or "/"

    def _inside(self, path: str) -> str:
        """The real place of a path; Refused when it lies outside."""
        return self._resolved(self._root + path, path)

    def _resolved(self, place: str, path: str) -> str:
        with _refusing(path):
            real = os.path.realpath(place)
        if self._root != "/" and real != self._root and not real.startswith(self._root + os.sep):
            raise permission_denied(path, "leads out of the root.")
        return real

    @contextlib.contextmanager
    def _opened(self, real: str, flags: int, path: str = "", *, make: bool = False) -> Iterator[int]:
        """A real place, opened from the root one segment at a time: none of them may have become a link since.

        `make` makes the directories that are missing.
        """
        path = path or real[len(self._root) :] or "/"
        segments = [part for part in real[len(self._root) :].split("/") if part]
        with contextlib.ExitStack() as stack, _refusing(path):
            fd = os.open(self._root, _DIRECTORY)
            stack.callback(os.close, fd)
            for index, segment in enumerate(segments):
                last = index == len(segments) - 1
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(segment, dir_fd=fd)
                fd = os.open(segment, flags if last else _DIRECTORY, dir_fd=fd)
                stack.callback(os.close, fd)
            yield fd

    def _info(self, path: str) -> FileInfo | None:
        """How an entry is listed; None for one that leads out, nowhere, or is no file."""
        try:
            found = os.stat(self._inside(path))
        except (Refused, OSError):
            return None
        if stat.S_ISDIR(found.st_mode):
            return {"path": path + "/", "is_dir": True}
        if not stat.S_ISREG(found.st_mode):
            return None
        modified = datetime.fromtimestamp(found.st_mtime, UTC).isoformat()
        return {"path": path, "is_dir": False, "size": found.st_size, "modified_at": modified}

    # -- what a file holds ---------------------------------------------------------------------------------------------

    def _bytes(self, path: str) -> bytes:
        with self._opened(self._inside(path), _READ, path) as fd:
            found = os.fstat(fd)
            if stat.S_ISDIR(found.st_mode):
                raise is_directory(path)
            if not stat.S_ISREG(found.st_mode):
                raise permission_denied(path, "is no ordinary file.")
            if found.st_size > self.max_bytes:
                raise permission_denied(path, f"has {found.st_size} bytes; at most {self.max_bytes} are read.")
            with os.fdopen(os.dup(fd), "rb") as file:
                return file.read()

    def _data(self, path: str) -> FileData:
        return text.encoded(self._bytes(path))

    def _count_of(self, path: str, mark: str) -> int | None:
        """How many places an edit replaced; None when it did not make the file."""
        if sys.platform != "linux":
            return None
        with self._opened(self._inside(path), _READ, path) as fd, contextlib.suppress(OSError):
            by, _, count = os.getxattr(fd, EDITED).decode(errors="replace").partition(" ")
            return int(count) if by == mark else None
        return None

    def _put(self, path: str, raw: bytes, *, made_by: str | None = None) -> None:
        real = self._inside(path)
        if os.path.isdir(real):
            raise is_directory(path)
        place, name = os.path.split(real)
        with self._opened(place, _DIRECTORY, path, make=True) as above, _refusing(path):
            new = f".{uuid4().hex}.new"
            fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=above)
            try:
                with os.fdopen(fd, "wb") as file:
                    if made_by is not None and sys.platform == "linux":  # before the file may become read-only
                        with contextlib.suppress(OSError):  # a file system without attributes
                            os.setxattr(file.fileno(), EDITED, made_by.encode())
                    with contextlib.suppress(FileNotFoundError):
                        os.fchmod(file.fileno(), stat.S_IMODE(os.lstat(name, dir_fd=above).st_mode))
                    file.write(raw)
                os.replace(new, name, src_dir_fd=above, dst_dir_fd=above)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(new, dir_fd=above)
                raise

    def _texts(self, walk: _Walk, matches: object) -> Iterator[tuple[str, str]]:
        for path in walk:
            if matches is not None and not matches(walk.seen(path)):  # type: ignore[operator]  # a matcher
                continue
            try:
                data = self._data(path)
            except Refused:
                continue
            if data["encoding"] == "utf-8":
                yield path, data["content"]


class _Walk:
    """The files below a path in order, for as long as a search may take."""

    def __init__(self, backend: FilesystemBackend, start: str) -> None:
        self.backend, self.start = backend, start
        self.stopped: Literal["budget"] | None = None

    def __iter__(self) -> Iterator[str]:
        info = self.backend._info(self.start) if self.start != "/" else None
        if self.start != "/" and info is None:
            raise not_found(self.start)
        if info is not None and not info.get("is_dir"):
            yield self.start
            return
        deadline = time.monotonic() + BUDGET
        waiting = [self.start]
        while waiting:
            at = waiting.pop()
            result = self.backend.ls(at)
            below: list[str] = []
            for entry in result.entries:
                if time.monotonic() > deadline:
                    self.stopped = "budget"
                    return
                path = entry["path"].rstrip("/")
                if not entry.get("is_dir"):
                    yield path
                elif not os.path.islink(self.backend._root + path):  # a link to a directory may lead in a circle
                    below.append(path)
            waiting += reversed(below)

    def seen(self, path: str) -> str:
        """The path as seen from where the search began."""
        return path.rpartition("/")[2] if path == self.start else relative(path, self.start)


@contextlib.contextmanager
def _refusing(path: str) -> Iterator[None]:
    """Raises what the system refuses as Refused."""
    try:
        yield
    except FileNotFoundError:
        raise not_found(path) from None
    except IsADirectoryError:
        raise is_directory(path) from None
    except NotADirectoryError:
        raise invalid_path(path, "goes through a file.") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise permission_denied(path, "goes through a link that changed, or goes in a circle.") from None
        if error.errno == errno.ENAMETOOLONG:
            raise invalid_path(path, "is too long.") from None
        raise permission_denied(path, error.strerror or str(error)) from None


def _is_text(name: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in name)
