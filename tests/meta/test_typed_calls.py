"""What a checker knows of a task's arguments, and that knowing it changes nothing of what is stored."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.func import entrypoint, task
from pregel.types import Command, interrupt

ROOT = Path(__file__).parents[2]
CODE = """
from pregel.func import task


@task
def pay(amount: int, to: str) -> str:
    return to * amount


def bill() -> str:
    return pay({arguments}).result()
"""


WRONG = {"'ten', to='ann'": "[arg-type]", "10": "[call-arg]", "10, too='ann'": "[call-arg]"}


@pytest.mark.slow
@pytest.mark.acceptance("S4-20")
def test_wrong_arguments_of_a_call_are_found_before_it_runs(tmp_path: Path) -> None:
    right = tmp_path / "right.py"
    right.write_text(CODE.format(arguments="10, to='ann'"))
    for number, arguments in enumerate(WRONG):
        (tmp_path / f"wrong{number}.py").write_text(CODE.format(arguments=arguments))

    command = [sys.executable, "-m", "mypy", "--strict", *map(str, sorted(tmp_path.iterdir()))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    found = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert 1 == done.returncode, done.stderr
    assert {f"wrong{number}.py:11" for number in range(3)} == {
        line.partition(": error")[0].rpartition("/")[2] for line in found
    }
    for number, rule in enumerate(WRONG.values()):
        assert any(f"wrong{number}.py:11" in line and rule in line for line in found)


@pytest.mark.acceptance("S4-20")
def test_a_workflow_that_gets_types_goes_on_with_its_old_history() -> None:
    saver, config, paid = InMemorySaver(), {"configurable": {"thread_id": "1"}}, list[str]()

    def untyped() -> Any:
        @task
        def pay(amount, to):  # type: ignore[no-untyped-def]
            paid.append(to)
            return to * amount

        @entrypoint(checkpointer=saver)
        def bill(names):  # type: ignore[no-untyped-def]
            return [*(pay(2, name).result() for name in names), interrupt("send it?")]

        return bill

    def typed() -> Any:
        @task
        def pay(amount: int, to: str) -> str:
            paid.append(to)
            return to * amount

        @entrypoint(checkpointer=saver)
        def bill(names: list[str]) -> list[str]:
            return [*(pay(2, name).result() for name in names), interrupt("send it?")]

        return bill

    untyped().invoke(["a", "b"], config)

    assert ["aa", "bb", "yes"] == typed().invoke(Command(resume="yes"), config)
    assert ["a", "b"] == paid
