"""LangChain's callback handlers hear of the agents' own models and tools, and where nothing else of it is loaded."""

from __future__ import annotations

import subprocess
import sys
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("langgraph.graph", reason="the reference is not installed: pip install 'pregel[compare]'")
pytestmark = pytest.mark.filterwarnings("ignore")

from langchain_core.tracers.base import BaseTracer  # noqa: E402
from langchain_core.tracers.context import tracing_v2_enabled  # noqa: E402

from pregel.agents import ToolException, create_agent  # noqa: E402
from pregel.agents.models.scripted import ScriptedModel  # noqa: E402
from pregel.checkpoint.memory import InMemorySaver  # noqa: E402
from pregel.messages import AIMessage as OurAIMessage  # noqa: E402
from pregel.types import Command, interrupt  # noqa: E402

from .chain_runs import THREAD, Keeping, State, chain, double, inner, run  # noqa: E402
from .side import side  # noqa: E402


def doubled(x: int) -> int:
    """Twice x, by way of LangChain."""
    return 2 * int(inner.invoke(x))


def refusing(x: int) -> int:
    """No number will do."""
    raise ToolException("no")


def own_agent(*calls: str, **settings: Any) -> Any:
    asked: list[Any] = [{"name": name, "args": {"x": 1}, "id": str(place)} for place, name in enumerate(calls)]
    usage: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    model = ScriptedModel([OurAIMessage("", tool_calls=asked, usage_metadata=usage), "done"])
    return create_agent(model, [doubled, refusing, double], **settings)


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
def test_models_and_tools_of_ours_lie_in_their_node(way: str) -> None:
    keeping = Keeping()

    run(own_agent("doubled", "refusing", "double", "unknown"), way, {"messages": "hi"}, {"callbacks": [keeping]})

    runs = keeping.tree.runs
    lying = [(one["kind"], runs[one["parent"]]["name"]) for one in runs.values() if one["kind"] != "chain"]
    assert [("chat", "model"), *[("tool", "tools")] * 3, ("chat", "model")] == lying
    tools = {one["name"]: one for one in runs.values() if one["kind"] == "tool"}
    assert {"doubled", "refusing", "double"} == tools.keys()
    assert "ToolException" == type(tools["refusing"]["end"]["error"]).__name__
    assert "doubled" == runs[keeping.tree.named("inner")[0]["parent"]]["name"]
    assert all("end" in one for one in runs.values())


def test_a_tracer_sees_what_a_model_of_ours_was_asked_what_it_said_and_what_that_took() -> None:
    found: list[Any] = []

    class Recording(BaseTracer):  # type: ignore[misc]  # untyped where it is not installed
        def _persist_run(self, run: Any) -> None:
            found.extend(one for node in run.child_runs for one in node.child_runs if one.run_type == "llm")

    own_agent("doubled").invoke({"messages": "hi"}, {"callbacks": [Recording()]})

    first = found[0]
    assert ("ScriptedModel", {"prompts": ["Human: hi"]}) == (first.name, first.inputs)
    message = first.outputs["generations"][0][0]["message"]["kwargs"]
    assert ["doubled"] == [one["name"] for one in message["tool_calls"]]
    assert 3 == message["usage_metadata"]["total_tokens"]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_model_of_ours_that_streams_or_fails_in_a_node_is_one_run(way: str) -> None:
    class Failing(ScriptedModel):
        def generate(self, request: Any) -> Any:
            raise ValueError("no answer")

    def streaming(state: State) -> State:
        return {"x": len(list(ScriptedModel(["a b c"]).stream("hi")))}

    async def astreaming(state: State) -> State:
        return {"x": len([chunk async for chunk in ScriptedModel(["a b c"]).astream("hi")])}

    def asking(state: State) -> State:
        Failing(["x"]).invoke("hi")
        return {}

    keeping = Keeping()
    app = chain(side("pregel"), stream=streaming if way == "invoke" else astreaming, ask=asking).compile()
    run(app, way, {"x": 1}, {"callbacks": [keeping]})

    runs = keeping.tree.runs
    chats = [(runs[one["parent"]]["name"], list(one["end"])) for one in runs.values() if one["kind"] == "chat"]
    assert [("stream", ["output"]), ("ask", ["error"])] == chats


def test_a_tool_of_ours_that_asks_ends_as_the_nodes_around_it_do() -> None:
    def asking(x: int) -> int:
        """Ask."""
        return int(interrupt("sure?"))

    first, second = Keeping(), Keeping()
    call: Any = {"name": "asking", "args": {"x": 1}, "id": "1"}
    model = ScriptedModel([OurAIMessage("", tool_calls=[call]), "done"])
    app: Any = create_agent(model, [asking], checkpointer=InMemorySaver())
    app.invoke({"messages": "hi"}, {**THREAD, "callbacks": [first]})
    app.invoke(Command(resume=4), {**THREAD, "callbacks": [second]})

    ends = {name: first.tree.named(name)[0]["end"] for name in ("asking", "tools", "LangGraph")}
    assert ["GraphInterrupt"] * 2 == [type(ends[name]["error"]).__name__ for name in ("asking", "tools")]
    assert "output" in ends["LangGraph"]
    assert ["output"] == list(second.tree.named("asking")[0]["end"])


def test_what_streams_shows_is_the_same_with_handlers() -> None:
    def shown(**config: Any) -> list[str]:
        chunks = own_agent("doubled").stream({"messages": "hi"}, config, stream_mode="messages")
        return [chunk.text for chunk, _ in chunks if chunk.text]

    assert shown() == shown(callbacks=[Keeping()])


def test_a_tracer_that_is_switched_on_for_all_runs_hears_of_graphs() -> None:
    client = MagicMock()

    with tracing_v2_enabled(client=client):
        own_agent("doubled", name="traced").invoke({"messages": "hi"})

    created = [call.kwargs for call in client.create_run.call_args_list]
    named = {one["name"]: one for one in created}
    assert created[0]["name"] == "traced"
    assert named["traced"]["id"] == named["tools"]["parent_run_id"] == named["model"]["parent_run_id"]
    assert named["tools"]["id"] == named["doubled"]["parent_run_id"]


def test_handlers_are_heard_where_nothing_else_of_langchain_is_loaded() -> None:
    program = """
import sys
from typing import TypedDict
from langchain_core.callbacks import BaseCallbackHandler
from pregel.graph import START, StateGraph

class Names(BaseCallbackHandler):
    def on_chain_start(self, *args, name, **kwargs):
        print(name)

class State(TypedDict, total=False):
    n: int

def node(state):
    from langchain_core.runnables import RunnableLambda
    return {"n": RunnableLambda(lambda n: n, name="inner").invoke(1)}

assert "langchain_core.runnables.config" not in sys.modules
app = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()
app.invoke({"n": 0}, {"callbacks": [Names()]})
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "LangGraph\nnode\ninner\n" == told.stdout
