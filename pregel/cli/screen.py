"""Where the command writes: plain text everywhere, colours and boxes on a terminal where `rich` is installed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from pregel.cli.progress import View


class Screen(Protocol):
    """What a command may write. `problem` goes to stderr, the rest to stdout; a `piece` leaves its line open."""

    def say(self, text: str = "") -> None: ...

    def piece(self, text: str) -> None: ...

    def heading(self, text: str) -> None: ...

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None: ...

    def problem(self, text: str) -> None: ...

    def view(self) -> View:
        """Where the progress of a run is shown."""
        ...


class PlainScreen:
    """Text without any control character: for pipes, files and terminals without `rich`. `out`: in place of stdout."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out = out

    def say(self, text: str = "") -> None:
        print(text, file=self.out, flush=True)

    def piece(self, text: str) -> None:
        print(text, end="", file=self.out, flush=True)

    def heading(self, text: str) -> None:
        self.say(f"\n{text}")

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
        for row in (headers, *rows):
            self.say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    def problem(self, text: str) -> None:
        print(f"pregel: {text}", file=sys.stderr, flush=True)

    def view(self) -> View:
        from pregel.cli.progress import PlainView  # few commands run a graph

        return PlainView(self.say, self.piece)


def open_screen() -> Screen:
    """The best screen for where stdout goes."""
    if sys.stdout.isatty() and find_spec("rich") is not None:
        from pregel.cli.rich_screen import RichScreen

        return RichScreen()
    return PlainScreen()
