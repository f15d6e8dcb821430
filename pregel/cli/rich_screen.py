"""A screen with colours and boxes, drawn by `rich`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from pregel.cli.progress import View


class RichScreen:
    """A terminal. Texts are shown as they are: no markup in them is obeyed."""

    def __init__(self, out: Console | None = None, err: Console | None = None) -> None:
        self.out = out or Console(highlight=False)
        self.err = err or Console(stderr=True, highlight=False)

    def say(self, text: str = "") -> None:
        self.out.print(Text(text), soft_wrap=True)

    def piece(self, text: str) -> None:
        self.out.print(Text(text), end="", soft_wrap=True)

    def heading(self, text: str) -> None:
        self.out.print()
        self.out.print(Text(text, style="bold"), soft_wrap=True)

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        drawn = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for header in headers:
            drawn.add_column(header, overflow="fold")
        for row in rows:
            drawn.add_row(*map(Text, row))
        self.out.print(drawn)

    def problem(self, text: str) -> None:
        self.err.print(Text(f"pregel: {text}", style="red"), soft_wrap=True)

    def view(self) -> View:
        from pregel.cli.rich_progress import RichView  # few commands run a graph

        return RichView(self.out)
