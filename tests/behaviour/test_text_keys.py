"""Names and keys of waits, events, steps and effects that not every store keeps are refused before a run breaks off."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pregel.errors import InvalidInputError
from pregel.runtime import get_runtime
from pregel.waits import sleep, wait_for_event

from .conftest import Runner
from .marks import Saver, State, Thread, chain
from .test_authority import has_authority
from .test_starts import INPUT, start, work
from .test_thread_api import Api

BAD = {"a NUL character": "a\0b", "half a surrogate pair": "\ud800"}
NODES: dict[str, Any] = {
    "the name of an event": lambda text: wait_for_event(text),
    "the key of an event": lambda text: wait_for_event("paid", key=text),
    "the key of a step": lambda text: get_runtime().step(text, lambda: 1),
    "the key of an effect": lambda text: get_runtime().effect(text, lambda key: 1),
    "a step without a text": lambda text: get_runtime().step(7, lambda: 1),  # type: ignore[arg-type]
    "a sleep of text": lambda text: sleep("5"),  # type: ignore[arg-type]
    "a timeout that is none": lambda text: wait_for_event("paid", timeout=timedelta(1)),  # type: ignore[call-overload]
}


@pytest.fixture(autouse=True)
def needs_a_status(saver: Saver) -> None:
    if not has_authority(saver):
        pytest.skip("no status is kept there")


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
@pytest.mark.parametrize("what", NODES)
def test_a_node_that_gives_one_fails(run: Runner, saver: Saver, what: str, text: str) -> None:
    """A store that refuses the append would leave the thread abandoned, and its workers take it up for ever."""

    def node(state: State) -> dict[str, Any]:
        NODES[what](text)
        return {}

    app = chain("x", x=node).compile(checkpointer=saver, name="orders")
    start(run, app, INPUT, key="1")
    work(run, app)

    info = Api(run, app)("status", "1")
    assert ("failed", True) == (info.status, info.reason.startswith("InvalidInputError"))
    assert 0 == work(run, app)


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_an_event_that_has_one_is_refused(run: Runner, saver: Saver, thread: Thread, text: str) -> None:
    app = chain("x").compile(checkpointer=saver)
    run.invoke(app, INPUT, thread("1"))
    for arguments in ({"name": text}, {"name": "paid", "key": text}, {"name": "paid", "id": text}):
        with pytest.raises(InvalidInputError, match="NUL"):
            Api(run, app)("send_event", "1", **arguments)
