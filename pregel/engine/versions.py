"""Versions of graphs: which version a thread is of, who may go on with it, and which graphs this process knows.

1. A thread is of the version of the graph that began its present execution. Its row says so in the claim's own
   transaction, behind the graph's name, so whoever looks for work reads it with the row; each of its checkpoints says
   it as well, in its metadata.
2. Only a graph of the same version goes on with what is not at its end; any other is refused before anything is
   written. A thread that has come to its end begins a new execution with a new input: by the same version, or by a
   later one, since an older one could not know what the later one left in the state.
3. No version is older than every version.
"""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from pregel.checkpoint.labels import SEPARATOR, named
from pregel.config import current_task
from pregel.engine.started import UNNAMED
from pregel.errors import DefinitionError, InvalidInputError, VersionMismatchError

if TYPE_CHECKING:
    from pregel.checkpoint.records import Opened
    from pregel.engine.frame import Frame
    from pregel.engine.pregel import Pregel

VERSION = "graph_version"
"""Where the checkpoints of a graph with a version say which."""
_NUMBERS = re.compile(r"(\d+)")

_known: dict[tuple[str, str], WeakValueDictionary[int, Pregel]] = {}  # in the order in which they were compiled
_order = count()


def checked_version(name: str, version: str | None) -> str | None:
    """The version of a graph of this name; DefinitionError for one that could not be told from the name."""
    if version is None:
        return None
    if not isinstance(version, str) or not version or version != "".join(version.split()) or "\0" in version:
        raise DefinitionError(f"The version of a graph is {version!r}.", fix='Give a text without spaces: version="2".')
    if SEPARATOR in name:
        raise DefinitionError(f"{name!r} has a version, and {SEPARATOR!r} in its name.", fix="Name it otherwise.")
    return version


def rank(version: str | None) -> tuple[Any, ...]:
    """What versions are ordered by: numbers as numbers, so that 1.10 comes after 1.9; none comes first."""
    if version is None:
        return ()
    parts = [_NUMBERS.split(part) for part in re.split(r"[.\-+_]", version)]
    return tuple(
        [tuple([(1, int(one), "") if one.isdecimal() else (0, 0, one) for one in part if one]) for part in parts]
    )


def is_older(one: str | None, other: str | None) -> bool:
    """Whether a version comes before another."""
    return rank(one) < rank(other)


# -- who may go on ---------------------------------------------------------------------------------------------------


def mismatch_of(frame: Frame, opened: Opened, *, checkpoint: str | None, anew: bool) -> VersionMismatchError | None:
    """The error of a graph that may not go on with a thread as it was opened; `anew`: it has a new input for it."""
    own, theirs = frame.graph.version, version_of(opened, checkpoint)
    row = opened.thread
    if own == theirs or not (row.tno or opened.saved[0]):
        return None
    if checkpoint is None and is_older(theirs, own) and (frame.run.takes_older or (anew and row.is_done)):
        return None
    return mismatch(frame.graph, frame.run.thread, theirs)


def version_of(opened: Opened, checkpoint: str | None = None) -> str | None:
    """The version that a thread is of, or the one that made the checkpoint that is addressed."""
    saved = opened.saved[0] if opened.saved else None
    if opened.thread.graph and (checkpoint is None or saved is None):
        return named(opened.thread.graph)[1]
    return None if saved is None else saved.metadata.get(VERSION)


def mismatch(graph: Pregel, thread: str, theirs: str | None) -> VersionMismatchError:
    """The error of a graph of another version than a thread's."""
    own = graph.version
    name = graph.get_name()
    return VersionMismatchError(
        f"Thread {thread!r} is of {_told(theirs)}, and this graph {name!r} is of {_told(own)}.",
        fix="Go on with it by a graph of its own version; a worker may serve several: Worker([v1, v2]).",
        thread=thread,
        of_thread=theirs,
        of_graph=own,
    )


def _told(version: str | None) -> str:
    return "no version" if version is None else f"version {version!r}"


# -- which graphs are known ------------------------------------------------------------------------------------------


def know(graph: Pregel) -> None:
    """Have a graph with a version, and a name of its own, be found by them, as long as somebody holds it."""
    name = graph.get_name()
    if graph.version is not None and name != UNNAMED:
        _known.setdefault((name, graph.version), WeakValueDictionary())[next(_order)] = graph


def find(graph: Pregel, version: str | None) -> Pregel | None:
    """The graph of this name and version over the same saver that this process has compiled last."""
    if graph.version == version or version is None:
        return graph if graph.version == version else None
    for _, other in sorted(_known.get((graph.get_name(), version), {}).items(), reverse=True):
        if other.checkpointer is graph.checkpointer:
            return other
    return None


def chosen(graph: Pregel, version: str | None) -> Pregel:
    """The graph that a start means which names a version; InvalidInputError when this process knows none of it."""
    if version is None:
        return inherited(graph)
    found = find(graph, version)
    if found is None:
        raise InvalidInputError(
            f"No graph {graph.get_name()!r} of version {version!r} is known here.",
            fix="Compile it in this process, with the same checkpointer and version=.",
        )
    return found


def inherited(graph: Pregel) -> Pregel:
    """The graph that code of a node means by one without a version: that of the version which it runs in, if known."""
    if graph.version is not None or not _known:
        return graph
    task: Any = current_task.get()
    frame = getattr(task, "frame", None)
    version = None if frame is None else frame.run.version
    return graph if version is None else find(graph, version) or graph
