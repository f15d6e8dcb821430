"""LangChain's callback handlers hear of graphs and nodes as the reference tells them: one tree of runs."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any
from unittest.mock import MagicMock
from uuid import UUID

import pytest
from typing_extensions import TypedDict

pytest.importorskip("langgraph.graph", reason="the reference is not installed: pip install 'pregel[compare]'")
pytestmark = pytest.mark.filterwarnings("ignore")

from langchain_core.callbacks import BaseCallbackHandler, CallbackManager  # noqa: E402
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel  # noqa: E402
from langchain_core.messages import AIMessage  # noqa: E402
from langchain_core.runnables import RunnableConfig, RunnableLambda  # noqa: E402
from langchain_core.tracers import LangChainTracer  # noqa: E402
from langchain_core.tracers.base import BaseTracer  # noqa: E402
from langchain_core.tracers.context import collect_runs  # noqa: E402

from pregel.cache.memory import InMemoryCache  # noqa: E402
from pregel.errors import ThreadBusy  # noqa: E402
from pregel.telemetry import instrument, uninstrument  # noqa: E402
from pregel.types import CachePolicy  # noqa: E402

from .chain_runs import PACKAGES, THREAD, AsyncKeeping, Keeping, State, chain, double, inner, run  # noqa: E402
from .side import Side, side  # noqa: E402


class Log(TypedDict):
    log: Annotated[list[Any], operator.add]


def calling(state: State) -> State:
    return {"x": inner.invoke(state["x"]) + 1, "log": ["a"]}


async def awaiting(state: State) -> State:
    return {"log": [await inner.ainvoke(state["x"])]}


def last(state: State) -> State:
    return {"log": ["last"]}


def failing(state: State) -> State:
    raise ValueError("boom")


def plain(lib: Side) -> Any:
    graph = lib.StateGraph(State).add_node("a", calling, metadata={"mine": 1}).add_node("b", last)
    return graph.add_edge(lib.START, "a").add_edge("a", "b").compile()


def side_by_side(lib: Side) -> Any:
    graph = chain(lib, a=calling).add_node("b", last).add_edge(lib.START, "b")
    return graph.add_node("end", last).add_edge(["a", "b"], "end").compile(name="wide")


def routed(lib: Side) -> Any:
    def path(state: State) -> str:
        inner.invoke(1)
        return "b"

    graph = lib.StateGraph(State).add_node("a", calling).add_node("b", last)
    return graph.add_conditional_edges(lib.START, _to_a).add_conditional_edges("a", path).compile()


def _to_a(state: State) -> str:
    return "a"


def fanned_out(lib: Side) -> Any:
    def each(state: State) -> list[Any]:
        return [lib.Send("b", {"x": number}) for number in range(3)]

    graph = lib.StateGraph(State).add_node("a", calling).add_node("b", last).add_edge(lib.START, "a")
    return graph.add_conditional_edges("a", each, ["b"]).compile()


def commanding(lib: Side) -> Any:
    def go(state: State) -> Any:
        return lib.Command(goto="b", update={"x": 5})

    graph = lib.StateGraph(State).add_node("a", go, destinations=("b",)).add_node("b", last)
    return graph.add_edge(lib.START, "a").compile()


def nested(lib: Side) -> Any:
    below = chain(lib, deep=calling).compile(name="below")
    middle = chain(lib, below=below, own=last).compile(name="middle")
    return chain(lib, middle=middle, end=last).compile(name="top")


def nested_with_a_branch(lib: Side) -> Any:
    graph = lib.StateGraph(State).add_node("sub", chain(lib, deep=calling).compile(name="below")).add_node("a", last)
    return graph.add_edge(lib.START, "sub").add_conditional_edges("sub", _to_a).compile()


def called(lib: Side) -> Any:
    sub = chain(lib, deep=calling).compile(name="sub")

    def node(state: State) -> Any:
        return {"x": sub.invoke({"x": 1})["x"]}

    def with_config(state: State, config: RunnableConfig) -> Any:
        return {"x": sub.invoke({"x": 2}, config)["x"]}

    def streaming(state: State) -> Any:
        return {"x": len(list(sub.stream({"x": 3}, {"tags": ["own"], "run_name": "renamed"})))}

    def in_a_chain(state: State) -> Any:
        return {"x": RunnableLambda(lambda x: sub.invoke({"x": x})["x"], name="around").invoke(state["x"])}

    return chain(lib, node=node, with_config=with_config, streaming=streaming, in_a_chain=in_a_chain)


def not_stored(lib: Side) -> Any:
    return called(lib).compile()


def stored(lib: Side) -> Any:
    return called(lib).compile(checkpointer=lib.InMemorySaver())


def failed(lib: Side) -> Any:
    return chain(lib, a=last, bad=failing).compile()


def failed_below(lib: Side) -> Any:
    return chain(lib, sub=chain(lib, bad=failing).compile(name="sub")).compile()


def failed_path(lib: Side) -> Any:
    def path(state: State) -> str:
        raise ValueError("no way")

    return chain(lib, a=last).add_conditional_edges("a", path, ["a"]).compile()


def handled(lib: Side) -> Any:
    graph = lib.StateGraph(State).add_node("bad", failing, error_handler=last)
    return graph.add_edge(lib.START, "bad").compile()


def retried(lib: Side) -> Any:
    tries: list[int] = []

    def flaky(state: State) -> State:
        tries.append(1)
        if len(tries) % 3:
            raise ValueError("again")
        return {"x": 1}

    policy = lib.RetryPolicy(retry_on=ValueError, initial_interval=0.001, jitter=False, max_attempts=3)
    return lib.StateGraph(State).add_node("flaky", flaky, retry_policy=policy).add_edge(lib.START, "flaky").compile()


def asked(lib: Side) -> Any:
    def ask(state: State) -> State:
        return {"x": lib.interrupt("how many?")}

    return chain(lib, ask=ask).compile(checkpointer=lib.InMemorySaver())


def asked_below(lib: Side) -> Any:
    def ask(state: State) -> State:
        return {"x": lib.interrupt("how many?")}

    return chain(lib, sub=chain(lib, ask=ask).compile(name="sub")).compile(checkpointer=lib.InMemorySaver())


def to_the_parent(lib: Side) -> Any:
    def up(state: State) -> Any:
        return lib.Command(graph=lib.Command.PARENT, goto="after", update={"x": 2})

    graph = lib.StateGraph(State).add_node("sub", chain(lib, up=up).compile(name="sub"), destinations=("after",))
    return graph.add_node("after", last).add_edge(lib.START, "sub").compile()


def stopped_before(lib: Side) -> Any:
    return chain(lib, a=last, b=last).compile(checkpointer=lib.InMemorySaver(), interrupt_before=["b"])


def endless(lib: Side) -> Any:
    return chain(lib, a=last).add_edge("a", "a").compile().with_config(recursion_limit=3)


def theirs(lib: Side) -> Any:
    def talk(state: State) -> State:
        model = GenericFakeChatModel(messages=iter([AIMessage("hi")]))
        return {"x": len(model.invoke("hello").content) + double.invoke({"n": 1})}

    return chain(lib, lambda_=RunnableLambda(lambda state: {"x": 1}, name="theirs"), talk=talk).compile()


def functions(lib: Side) -> Any:
    func = import_module(f"{lib.package}.func")

    @func.task  # type: ignore[untyped-decorator]  # of either library
    def add(x: int, y: int = 1, **more: int) -> int:
        return x + y + sum(more.values())

    @func.task(name="renamed")  # type: ignore[untyped-decorator]
    def bad() -> int:
        raise ValueError("no")

    @func.entrypoint()  # type: ignore[untyped-decorator]
    def flow(x: int) -> int:
        first = RunnableLambda(lambda y: add(y).result(), name="around").invoke(x)
        with suppress(ValueError):
            bad().result()
        return first + add(2, y=3, z=4).result()  # type: ignore[no-any-return]  # it is an int

    return flow


PROGRAMS: list[Callable[[Side], Any]] = [
    plain,
    side_by_side,
    routed,
    fanned_out,
    commanding,
    nested,
    nested_with_a_branch,
    not_stored,
    stored,
    failed,
    failed_below,
    failed_path,
    handled,
    retried,
    asked,
    asked_below,
    to_the_parent,
    stopped_before,
    endless,
    theirs,
    functions,
]
CONFIG: dict[str, Any] = {**THREAD, "tags": ["T"], "metadata": {"asked": 1}, "run_name": "mine", "run_id": UUID(int=5)}


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_tree_of_runs_is_that_of_the_reference(program: Callable[[Side], Any], way: str) -> None:
    if way.startswith("a") and program in (not_stored, stored, functions):
        pytest.skip("its code blocks on the loop")
    trees: dict[str, list[Any]] = {}
    for package in PACKAGES:
        lib = side(package)
        app, keeping, resumed = program(lib), Keeping(), Keeping()
        run(app, way, {"x": 1} if program is not functions else 1, {**CONFIG, "callbacks": [keeping]})
        if program in (asked, asked_below):
            run(app, way, lib.Command(resume=3), {**THREAD, "callbacks": [resumed]})
        assert all("end" in one for one in keeping.tree.runs.values())
        assert UUID(int=5) in keeping.tree.runs
        trees[package] = [keeping.tree.shape(), resumed.tree.shape()]

    assert trees["langgraph"][0]
    assert trees["langgraph"] == trees["pregel"]


def aprogram(lib: Side) -> Any:
    """Every kind of node in an awaited run, side by side."""
    func = import_module(f"{lib.package}.func")

    @func.task  # type: ignore[untyped-decorator]
    async def add(x: int) -> int:
        return x + 1

    sub = chain(lib, deep=awaiting).compile(name="sub")

    async def calls(state: State) -> State:
        return {"log": [*(await sub.ainvoke({"x": 1}))["log"], await add(1)]}

    async def path(state: State) -> str:
        await inner.ainvoke(1)
        return "end"

    silent = lib.StateGraph(State, output_schema=Log).add_node("deep", last).add_edge(lib.START, "deep")
    inside = lib.StateGraph(State, output_schema=Log).add_node("deep", awaiting).add_edge(lib.START, "deep")
    graph = chain(lib, awaiting=awaiting).add_node("calls", calls).add_node("sub", inside.compile(name="inside"))
    graph.add_node("blocks", last).add_node("silent", silent.compile(name="silent")).add_node("end", last)
    for name in ("calls", "sub", "blocks", "silent"):
        graph.add_edge(lib.START, name)
    return graph.add_conditional_edges("awaiting", path, ["end"])


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("handler", [Keeping, AsyncKeeping])
def test_an_awaited_run_tells_of_all_its_nodes(handler: Any, is_stored: bool) -> None:
    trees = []
    for package in PACKAGES:
        lib, keeping = side(package), handler()
        app = aprogram(lib).compile(checkpointer=lib.InMemorySaver() if is_stored else None)
        run(app, "ainvoke", {"x": 1}, {**THREAD, "callbacks": [keeping]})
        trees.append(keeping.tree.shape())

    assert trees[0] == trees[1]
    assert len(trees[0][0][-1]) == 6


@pytest.mark.parametrize("program", [nested, failed_below, side_by_side])
def test_awaited_handlers_hear_of_a_run_that_blocks(program: Callable[[Side], Any]) -> None:
    trees = []
    for package in PACKAGES:
        keeping = AsyncKeeping()
        run(program(side(package)), "invoke", {"x": 1}, {"callbacks": [keeping]})
        trees.append(keeping.tree.shape())

    assert trees[0]
    assert trees[0] == trees[1]


def cancelled(lib: Side, deep: bool) -> Any:
    async def follow() -> list[Any]:
        keeping, begun = Keeping(), asyncio.Event()

        async def slow(state: State) -> State:
            begun.set()
            await asyncio.Event().wait()
            return {}

        app = chain(lib, slow=slow).compile(name="sub")
        app = chain(lib, sub=app).compile() if deep else app
        running = asyncio.create_task(app.ainvoke({"x": 1}, {"callbacks": [keeping]}))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return keeping.tree.shape()

    return asyncio.run(follow())


@pytest.mark.parametrize("deep", [False, True])
def test_what_is_cancelled_ends_as_cancelled(deep: bool) -> None:
    assert cancelled(side("langgraph"), deep) == cancelled(side("pregel"), deep)


def closed(lib: Side) -> Any:
    keeping = Keeping()
    chunks = nested(lib).stream({"x": 1}, {"callbacks": [keeping]})
    next(chunks)
    chunks.close()
    return [(run["name"], type(run["end"].get("error")).__name__) for run in keeping.tree.runs.values()]


def test_a_stream_that_is_closed_early_ends_its_runs() -> None:
    found = closed(side("pregel"))

    assert ("top", "GeneratorExit") == found[0]
    assert closed(side("langgraph"))[0] == found[0]


def local_and_inherited(lib: Side) -> list[Any]:
    local, inherited = Keeping(), Keeping()
    manager = CallbackManager(handlers=[])
    manager.add_handler(local, inherit=False)
    manager.add_handler(inherited, inherit=True)
    manager.add_tags(["everywhere"])
    manager.add_tags(["here"], inherit=False)
    nested(lib).invoke({"x": 1}, {"callbacks": manager})
    return [local.tree.shape(), inherited.tree.shape()]


def test_a_manager_has_handlers_for_the_root_alone_and_for_everything() -> None:
    assert local_and_inherited(side("langgraph")) == local_and_inherited(side("pregel"))


def added_inside(lib: Side) -> list[Any]:
    outer, added = Keeping(), Listening()
    sub = chain(lib, deep=calling).compile(name="sub")

    def node(state: State) -> Any:
        return {"x": sub.invoke({"x": 1}, {"callbacks": [added]})["x"]}

    chain(lib, node=node).compile().invoke({"x": 1}, {"callbacks": [outer]})
    return [outer.tree.shape(), added.names]


class Listening(BaseCallbackHandler):  # type: ignore[misc]  # untyped where it is not installed
    def __init__(self) -> None:
        self.names: list[Any] = []

    def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        self.names.append(kwargs["name"])


def test_a_call_in_a_node_adds_handlers_to_those_of_its_node() -> None:
    found = added_inside(side("pregel"))

    assert ["sub", "deep", "inner"] == found[1]
    assert added_inside(side("langgraph")) == found


def from_a_chain(lib: Side) -> list[Any]:
    keeping = Keeping()
    app = chain(lib, a=calling).compile()
    around = RunnableLambda(lambda x: app.invoke({"x": x})["x"], name="around")
    around.invoke(1, {"callbacks": [keeping], "tags": ["T"]})
    return keeping.tree.shape()


def test_a_graph_that_a_chain_calls_lies_in_that_chain() -> None:
    found = from_a_chain(side("pregel"))

    assert "around" == found[0][0]
    assert from_a_chain(side("langgraph")) == found


class Broken(BaseCallbackHandler):  # type: ignore[misc]  # untyped where it is not installed
    def __init__(self, where: str, raises: bool) -> None:
        self.where, self.raise_error = where, raises

    def on_chain_start(self, *args: Any, name: str, **kwargs: Any) -> None:
        if f"start {name}" == self.where:
            raise RuntimeError(self.where)

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        if self.where == "end":
            raise RuntimeError(self.where)


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
@pytest.mark.parametrize("where", ["start LangGraph", "start a", "start sub", "end"])
def test_a_handler_that_raises_breaks_a_run_only_if_it_is_to(where: str, way: str) -> None:
    app = chain(side("pregel"), a=calling, sub=chain(side("pregel"), b=last).compile(name="sub")).compile()

    run(app, way, {"x": 1}, {"callbacks": [Broken(where, raises=False)]})
    with pytest.raises(RuntimeError, match=where):
        _raising(app, way, {"callbacks": [Broken(where, raises=True)]})


def _raising(app: Any, way: str, config: Any) -> None:
    async def awaited() -> None:
        if way == "ainvoke":
            await app.ainvoke({"x": 1}, config)
        else:
            _ = [chunk async for chunk in app.astream({"x": 1}, config)]

    if way.startswith("a"):
        asyncio.run(awaited())
    else:
        _ = app.invoke({"x": 1}, config) if way == "invoke" else list(app.stream({"x": 1}, config))


def test_a_handler_that_ignores_chains_hears_of_models_alone() -> None:
    class Deaf(Keeping):
        ignore_chain, raise_error = True, False

        def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
            parents.append(kwargs["parent_run_id"])

        def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
            """Nothing."""

    parents: list[Any] = []
    deaf, keeping = Deaf(), Keeping()
    theirs(side("pregel")).invoke({"x": 1}, {"callbacks": [deaf, keeping]})

    assert not [run for run in deaf.tree.runs.values() if run["kind"] == "chain"]
    assert parents == [id for id, run in keeping.tree.runs.items() if run["name"] == "talk"]


def collected(lib: Side) -> Iterator[Any]:
    with collect_runs() as found:
        nested(lib).invoke({"x": 1})
        for one in found.traced_runs:
            yield one.name, one.run_type, one.inputs, one.outputs, len(one.child_runs)


def test_collect_runs_collects_the_graph() -> None:
    assert list(collected(side("langgraph"))) == list(collected(side("pregel")))


def test_lifecycle_handlers_are_told_the_id_of_the_run() -> None:
    lifecycle: Any = import_module("pregel.callbacks").GraphCallbackHandler
    told: list[Any] = []

    class Told(lifecycle):  # type: ignore[misc]  # it comes from a function
        def on_interrupt(self, event: Any) -> None:
            told.append(event.run_id)

    keeping = Keeping()
    asked(side("pregel")).invoke({"x": 1}, {**THREAD, "callbacks": [keeping, Told()]})

    assert told == [next(iter(keeping.tree.runs))]


def test_a_tracer_sees_of_a_node_what_its_policy_lets_through() -> None:
    seen: dict[str, Any] = {}

    class Recording(BaseTracer):  # type: ignore[misc]  # untyped where it is not installed
        def _persist_run(self, run: Any) -> None:
            seen.update({one.name: (one.inputs, one.outputs) for one in run.child_runs})

    for package in PACKAGES:
        lib, keeping = side(package), Keeping()
        policy = import_module(f"{package}.types").TracePolicy(
            process_inputs=lambda value: {"keys": sorted(value)}, process_outputs=lambda value: {"hidden": True}
        )
        graph = lib.StateGraph(State).add_node("secret", last, trace_policy=policy).add_edge(lib.START, "secret")
        graph.compile().invoke({"x": 1}, {"callbacks": [Recording(), keeping]})

        assert {"secret": ({"keys": ["log", "x"]}, {"hidden": True})} == seen
        (run_of_it,) = keeping.tree.named("secret")
        assert ({"x": 1, "log": []}, {"log": ["last"]}) == (run_of_it["inputs"], run_of_it["end"]["output"])
        seen.clear()


def test_functions_that_langsmith_traces_lie_in_their_node() -> None:
    client = MagicMock()
    tracer = LangChainTracer(client=client)

    @import_module("langsmith").traceable(client=client)  # type: ignore[untyped-decorator]
    def noted(x: int) -> int:
        return x

    def node(state: State) -> State:
        return {"x": noted(1)}

    chain(side("pregel"), node=node).compile(name="top").invoke({"x": 1}, {"callbacks": [tracer]})

    created = {call.kwargs["name"]: call.kwargs for call in client.create_run.call_args_list}
    assert ["top", "node", "noted"] == sorted(created, key=lambda name: created[name]["dotted_order"])
    assert created["node"]["id"] == created["noted"]["parent_run_id"]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_what_comes_from_a_cache_or_from_storage_is_no_run(way: str) -> None:
    lib, keeping, resumed, again = side("pregel"), Keeping(), Keeping(), Keeping()
    tries: list[int] = []

    def flaky(state: State) -> State:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("once")
        return {}

    graph = lib.StateGraph(State).add_node("kept", last, cache_policy=CachePolicy()).add_node("done", last)
    graph.add_node("flaky", flaky).add_edge(lib.START, "kept").add_edge("kept", "done").add_edge("kept", "flaky")
    app = graph.compile(checkpointer=lib.InMemorySaver(), cache=InMemoryCache())
    run(app, way, {"x": 1}, {**THREAD, "callbacks": [keeping]})
    run(app, way, None, {**THREAD, "callbacks": [resumed]})
    run(app, way, {"x": 1}, {"configurable": {"thread_id": "2"}, "callbacks": [again]})

    assert ["LangGraph", "kept", "done", "flaky"] == [one["name"] for one in keeping.tree.runs.values()]
    assert ["LangGraph", "flaky"] == [one["name"] for one in resumed.tree.runs.values()]
    assert ["LangGraph", "done", "flaky"] == [one["name"] for one in again.tree.runs.values()]


def test_a_run_is_traced_by_opentelemetry_and_by_handlers_at_once() -> None:
    telemetry = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    sdk = import_module("opentelemetry.sdk.trace")
    exporter, provider = telemetry.InMemorySpanExporter(), sdk.TracerProvider()
    simple: Any = import_module("opentelemetry.sdk.trace.export").SimpleSpanProcessor
    provider.add_span_processor(simple(exporter))
    app, trees = nested(side("pregel")), []

    for traced in (False, True):
        keeping = Keeping()
        if traced:
            instrument(tracer_provider=provider)
        try:
            app.invoke({"x": 1}, {"callbacks": [keeping]})
            asyncio.run(app.ainvoke({"x": 1}, {"callbacks": [keeping]}))
        finally:
            uninstrument()
        trees.append(keeping.tree.shape())

    assert trees[0] == trees[1]
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert {"invoke_workflow top", "invoke_workflow middle", "invoke_workflow below", "node deep"} <= spans.keys()


def test_a_thread_that_another_run_holds_is_one_run_for_its_handlers() -> None:
    lib, keeping, refused = side("pregel"), Keeping(), Keeping()
    app: Any = None

    def node(state: State) -> State:
        with pytest.raises(ThreadBusy), ThreadPoolExecutor() as other:
            other.submit(app.invoke, {"x": 1}, {**THREAD, "callbacks": [refused]}).result()
        return {}

    app = chain(lib, node=node).compile(checkpointer=lib.InMemorySaver())
    app.invoke({"x": 1}, {**THREAD, "callbacks": [keeping]})

    (only,) = refused.tree.runs.values()
    assert "ThreadBusy" == type(only["end"]["error"]).__name__
    assert ["LangGraph", "node"] == [one["name"] for one in keeping.tree.runs.values()]
