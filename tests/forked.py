"""Programs as a new process runs them, forked from a process that has the package loaded: the imports are paid once.

Run as a program, it is that process: a line of JSON comes in with what to run, and one goes out with how it ended.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

LOADED = ("pregel.agents.deep", "pregel.checkpoint.sqlite", "pregel.cli", "pregel.func", "pregel.graph")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: its exit status, and what it wrote."""

    status: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Template:
    """The process with everything loaded, on this side of its pipe."""

    process: subprocess.Popen[str]

    def run(self, script: Path, directory: Path, scratch: Path) -> Ended:
        """Run a program in a directory; what it writes goes through files of the scratch directory."""
        files = scratch / "stdout", scratch / "stderr"
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps([str(script), str(directory), *map(str, files)]), file=self.process.stdin, flush=True)
        status = int(self.process.stdout.readline())
        return Ended(status, *(file.read_text(encoding="utf-8") for file in files))


@contextmanager
def template(top: Path) -> Iterator[Template]:
    """A process that has the package under `top` loaded, for as long as it is needed; in it, warnings are errors."""
    environment = {**os.environ, "PYTHONPATH": str(top)}
    command = [sys.executable, "-W", "error", __file__]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Template(process)


def serve() -> None:
    """Fork a child for each line, until there are no more."""
    for name in LOADED:
        import_module(name)
    while line := sys.stdin.readline():
        script, directory, *files = json.loads(line)
        child = os.fork()
        if child == 0:
            become(script, directory, files)
            return
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def become(script: str, directory: str, files: list[str]) -> None:
    """Be the program, from its first line to the end of the interpreter."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for descriptor, file in enumerate(files, 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    os.chdir(directory)
    sys.argv, sys.path[0] = [script], str(Path(script).parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    serve()
