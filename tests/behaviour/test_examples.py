"""The programs in examples/ run and say what they promise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.forked import Template

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def said(programs: Template, tmp_path: Path) -> Callable[[str], str]:
    """What an example writes, run in an empty directory."""

    def run(name: str) -> str:
        ended = programs.run(EXAMPLES / name, tmp_path, tmp_path)
        assert (0, "") == (ended.status, ended.err)
        return ended.out

    return run


@pytest.mark.acceptance("S1-63")
def test_a_tool_call_is_approved_by_another_process(said: Callable[[str], str]) -> None:
    told = said("approval.py")

    assert "asked: {'invoice': '17', 'amount': 900}" in told
    assert "paid 90 for 17" in told


def test_an_agent_hands_over_to_another(said: Callable[[str], str]) -> None:
    told = said("hand_off.py")

    assert "with: refunds" in told
    assert told.endswith("refund: refunded A1\nrefunds: Your money is on its way.\n")


PROMISES = {
    "map_reduce.py": [
        "8 words in 3 documents after 2 attempts at the flaky one",
        "in the order of the documents: ['one', 'flaky', 'seven']",
    ],
    "saga.py": ["hotel failed (no rooms left), flight-1 was given back", "bookings at the provider: 1"],
    "long_conversation.py": ["after pruning: 200 messages in 1 checkpoint", "under 4 kB a message: True"],
    "subgraph_memory.py": [
        "answer 2 to how",
        "another thread: answer 1 to why",
        "the parent knows: ['answer', 'question']",
    ],
    "workflow.py": ["stopped: the printer is off", "published 2 parts", "fetched once each: True"],
    "repair.py": ["wrong: 382", "mended: 238", "both are in the history: [238, 382]"],
    "deep_research.py": [
        "Wrote /REPORT.md.",
        "/repo/a: 4 of 20 files divide\n/repo/b: 4 of 20 files divide (a constant is a fault: no)\n/repo/c: 4 of",
    ],
}


@pytest.mark.parametrize("name", PROMISES)
def test_an_example_says_what_it_promises(name: str, said: Callable[[str], str]) -> None:
    told = said(name)

    assert [] == [promise for promise in PROMISES[name] if promise not in told]


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {"approval.py", "hand_off.py", *PROMISES}
