"""A thread that goes on with a graph which has lost the node that is to run."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.errors import UnknownTargetError
from pregel.waits import wait_for_event

from .conftest import Runner
from .marks import Saver, State, Thread, chain, mark
from .test_authority import has_authority
from .test_starts import INPUT, work
from .test_thread_api import Api


def test_a_node_that_is_gone_is_no_silent_end(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []
    old = chain("x", "pay", pay=mark("pay", calls)).compile(checkpointer=saver, interrupt_before=["pay"])
    new = chain("x", "charge", charge=mark("charge", calls)).compile(checkpointer=saver)
    for name in "123":
        run.invoke(old, INPUT, thread(name))

    before = run.state(old, thread("1")).config
    with pytest.raises(UnknownTargetError, match="'pay' is to run next") as failed:
        run.invoke(new, None, thread("1"))
    assert before == run.state(old, thread("1")).config
    assert "update_state" in str(failed.value)

    run.invoke(old, None, thread("1"))
    run.update(new, thread("2"), {"a": ["by hand"]}, as_node="x")
    run.invoke(new, None, thread("2"))
    run.invoke(new, INPUT, thread("3"))
    assert ["pay", "charge", "charge"] == calls


def test_a_worker_without_the_node_leaves_the_thread_to_one_that_has_it(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    if not has_authority(saver):
        pytest.skip("no status is kept there")

    def node(state: State) -> dict[str, Any]:
        return {"a": [wait_for_event("paid").value]}

    old = chain("pay", pay=node).compile(checkpointer=saver, name="orders")
    new = chain("charge", charge=node).compile(checkpointer=saver, name="orders")
    api = Api(run, old)
    run.invoke(old, INPUT, thread("1"))
    api("send_event", "1", "paid", "ann")

    work(run, new)
    assert ("waiting", ["1"]) == (api("status", "1").status, list(api("due")))
    assert 1 == work(run, old)
    assert ["in", "ann"] == run.state(old, thread("1")).values["a"]
