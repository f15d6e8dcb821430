"""Versions on savers with the reference's five verbs: told by the metadata of the checkpoints."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.durable import ContinueAsNew
from pregel.errors import NotBuiltError, VersionMismatchError
from pregel.types import Command, interrupt

from .conftest import Runner
from .marks import State, Thread, chain
from .savers.third_party import FiveVerbs
from .test_first_tier_savers import quiet


def asks(state: State) -> dict[str, Any]:
    return {"a": [interrupt("go on?")]}


@pytest.mark.acceptance("S3-12")
def test_another_version_is_refused(run: Runner, thread: Thread) -> None:
    saver = quiet(FiveVerbs())
    v1, v2 = (chain("x", x=asks).compile(checkpointer=saver, version=version) for version in "12")
    run.invoke(v1, {"a": ["in"]}, thread("1"))
    before = run.state(v1, thread("1"))
    with pytest.raises(VersionMismatchError) as caught:
        run.invoke(v2, Command(resume="yes"), thread("1"))

    assert ("1", "2") == (caught.value.of_thread, caught.value.of_graph)
    assert before == run.state(v1, thread("1"))
    assert {"a": ["in", "yes"]} == run.invoke(v1, Command(resume="yes"), thread("1"))


def test_no_execution_follows_another(run: Runner, thread: Thread) -> None:
    def node(state: State) -> dict[str, Any]:
        raise ContinueAsNew({"a": []})

    with pytest.raises(NotBuiltError):
        run.invoke(chain("x", x=node).compile(checkpointer=quiet(FiveVerbs())), {"a": ["in"]}, thread("1"))
