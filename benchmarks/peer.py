"""The peer, measured in a process of its own: what it imports is no burden of ours. The turns are taken all the same.

A line of JSON asks, a line of JSON answers: ["open", row] whether the peer can do it, ["repeat"] its samples, ["close"]
nothing, and ["curve", name, size] the samples of a point.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

from benchmarks.measured import MEASUREMENTS, Bench, Measurement, Missing
from benchmarks.sides import implementation_of
from benchmarks.timing import Repetition, Sample

Samples = tuple[Sample, ...]


class Elsewhere:
    """The process. `name` is the peer's."""

    def __init__(self, name: str, quick: bool) -> None:
        self.name = name
        command = [sys.executable, "-m", "benchmarks.peer", name, "quick" if quick else "full"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @contextmanager
    def opened(self, measurement: Measurement) -> Iterator[Repetition | None]:
        """How the peer does a measurement once, for a `with` block; None when it cannot."""
        if not self._ask("open", measurement.rows[0].name):
            yield None
            return
        yield lambda: samples_of(self._ask("repeat"))
        self._ask("close")

    def point(self, curve: str, size: int) -> Samples:
        """A point of a growth curve."""
        return samples_of(self._ask("curve", curve, size))

    def end(self) -> None:
        """End the process."""
        self._process.communicate()

    def _ask(self, *words: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"The process that measures {self.name} ended at {words}; what it said stands above.")
        return json.loads(answer)


def samples_of(told: list[list[Any]]) -> Samples:
    return tuple(Sample(*one) for one in told)


# -- the other end ----------------------------------------------------------------------------------------------------


def serve(name: str, quick: bool, asked: IO[str], answers: IO[str]) -> None:
    """Answer until nobody asks any more."""
    from benchmarks import rows  # noqa: F401  # registers the measurements
    from benchmarks.curves import CURVES

    bench = Bench({name: implementation_of(name)}, quick)
    by_row = {one.rows[0].name: one for one in MEASUREMENTS}
    curves = {one.name: one for one in CURVES}
    repeat: Repetition | None = None
    gc.freeze()
    for line in asked:
        match json.loads(line):
            case ["open", row]:
                bench.stack = ExitStack()
                repeat = found(by_row[row], bench)
                answer: Any = repeat is not None
            case ["repeat"]:
                assert repeat is not None
                answer = told(repeat())
            case ["close"]:
                bench.stack.close()
                answer = None
            case ["curve", curve, size]:
                answer = told(curves[curve].cost(bench.sides[name], size))
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def found(measurement: Measurement, bench: Bench) -> Repetition | None:
    """How the peer does it; None when it cannot."""
    (name,) = bench.sides
    try:
        return measurement.sides(bench).get(name)
    except Missing:
        bench.stack.close()
        return None


def told(samples: Samples) -> list[list[float | None]]:
    return [[one.value, one.spin] for one in samples]


if __name__ == "__main__":
    out, sys.stdout = sys.stdout, sys.stderr  # what anybody prints is no answer
    serve(sys.argv[1], sys.argv[2] == "quick", sys.stdin, out)
