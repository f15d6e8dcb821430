"""Where a run leaves its results: JSON, the table, and a picture of each growth curve."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.curves import CURVES, Curve, Drawn, drawn
from benchmarks.measured import Bench
from benchmarks.plot import svg
from benchmarks.report import Report

UNITS = {"time": "ms", "bytes": "kB"}


def write(directory: Path, report: Report, curves: dict[str, dict[str, list[Drawn]]]) -> None:
    """results.json, results.md, and curve-<name>-<time or bytes>.svg."""
    directory.mkdir(parents=True, exist_ok=True)
    found = report.json() | {
        "curves": {
            name: {
                kind: {one.side: {"exponent": round(one.exponent, 3), "points": one.points} for one in sides}
                for kind, sides in kinds.items()
            }
            for name, kinds in curves.items()
        }
    }
    (directory / "results.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (directory / "results.md").write_text(report.markdown() + "\n" + table(curves), encoding="utf-8")
    for curve in CURVES:
        for kind, sides in curves.get(curve.name, {}).items():
            title = f"{'Bytes stored by' if kind == 'bytes' else 'CPU time of'} {curve.of}, SQLite"
            picture = svg(title, curve.against, UNITS[kind], sides)
            (directory / f"curve-{curve.name}-{kind}.svg").write_text(picture, encoding="utf-8")


def measured_curves(bench: Bench, rounds: int) -> dict[str, dict[str, list[Drawn]]]:
    """Every curve: by name, then time or bytes, a list with one for each side."""
    return {curve.name: of(curve, bench, rounds) for curve in CURVES}


def of(curve: Curve, bench: Bench, rounds: int) -> dict[str, list[Drawn]]:
    times, stored = drawn(curve, bench, rounds)
    return {"time": times, "bytes": stored}


def table(curves: dict[str, dict[str, list[Drawn]]]) -> str:
    """The exponents."""
    lines = ["| growth of | against | exponents |", "|---|---|---|"]
    for curve in CURVES:
        for kind, sides in curves.get(curve.name, {}).items():
            fitted = ", ".join(f"{one.side} {one.exponent:.2f}" for one in sides)
            lines.append(f"| {kind} of {curve.of} | {curve.against} | {fitted} |")
    return "\n".join(lines) + "\n" if curves else ""
