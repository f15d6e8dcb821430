"""What a program pays before its first node ran: import, compile and first invoke in a new process, CPU and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from tempfile import TemporaryDirectory

from benchmarks.measured import Bench, Row, Sides, measured
from benchmarks.sides import FLOOR
from benchmarks.timing import Repetition, Sample, around

# ru_maxrss would also count the parent, from before exec; Linux tells the peak of the program itself.
REPORT = """
import json, os, resource
used = resource.getrusage(resource.RUSAGE_SELF)
peak = used.ru_maxrss
if os.path.exists("/proc/self/status"):
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([(used.ru_utime + used.ru_stime) * 1e3, peak / 1024]))
"""

PROGRAM = """
from typing import TypedDict
from {package}.graph import END, START, StateGraph

class State(TypedDict):
    n: int

graph = StateGraph(State)
graph.add_node("a", lambda state: {{"n": state["n"] + 1}})
graph.add_node("b", lambda state: {{"n": state["n"] * 2}})
graph.add_edge(START, "a")
graph.add_edge("a", "b")
graph.add_edge("b", END)
assert graph.compile().invoke({{"n": 1}}) == {{"n": 4}}
"""


def child(program: str, cache: str) -> Repetition:
    """CPU milliseconds and peak megabytes of a new process that runs a program.

    It runs from byte code, as installed packages do, whatever the environment says of writing it.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-X", f"pycache_prefix={cache}", "-c", program + REPORT]

    def run() -> tuple[Sample, ...]:
        peak = 0.0

        def measure() -> tuple[float]:
            nonlocal peak
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            milliseconds, peak = json.loads(done.stdout.splitlines()[-1])
            return (milliseconds,)

        return (*around(measure), Sample(peak))

    return run


@measured(
    Row("startup.cpu", "a new process: import, compile and first invoke of two nodes", "ms"),
    Row("startup.memory", "a new process with a graph of two nodes that ran, peak memory", "MB"),
)
def startup(bench: Bench) -> Sides:
    cache = bench.stack.enter_context(TemporaryDirectory())
    return {**bench.each(lambda side: child(PROGRAM.format(package=side.package), cache)), FLOOR: child("", cache)}
