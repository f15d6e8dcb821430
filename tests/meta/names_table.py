"""The table of the reference's public names in docs/names.md: where each is here, or why it is not.

``python -m tests.meta.names_table`` brings the table up to date: a name that can be imported by now becomes `built`.
A name that is gone stays `built`, so that its test fails: only a person takes it back, with a reason.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

TABLE = Path(__file__).parents[2] / "docs" / "names.md"
ROW = re.compile(r"^\| `(?P<module>[\w.]+)` \| `(?P<name>\w+)` \| (?P<status>[^|]+?) \|$")
BUILT, PLANNED, NOT_PLANNED = "built", "planned: ", "not planned: "


@dataclass(frozen=True, slots=True)
class Row:
    """A name of the reference: the module it is imported from here, and `built`, or the reason why it is not."""

    module: str
    name: str
    status: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def line(self) -> str:
        return f"| `{self.module}` | `{self.name}` | {self.status} |"

    def importable(self) -> bool:
        """Whether `from module import name` works now. An error inside of a module that is there is raised."""
        try:
            found = importlib.import_module(self.module)
        except ModuleNotFoundError as error:
            if error.name and (self.module == error.name or self.module.startswith(f"{error.name}.")):
                return False
            raise
        return hasattr(found, self.name)


def rows() -> list[Row]:
    return [row for _, row in _lines() if row]


def _lines() -> Iterator[tuple[str, Row | None]]:
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        match = ROW.match(line)
        yield line, Row(match["module"], match["name"], match["status"]) if match else None


def refresh() -> None:
    """Marks as built what can be imported."""
    fresh = [replace(row, status=BUILT).line if row and row.importable() else line for line, row in _lines()]
    TABLE.write_text("\n".join(fresh) + "\n", encoding="utf-8")


if __name__ == "__main__":
    refresh()
    print(f"{sum(row.status == BUILT for row in rows())} of {len(rows())} names are built.")
