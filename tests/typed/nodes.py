"""What the type checker knows of nodes, inputs, contexts and outputs. Nothing here runs; see `graphs`.

An ignore that names both checkers' rules stands where both must object: mypy reads ``type: ignore``, pyright
``pyright: ignore``, and each reports one that it does not need.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, TypedDict, assert_type

from pydantic import BaseModel

from pregel import END, START, Command, Runtime, Send, StateGraph
from pregel.config import RunnableConfig
from pregel.graph import MessagesState
from pregel.messages import AIMessage
from pregel.runnable import RunnableLambda
from pregel.store.base import BaseStore
from pregel.types import GraphOutput, StreamWriter, interrupt


class State(TypedDict):
    total: int
    log: Annotated[list[str], operator.add]


class Part(TypedDict, total=False):
    total: int


class Private(TypedDict):
    secret: str


class Question(TypedDict):
    text: str


class Answer(TypedDict):
    answer: str


@dataclass
class Tenant:
    name: str


@dataclass
class Other:
    age: int


class Model(BaseModel):
    total: int = 0


# -- nodes that are right ----------------------------------------------------------------------------------------------


def whole(state: State) -> State:
    return {"total": 1, "log": []}


def partial_update(state: State) -> dict[str, Any]:
    return {"total": 1}


def part(state: State) -> Part:
    return {"total": 1}


def private(state: State) -> Private:
    return {"secret": "x"}


def of_private(state: Private) -> Part:
    return {"total": len(state["secret"])}


def nothing(state: State) -> None: ...


def routing(state: State) -> Command[Literal["whole", "__end__"]]:
    return Command(update={"total": 1}, goto=END)


def either(state: State) -> Part | Command[Literal["whole"]] | None:
    return None


def several(state: State) -> list[Command[Any]]:
    return []


async def awaited(state: State) -> Part:
    return {"total": 2}


def chunks(state: State) -> Iterator[Part]:
    yield {"total": 1}


def of_item(item: int) -> Part:
    return {"total": item}


def failing(state: State) -> Any:
    raise ValueError


def with_all(
    state: State, config: RunnableConfig, runtime: Runtime[Tenant], *, store: BaseStore, writer: StreamWriter
) -> Part:
    return {"total": len(runtime.context.name)}


def with_config(state: State, config: RunnableConfig) -> Part:
    return {"total": len(config)}


def with_bare_runtime(state: State, runtime: Runtime[Any]) -> Part:
    return {}


def with_more(state: State, factor: int = 2) -> Part:
    return {"total": factor}


def untyped(state):  # type: ignore[no-untyped-def]  # as people write it
    return {"total": 1}


class Methods:
    def node(self, state: State) -> Part:
        return {"total": interrupt("?")}

    def __call__(self, state: State, runtime: Runtime[Tenant]) -> Part:
        return {"total": 1}


def nodes_that_are_right() -> None:
    graph = StateGraph(State, Tenant)
    graph.add_node(whole).add_node("partial", partial_update).add_node(part).add_node(private).add_node(of_private)
    graph.add_node(nothing).add_node(routing).add_node(either).add_node(several).add_node(awaited).add_node(chunks)
    graph.add_node(of_item).add_node(failing).add_node(with_all).add_node(with_config).add_node(with_bare_runtime)
    graph.add_node("more", partial(with_more, factor=3)).add_node("untyped", untyped)
    graph.add_node("method", Methods().node).add_node("object", Methods())
    graph.add_node("lambda", lambda state: {"total": state["total"] + 1})
    graph.add_node("chain", RunnableLambda(lambda state: state) | (lambda state: {"total": 1}))
    graph.add_node("side by side", {"total": lambda state: 1})
    graph.add_node("graph", StateGraph(State).add_node(whole).compile())
    graph.add_node("other graph", StateGraph(Question, output_schema=Answer).compile())
    graph.add_node("private", of_private, input_schema=Private, defer=True, metadata={"a": 1}, timeout=3)
    graph.add_sequence([whole, ("named", part), awaited])


def edges_that_are_right() -> None:
    def path(state: State) -> Literal["whole", "part"]:
        return "whole"

    def sends(state: State) -> list[Send]:
        return [Send("of_item", 1)]

    async def awaited_path(state: State) -> bool:
        return True

    graph = StateGraph(State)
    graph.add_conditional_edges(START, path)
    graph.add_conditional_edges("a", sends, ["of_item"])
    graph.add_conditional_edges("a", awaited_path, {True: "whole", False: END})
    graph.add_conditional_edges("a", lambda state: END if state["total"] else "part")


# -- nodes that are wrong ----------------------------------------------------------------------------------------------


def a_number(state: State) -> int:
    return 1


def a_text(state: State) -> str:
    return ""


async def an_awaited_number(state: State) -> int:
    return 1


def a_wrong_key(state: State) -> Part:
    return {"totl": 1}  # type: ignore[typeddict-unknown-key]  # pyright: ignore[reportReturnType]


def a_wrong_key_read(state: State) -> Part:
    return {"total": state["totl"]}  # type: ignore[typeddict-item]  # pyright: ignore[reportGeneralTypeIssues]


def of_another_context(state: State, runtime: Runtime[Other]) -> Part:
    return {"total": runtime.context.age}


def with_two_inputs(state: State, other: State) -> Part:
    return {}


def nodes_that_are_wrong() -> None:
    graph = StateGraph(State, Tenant)
    graph.add_node("number", a_number)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    graph.add_node(a_text)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    graph.add_node(an_awaited_number)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    graph.add_node(of_another_context)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    graph.add_node(with_two_inputs)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    graph.add_node("x", whole, retries=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    graph.add_node("x", whole, defer="yes")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]


# -- calls -------------------------------------------------------------------------------------------------------------


def calls_that_are_right(config: RunnableConfig) -> None:
    app = StateGraph(State, Tenant).add_node(whole).compile()
    app.invoke({"total": 1, "log": []}, config, context=Tenant("a"), durability="async")
    app.invoke(None, config)
    app.invoke(Command(resume="yes"), config, stream_mode=["values", "updates"])
    found = app.invoke({"total": 1, "log": []}, config, version="v2")
    assert_type(found, GraphOutput[State])
    assert_type(found.value["total"], int)
    print(app.invoke(None, config)["__interrupt__"])
    for chunk in app.stream(None, config, stream_mode="updates", subgraphs=True):
        print(chunk)
    for piece in app.stream(None, config, version="v2"):
        if piece["type"] == "values":
            assert_type(piece["data"], State)
    typed = StateGraph(Model).compile()
    assert_type(typed.invoke(Model(), version="v2").value, Model)
    messages = StateGraph(MessagesState).compile()
    messages.invoke({"messages": [AIMessage("hi")]})
    asked = StateGraph(State, input_schema=Question, output_schema=Answer).compile()
    asked.invoke({"text": "why"})
    assert_type(asked.with_config({"tags": ["a"]}).invoke({"text": "why"}, version="v2").value, Answer)


async def awaited_calls_that_are_right(config: RunnableConfig) -> None:
    app = StateGraph(State, Tenant).add_node(whole).compile()
    assert_type(await app.ainvoke(None, config, version="v2"), GraphOutput[State])
    async for chunk in app.astream({"total": 1, "log": []}, config, stream_mode=["custom"]):
        print(chunk)


def calls_that_are_wrong(config: RunnableConfig) -> None:
    app = StateGraph(State, Tenant).add_node(whole).compile()
    app.invoke({"totl": 1, "log": []}, config)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    app.invoke({"total": "1", "log": []}, config)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    app.stream({"text": "why"}, config)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    app.invoke(None, config, context=Other(3))  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    app.invoke(None, config, durability="syncronous")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    app.invoke(None, config, stream_modes="values")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    found = app.invoke(None, config, version="v2")
    found.value["totl"]  # type: ignore[typeddict-item]  # pyright: ignore[reportGeneralTypeIssues]
    asked = StateGraph(State, input_schema=Question, output_schema=Answer).compile()
    asked.invoke({"answer": "x"})  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]


async def awaited_calls_that_are_wrong(config: RunnableConfig) -> None:
    app = StateGraph(State, Tenant).add_node(whole).compile()
    await app.ainvoke({"totl": 1, "log": []}, config)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    async for _ in app.astream(None, config, context=Other(3)):  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
        pass
