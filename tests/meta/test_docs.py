"""What the documents claim: examples run, the README's commands are there, links lead somewhere."""

from __future__ import annotations

import doctest
import importlib
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.forked import Template
from tests.meta.source import modules

TOP = Path(__file__).parents[2]
FENCE = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)(?P<path>[^)#\s]+)")
RUNS, ONLY_SHOWN = "python", "python notest"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a document: where it stands, what its fence says, and its text."""

    document: Path
    line: int
    kind: str
    code: str

    def __str__(self) -> str:
        return f"{self.document.relative_to(TOP)}:{self.line}"


def documents() -> list[Path]:
    return [TOP / "README.md", *sorted((TOP / "docs").rglob("*.md"))]


def blocks(document: Path) -> list[Block]:
    text = document.read_text(encoding="utf-8")
    found = FENCE.finditer(text)
    return [Block(document, text.count("\n", 0, one.start()) + 1, one["kind"].strip(), one["code"]) for one in found]


BLOCKS = [block for document in documents() for block in blocks(document)]


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.kind == RUNS], ids=str)
def test_an_example_of_the_documents_runs(block: Block, programs: Template, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(block.code, encoding="utf-8")

    ended = programs.run(script, tmp_path, tmp_path)

    assert (0, "") == (ended.status, ended.err)


def test_python_that_is_only_shown_says_so() -> None:
    python = [block for block in BLOCKS if block.kind.lower().startswith("py")]

    assert [] == [str(block) for block in python if block.kind not in (RUNS, ONLY_SHOWN)]


@pytest.mark.parametrize("name", [name for name, path in modules().items() if ">>> " in path.read_text("utf-8")])
def test_an_example_in_a_docstring_runs(name: str) -> None:
    assert 0 == doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed


@pytest.mark.parametrize(
    "command",
    [
        "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/pregel demo",
        "python3 -m venv .venv && .venv/bin/pip install -e '.[dev]' && .venv/bin/pytest",
    ],
)
def test_the_readme_gives_one_command(command: str) -> None:
    shell = [block.code.strip() for block in blocks(TOP / "README.md") if block.kind == "sh"]

    assert command in shell


@pytest.mark.parametrize("document", documents(), ids=lambda document: document.name)
def test_what_a_document_links_to_is_there(document: Path) -> None:
    if not (TOP / "CONTRIBUTING.md").exists():
        pytest.skip("not a whole checkout: the tests were copied beside a wheel")
    paths = LINK.findall(document.read_text(encoding="utf-8"))

    assert [] == [path for path in paths if not (document.parent / path).exists()]
