"""The laws of file backends as tests: subclass `BackendLaws`, say how a backend is made, and collect it with pytest.

::

    class TestMyBackend(BackendLaws):
        @pytest.fixture
        def backend(self, tmp_path):
            return MyBackend(tmp_path)

The last law compares the backend with a dict over random calls; it passes over itself where hypothesis is missing.
"""

from __future__ import annotations

from typing import Any

import pytest

from pregel.agents.deep.backends.base import Backend, ReadResult
from pregel.checkpoint.conformance.drawn import Call, drawn

BAD_PATHS = ("../x", "/a/../../x", "~/x", "~root", "C:\\x", "c:/x", "/a\0b", "/..", "a/..", "\\..\\x", "/\ud800")
ODD_NAMES = ("/a..txt", "/ü 日本.txt", "/%2e%2e", "/-rf", "/a\nb", "/.hidden", "/a'\"b", "/$HOME", "/[x]*?{a,b}")


def content_of(result: ReadResult) -> str:
    """What was read."""
    assert result.error is None, result.error
    assert result.file_data is not None
    return result.file_data["content"]


class BackendLaws:
    """What every backend does. `can_delete` is False for one that has no delete; `examples`: series of random calls."""

    can_delete = True
    examples = 30

    def test_what_was_written_is_read(self, backend: Backend) -> None:
        assert backend.write("/a/b.txt", "one\ntwo\n").path == "/a/b.txt"
        result = backend.read("/a/b.txt")
        assert content_of(result) == "one\ntwo"
        assert (result.total_lines, result.start_line, result.end_line, result.next_offset) == (2, 1, 2, None)

    def test_one_file_has_many_spellings(self, backend: Backend) -> None:
        backend.write("a.txt", "x")
        for spelling in ("/a.txt", "//a.txt", "/./a.txt", "./a.txt", "/a.txt/"):
            assert content_of(backend.read(spelling)) == "x"

    def test_names_may_hold_anything_else(self, backend: Backend) -> None:
        for name in (
            "/a..txt",
            "/ü 日本.txt",
            "/%2e%2e",
            "/-rf",
            "/a\nb",
            "/.hidden",
            "/a'\"b",
            "/$HOME",
            "/[x]*?{a,b}",
        ):
            assert backend.write(name, name).error is None
            assert content_of(backend.read(name)).split("\n")[0] == name.split("\n")[0]

    @pytest.mark.parametrize("path", BAD_PATHS)
    def test_a_bad_path_is_an_error_of_every_verb(self, backend: Backend, path: str) -> None:
        results: list[Any] = [
            backend.ls(path),
            backend.read(path),
            backend.write(path, "x"),
            backend.edit(path, "a", "b"),
            backend.grep("x", path),
            backend.glob("*", path),
            backend.upload_files([(path, b"x")])[0],
            backend.download_files([path])[0],
        ]
        assert all(result.error.startswith("invalid_path") for result in results)

    def test_what_is_not_there(self, backend: Backend) -> None:
        assert str(backend.read("/no.txt").error).startswith("file_not_found")
        assert str(backend.edit("/no.txt", "a", "b").error).startswith("file_not_found")
        assert backend.download_files(["/no.txt"])[0].error == "file_not_found"

    def test_a_file_is_replaced(self, backend: Backend) -> None:
        backend.write("/a.txt", "one")
        backend.write("/a.txt", "two")
        assert content_of(backend.read("/a.txt")) == "two"

    def test_a_window_of_lines(self, backend: Backend) -> None:
        backend.write("/a.txt", "".join(f"{n}\n" for n in range(10)))
        result = backend.read("/a.txt", 3, 2)
        assert content_of(result) == "3\n4"
        assert (result.total_lines, result.start_line, result.end_line, result.next_offset) == (10, 4, 5, 5)
        assert content_of(backend.read("/a.txt", -5, 1)) == "0"
        assert "exceeds" in str(backend.read("/a.txt", 10).error)
        assert backend.read("/a.txt", 0, 0).no_lines_requested

    def test_an_empty_file(self, backend: Backend) -> None:
        assert backend.write("/a.txt", "").error is None
        assert content_of(backend.read("/a.txt")) == ""
        assert [entry["path"] for entry in backend.ls("/").entries] == ["/a.txt"]

    def test_edits(self, backend: Backend) -> None:
        backend.write("/a.txt", "one two two")
        assert backend.edit("/a.txt", "one", "1").occurrences == 1
        assert "2 places" in str(backend.edit("/a.txt", "two", "2").error)
        assert content_of(backend.read("/a.txt")) == "1 two two"
        assert backend.edit("/a.txt", "two", "2", replace_all=True).occurrences == 2
        assert content_of(backend.read("/a.txt")) == "1 2 2"
        for old, why in (("", "empty"), ("three", "not found"), ("2\n", "line end")):
            assert why in str(backend.edit("/a.txt", old, "x").error)

    def test_line_ends_stay_as_they_are(self, backend: Backend) -> None:
        backend.write("/a.txt", "one\r\ntwo\r\n")
        assert backend.edit("/a.txt", "one\ntwo", "1\n2").occurrences == 1
        assert backend.download_files(["/a.txt"])[0].content == b"1\r\n2\r\n"

    def test_a_listing_is_one_level_deep(self, backend: Backend) -> None:
        for path in ("/b.txt", "/a/x.txt", "/a/deep/y.txt"):
            backend.write(path, "12")
        entries = {entry["path"]: entry for entry in backend.ls("/").entries}
        assert list(entries) == ["/a/", "/b.txt"]
        assert entries["/a/"].get("is_dir")
        assert entries["/b.txt"].get("size") == 2
        assert [entry["path"] for entry in backend.ls("/a").entries] == ["/a/deep/", "/a/x.txt"]

    def test_a_directory_is_no_file(self, backend: Backend) -> None:
        backend.write("/a/x.txt", "x")
        assert str(backend.read("/a").error).startswith("is_directory")
        assert str(backend.write("/a", "x").error).startswith("is_directory")
        assert str(backend.write("/a/x.txt/y", "x").error).startswith("invalid_path")
        assert content_of(backend.read("/a/x.txt")) == "x"

    def test_grep_is_literal(self, backend: Backend) -> None:
        backend.write("/a.txt", "hello\nhel.o\r\nHELLO")
        backend.write("/d/b.py", "hello")
        found = backend.grep("hello")
        assert [(m["path"], m["line"], m["text"]) for m in found.matches] == [
            ("/a.txt", 1, "hello"),
            ("/d/b.py", 1, "hello"),
        ]
        assert [m["line"] for m in backend.grep("hel.o").matches] == [2]
        assert [m["path"] for m in backend.grep("hello", glob="*.py").matches] == ["/d/b.py"]
        assert [m["path"] for m in backend.grep("hello", "/d").matches] == ["/d/b.py"]
        assert [m["path"] for m in backend.grep("hello", "/a.txt").matches] == ["/a.txt"]
        capped = backend.grep("hello", max_count=1)
        assert (len(capped.matches), capped.truncated) == (1, True)
        assert not backend.grep("hello", max_count=2).truncated

    def test_globs(self, backend: Backend) -> None:
        files = ("/a.py", "/b.txt", "/d/c.py", "/d/e/f.py", "/.h/g.py", "/.i.py")
        for path in files:
            backend.write(path, "x")

        def paths(pattern: str, path: str | None = None) -> list[str]:
            return [match["path"] for match in backend.glob(pattern, path).matches]

        assert paths("*.py") == ["/.h/g.py", "/.i.py", "/a.py", "/d/c.py", "/d/e/f.py"]
        assert paths("**/*.py") == ["/a.py", "/d/c.py", "/d/e/f.py"]
        assert paths("d/*.py") == ["/d/c.py"]
        assert paths("/d/*.py", "/b") == ["/d/c.py"]
        assert paths("*.{py,txt}", "/d") == ["/d/c.py", "/d/e/f.py"]
        assert paths("?.txt") == ["/b.txt"]
        assert paths("[ab].*") == ["/a.py", "/b.txt"]
        assert paths("[!a].py") == ["/.h/g.py", "/d/c.py", "/d/e/f.py"]
        assert str(backend.glob("../*").error).startswith("invalid_path")

    def test_bytes_come_back(self, backend: Backend) -> None:
        raw = bytes(range(256))
        assert backend.upload_files([("/x.bin", raw), ("/t.txt", "ü".encode())])[1].error is None
        assert [answer.content for answer in backend.download_files(["/x.bin", "/t.txt"])] == [raw, "ü".encode()]
        result = backend.read("/x.bin")
        assert result.file_data is not None
        assert result.file_data["encoding"] == "base64"
        assert "not text" in str(backend.edit("/x.bin", "a", "b").error)
        assert backend.grep("abc").matches == []

    def test_delete(self, backend: Backend) -> None:
        if not self.can_delete:
            pytest.skip("this backend does not delete")
        for path in ("/a/x.txt", "/a/d/y.txt", "/ab.txt"):
            backend.write(path, "x")
        assert backend.delete("/a/x.txt").path == "/a/x.txt"
        assert backend.delete("/a").error is None
        assert [entry["path"] for entry in backend.ls("/").entries] == ["/ab.txt"]
        assert str(backend.delete("/a").error).startswith("file_not_found")
        assert str(backend.delete("/").error).startswith("permission_denied")
        assert content_of(backend.read("/ab.txt")) == "x"

    def test_random_calls_come_out_as_on_a_dict(self, backend: Backend) -> None:
        if not self.can_delete:
            pytest.skip("the law needs an empty backend for each series of calls")

        def walk(calls: list[Call]) -> None:
            for match in backend.glob("*").matches:
                backend.delete(match["path"])
            one = _Walk(backend)
            for word, numbers in calls:
                getattr(one, word)(*numbers)
                one.compare()

        drawn({"write": 4, "edit": 2, "delete": 1, "grep": 1}, walk, examples=self.examples)

    def test_half_a_surrogate_pair_is_refused(self, backend: Backend) -> None:
        backend.write("/a.txt", "x")
        assert str(backend.write("/a.txt", "\ud800").error).startswith("invalid_content")
        assert str(backend.edit("/a.txt", "x", "\udfff").error).startswith("invalid_content")
        assert content_of(backend.read("/a.txt")) == "x"


