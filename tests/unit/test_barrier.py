"""The barrier of one superstep: what a batch of news makes of its tasks, with no driver in sight."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.channels import LastValue
from pregel.engine.barrier import Barrier
from pregel.engine.effects import Done, Due, Event, Failed, Step, Timeout
from pregel.engine.frame import Frame, Run
from pregel.engine.ids import Ids
from pregel.engine.node import PregelNode
from pregel.engine.pregel import Pregel
from pregel.engine.task import PULL, Task
from pregel.testing import FakeClock


def started(*names: str) -> tuple[Barrier, dict[str, Task]]:
    """A barrier whose tasks are out."""
    nodes = {name: PregelNode(channels=["in"], triggers=["in"]) for name in names}
    channels: dict[str, Any] = {"in": LastValue(int)}
    graph = Pregel(nodes=nodes, channels=channels, input_channels="in", output_channels="in", auto_validate=False)
    frame = Frame(Run(ids=Ids(FakeClock(), 1), config={}, limit=25), graph)
    tasks = {name: Task(frame, name, nodes[name], (PULL, name), ("in",)) for name in names}
    ready = list(tasks.values())
    return Barrier(frame, ready, ready), tasks


def test_what_ended_in_the_batch_of_a_failure_is_not_cancelled() -> None:
    barrier, tasks = started("a", "b", "c")
    step = Step()

    barrier.feed([Failed(tasks["a"], ValueError()), Done(tasks["b"], [])], step)

    assert [tasks["c"]] == [task for task, _ in step.cancel]


@pytest.mark.parametrize("due_first", [True, False])
def test_a_backoff_that_is_over_in_the_batch_of_a_failure_starts_nothing(due_first: bool) -> None:
    barrier, tasks = started("a", "b")
    failed, due = Failed(tasks["a"], ValueError()), Due(tasks["b"])
    events: list[Event] = [due, failed] if due_first else [failed, due]
    step = Step()

    barrier.feed(events, step)

    assert ([tasks["b"]], []) == ([task for task, _ in step.cancel], step.start)


def test_what_is_stopped_is_left_behind_when_any_of_its_limits_was_passed() -> None:
    barrier, tasks = started("a", "b", "c")
    step = Step()

    barrier.feed([Timeout(tasks["b"], "run"), Failed(tasks["a"], ValueError())], step)

    assert {tasks["b"]: True, tasks["c"]: False} == dict(step.cancel)


def test_of_thousands_that_fail_in_one_batch_the_first_tells_of_some_and_of_how_many_more() -> None:
    """Each failure stops all that is out: said once a batch, or it would be the square of them."""
    barrier, tasks = started(*(f"n{number:05d}" for number in range(10_000)), "out")
    step = Step()

    barrier.feed([Failed(task, ValueError(name)) for name, task in tasks.items() if name != "out"], step)

    assert [(tasks["out"], False)] == step.cancel
    notes = barrier.first_error.__notes__  # type: ignore[union-attr]
    assert "n00001" in notes[0]
    assert ["In the same step 9979 more tasks failed."] == notes[20:]
