"""The progress of a run on a terminal, drawn by `rich`: what has ended scrolls by, what runs stands below it."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from pregel.cli.progress import Running

MARKS = {"done": ("✓", "green"), "failed": ("✗", "red"), "asks": ("?", "yellow")}
TAIL = 5  # lines of what a model says that stand below its node


class RichView:
    """The nodes that run, with a clock and the last words of each; those that have ended, above them."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._running: dict[Running, Spinner] = {}
        self._live = Live(console=console, get_renderable=self._drawn, transient=True, refresh_per_second=10)
        self._live.start()

    def started(self, task: Running) -> None:
        self._running[task] = Spinner("dots")
        self._live.refresh()

    def ended(self, task: Running, how: str, note: str) -> None:
        self._running.pop(task, None)
        self._live.refresh()
        if task.words:
            self.console.print(Text("".join(task.words)), soft_wrap=True)
        mark, colour = MARKS[how]
        line = Text.assemble(
            (mark, colour), f" step {task.step}: {task.place} {how}", (f" {task.seconds:.1f} s", "dim")
        )
        if note:
            line.append(f" {note}", style=colour)
        self.console.print(line, soft_wrap=True)

    def said(self, task: Running, words: str) -> None:
        self._live.refresh()

    def close(self) -> None:
        self._live.stop()

    def _drawn(self) -> RenderableType:
        rows: list[RenderableType] = []
        for task, spinner in list(self._running.items()):
            spinner.update(text=Text.assemble(f"step {task.step}: {task.place}", (f" {task.seconds:.0f} s", "dim")))
            rows.append(spinner)
            if task.words:
                last = "".join(task.words).splitlines()[-TAIL:]
                rows.append(Text("\n".join(last), style="dim", overflow="fold"))
        return Group(*rows)
