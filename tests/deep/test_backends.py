"""Every file backend keeps the laws that are shipped; and what is particular to each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pregel.agents.deep.backends import Backend, CompositeBackend, FilesystemBackend, LocalShellBackend
from pregel.agents.deep.backends.base import FileData
from pregel.agents.deep.backends.composite import can_execute
from pregel.agents.deep.backends.conformance import BackendLaws, content_of
from pregel.agents.deep.backends.table import TableBackend
from pregel.errors import DefinitionError


class DictBackend(TableBackend):
    """A table that is a dict: what a third party would write."""

    def __init__(self) -> None:
        self.held: dict[str, FileData] = {}

    def files(self) -> Mapping[str, FileData]:
        return self.held

    def change(self, changes: Mapping[str, FileData | None]) -> None:
        for path, data in changes.items():
            if data is None:
                del self.held[path]
            else:
                self.held[path] = data


class TestTable(BackendLaws):
    @pytest.fixture
    def backend(self) -> Backend:
        return DictBackend()


class TestFilesystem(BackendLaws):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Backend:
        return FilesystemBackend(tmp_path)


class TestLocalShell(BackendLaws):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Backend:
        return LocalShellBackend(tmp_path)


class TestComposite(BackendLaws):
    """The default of a composite, with a route that none of the laws' paths takes."""

    @pytest.fixture
    def backend(self) -> Backend:
        return CompositeBackend(DictBackend(), {})


class TestRouted(BackendLaws):
    """A directory behind a route, seen through a composite that has nothing else."""

    @pytest.fixture
    def backend(self, tmp_path: Path) -> Backend:
        return CompositeBackend(FilesystemBackend(tmp_path), {"/elsewhere/": DictBackend()})

    test_a_listing_is_one_level_deep: Any = None
    test_an_empty_file: Any = None
    test_delete: Any = None


# -- the root jail -----------------------------------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    return outside


@pytest.fixture
def jail(tmp_path: Path, outside: Path) -> FilesystemBackend:
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").symlink_to(outside / "secret.txt")
    (root / "directory").symlink_to(outside)
    (root / "circle").symlink_to(root / "circle")
    (root / "up").symlink_to("..")
    (root / "new").symlink_to(outside / "new.txt")
    return FilesystemBackend(root)


@pytest.mark.parametrize("path", ["/file", "/directory/secret.txt", "/up/outside/secret.txt", "/new"])
def test_no_link_leads_out(jail: FilesystemBackend, outside: Path, path: str) -> None:
    results: list[Any] = [jail.read(path), jail.write(path, "x"), jail.edit(path, "secret", "x")]
    results += [jail.upload_files([(path, b"x")])[0], jail.download_files([path])[0]]

    assert all(str(result.error).startswith("permission_denied") for result in results)
    assert {one.name: one.read_text() for one in outside.iterdir()} == {"secret.txt": "secret"}


def test_what_leads_out_is_neither_listed_nor_searched(jail: FilesystemBackend) -> None:
    assert jail.ls("/").entries == []
    assert jail.grep("secret").matches == []
    assert jail.glob("**/*").matches == []
    assert str(jail.ls("/directory").error).startswith("permission_denied")


def test_deleting_a_link_leaves_what_it_leads_to(jail: FilesystemBackend, outside: Path) -> None:
    for path in ("/file", "/directory", "/circle"):
        assert jail.delete(path).error is None

    assert (outside / "secret.txt").read_text() == "secret"


def test_a_link_within_the_root_is_followed(tmp_path: Path) -> None:
    backend = FilesystemBackend(tmp_path)
    backend.write("/real/a.txt", "one")
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert content_of(backend.read("/link/a.txt")) == "one"
    assert backend.write("/link/a.txt", "two").error is None
    assert (tmp_path / "real" / "a.txt").read_text() == "two"
    assert (tmp_path / "link").is_symlink()


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    backend = FilesystemBackend(tmp_path)

    assert str(backend.read("/pipe").error).startswith("permission_denied")
    assert backend.ls("/").entries == []


def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("echo hi")
    script.chmod(0o750)

    FilesystemBackend(tmp_path).write("/run.sh", "echo ho")

    assert script.stat().st_mode & 0o777 == 0o750
    assert [one.name for one in tmp_path.iterdir()] == ["run.sh"]


def test_without_the_jail_paths_are_those_of_the_machine(tmp_path: Path) -> None:
    backend = FilesystemBackend(tmp_path, virtual_mode=False)

    assert backend.write("a.txt", "x").path == f"{tmp_path.resolve()}/a.txt"
    assert content_of(backend.read(f"{tmp_path}/a.txt")) == "x"


def test_a_root_that_is_not_there_is_a_definition_error(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="no directory"):
        FilesystemBackend(tmp_path / "no")


# -- the shell ---------------------------------------------------------------------------------------------------------


