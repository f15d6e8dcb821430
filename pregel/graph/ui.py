"""What a node shows in a front end: components that stream as they are pushed, and live in a key of the state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypedDict, cast
from uuid import uuid4

from pregel.config import running_task
from pregel.errors import InvalidUpdateError

__all__ = ["AnyUIMessage", "RemoveUIMessage", "UIMessage", "delete_ui_message", "push_ui_message", "ui_message_reducer"]


class UIMessage(TypedDict):
    """A component with its properties. `metadata` says whether they `merge` with those that it has."""

    type: Literal["ui"]
    id: str
    name: str
    props: dict[str, Any]
    metadata: dict[str, Any]


class RemoveUIMessage(TypedDict):
    """The component of this id goes."""

    type: Literal["remove-ui"]
    id: str


AnyUIMessage: TypeAlias = UIMessage | RemoveUIMessage


def push_ui_message(
    name: str,
    props: dict[str, Any],
    *,
    id: str | None = None,
    metadata: dict[str, Any] | None = None,
    message: object = None,
    state_key: str | None = "ui",
    merge: bool = False,
) -> UIMessage:
    """The component, after showing it at once in mode ``custom`` and writing it to `state_key` (None: show it only).

    `id` is drawn when it is not given. `merge`: the properties are added to those of the component with this id,
    which they replace otherwise. `message` is the one that it belongs to: its id goes into the metadata.

    OutsideRunError outside of a node, InvalidUpdateError for a key that the graph does not have.
    """
    config = running_task().config
    about = message.get("id") if isinstance(message, dict) else getattr(message, "id", None)
    made: UIMessage = {
        "type": "ui",
        "id": id or str(uuid4()),
        "name": name,
        "props": props,
        "metadata": {
            "merge": merge,
            "run_id": config.get("run_id"),
            "tags": config.get("tags"),
            "name": config.get("run_name"),
            **(metadata or {}),
            **({"message_id": about} if about else {}),
        },
    }
    _push(made, state_key)
    return made


def delete_ui_message(id: str, *, state_key: str = "ui") -> RemoveUIMessage:
    """The removal, after showing it at once in mode ``custom`` and writing it to `state_key`."""
    made: RemoveUIMessage = {"type": "remove-ui", "id": id}
    _push(made, state_key)
    return made


def ui_message_reducer(
    left: Sequence[AnyUIMessage] | AnyUIMessage, right: Sequence[AnyUIMessage] | AnyUIMessage
) -> list[AnyUIMessage]:
    """The components after an update: by id, in the order in which they came.

    InvalidUpdateError (a ValueError) for the removal of one that is not there.
    """
    merged: dict[str, AnyUIMessage] = {one["id"]: one for one in _listed(left)}
    removed: set[str] = set()
    for one in _listed(right):
        before = merged.get(one["id"])
        if one["type"] == "remove-ui":
            if before is None:
                raise _NotThere(
                    f"Attempting to delete an UI message with an ID that doesn't exist ({one['id']!r}).",
                    fix="Delete components by the id that push_ui_message returned, once.",
                )
            removed.add(one["id"])
            continue
        removed.discard(one["id"])
        if before is not None and one.get("metadata", {}).get("merge"):
            one = cast(UIMessage, {**one, "props": {**cast(UIMessage, before)["props"], **one["props"]}})
        merged[one["id"]] = one
    return [one for id, one in merged.items() if id not in removed]


class _NotThere(InvalidUpdateError, ValueError):
    """A component is to go that is not there."""


def _push(made: AnyUIMessage, state_key: str | None) -> None:
    task = running_task()
    if state_key is not None:
        task.write(state_key, made)
    task.write_chunk(made)


def _listed(components: Sequence[AnyUIMessage] | AnyUIMessage) -> list[AnyUIMessage]:
    return [components] if isinstance(components, dict) else list(components)
