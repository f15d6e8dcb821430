"""The budgets: what ours must not exceed, kept in budgets.toml, held against the floor of the same run."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.measured import Figure
from benchmarks.sides import FLOOR, OURS, PEERS

PATH = Path(__file__).with_name("budgets.toml")
NOISE, NOISE_OF_RATIOS = 2.0, 1.4
"""How much more than allowed the least time of some rounds, and the median of ratios, may be before it counts."""


class Verdict(NamedTuple):
    """`word` is for the table; `used` is ours as a part of what is allowed: more than 1 is too much."""

    word: str
    used: float


@dataclass(frozen=True)
class Budget:
    """A row's budget, in the row's unit on the machine that the musts were written for.

    `floor` is what the row's floor takes on that machine: must / floor is what holds on any. `today` is the figure of a
    must that is not met yet, which a check holds the row to. `peer` is how many times less than the peer it must be.
    """

    must: float
    aim: float | None = None
    floor: float | None = None
    today: float | None = None
    peer: float | None = None
    noise: float | None = None

    @property
    def allowed(self) -> float:
        return self.must if self.today is None else self.today

    @property
    def limit(self) -> float:
        """More than this is not noise."""
        usual = NOISE_OF_RATIOS if self.floor is None else NOISE
        return self.allowed * (usual if self.noise is None else self.noise)

    def peer_met(self, figures: Mapping[str, Figure]) -> bool:
        """Whether ours is as many times less than the peer as it must be; True when the peer was not measured."""
        theirs = [figures[peer].median for peer in PEERS if peer in figures]
        return self.peer is None or all(one >= self.peer * figures[OURS].median for one in theirs)

    def said(self) -> str:
        """For the table."""
        factor = "" if self.peer is None else f" ({self.peer:g}x)"
        return f"{self.must:g}{factor}"

    def measured(self, figures: Mapping[str, Figure]) -> float:
        """Ours as it would be on the machine of the musts: medians, of which one odd round moves none."""
        return figures[OURS].median * self.scale(figures)

    def scale(self, figures: Mapping[str, Figure]) -> float:
        """How many times faster the machine of the musts is. A floor's least can be a fluke: where a database wakes its
        client on the same core, one round of a dozen takes a third of the processor time of the others."""
        return 1.0 if self.floor is None else self.floor / figures[FLOOR].median

    def verdict(self, figures: Mapping[str, Figure]) -> Verdict:
        """Whether the must is met, and whether what is allowed is kept. Least time or median ratio."""
        ours = self.measured(figures)
        used = (ours if self.floor is None else figures[OURS].least * self.scale(figures)) / self.limit
        if ours <= self.must:
            return Verdict("met" if self.aim is None or ours > self.aim else "aim met", used)
        if self.today is None:
            return Verdict("met within the noise" if used <= 1 else "BROKEN", used)
        return Verdict(f"not met: {ours / self.must:.1f}x" + ("" if used <= 1 else ", WORSE than today"), used)


def budgets() -> dict[str, Budget]:
    """By the name of the row, in the order of the file."""
    tables = tomllib.loads(PATH.read_text(encoding="utf-8"))
    floors = tables.pop("floors")
    return {
        name: Budget(**table | {"floor": floors[table["floor"]]} if "floor" in table else table)
        for name, table in tables.items()
    }
