"""Callback handlers of another library that hear of a call's graphs and nodes.

1. `finders` says, by the module that has to be loaded, how the handlers of a call are found. Nobody is asked before
   that module is there, so a process without the library pays one look into an empty place.
2. A call without handlers has no `Heard`: then nothing of it is told to anybody, and nothing is made for it.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import modules
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pregel.engine.call import Call
    from pregel.engine.drive_async import AwaitingDriver
    from pregel.engine.drive_sync import BlockingDriver
    from pregel.engine.effects import Result
    from pregel.engine.frame import Frame
    from pregel.engine.task import Task

finders: dict[str, Callable[[Call], Heard | None]] = {}
"""The module that has to be loaded -> what finds the handlers of a call; None when there are none."""

surroundings: dict[str, Callable[[], Any]] = {}
"""The same -> the callbacks of what of the library this code runs in; None when it runs in nothing of it."""


class Heard(Protocol):
    """The handlers of one call, and what they have heard of so far."""

    def begin(self) -> None:
        """The call begins."""

    def attach(self, driver: BlockingDriver | AwaitingDriver, frame: Frame) -> None:
        """Have one try of the call tell of its tasks."""

    def admitted(self, task: Task, value: Any) -> None:
        """A graph inside starts for a task, with this input."""

    def over(self, task: Task, result: Result) -> None:
        """The graph that a task runs has ended."""

    def catch_up(self) -> None:
        """Say what is not said yet of a graph that a node has called, before the node goes on."""

    async def acatch_up(self) -> None:
        """The same, awaited."""

    def ended(self, values: Any) -> None:
        """The call ends with these values."""

    def failed(self, error: BaseException) -> None:
        """The call raises."""

    async def abegin(self) -> None:
        """`begin` of an awaited call."""

    async def aended(self, values: Any) -> None:
        """`ended` of an awaited call."""

    async def afailed(self, error: BaseException) -> None:
        """`failed` of an awaited call."""


def surrounding() -> Any:
    """The callbacks of what of another library this code runs in, such as a chain; None when there is nothing."""
    for module in surroundings:
        if module in modules:
            return surroundings[module]()
    return None


def heard(call: Call) -> Heard | None:
    """Who hears of a call; None when nobody does."""
    for module in finders:
        if module in modules:
            return finders[module](call)
    return None
