"""Whether a task that runs again still goes over what was recorded of it: `runtime.is_replaying`.

1. Recorded are the questions that it had asked, the values of its `runtime.step`, the results of its `runtime.effect`,
   and its calls that have ended.
2. It replays while one of them is left that this attempt has not come to; a call's result counts when it is taken.
3. What is not recorded (a new question, value or call) ends the replay for good. On a first run nothing is recorded.
4. A part of a task with questions of its own (a tool call) replays until it has come to the last of them.
5. Nothing is counted on the way: who asks pays for the look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from weakref import ref

from pregel.checkpoint.keys import hash16, task_parts
from pregel.checkpoint.records import MEMO, Write
from pregel.config import question_scope
from pregel.engine.astray import RETURN
from pregel.engine.failure import Failure
from pregel.engine.ids import uuid_text
from pregel.engine.task import PUSH, path_text

if TYPE_CHECKING:
    from pregel.engine.calls import CallTask
    from pregel.engine.running import Running

QUESTION = "question "
EFFECT = ", effect"  # how the path of an effect ends
STREAMED = "__stream__"  # what a streamed graph had shown: its call stands for it


def is_replaying(task: Running) -> bool:
    """Whether something recorded is still ahead of this attempt."""
    scope, node = question_scope.get(), _node_of(task)
    asked = {question.id for question in task.frame.asked_before.get(node.id, ())}
    following = (task._counts or {}).get(QUESTION + scope, -1) + 1
    if (asked or task.answers) and (id := task.question_id(scope, following)) and (id in asked or id in task.answers):
        return True
    if scope:
        return False
    if node is task and _asked_inside(task, asked):
        return True
    task.owed = [made for made in task.owed if (future := made()) is not None and not future.taken]
    if task.ahead is None:
        task.ahead = set(_recorded(task)) - (task.met or set())
    return bool(task.owed or task.ahead)


def meet(call: CallTask) -> bool:
    """Note that a caller has come to a call; False when it is not one of those that had ended."""
    stored = call.frame.recalled.get(call.id)
    if stored is None or not _is_over(stored):
        return False
    caller = call.parent
    caller.meets(call.path_text)
    if getattr(call, "stream", None) is None:
        caller.owed = [*caller.owed, ref(call.future)]
    return True


def _node_of(task: Running) -> Running:
    """The task of the node that a call is made in: questions are recorded under it."""
    while task.parent is not None:
        task = task.parent
    return task


def _asked_inside(task: Running, asked: set[str]) -> bool:
    """Whether a question of this task is left that it had asked in its body, in parts of it or in its calls."""
    old = asked if task.answers is task.frame.answers else asked | task.answers.keys()
    return not old <= {
        task.question_id(kind.removeprefix(QUESTION), index)
        for kind, last in (task._counts or {}).items()
        if old and kind.startswith(QUESTION)
        for index in range(last + 1)
    }


def _recorded(task: Running) -> Iterator[str]:
    """The keys of its values and the paths of its calls, as far as they are of this step and had ended."""
    recalled = task.frame.recalled
    if not recalled:
        return
    start = path_text((PUSH, task.path, ""))
    for writes in list(recalled.values()):
        path = writes[0].path if writes else ""
        if not path.startswith(start):
            continue
        rest, id = path[len(start) :], writes[0].task
        kind, _, key = rest.partition(", ")
        if kind == "step" and id == uuid_text(hash16((task.id, "step", key))):
            if not key.startswith(STREAMED):
                yield f"step {key}"
        elif rest.endswith(EFFECT) and id == uuid_text(hash16((task.id, "effect", key := rest[: -len(EFFECT)]))):
            if any(write.channel == MEMO for write in writes):
                yield f"effect {key}"
        elif key == "True" and _is_over(writes) and id == _call_id(task, writes[0].name, kind):
            yield path


def _call_id(task: Running, name: str, place: str) -> str:
    """The id of a call of a task, from its place as it stands in the path."""
    index = str(int(place)) if place.isdigit() else place
    return uuid_text(
        hash16(task_parts(task.checkpoint, task.frame.ns, task.step, name, PUSH, path_text(task.path), index, "call"))
    )


def _is_over(stored: Iterable[Write]) -> bool:
    """Whether what is stored of a call says how it ended."""
    return any(
        write.channel == RETURN or (write.channel == MEMO and isinstance(write.value, list | Failure))
        for write in stored
    )