PATHS = ("/a", "/b.py", "/d/a", "/d/b.py", "/d/e/a", "/d/.h", "/.h/b.py", "/f/a")
PLACES = (*PATHS, "/d", "/d/e", "/.h", "/f")
TEXTS = ("", "a", "b", "ab", "a.", "a\nb", "ab\n", ".a\n.b\n")
PATTERNS = ("a", "b", "a.", "ab")


class _Walk:
    """One series of calls, on a backend and on a dict of texts."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.model: dict[str, str] = {}

    def write(self, a: int, b: int, c: int) -> None:
        path, text = PATHS[a % len(PATHS)], TEXTS[b % len(TEXTS)]
        taken = any(name.startswith(path + "/") for name in self.model)
        through = any(path.startswith(name + "/") for name in self.model)
        result = self.backend.write(path, text)
        assert (result.error is None) is not (taken or through)
        if result.error is None:
            self.model[path] = text

    def edit(self, a: int, b: int, c: int) -> None:
        path, old, new, every = PATHS[a % len(PATHS)], TEXTS[b % len(TEXTS)], TEXTS[c % len(TEXTS)], bool(c & 8)
        count = self.model.get(path, "").count(old) if old else 0
        result = self.backend.edit(path, old, new, every)
        if count == 1 or (count and every):
            assert result.occurrences == count
            self.model[path] = self.model[path].replace(old, new)
        else:
            assert result.error is not None

    def delete(self, a: int, b: int, c: int) -> None:
        path = PLACES[a % len(PLACES)]
        gone = [name for name in self.model if name == path or name.startswith(path + "/")]
        result = self.backend.delete(path)
        assert result.error is None or not gone
        for name in gone:
            del self.model[name]

    def grep(self, a: int, b: int, c: int) -> None:
        pattern, most = PATTERNS[a % len(PATTERNS)], b % 4 or None
        expected = {
            (path, number)
            for path, text in self.model.items()
            for number, line in enumerate(text.split("\n"), 1)
            if pattern in line
        }
        result = self.backend.grep(pattern, max_count=most)
        found = [(match["path"], match["line"]) for match in result.matches]
        assert len(found) == min(len(expected), most or len(expected))
        assert set(found) <= expected

    def compare(self) -> None:
        names = [match["path"] for match in self.backend.glob("*").matches]
        assert names == sorted(self.model)
        answers = self.backend.download_files(names)
        assert [answer.content for answer in answers] == [self.model[name].encode() for name in names]
