"""What every error of the library has in common."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from pregel import errors
from pregel.checkpoint.serde.base import CannotStore
from pregel.types import Command, Interrupt

PLACED = [
    kind
    for kind in (*vars(errors).values(), CannotStore)
    if inspect.isclass(kind) and issubclass(kind, errors.PregelError | errors.GraphBubbleUp)
]
OF_THEIR_OWN: dict[type, Callable[[], BaseException]] = {
    errors.GraphBubbleUp: lambda: errors.GraphBubbleUp(),
    errors.GraphInterrupt: lambda: errors.GraphInterrupt([Interrupt("why?", "1" * 32)]),
    errors.CallWithdrawn: lambda: errors.CallWithdrawn(),
    errors.ContinueAsNew: lambda: errors.ContinueAsNew({"a": 1}, version="2", keep_events=False),
    errors.NodeInterrupt: lambda: errors.NodeInterrupt("why?", "1" * 32),
    errors.GraphValidationError: lambda: errors.GraphValidationError(["one thing", "another"]),
    errors.UnknownInterruptError: lambda: errors.UnknownInterruptError("?", interrupt_ids=["a"], pending_ids=["b"]),
    errors.NodeTimeoutError: lambda: errors.NodeTimeoutError("slow", elapsed=2.0, run_timeout=1.0, node="n"),
    errors.MissingExtraError: lambda: errors.MissingExtraError("no package", name="package"),
    errors.GraphDrained: lambda: errors.GraphDrained("deploy"),
    errors.RunDisplaced: lambda: errors.RunDisplaced("rollback"),
    errors.ParentCommand: lambda: errors.ParentCommand(Command(goto="a"), Command(goto="b")),
    errors.ThreadBusy: lambda: errors.ThreadBusy(reason="held", asked="rollback", thread="t"),
    CannotStore: lambda: CannotStore("it is open", path=".file", fix="close it", thread="t", step=3),
}


def shown(error: BaseException) -> tuple[Any, ...]:
    """All that a caller can see of an error."""
    keys = {key for key in dir(error) if not key.startswith("_") and not callable(getattr(error, key, print))}
    return type(error), str(error), error.args, {key: repr(getattr(error, key)) for key in keys - {"args"}}


@pytest.mark.parametrize(
    "again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy], ids=["pickled", "copied"]
)
@pytest.mark.parametrize("kind", PLACED, ids=lambda kind: kind.__name__)
def test_an_error_comes_out_of_a_process_pool_as_it_was(kind: Any, again: Callable[[BaseException], Any]) -> None:
    make = OF_THEIR_OWN.get(kind) or (lambda: kind("what", fix="do", thread="t", step=1, node="n", task="i"))
    error = make()
    error.add_note("seen in a worker")

    back = again(error)

    assert shown(error) == shown(back)
    assert ["seen in a worker"] == back.__notes__


def test_a_rejected_answer_is_known_by_its_note_after_a_process_pool() -> None:
    error = ValueError("no number")
    error.add_note(errors.RejectedAnswer("1" * 32))

    back = pickle.loads(pickle.dumps(error))

    assert errors.rejected_in(error) == errors.rejected_in(back) == {"1" * 32}
    assert error.__notes__ == back.__notes__
