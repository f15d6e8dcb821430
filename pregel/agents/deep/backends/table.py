"""A backend over a table of files: path -> content. Directories are what paths go through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

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
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from pregel.agents.deep.backends.errors import Refused, invalid_path, is_directory, not_found, permission_denied, told
from pregel.agents.deep.backends.paths import below, checked, relative


def now() -> str:
    """The time, as file data holds it."""
    return datetime.now(UTC).isoformat()


class TableBackend(Backend):
    """A backend whose files are entries of a table. Subclasses say how the table is read and changed."""

    def files(self) -> Mapping[str, FileData]:
        """All files by absolute path. The mapping may be lazy; it is not kept."""
        raise NotImplementedError

    def change(self, changes: Mapping[str, FileData | None]) -> None:
        """Put files in, and take out those whose content is None; all of them or none."""
        raise NotImplementedError

    def file(self, path: str) -> FileData | None:
        """One file."""
        return self.files().get(path)

    # -- verbs ---------------------------------------------------------------------------------------------------------

    @told(LsResult)
    def ls(self, path: str) -> LsResult:
        directory = checked(path)
        entries: dict[str, FileInfo] = {}
        for name, data in self.files().items():
            if not below(name, directory):
                continue
            head, slash, _ = relative(name, directory).partition("/")
            inside = f"{'' if directory == '/' else directory}/{head}"
            entries[inside + slash] = {"path": inside + "/", "is_dir": True} if slash else info_of(name, data)
        return LsResult(entries=[entries[name] for name in sorted(entries)])

    @told(ReadResult)
    def read(self, file_path: str, offset: int = 0, limit: int = READ_LIMIT) -> ReadResult:
        return text.window(self._there(checked(file_path)), offset, limit)

    @told(WriteResult)
    def write(self, file_path: str, content: str) -> WriteResult:
        path = checked(file_path)
        known = self._free(path)
        text.check(content)
        self.change({path: renewed(known, {"content": content, "encoding": "utf-8"})})
        return WriteResult(path=path)

    @told(EditResult)
    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        path = checked(file_path)
        data, count = self._edited(path, old_string, new_string, replace_all)
        self.change({path: data})
        return EditResult(path=path, occurrences=count)

    @told(DeleteResult)
    def delete(self, file_path: str) -> DeleteResult:
        path = checked(file_path)
        if path == "/":
            raise permission_denied(path, "the root cannot be deleted.")
        gone = [name for name in self.files() if name == path or below(name, path)]
        if not gone:
            raise not_found(path)
        self.change(dict.fromkeys(gone))
        return DeleteResult(path=path)

    @told(GrepResult)
    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        start = checked(path or "/")
        return searched(self._texts(start, glob), pattern, max_count)

    @told(GlobResult)
    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        start = "/" if pattern.startswith("/") else checked(path or "/")
        matches = globs.matcher(pattern)
        files = self.files()
        found = [name for name in sorted(files) if below(name, start) and matches(relative(name, start))]
        return GlobResult(matches=[info_of(name, files[name]) for name in found])

    def upload_files(self, files: Sequence[tuple[str, bytes]]) -> list[FileUploadResponse]:
        answers = []
        for given, raw in files:
            try:
                path = checked(given)
                self.change({path: renewed(self._free(path), text.encoded(raw))})
                answers.append(FileUploadResponse(path))
            except Refused as refused:
                answers.append(FileUploadResponse(given, refused.code))
        return answers

    def download_files(self, paths: Sequence[str]) -> list[FileDownloadResponse]:
        answers = []
        for given in paths:
            try:
                path = checked(given)
                answers.append(FileDownloadResponse(path, text.decoded(self._there(path))))
            except Refused as refused:
                answers.append(FileDownloadResponse(given, None, refused.code))
        return answers

    # -- below ---------------------------------------------------------------------------------------------------------

    def _edited(self, path: str, old: str, new: str, every: bool) -> tuple[FileData, int]:
        """A file with a text replaced, and in how many places."""
        known = self._there(path)
        if known["encoding"] == "base64":
            raise Refused("invalid_edit", f"{path} is not text.")
        content, count = text.replaced(known["content"], old, new, every=every)
        return renewed(known, {"content": content, "encoding": "utf-8"}), count

    def _there(self, path: str) -> FileData:
        data = self.file(path)
        if data is not None:
            return data
        raise is_directory(path) if path == "/" or self._is_directory(path) else not_found(path)

    def _free(self, path: str) -> FileData | None:
        """What a path holds that a file may be put at."""
        data = self.file(path)
        if data is not None:
            return data
        if path == "/" or self._is_directory(path):
            raise is_directory(path)
        files = self.files()
        above = path
        while (above := above.rpartition("/")[0]) != "":
            if above in files:
                raise invalid_path(path, f"goes through {above}, which is a file.")
        return None

    def _is_directory(self, path: str) -> bool:
        return any(below(name, path) for name in self.files())

    def _texts(self, start: str, glob: str | None) -> Iterable[tuple[str, str]]:
        matches = globs.matcher(glob) if glob else None
        files = self.files()
        for name in sorted(files):
            inside = name == start or below(name, start)
            seen = relative(name, start) if below(name, start) else name.rpartition("/")[2]
            if inside and (matches is None or matches(seen)) and files[name]["encoding"] == "utf-8":
                yield name, files[name]["content"]


def searched(texts: Iterable[tuple[str, str]], pattern: str, max_count: int | None) -> GrepResult:
    """The lines of (path, text) pairs that hold a pattern, at most `max_count` of them."""
    if not pattern:
        raise Refused("invalid_pattern", "the pattern is empty.")
    matches: list[GrepMatch] = []
    for path, content in texts:
        for number, line in text.found(content, pattern):
            if max_count is not None and len(matches) >= max_count:
                return GrepResult(matches=matches, truncated=True)
            matches.append({"path": path, "line": number, "text": line})
    return GrepResult(matches=matches)


def info_of(path: str, data: FileData) -> FileInfo:
    """How a file is listed."""
    length = len(data["content"])
    size = length * 3 // 4 - data["content"][-2:].count("=") if data["encoding"] == "base64" else None
    found: FileInfo = {"path": path, "is_dir": False, "size": len(text.decoded(data)) if size is None else size}
    if "modified_at" in data:
        found["modified_at"] = data["modified_at"]
    return found


def as_file_data(value: Any) -> FileData:
    """File data from what a caller put into a table: file data, a text, or (an older form) a list of lines."""
    if isinstance(value, str):
        return {"content": value, "encoding": "utf-8"}
    content = value["content"]
    if isinstance(content, list):
        content = "\n".join(content)
    found: FileData = {"content": content, "encoding": value.get("encoding", "utf-8")}
    for key in ("created_at", "modified_at"):
        if key in value:
            found[key] = value[key]
    return found


def create_file_data(
    content: str, created_at: str | None = None, encoding: Literal["utf-8", "base64"] = "utf-8"
) -> FileData:
    """What a file of a `StateBackend` or `StoreBackend` holds, to give it to a run or to put it into a store."""
    time = now()
    return {"content": content, "encoding": encoding, "created_at": created_at or time, "modified_at": time}


def renewed(known: FileData | None, new: FileData) -> FileData:
    """New data of a file, with the times that it has then."""
    time = now()
    created = known.get("created_at", time) if known is not None else time
    return {**new, "created_at": created, "modified_at": time}
