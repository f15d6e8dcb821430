"""Reviews one Python file by its syntax tree alone: the same text gives the same review, with exact lines.

A finding is dropped when its line says ``# noqa``.
"""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path

from pregel.cli.demo.python.binder import read_names
from pregel.cli.demo.python.finding import Finding
from pregel.cli.demo.python.name_rules import name_findings
from pregel.cli.demo.python.tree_rules import tree_findings

LINE_END = re.compile(r"\r\n|\r|\n")
SILENCED = re.compile(r"#\s*noqa\b", re.IGNORECASE)


def review_file(path: str | Path, name: str | None = None) -> str:
    """The review of a file as text, which calls the file `name`; OSError when it cannot be read."""
    shown = str(path) if name is None else name
    return report(shown, review_source(Path(path).read_bytes(), shown))


def review_source(source: str | bytes, name: str = "") -> list[Finding]:
    """What is wrong with a source text, in the order of its lines. A file that cannot be parsed has one finding."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the reviewed text, not of this program
            tree = ast.parse(source)
        names = read_names(tree)
        found = {*name_findings(names, is_package=Path(name).name == "__init__.py"), *tree_findings(tree, names)}
    except SyntaxError as error:
        return [Finding(error.lineno or 1, max((error.offset or 1) - 1, 0), "syntax-error", f"{error.msg}")]
    except ValueError as error:  # a NUL byte
        return [Finding(1, 0, "syntax-error", str(error))]
    except (RecursionError, MemoryError):
        return [Finding(1, 0, "too-deep", "nested too deeply to be reviewed")]
    lines = LINE_END.split(source.decode("utf-8", "replace") if isinstance(source, bytes) else source)
    return sorted(one for one in found if not SILENCED.search(lines[one.line - 1]))


def report(name: str, findings: list[Finding]) -> str:
    """A review as text: a headline, then a line for each finding."""
    count = {0: "no findings", 1: "1 finding"}.get(len(findings), f"{len(findings)} findings")
    lines = [f"{name}:{one.line}: {one.message} [{one.rule}]" for one in findings]
    return "\n".join([f"{name}: {count}", *lines])
