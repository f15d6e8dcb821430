"""The tests' PostgreSQL. `--acceptance` runs only what proves a statement of docs/acceptance.md, and reports on each.

1. An id that the list does not hold fails the test that carries it, in every run.
2. A statement passes when a test of it passed and none failed; a skipped test proves nothing: it stays `missing`.
3. Ids travel in `user_properties`, the part of a report that xdist brings from its workers to the controller.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.forked import Template
    from tests.postgres import Emptied, Shared

# The wall time of one example says nothing on a loaded machine. `--hypothesis-profile=thorough` draws 100 of them.
settings.register_profile("pregel", deadline=None, max_examples=40)
settings.register_profile("thorough", deadline=None)
settings.load_profile("pregel")

# Hundreds of processes are started by a session: each would compile the package anew where a container's environment
# says that no bytecode is kept.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

STATEMENT = re.compile(r"^- \*\*(S\d+-\d+)\*\* ", re.MULTILINE)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: a third of the time of a test goes to the disk and to other processes."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


def pytest_report_header(config: pytest.Config) -> list[str]:
    if not (config.rootpath / "tests" / "postgres.py").exists():  # this file is tried in a project of its own
        return []
    from tests.postgres import described

    return [described()]


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """The PostgreSQL server of this session; where there is none, what needs it is skipped."""
    from tests.postgres import MISSING, shared

    own = tmp_path_factory.getbasetemp()
    with shared(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) as server:
        if server is None:
            pytest.skip(MISSING)
        yield server


@pytest.fixture(scope="session")
def programs() -> Iterator[Template]:
    """What runs the programs of the documents and the examples."""
    import pregel
    from tests.forked import template

    with template(Path(pregel.__file__).parents[1]) as process:
        yield process


@pytest.fixture(scope="session")
def worker_database(postgres: Shared) -> Iterator[Emptied]:
    """A database of this worker."""
    with postgres.emptied(f"pregel_test_{os.getpid()}") as database:
        yield database


@pytest.fixture
def dsn(worker_database: Emptied) -> str:
    """The DSN of a database without rows of ours; other tests of this worker used its tables before."""
    worker_database.empty()
    return worker_database.dsn


def statement_ids(root: Path) -> list[str]:
    """The ids of docs/acceptance.md, each once, in the order of their numbers."""
    found = set(STATEMENT.findall((root / "docs" / "acceptance.md").read_text(encoding="utf-8")))
    return sorted(found, key=lambda name: [int(part) for part in name[1:].split("-")])


def marked_ids(properties: list[tuple[str, object]]) -> set[str]:
    """The statements that a test claims to prove."""
    return {str(name) for key, name in properties if key == "acceptance"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--acceptance", action="store_true", help="run the acceptance tests, report on each statement")
    parser.addoption("--load-seconds", type=float, default=20.0, help="how long the load test on PostgreSQL goes on")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--acceptance"):
        config.option.markexpr = "acceptance"  # in the place of "not slow": a slow proof counts too
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(AcceptanceReport(statement_ids(config.rootpath)))


def pytest_itemcollected(item: pytest.Item) -> None:
    for mark in item.iter_markers("acceptance"):
        item.user_properties.extend(("acceptance", name) for name in mark.args)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if (marked := marked_ids(item.user_properties)) and (unknown := marked - set(statement_ids(item.config.rootpath))):
        pytest.fail(f"docs/acceptance.md has no statement {', '.join(sorted(unknown))}.", pytrace=False)


class AcceptanceReport:
    """What the tests of one session say about each statement."""

    def __init__(self, ids: list[str]) -> None:
        self.ids = ids
        self.outcomes: dict[str, set[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            for name in marked_ids(report.user_properties):
                self.outcomes.setdefault(name, set()).add(report.outcome)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        yield  # pytest's own summary first: this report is what the session ends with
        terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        assert terminal is not None
        verdicts = {name: self.verdict(name) for name in self.ids}
        for name, verdict in verdicts.items():
            terminal.write_line(f"{name} {verdict}")
        count = Counter(verdicts.values())
        terminal.write_line(
            f"{count['pass']} pass, {count['fail']} fail, {count['missing']} missing, of {len(self.ids)}"
        )

    def verdict(self, name: str) -> str:
        seen = self.outcomes.get(name, set())
        return "fail" if "failed" in seen else "pass" if "passed" in seen else "missing"
