"""What a program pays before its first node ran: import, compile and first invoke in a new process, CPU and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

from benchmarks._harness import BARE, OURS, PACKAGES, REFERENCE, Budget, Report, Timing, installed, options

CACHE = tempfile.TemporaryDirectory()

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


def child(program: str) -> tuple[float, float]:
    """CPU milliseconds and peak megabytes of a new process that runs a program.

    Both sides run from byte code, as installed packages do, whatever the environment says of writing it.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-X", f"pycache_prefix={CACHE.name}", "-c", program + REPORT]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    milliseconds, megabytes = json.loads(done.stdout.splitlines()[-1])
    return milliseconds, megabytes


def main() -> None:
    """Measure and print."""
    given = options(__doc__ or "")
    programs = {name: PROGRAM.format(package=PACKAGES[name]) for name in installed()} | {BARE: ""}
    least = {name: Timing() for name in programs}
    for _ in range(given.rounds + 1):  # the first one also warms the disk
        for name, program in programs.items():
            least[name].note(*child(program))
    report = Report("A new process: import, compile, first invoke of a two-node graph")
    report.add("CPU, ms", {name: used.cpu for name, used in least.items()}, Budget(130, 90))
    report.add("peak memory, MB", {name: used.wall for name, used in least.items()}, Budget(30, 30))
    for unit, field, digits in (("CPU, ms", "cpu", 1), ("peak memory, MB", "wall", 1)):
        above = {
            name: getattr(least[name], field) - getattr(least[BARE], field)
            for name in (OURS, REFERENCE)
            if name in least
        }
        report.add(f"{unit}, above bare Python", above, digits=digits)
    report.show()


if __name__ == "__main__":
    main()
