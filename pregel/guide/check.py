"""Whether a workflow may be used: read by the lint, then built and compiled in a process of its own.

1. Nothing of the workflow stays in this process: it is run by another one, which is killed with all that it started
   when its time is over. That is no sandbox: what it runs has the rights of this process.
2. All that is wrong is told at once, each with what to do. A file that is no Python is not run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from tempfile import TemporaryDirectory

from pregel.errors import InvalidInputError
from pregel.lint import Problem, check_file

CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from pregel.guide.build import main; main(*sys.argv[2:])"
)
SYNTAX = "PG001"


def check(source: str, *, graph: str | None = None, timeout: float = 30.0) -> list[Problem]:
    """What is wrong with a workflow given as text, in the order of its lines; an empty list: it may be used.

    - `graph`: the name of its graph; by default each graph that it names is compiled, and there has to be one.
    - `timeout`: the seconds that importing and compiling it may take.
    """
    with TemporaryDirectory(prefix="pregel-check-") as directory:
        file = Path(directory) / "workflow.py"
        file.write_text(source, encoding="utf-8")
        return _checked(file, str(file), graph, timeout, shown="<workflow>")


def check_target(target: str, *, timeout: float = 30.0) -> list[Problem]:
    """The same for ``file.py``, ``file.py:graph``, ``package.module`` or ``package.module:graph``."""
    place, _, graph = target.partition(":")
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise InvalidInputError(
                f"There is no file {place}.", fix="Name a file, or a module that is importable here."
            )
        return _checked(Path(place), str(Path(place).resolve()), graph or None, timeout, shown=place)
    file = _source_of(place)
    return _checked(file, place, graph or None, timeout, shown=str(file))


def _checked(file: Path, what: str, graph: str | None, timeout: float, *, shown: str) -> list[Problem]:
    read = check_file(file)
    built = [] if any(problem.rule == SYNTAX for problem in read) else _built(what, graph, timeout)
    told = [*read, *(Problem(str(file), *one) for one in built)]
    return sorted(Problem(shown, *_fields(problem)) for problem in told)


def _fields(problem: Problem) -> tuple[int, int, str, str, str]:
    return problem.line, problem.column, problem.rule, problem.message, problem.fix


def _built(what: str, graph: str | None, timeout: float) -> list[tuple[int, int, str, str, str]]:
    """What another process says of building it."""
    with TemporaryDirectory(prefix="pregel-check-") as directory:
        report = Path(directory) / "report"
        places = [str(Path(what).parent)] if what.endswith(".py") else []
        path = json.dumps([*places, os.getcwd(), *(place for place in sys.path if place)])
        command = [sys.executable, "-c", CODE, path, str(report), what, graph or ""]
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                status = process.wait(timeout)
            except subprocess.TimeoutExpired:
                fix = "Let a module only define things: work belongs into nodes. Or give a longer timeout."
                return [(1, 1, "time", f"Importing and compiling it took longer than {timeout:g} s.", fix)]
            finally:
                _kill_all(process.pid)
        if not report.exists():
            fix = "Let a module only define things: it must not end its process."
            return [(1, 1, "import", f"It ended its process, with the status {status}, before it was built.", fix)]
        return [tuple(one) for one in json.loads(report.read_text(encoding="utf-8"))]


def _kill_all(session: int) -> None:
    """End what the process has started, and the process."""
    try:
        os.killpg(session, signal.SIGKILL)
    except ProcessLookupError:  # all of it has ended
        return


def _source_of(module: str) -> Path:
    """The file of a module, which is not imported for it, nor are the packages around it."""
    places: Sequence[str] | None = [os.getcwd(), *sys.path]
    spec, name = None, ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = None if places is None else PathFinder.find_spec(name, places)
        places = None if spec is None else spec.submodule_search_locations
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise InvalidInputError(
            f"There is no module {module!r} with a source.", fix="Start where it is importable, or name its file."
        )
    return Path(spec.origin)
