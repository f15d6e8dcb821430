"""What the two screens of the command write."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from pregel.cli.rich_screen import RichScreen
from pregel.cli.screen import PlainScreen, open_screen


def test_a_plain_table_is_aligned_and_has_no_control_character(capsys: pytest.CaptureFixture[str]) -> None:
    PlainScreen().table(["name", "n"], [["a", "1"], ["longer", "22"]])

    assert "name    n\na       1\nlonger  22\n" == capsys.readouterr().out


def test_a_table_without_rows_has_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    PlainScreen().table(["name", "n"], [])

    assert "name  n\n" == capsys.readouterr().out


def test_problems_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    PlainScreen().problem("wrong")

    assert ("", "pregel: wrong\n") == capsys.readouterr()


def test_a_pipe_gets_the_plain_screen() -> None:
    assert isinstance(open_screen(), PlainScreen)


def test_a_rich_screen_obeys_no_markup_of_the_user() -> None:
    out, err = io.StringIO(), io.StringIO()
    screen = RichScreen(Console(file=out, width=60, color_system=None), Console(file=err, width=60, color_system=None))

    screen.heading("[bold]heading[/bold]")
    screen.say("[red]text[/red]")
    screen.table(["name"], [["[blue]cell[/blue]"]])
    screen.problem("[red]wrong[/red]")

    shown = out.getvalue()
    assert "[bold]heading[/bold]" in shown
    assert "[red]text[/red]\n" in shown
    assert "[blue]cell[/blue]" in shown
    assert "pregel: [red]wrong[/red]\n" == err.getvalue()
