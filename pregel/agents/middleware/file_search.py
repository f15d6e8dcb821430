"""Tools that look for files and for text in them, below one directory and nowhere else."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Literal

from pregel.agents.middleware.base import AgentMiddleware
from pregel.agents.tools.base import Tool, ToolException
from pregel.errors import DefinitionError

OutputMode = Literal["files_with_matches", "content", "count"]
MEGABYTE = 1024 * 1024


class FilesystemFileSearchMiddleware(AgentMiddleware):
    """The tools `glob_search` and `grep_search` over the files below `root_path`.

    Paths that the model gives begin at the root, as "/"; what would lead out of it, also through a link, is not found.
    Files above `max_file_size_mb` are not read. `use_ripgrep` is accepted and changes nothing.
    """

    def __init__(self, *, root_path: str | Path, use_ripgrep: bool = True, max_file_size_mb: float = 10) -> None:
        self.root = Path(root_path).resolve()
        if not self.root.is_dir():
            raise DefinitionError(f"root_path {str(root_path)!r} is no directory.", fix="Give one that exists.")
        self.max_bytes = int(max_file_size_mb * MEGABYTE)
        self.tools = [Tool(self.glob_search, name="glob_search"), Tool(self.grep_search, name="grep_search")]

    def glob_search(self, pattern: str, path: str = "/") -> str:
        """Find files by a glob pattern such as "**/*.py", below a path; the last changed ones first."""
        base = self._inside(path)
        found = [file for file in self._files(base) if _matches(file.relative_to(base), pattern)]
        found.sort(key=lambda file: file.stat().st_mtime, reverse=True)
        return "\n".join(map(self._shown, found)) or "No files found"

    def grep_search(
        self, pattern: str, path: str = "/", include: str | None = None, output_mode: OutputMode = "files_with_matches"
    ) -> str:
        """Find lines by a regular expression in the files below a path; `include` is a glob for their names."""
        try:
            wanted = re.compile(pattern)
        except re.error as error:
            raise ToolException(f"{pattern!r} is no regular expression: {error}") from error
        base = self._inside(path)
        lines: list[str] = []
        for file in sorted(self._files(base)):
            if include is None or _matches(file.relative_to(base), include):
                lines += self._hits(file, wanted, output_mode)
        return "\n".join(lines) or "No matches found"

    def _hits(self, file: Path, wanted: re.Pattern[str], mode: OutputMode) -> list[str]:
        if file.stat().st_size > self.max_bytes:
            return []
        try:
            text = file.read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError):
            return []
        hits = [(at, line) for at, line in enumerate(text.splitlines(), 1) if wanted.search(line)]
        if not hits:
            return []
        shown = self._shown(file)
        if mode == "content":
            return [f"{shown}:{at}:{line}" for at, line in hits]
        return [f"{shown}:{len(hits)}" if mode == "count" else shown]

    def _inside(self, path: str) -> Path:
        """The directory that a path of the model's means; ToolException when that is not one below the root."""
        base = (self.root / path.lstrip("/")).resolve()
        if not base.is_relative_to(self.root) or not base.is_dir():
            raise ToolException(f"{path!r} is no directory here. Paths begin with '/'.")
        return base

    def _files(self, base: Path) -> Iterator[Path]:
        for folder, _, names in os.walk(base):
            for name in names:
                file = Path(folder, name)
                if file.is_file() and file.resolve().is_relative_to(self.root):
                    yield file

    def _shown(self, file: Path) -> str:
        return f"/{file.relative_to(self.root).as_posix()}"


def _matches(path: Path, pattern: str) -> bool:
    """Whether a relative path fits a glob; ``**/`` also means no directory, a pattern without "/" is for the name."""
    text, pattern = path.as_posix(), pattern.lstrip("/")
    if "/" not in pattern:
        return fnmatch.fnmatch(path.name, pattern)
    if pattern.startswith("**/") and _matches(path, pattern.removeprefix("**/")):
        return True
    return _fits(PurePosixPath(text).parts, tuple(pattern.split("/")))


def _fits(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return _fits(parts, pattern[1:]) or (bool(parts) and _fits(parts[1:], pattern))
    return bool(parts) and fnmatch.fnmatch(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])
