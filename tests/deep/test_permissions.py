"""Rules over paths: no link, search or directory leads around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pregel.agents.deep import FilesystemPermission, create_deep_agent
from pregel.agents.deep.backends import Backend, CompositeBackend, FilesystemBackend
from pregel.agents.deep.permissions import guarded
from pregel.agents.models import ScriptedModel, call_tool
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import DefinitionError

CLOSED = FilesystemPermission(["read", "write"], ["/secret/**"], "deny")
ASKED = FilesystemPermission(["read", "write"], ["/secret/**"], "interrupt")
THREAD: Any = {"configurable": {"thread_id": "1"}}


@pytest.fixture
def disk(tmp_path: Path) -> FilesystemBackend:
    backend = FilesystemBackend(tmp_path)
    backend.write("/secret/key.txt", "needle")
    backend.write("/open/a.txt", "needle")
    (tmp_path / "open" / "file").symlink_to(tmp_path / "secret" / "key.txt")
    (tmp_path / "open" / "directory").symlink_to(tmp_path / "secret")
    return backend


@pytest.fixture(params=["alone", "behind a route"])
def backend(request: pytest.FixtureRequest, disk: FilesystemBackend, tmp_path: Path) -> Backend:
    if request.param == "alone":
        return disk
    return CompositeBackend(disk, {"/elsewhere/": FilesystemBackend(tmp_path / "open")})


@pytest.mark.parametrize("path", ["/secret/key.txt", "/open/file", "/open/directory/key.txt"])
def test_no_link_leads_around_a_rule(backend: Backend, disk: FilesystemBackend, path: str) -> None:
    behind = guarded(backend, [CLOSED])
    results: list[Any] = [behind.read(path), behind.write(path, "x"), behind.edit(path, "needle", "x")]
    results += [behind.download_files([path])[0], behind.upload_files([(path, b"x")])[0]]

    assert all(str(result.error).startswith("permission_denied") for result in results)
    assert disk.download_files(["/secret/key.txt"])[0].content == b"needle"


def test_what_may_not_be_read_is_not_found_through_a_link_either(disk: FilesystemBackend) -> None:
    behind = guarded(disk, [CLOSED])

    assert [match["path"] for match in behind.grep("needle").matches] == ["/open/a.txt"]
    assert [entry["path"] for entry in behind.ls("/open").entries] == ["/open/a.txt", "/open/directory/"]
    assert behind.ls("/open/directory").entries == []
    assert [match["path"] for match in behind.glob("*").matches] == ["/open/a.txt"]


def asked(backend: Backend, name: str, **args: Any) -> list[str]:
    """The tools about whose calls a person is asked."""
    model = ScriptedModel([call_tool(name, args), "done"])
    agent = create_deep_agent(model, backend=backend, permissions=[ASKED], checkpointer=InMemorySaver())
    questions = agent.invoke({"messages": "go"}, THREAD).get("__interrupt__", ())
    return [action["name"] for question in questions for action in question.value["action_requests"]]


@pytest.mark.parametrize("path", ["/secret/key.txt", "/open/file", "/open/directory/key.txt"])
def test_a_person_is_asked_about_a_link_as_about_what_it_leads_to(backend: Backend, path: str) -> None:
    assert asked(backend, "read_file", file_path=path) == ["read_file"]
    assert asked(backend, "write_file", file_path=path, content="x") == ["write_file"]


def test_a_person_is_asked_before_a_directory_is_deleted_that_may_hold_what_is_asked_about(backend: Backend) -> None:
    assert asked(backend, "delete", file_path="/secret") == ["delete"]
    assert asked(backend, "delete", file_path="/open/a.txt") == []


def test_a_search_from_above_shows_nothing_that_a_person_was_not_asked_about(backend: Backend) -> None:
    behind = guarded(backend, [ASKED])

    assert "/secret/key.txt" not in [match["path"] for match in behind.grep("needle").matches]
    assert [match["path"] for match in behind.grep("needle", "/secret/key.txt").matches] == ["/secret/key.txt"]
    assert asked(backend, "grep", pattern="needle", path="/secret/key.txt") == ["grep"]


@pytest.mark.parametrize("path", ["/secret/.env", "/secret/.ssh/id", "/secret/a/.b/c"])
def test_a_rule_covers_names_with_a_leading_dot(backend: Backend, disk: FilesystemBackend, path: str) -> None:
    disk.write(path, "needle")
    behind = guarded(backend, [CLOSED])

    assert "permission_denied" in (behind.read(path).error or "")
    assert "permission_denied" in (behind.write(path, "x").error or "")
    assert path not in [match["path"] for match in behind.grep("needle").matches]
    assert asked(backend, "write_file", file_path=path, content="x") == ["write_file"]


@pytest.mark.parametrize("path", ["/secret/", "/a//b", "/./a", "/a/../b", "a"])
def test_a_rule_that_covers_nothing_is_refused(path: str) -> None:
    with pytest.raises(DefinitionError, match="it would cover nothing"):
        FilesystemPermission(["write"], [path], "deny")


def test_a_choice_of_characters_never_means_a_slash() -> None:
    assert not FilesystemPermission(["read"], ["/a[!b]c"]).covers("/a/c")
    assert not FilesystemPermission(["read"], ["/a[+-9]c"]).covers("/a/c")
    assert FilesystemPermission(["read"], ["/a[!b]c"]).covers("/axc")
