"""Records of what a front end shows: a component's name and props, pushed while a node runs and kept in the state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias
from uuid import uuid4

from typing_extensions import TypedDict

from pregel.config import running_task
from pregel.errors import InvalidInputError
from pregel.messages import AnyMessage

__all__ = ["AnyUIMessage", "RemoveUIMessage", "UIMessage", "delete_ui_message", "push_ui_message", "ui_message_reducer"]


class UIMessage(TypedDict):
    """A component that is shown. Its metadata say whether its props join those that are there (`merge`), and where it
    comes from: `run_id` and `tags` of the run, `name` of the node, `message_id` of the message it belongs to."""

    type: Literal["ui"]
    id: str
    name: str
    props: dict[str, Any]
    metadata: dict[str, Any]


class RemoveUIMessage(TypedDict):
    """Takes a component away, by its id."""

    type: Literal["remove-ui"]
    id: str


AnyUIMessage: TypeAlias = UIMessage | RemoveUIMessage


def push_ui_message(
    name: str,
    props: Mapping[str, Any],
    *,
    id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    message: AnyMessage | None = None,
    state_key: str | None = "ui",
    merge: bool = False,
) -> UIMessage:
    """The record of a component, after showing it at once in mode ``custom`` and writing it to `state_key`.

    The write counts, and is given up, with what the node returns; None: show it only. A record whose id is there takes
    its place; with `merge` its props are joined to those that are there. Without an id it gets a random one, and a
    node that is tried again shows another component: give an id to what must show once. OutsideRunError outside of a
    node, InvalidUpdateError for a key that the graph does not have.
    """
    task = running_task()
    config = task.config
    about = {
        "merge": merge,
        "run_id": config.get("run_id"),
        "tags": config.get("tags") or None,
        "name": config.get("run_name"),
    }
    belongs = {} if message is None or message.id is None else {"message_id": message.id}
    record: UIMessage = {
        "type": "ui",
        "id": id or str(uuid4()),
        "name": name,
        "props": dict(props),
        "metadata": {**about, **(metadata or {}), **belongs},
    }
    _push(task, record, state_key)
    return record


def delete_ui_message(id: str, *, state_key: str | None = "ui") -> RemoveUIMessage:
    """The record that takes a component away, after showing it in mode ``custom`` and writing it to `state_key`.

    The same errors as `push_ui_message`; that nothing has the id is seen when the step is applied.
    """
    record: RemoveUIMessage = {"type": "remove-ui", "id": id}
    _push(running_task(), record, state_key)
    return record


def _push(task: Any, record: AnyUIMessage, state_key: str | None) -> None:
    if state_key is not None:
        task.write(state_key, record)
    task.write_chunk(record)


def ui_message_reducer(
    left: Sequence[AnyUIMessage] | AnyUIMessage, right: Sequence[AnyUIMessage] | AnyUIMessage
) -> list[AnyUIMessage]:
    """The records of `left` with those of `right` joined in by id, as a new list; nothing that comes in is changed.

    InvalidInputError (a ValueError) when an id is to be removed that is not there.
    """
    shown: dict[str, AnyUIMessage] = {record["id"]: record for record in _listed(left)}
    for record in _listed(right):
        there = shown.get(record["id"])
        if record["type"] == "remove-ui":
            if there is None:
                raise InvalidInputError(
                    f"No UI message has the id {record['id']!r}.", fix="Delete only what was pushed and is still there."
                )
            del shown[record["id"]]
        elif there is not None and there["type"] == "ui" and record["metadata"].get("merge"):
            shown[record["id"]] = {**record, "props": {**there["props"], **record["props"]}}
        else:
            shown[record["id"]] = record
    return list(shown.values())


def _listed(records: Sequence[AnyUIMessage] | AnyUIMessage) -> Sequence[AnyUIMessage]:
    return [records] if isinstance(records, Mapping) else records
