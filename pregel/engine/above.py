"""Commands for the graph around the one that runs: whom they are for, level by level.

1. ``Command.PARENT`` is for the graph whose node runs the graph that the command comes from, one level up.
2. A name is that of a node: the command is for the graph around the nearest node of that name. A namespace is exact.
3. What is for nobody on the way up reaches the caller as ParentCommand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pregel.errors import ParentCommand
from pregel.types import Command

if TYPE_CHECKING:
    from pregel.engine.running import Running


def addressed(caller: Running, commands: Sequence[Command[Any]]) -> list[Command[Any]]:
    """The commands of a graph that ended, with the node that ran it written in place of PARENT."""
    return [replace(c, graph=caller.ns) if c.graph == Command.PARENT else c for c in commands]


def for_graph_of(caller: Running, command: Command[Any]) -> bool:
    """Whether a command is for the graph of this node: it becomes the node's output."""
    return command.graph in (caller.name, caller.ns)


def above(caller: Running, commands: Sequence[Command[Any]]) -> ParentCommand:
    """What the code of a node hears of the commands from a graph that it called."""
    return ParentCommand(*addressed(caller, commands))
