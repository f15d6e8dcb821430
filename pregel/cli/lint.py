"""`pregel lint`: what goes wrong in durable code when it runs again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from pregel.cli.screen import Screen
from pregel.cli.usage import DONE, FAILED, CallError
from pregel.cli.values import as_json
from pregel.lint import check_file


def lint(options: argparse.Namespace, screen: Screen) -> int:
    """Checks files, directories and modules; nothing of them runs."""
    files = list(dict.fromkeys(file for target in options.targets for file in _files(target)))
    found = [problem for file in files for problem in check_file(file)]
    if options.format == "json":
        screen.say(as_json([asdict(problem) for problem in found]))
    else:
        for problem in found:
            screen.say(str(problem))
        many = f"{len(files)} files" if len(files) != 1 else "1 file"
        screen.say(f"{len(found) or 'No'} problem{'' if len(found) == 1 else 's'} in {many}.")
    return FAILED if found else DONE


def _files(target: str) -> Iterator[Path]:
    path = Path(target)
    if path.is_dir():
        yield from sorted(file for file in path.rglob("*.py") if not _is_hidden(file.relative_to(path)))
    elif path.is_file():
        yield path
    elif target.endswith(".py") or "/" in target:
        raise CallError(f"There is no file {target}.", "Name a file, a directory, or MODULE[:GRAPH].")
    else:
        yield _module(target.partition(":")[0])


def _is_hidden(file: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in file.parts)


def _module(name: str) -> Path:
    if "" not in sys.path and "." not in sys.path:
        sys.path.insert(0, "")
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise CallError(
            f"There is no module {name!r} with a source.", "Start where it is importable, or name its file."
        )
    return Path(spec.origin)
