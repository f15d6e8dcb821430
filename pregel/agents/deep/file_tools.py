"""The tools with which a model uses files: what they take, and how they tell what came of it.

Each tool is written once, as a flow; it blocks or awaits as its caller does. What went wrong is told as an error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pregel.agents.deep.backends.base import Backend, FileData, ReadResult, SandboxBackend
from pregel.agents.deep.media import media_type
from pregel.agents.flow import AgentFlow, block, either, wait
from pregel.agents.tools.base import Tool, ToolException
from pregel.agents.tools.inject import InjectedToolCallId
from pregel.flow import arun, run
from pregel.messages import ToolMessage

OutputMode = Literal["files_with_matches", "content", "count"]
LINES = 100
"""Lines that `read_file` gives unless asked for more."""
READ_MOST = 80_000
"""Characters that one `read_file` gives at most."""
CallId = Annotated[str, InjectedToolCallId]
_REGEX = ("\\", ".*", ".+", "[", "(", "|", "^", "$")


def file_tools(
    backend: Backend,
    *,
    descriptions: dict[str, str] | None = None,
    grep_max_count: int | None = 1000,
    max_execute_timeout: int = 3600,
) -> list[Tool]:
    """All file tools of a backend, in the order in which a model sees them."""
    makers = _Tools(backend, grep_max_count, max_execute_timeout)
    described = {**DESCRIPTIONS, **(descriptions or {})}
    return [_tool(getattr(makers, name), described[name]) for name in NAMES]


class _Tools:
    """The flows of the tools, over one backend."""

    def __init__(self, backend: Backend, grep_max_count: int | None, max_execute_timeout: int) -> None:
        self.backend, self.grep_max_count, self.max_execute_timeout = backend, grep_max_count, max_execute_timeout

    def ls(self, path: str) -> AgentFlow[str]:
        result = yield either(self.backend.ls, self.backend.als, path)
        paths = [entry["path"] for entry in _sound(result).entries]
        return str(paths) if paths else f"No files found in {path}."

    def read_file(self, file_path: str, tool_call_id: CallId, offset: int = 0, limit: int = LINES) -> AgentFlow[Any]:
        result = yield either(self.backend.read, self.backend.aread, file_path, offset, limit)
        data = _sound(result).file_data
        kind = media_type(file_path)
        if data["encoding"] == "base64" or kind is not None:
            return _shown(file_path, data, kind, tool_call_id)
        return _window_text(result, offset)

    def write_file(self, file_path: str, content: str) -> AgentFlow[str]:
        result = yield either(self.backend.write, self.backend.awrite, file_path, content)
        return f"Wrote {_sound(result).path}."

    def edit_file(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> AgentFlow[str]:
        verb = self.backend.edit, self.backend.aedit
        result = yield either(*verb, file_path, old_string, new_string, replace_all)
        count = _sound(result).occurrences
        return f"Replaced {count} {'place' if count == 1 else 'places'} in {result.path}."

    def delete(self, file_path: str) -> AgentFlow[str]:
        result = yield either(self.backend.delete, self.backend.adelete, file_path)
        return f"Deleted {_sound(result).path}."

    def glob(self, pattern: str, path: str | None = None) -> AgentFlow[str]:
        result = yield either(self.backend.glob, self.backend.aglob, pattern, path)
        paths = [match["path"] for match in _sound(result).matches]
        cut = "\n(The search was stopped early: there may be more.)" if result.truncated else ""
        return (str(paths) if paths else f"No file matches {pattern!r}.") + cut

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        output_mode: OutputMode = "files_with_matches",
        max_count: int | None = None,
    ) -> AgentFlow[str]:
        if max_count is not None and max_count <= 0:
            raise ToolException(f"max_count is a positive number, not {max_count}.")
        most = max_count or self.grep_max_count
        verbs = (functools.partial(verb, max_count=most) for verb in (self.backend.grep, self.backend.agrep))
        result = yield either(*verbs, pattern, path, glob)
        if not _sound(result).matches:
            hint = " The pattern is searched literally, not as a regular expression." if _looks_regex(pattern) else ""
            return f"No line holds {pattern!r}.{hint}"
        cut = f"\n(Only the first {most} matches are shown.)" if result.truncated else ""
        return _MATCHES[output_mode](result.matches) + cut

    def execute(self, command: str, timeout: int | None = None) -> AgentFlow[Any]:
        if timeout is not None and not 0 < timeout <= self.max_execute_timeout:
            raise ToolException(f"A timeout is from 1 to {self.max_execute_timeout} seconds, not {timeout}.")
        if not isinstance(self.backend, SandboxBackend):
            raise ToolException("Commands cannot be run here: the files have no shell.")
        backend, limits = self.backend, {} if timeout is None else {"timeout": timeout}
        try:
            done = yield either(lambda: backend.execute(command, **limits), lambda: backend.aexecute(command, **limits))
        except NotImplementedError as error:
            raise ToolException(str(error)) from error
        ended = "succeeded" if done.exit_code == 0 else "failed"
        cut = "\n[Output was cut]" if done.truncated else ""
        text = f"{done.output}{cut}\n[Command {ended} with exit code {done.exit_code}]"
        return text, {"exit_code": done.exit_code, "truncated": done.truncated}


NAMES: tuple[str, ...] = ("ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep", "execute")
DESCRIPTIONS = {
    "ls": "List what a directory holds. Paths are absolute; directories end with a slash.",
    "read_file": (
        "Read a file. The answer begins with which lines it shows; `offset` (from 0) and `limit` page through a long "
        "file. Images, audio, video and documents are shown as such."
    ),
    "write_file": "Write a file whole. One that exists is replaced: read it first, or use edit_file.",
    "edit_file": (
        "Replace a text in a file. `old_string` must stand there exactly, and once: give enough of what is around it, "
        "or `replace_all` for every place. Read the file first."
    ),
    "delete": "Delete a file, or a directory with all that it holds.",
    "glob": (
        "Find files by name. A pattern without a slash, such as `*.py`, means names at any depth; with one, such as "
        "`src/**/*.py`, paths below `path`."
    ),
    "grep": (
        "Find lines that hold a text, literally. `glob` limits it to some files. `output_mode`: the files alone, the "
        "lines (`content`), or how many (`count`)."
    ),
    "execute": "Run a shell command where the files are. `timeout` in seconds.",
}


def _tool(flow: Callable[..., AgentFlow[Any]], description: str) -> Tool:
    """A tool of a flow."""

    @functools.wraps(flow)
    def blocking(*args: Any, **kwargs: Any) -> Any:
        return run(flow(*args, **kwargs), block)

    @functools.wraps(flow)
    async def awaiting(*args: Any, **kwargs: Any) -> Any:
        return await arun(flow(*args, **kwargs), wait)

    form = "content_and_artifact" if flow.__name__ == "execute" else "content"
    return Tool(
        blocking,
        awaiting,
        name=flow.__name__,
        description=description,
        response_format=form,
        handle_tool_error=lambda error: f"Error: {error}",
    )


def _sound(result: Any) -> Any:
    """The result; ToolException when it is an error."""
    if result.error is not None:
        raise ToolException(result.error)
    return result


# -- what is shown -----------------------------------------------------------------------------------------------------


def _window_text(result: ReadResult, offset: int) -> str:
    """A header that says which lines these are, then the lines as they are."""
    assert result.file_data is not None
    if result.no_lines_requested:
        return "No lines were asked for: `limit` was 0, so nothing was read."
    content, total = result.file_data["content"], result.total_lines or 0
    if not content.strip() and total <= 1:
        return "The file is there, and it is empty."
    end = result.end_line or 0
    note = f"(offset {offset} is before the file: it starts at 0.)\n" if offset < 0 else ""
    shown, cut = _cut(content, READ_MOST)
    if cut:
        end = (result.start_line or 1) + max(shown.count("\n"), 1) - 1
        note += f"(The text was cut after {len(shown)} characters.)\n"
    following = f" | next offset {end}" if end < total or cut else ""
    return f"{note}@@ lines {result.start_line}-{end} of {total}{following} @@\n{shown}"


def _cut(text: str, most: int) -> tuple[str, bool]:
    """As many whole lines as fit; a part of the first one when not even that does."""
    if len(text) <= most:
        return text, False
    at = text.rfind("\n", 0, most)
    return (text[:at] + "\n" if at > 0 else text[:most]), True


def _shown(path: str, data: FileData, kind: tuple[str, str] | None, tool_call_id: str) -> ToolMessage:
    """A file that is no text, as a content block."""
    import base64

    raw = data["content"]
    if data["encoding"] != "base64":
        raw = base64.b64encode(raw.encode("utf-8")).decode("ascii")
    block_type, mime_type = kind or ("file", "application/octet-stream")
    block = {"type": block_type, "base64": raw, "mime_type": mime_type}
    known = {"read_file_path": path, "read_file_media_type": mime_type}
    return ToolMessage([block], tool_call_id=tool_call_id, name="read_file", additional_kwargs=known)


def _files(matches: Sequence[Any]) -> str:
    return "\n".join(dict.fromkeys(match["path"] for match in matches))


def _content(matches: Sequence[Any]) -> str:
    by_path: dict[str, list[str]] = {}
    for match in matches:
        by_path.setdefault(match["path"], []).append(f"  {match['line']}: {match['text']}")
    return "\n".join(line for path, lines in by_path.items() for line in (f"{path}:", *lines))


def _count(matches: Sequence[Any]) -> str:
    counts: dict[str, int] = {}
    for match in matches:
        counts[match["path"]] = counts.get(match["path"], 0) + 1
    return "\n".join(f"{path}: {count}" for path, count in counts.items())


_MATCHES: dict[str, Callable[[Sequence[Any]], str]] = {
    "files_with_matches": _files,
    "content": _content,
    "count": _count,
}


def _looks_regex(pattern: str) -> bool:
    return any(sign in pattern for sign in _REGEX)