def test_commands_run_in_the_root_with_an_empty_environment(tmp_path: Path) -> None:
    backend = LocalShellBackend(tmp_path, env={"GREETING": "hi"})

    done = backend.execute('echo "$GREETING $HOME" > out.txt; cat out.txt; echo bad >&2; exit 3')

    assert (done.output, done.exit_code) == ("hi \n\n[stderr] bad", 3)
    assert content_of(backend.read("/out.txt")) == "hi "
    assert backend.execute("true").output == "<no output>"
    assert backend.execute(" ").exit_code == 1


def test_a_command_that_takes_too_long_is_stopped_with_what_it_started(tmp_path: Path) -> None:
    backend = LocalShellBackend(tmp_path, timeout=1)

    done = backend.execute("sleep 30 & sleep 30; echo never")

    assert done.exit_code == 124
    assert "stopped after 1 seconds" in done.output


def test_long_output_keeps_both_ends(tmp_path: Path) -> None:
    backend = LocalShellBackend(tmp_path, max_output_bytes=60)

    done = backend.execute("for i in 1 2 3 4 5 6 7 8 9; do echo $i-34567890; done")

    assert done.truncated
    assert done.output.startswith("1-")
    assert done.output.endswith("9-34567890")


# -- several backends --------------------------------------------------------------------------------------------------


@pytest.fixture
def composite() -> CompositeBackend:
    return CompositeBackend(DictBackend(), {"/memories/": DictBackend(), "/memories/deep": DictBackend()})


@pytest.mark.acceptance("S1-62")
def test_the_longest_prefix_has_the_path(composite: CompositeBackend) -> None:
    for path in ("/a.txt", "/memories/b.txt", "/memories/deep/c.txt", "/memoriesx.txt"):
        assert composite.write(path, path).path == path

    default, (deep, memories) = composite.default, composite.routes.values()
    assert [entry["path"] for entry in default.ls("/").entries] == ["/a.txt", "/memoriesx.txt"]
    assert content_of(memories.read("/b.txt")) == "/memories/b.txt"
    assert content_of(deep.read("/c.txt")) == "/memories/deep/c.txt"
    assert [entry["path"] for entry in composite.ls("/").entries] == ["/a.txt", "/memories/", "/memoriesx.txt"]
    assert [entry["path"] for entry in composite.ls("/memories").entries] == ["/memories/b.txt", "/memories/deep/"]


def test_an_error_names_the_path_that_was_given(composite: CompositeBackend) -> None:
    assert composite.read("/memories/no.txt").error == "file_not_found: /memories/no.txt does not exist."
    assert composite.delete("/memories/deep/no").error == "file_not_found: /memories/deep/no does not exist."
    assert "/memories/no.txt" in str(composite.edit("/memories/no.txt", "a", "b").error)


def test_searches_go_to_all_of_them(composite: CompositeBackend) -> None:
    for path in ("/a.txt", "/memories/b.txt", "/memories/deep/c.txt"):
        composite.write(path, "needle")

    assert [m["path"] for m in composite.grep("needle").matches] == [
        "/a.txt",
        "/memories/b.txt",
        "/memories/deep/c.txt",
    ]
    assert [m["path"] for m in composite.grep("needle", "/memories").matches] == [
        "/memories/b.txt",
        "/memories/deep/c.txt",
    ]
    assert (len(composite.grep("needle", max_count=2).matches), composite.grep("needle", max_count=2).truncated) == (
        2,
        True,
    )
    assert [m["path"] for m in composite.glob("*.txt").matches] == ["/a.txt", "/memories/b.txt", "/memories/deep/c.txt"]
    assert [m["path"] for m in composite.glob("/memories/*.txt").matches] == ["/memories/b.txt"]


def test_a_route_is_never_deleted_with_what_is_around_it(composite: CompositeBackend) -> None:
    composite.write("/memories/deep/c.txt", "x")

    for path in ("/memories", "/memories/deep", "/"):
        assert str(composite.delete(path).error).startswith("permission_denied")
    assert composite.delete("/memories/deep/c.txt").path == "/memories/deep/c.txt"


def test_commands_run_in_the_default(tmp_path: Path) -> None:
    shell = CompositeBackend(LocalShellBackend(tmp_path), {"/memories/": DictBackend()})

    assert shell.execute("echo hi").output == "hi"
    assert can_execute(shell)
    assert not can_execute(CompositeBackend(DictBackend(), {}))


@pytest.mark.parametrize(
    "routes", [{"/": DictBackend()}, {"/m": DictBackend(), "/m/": DictBackend()}, {"/../x": DictBackend()}]
)
def test_routes_that_cannot_be_told_apart_are_refused(routes: dict[str, Backend]) -> None:
    with pytest.raises(DefinitionError):
        CompositeBackend(DictBackend(), routes)
