"""Planted bugs: each is put into a copy of the package, and the net that is named beside it must catch it.

    python scripts/mutants.py               all of them, as many at once as there are cores
    python scripts/mutants.py seq claim     those whose names hold one of these words

A bug that no net catches, or whose place in the source is gone, fails the script: the list follows the code.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from planted import calls, chunks, effects, owners, steps, storage
from planted.bug import Mutant

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("pregel", "tests", "docs", "pyproject.toml")
LONGEST = 300  # s for a net, more than its tests have: a bug may leave a thread that never ends
TIMES = itertools.count(1_000_000_000)  # s since 1970
MUTANTS = (*steps.MUTANTS, *owners.MUTANTS, *storage.MUTANTS, *calls.MUTANTS, *chunks.MUTANTS, *effects.MUTANTS)


def main(words: Sequence[str]) -> int:
    """0 when every chosen bug was caught."""
    chosen = [one for one in MUTANTS if not words or any(word in one.name for word in words)]
    workers = min(len(chosen), os.cpu_count() or 1) or 1
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(workers) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            copies.put(copied(Path(place) / str(number)))
        verdicts = list(pool.map(lambda one: tried(one, copies), chosen))
    caught = verdicts.count("")
    print(f"{caught} of {len(chosen)} bugs caught")
    return 0 if chosen and caught == len(chosen) else 1


def copied(place: Path) -> Path:
    """A copy of what the nets need."""
    ignore = shutil.ignore_patterns("__pycache__", ".*")
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=ignore)
        else:
            shutil.copy(source, place / name)
    return place


def tried(one: Mutant, copies: SimpleQueue[Path]) -> str:
    """Empty when the net caught the bug, else what went wrong; says so as well."""
    place = copies.get()
    originals = {edit.file: (place / edit.file).read_text(encoding="utf-8") for edit in one.edits}
    try:
        problem = planted(one, place, originals) or run_net(one, place)
    finally:
        for file, text in originals.items():
            write(place / file, text)
        copies.put(place)
    print(f"{'caught' if not problem else 'MISSED'}  {one.name}{': ' + problem if problem else ''}", flush=True)
    return problem


def planted(one: Mutant, place: Path, originals: dict[str, str]) -> str:
    texts = dict(originals)
    for edit in one.edits:
        count = texts[edit.file].count(edit.old)
        if not count:
            return f"{edit.file} does not hold the text any more: {edit.old!r}"
        texts[edit.file] = texts[edit.file].replace(edit.old, edit.new)
    for file, text in texts.items():
        write(place / file, text)
    return ""


def write(file: Path, text: str) -> None:
    """Each version of a file has a time of its own, or bytecode of the one before might be taken for this one's."""
    file.write_text(text, encoding="utf-8")
    time = next(TIMES)
    os.utime(file, (time, time))


def run_net(one: Mutant, place: Path) -> str:
    options = ["-x", "-q", "-n0", "-m", "", "-p", "no:cacheprovider", "-p", "no:randomly", "--timeout=120"]
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**outside, "PYTHONPATH": str(place)}
    command = [sys.executable, "-m", "pytest", *options, one.net]
    try:
        done = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return f"{one.net} did not end within {LONGEST} s"
    if done.returncode == 0:
        return f"{one.net} passed"
    if done.returncode != 1:
        return f"{one.net} could not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    if one.says not in done.stdout:
        return f"{one.net} failed without {one.says}:\n{done.stdout[-3000:]}"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
