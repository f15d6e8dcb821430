"""A run of the benchmarks as JSON and as a Markdown table."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from benchmarks.budgets import Budget
from benchmarks.measured import Figure, Row, times_floor
from benchmarks.sides import FLOOR, OURS, version

Figures = Mapping[str, Figure]
"""By side."""


class Report:
    """What was measured, row by row."""

    def __init__(self, budgets: Mapping[str, Budget], peer: str | None) -> None:
        """`quiet` is the least time of the spin loop, once it is known."""
        self.budgets, self.peers, self.quiet = budgets, [peer] if peer else [], 0.0
        self.rows: list[tuple[Row, Figures]] = []
        self.missing: dict[str, str] = {}

    def markdown(self) -> str:
        """One table: medians with the least and the greatest, and the budget of each row."""
        heads = ["what", "ours", *self.peers, "times less", "floor", "times the floor", "must", "aim", ""]
        lines = [provenance(self.quiet), "", f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 2)}---|"]
        lines += [f"| {' | '.join(self.cells(row, figures))} |" for row, figures in self.rows]
        lines += ["", *(f"- not measured: {name}: {why}" for name, why in self.missing.items())]
        return "\n".join(lines).rstrip() + "\n"

    def cells(self, row: Row, figures: Figures) -> list[str]:
        budget = self.budgets.get(row.name)
        floored = FLOOR in figures and not row.exact
        return [
            f"{row.what}, {row.unit}",
            spread(figures.get(OURS)),
            *(spread(figures.get(peer)) for peer in self.peers),
            ", ".join(f"{figures[peer].median / figures[OURS].median:.1f}x" for peer in self.peers if peer in figures),
            spread(figures[FLOOR]) if FLOOR in figures else "",
            f"{times_floor(figures, OURS):,.3g}x" if floored else "",
            budget.said() if budget else "",
            f"{budget.aim:g}" if budget and budget.aim is not None else "",
            verdict(budget, figures) if budget else "",
        ]

    def broken(self) -> list[str]:
        """The rows that are over what is allowed, or that nobody could measure."""
        over = [row.name for row, figures in self.rows if self.over(row, figures)]
        return over + [name for name in self.missing if name in self.budgets]

    def over(self, row: Row, figures: Figures) -> bool:
        return row.name in self.budgets and self.budgets[row.name].verdict(figures).used > 1

    def json(self) -> dict[str, Any]:
        """Everything, for a program to read."""
        return {
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "machine": platform.machine(),
            "spin_us": self.quiet,
            "versions": {name: version(name) for name in ("pregel", *self.peers)},
            "rows": {
                row.name: {
                    "what": row.what,
                    "unit": row.unit,
                    "figures": {
                        side: {"median": one.median, "min": one.least, "max": one.greatest, "rounds": one.rounds}
                        for side, one in figures.items()
                    },
                }
                for row, figures in self.rows
            },
            "not_measured": self.missing,
        }


def verdict(budget: Budget, figures: Figures) -> str:
    """What a row's budget says of it."""
    short = "" if budget.peer_met(figures) else f"; not {budget.peer:g}x less than the peer"
    return budget.verdict(figures).word + short


def spread(figure: Figure | None) -> str:
    """Median (least to greatest)."""
    if figure is None:
        return ""
    if figure.rounds == 1 or figure.least == figure.greatest:
        return number(figure.median)
    return f"{number(figure.median)} ({number(figure.least)} to {number(figure.greatest)})"


def number(value: float) -> str:
    """Three digits that matter."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def provenance(quiet: float) -> str:
    """When, and with what."""
    versions = [f"{name} {version(name)}" for name in ("pregel", "langgraph", "langgraph-checkpoint-sqlite")]
    python = f"{platform.python_implementation()} {platform.python_version()}"
    when = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return f"{when}, {python}, {platform.machine()}, spin loop {quiet / 1e3:.2f} ms, {', '.join(versions)}"
