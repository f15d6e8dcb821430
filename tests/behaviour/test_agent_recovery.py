"""An agent whose run was cut off: what was recorded is used, not made again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pregel.agents import ScriptedModel, ToolRuntime, create_agent, tool
from pregel.agents.models import ChatRequest, call_tool, call_tools

from .conftest import Runner

HI = {"messages": "hi"}


class World:
    """What was done outside, and where the process dies next."""

    def __init__(self, dies_at: str) -> None:
        self.dies_at, self.log = dies_at, list[str]()

    def note(self, line: str) -> None:
        self.log.append(line)

    def die_at(self, point: str) -> None:
        if point == self.dies_at:
            self.dies_at = ""
            raise KeyboardInterrupt

    def agent(self, saver: Any) -> Any:
        @tool
        def pay(amount: int, runtime: ToolRuntime) -> str:
            """Pay."""
            key = runtime.idempotency_key
            self.note(f"pay {amount} {key}")
            self.die_at(f"paid {amount}")
            assert key == runtime.idempotency_key
            return f"receipt {amount}"

        def script(request: ChatRequest) -> Any:
            turn = sum(message.type == "ai" for message in request.messages)
            self.note(f"ask {turn}")
            self.die_at(f"asked {turn}")
            if turn:
                return "done"
            calls = len([line for line in self.log if line == "ask 0"])
            return call_tools(*(call_tool("pay", {"amount": number}, id=f"{calls}-{number}") for number in (1, 2)))

        return create_agent(ScriptedModel(script), [pay], checkpointer=saver)


@pytest.mark.acceptance("S2-32")
def test_a_recorded_answer_is_never_asked_for_again(run: Runner, saver: Any, thread: Callable[[str], Any]) -> None:
    world = World(dies_at="asked 1")
    with pytest.raises(KeyboardInterrupt):
        run.invoke(world.agent(saver), HI, thread("t"))

    result = run.invoke(world.agent(saver), None, thread("t"))

    told = [line[:5] for line in world.log]
    assert ["ask 0", "ask 1", "ask 1"] == [line for line in told if line.startswith("ask")]
    assert ["pay 1", "pay 2"] == sorted(line for line in told if line.startswith("pay"))
    assert ["1-1", "1-2"] == [message.tool_call_id for message in result["messages"] if message.type == "tool"]


@pytest.mark.acceptance("S5-4")
def test_a_tool_that_was_cut_off_runs_again_under_the_same_key(
    run: Runner, saver: Any, thread: Callable[[str], Any]
) -> None:
    world = World(dies_at="paid 1")
    with pytest.raises(KeyboardInterrupt):
        run.invoke(world.agent(saver), HI, thread("t"))

    result = run.invoke(world.agent(saver), None, thread("t"))

    keys = {line for line in world.log if line.startswith("pay 1")}
    assert (1, 2) == (len(keys), sum(line.startswith("pay 1") for line in world.log))
    assert ["receipt 1", "receipt 2"] == [message.text for message in result["messages"] if message.type == "tool"]
    assert 1 == world.log.count("ask 0")
    assert 2 == len({line.split()[2] for line in world.log if line.startswith("pay")})
