"""A tool: its schema, its injected arguments, what it gives back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, create_model

from pregel.agents import ScriptedModel, ToolNode, create_agent, create_react_agent
from pregel.agents.tools import (
    InjectedState,
    InjectedToolArg,
    InjectedToolCallId,
    Tool,
    ToolException,
    ToolInvocationError,
    ToolRuntime,
    as_tool,
    tool,
)
from pregel.config import RunnableConfig
from pregel.errors import AsyncOnlyError, DefinitionError, InvalidInputError
from pregel.messages import AIMessage, ToolMessage
from pregel.runtime import Runtime
from pregel.types import Command


def call(name: str, id: str | None = "c1", **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": id, "type": "tool_call"}


class Point(BaseModel):
    x: int
    y: int = 0


@tool
def add(
    a: int, b: Annotated[int, "the other one"] = 2, *, scale: Annotated[float, Field(description="times")] = 1.0
) -> float:
    """Add two numbers."""
    return (a + b) * scale


def test_the_schema_comes_from_the_signature() -> None:
    assert {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "integer", "default": 2, "description": "the other one"},
            "scale": {"type": "number", "default": 1.0, "description": "times"},
        },
        "required": ["a"],
    } == add.parameters
    assert ("add", "Add two numbers.") == (add.name, add.description)


def test_plain_arguments_give_the_value_and_a_call_gives_the_message() -> None:
    assert 3 == add.invoke({"a": 1})
    assert ToolMessage("3.0", tool_call_id="c1", name="add") == add.invoke(call("add", a=1))
    assert 3 == asyncio.run(add.ainvoke({"a": "1"}))


def test_arguments_are_validated_objects() -> None:
    @tool
    def norm(point: Point, mode: Literal["l1", "l2"] = "l1") -> int:
        """A norm."""
        return abs(point.x) + abs(point.y)

    assert 3 == norm.invoke({"point": {"x": -3}})
    with pytest.raises(ToolInvocationError, match=r"point\.x: Field required"):
        norm.invoke({"point": {}})


def test_unknown_arguments_are_ignored() -> None:
    assert 3 == add.invoke({"a": 1, "nonsense": 1})


def test_names_that_pydantic_keeps_for_itself_are_fine() -> None:
    @tool
    def odd(schema: str, model_config: int, copy: int = 1, _hidden: int = 5) -> list[Any]:
        """Odd names."""
        return [schema, model_config, copy, _hidden]

    assert ["schema", "model_config", "copy", "_hidden"] == list(odd.args)
    assert ["s", 1, 1, 7] == odd.invoke({"schema": "s", "model_config": 1, "_hidden": 7})


def test_a_tool_without_a_description_is_refused() -> None:
    with pytest.raises(DefinitionError, match="no description"):
        tool(lambda a: a)


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        (42, "42"),
        ({"a": "é"}, '{"a": "é"}'),
        (None, "null"),
        (["x", "y"], ["x", "y"]),
        ([{"type": "text", "text": "t"}], [{"type": "text", "text": "t"}]),
        ([1, 2], "[1, 2]"),
        ([], "[]"),
    ],
)
def test_a_result_becomes_content(value: Any, content: Any) -> None:
    assert content == Tool(lambda: value, name="t", description="d").invoke(call("t")).content


def test_an_answer_that_the_tool_made_passes() -> None:
    command: Command[Any] = Command(update={"a": 1})

    assert command is Tool(lambda: command, name="t", description="d").invoke(call("t"))


def test_content_and_artifact() -> None:
    pair = Tool(lambda: ("seen", [1]), name="t", description="d", response_format="content_and_artifact")

    assert ToolMessage("seen", tool_call_id="c1", name="t", artifact=[1]) == pair.invoke(call("t"))
    assert "seen" == pair.invoke({})
    with pytest.raises(InvalidInputError, match="pair"):
        Tool(lambda: 1, name="t", description="d", response_format="content_and_artifact").invoke({})


def test_a_call_without_an_id_gives_the_value() -> None:
    assert 3 == add.invoke(call("add", None, a=1))


@pytest.mark.parametrize(
    ("handle", "content"), [(True, "no luck"), ("sorry", "sorry"), (lambda error: f"<{error.message}>", "<no luck>")]
)
def test_a_tool_exception_is_told_to_the_model(handle: Any, content: str) -> None:
    def fail() -> None:
        """Fails."""
        raise ToolException("no luck")

    message = Tool(fail, handle_tool_error=handle).invoke(call("fail"))

    assert (content, "error") == (message.content, message.status)
    with pytest.raises(ToolException):
        Tool(fail).invoke(call("fail"))


def test_an_async_tool_cannot_be_blocked_for() -> None:
    @tool
    async def later(a: int) -> int:
        """Later."""
        await asyncio.sleep(0)
        return a

    assert 1 == asyncio.run(later.ainvoke({"a": 1}))
    with pytest.raises(AsyncOnlyError, match="later"):
        later.invoke({"a": 1})


def test_injected_arguments_are_hidden_and_cannot_be_forged() -> None:
    @tool
    def look(
        what: str,
        id: Annotated[str, InjectedToolCallId],
        secret: Annotated[str, InjectedToolArg],
        config: RunnableConfig,
        runtime: ToolRuntime,
        color: Annotated[str, InjectedState("color")] = "none",
    ) -> list[Any]:
        """Look."""
        return [what, id, config.get("tags"), runtime.tool_call_id, color]

    assert ["what"] == list(look.args)
    with pytest.raises(InvalidInputError, match="id of its call"):
        look.invoke({"what": "w"})
    with pytest.raises(TypeError, match="secret"):
        look.invoke(call("look", what="w", id="forged", secret="forged"))


@pytest.mark.parametrize("kind", [Runtime, ToolRuntime])
def test_pydantic_takes_what_is_injected_as_a_field(kind: Any) -> None:
    """LangChain's `@tool` makes a model of all parameters of a function, the injected ones too."""
    model = create_model("Arguments", __config__=ConfigDict(arbitrary_types_allowed=True), runtime=(kind, ...))
    injected = kind()

    assert injected is vars(model(runtime=injected))["runtime"]


def test_a_text_fills_the_only_argument() -> None:
    assert "ab" == Tool(lambda text: text * 1, name="t", description="d").invoke("ab")
    with pytest.raises(InvalidInputError, match="got a text"):
        add.invoke("1")


def test_google_docstrings_describe_the_arguments() -> None:
    @tool(parse_docstring=True)
    def find(query: str, top: int = 3) -> str:
        """Find things.

        Args:
            query: what to look for,
                in words.
            top (int): how many.

        Returns:
            Nothing much.
        """
        return query

    assert ("Find things.", "what to look for, in words.", "how many.") == (
        find.description,
        find.args["query"]["description"],
        find.args["top"]["description"],
    )
    with pytest.raises(DefinitionError, match="'quary'"):

        @tool(parse_docstring=True)
        def lost(query: str) -> str:
            """Find.

            Args:
                quary: typo.
            """
            return query


def test_a_class_may_be_a_tool() -> None:
    class Shout(Tool):
        """Shouts."""

        name = "shout"

        def _run(self, text: str) -> str:
            return text.upper()

        async def _arun(self, text: str) -> str:
            return f"{text.upper()}!"

    assert ("A", "A!") == (Shout().invoke({"text": "a"}), asyncio.run(Shout().ainvoke({"text": "a"})))
    assert "Shouts." == Shout().description


def test_a_schema_may_be_given() -> None:
    class Query(BaseModel):
        """Asks."""

        text: str
        state: Annotated[dict[str, Any], InjectedState] = {}

    @tool(args_schema=Query)
    def ask(text: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
        return text

    assert (["text"], "Asks.") == (list(ask.args), ask.description)

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert "x" == Tool(lambda n: n, name="raw", description="d", args_schema=schema).invoke({"n": "x"})


def test_a_sync_tool_does_not_hold_up_the_loop() -> None:
    both_are_here = threading.Barrier(2, timeout=60)

    @tool
    def meet() -> int:
        """Wait for the other one."""
        return both_are_here.wait()

    async def both() -> list[int]:
        return list(await asyncio.gather(meet.ainvoke({}), meet.ainvoke({})))

    assert [0, 1] == sorted(asyncio.run(both()))


@dataclass
class Theirs:
    """The shape of LangChain's tools."""

    name: str = "double"
    description: str = "Doubles."
    args_schema: Any = None
    return_direct: bool = True

    def func(self, n: int, state: Annotated[Any, InjectedState]) -> int:
        return n * 2

    def invoke(self, given: dict[str, Any], config: Any = None) -> Any:
        args = given["args"]
        return ToolMessage(str(args["n"] * args["state"]["by"]), tool_call_id=given["id"])


def test_a_foreign_tool_is_taken_by_its_shape() -> None:
    theirs = Theirs(args_schema={"type": "object", "properties": {"n": {"type": "integer"}}})
    ours = as_tool(theirs)

    flow = ours.call_flow(call("double", n=2, state="forged"), ToolRuntime(state={"by": 3}))
    request = next(flow)
    with pytest.raises(StopIteration) as stop:
        flow.send(request.call())

    assert ("double", True, ["n"], "6") == (ours.name, ours.return_direct, list(ours.args), stop.value.value.content)


def search(query: str) -> str:
    """Search the shop."""
    return query


def other_search() -> Any:
    @tool("search")
    def look(query: str) -> str:
        """Search the web."""
        return query

    return look


MAKERS = [
    lambda tools: ToolNode(tools),
    lambda tools: create_agent(ScriptedModel(["hi"]), tools),
    lambda tools: create_react_agent(ScriptedModel(["hi"]), tools),
]
BAD_TOOLS = {
    "two of one name": ([search, other_search()], "Two tools are called 'search'.", "tell them apart"),
    "a tool in place of a list": (other_search(), "is no list of tools", "in a list"),
    "a text in place of a list": ("search", "'search' is no list of tools", "in a list"),
    "a class in place of a tool": ([Tool], "<class 'pregel.agents.tools.base.Tool'> is a class", "Give an instance"),
    "no tool": ([3], "3 is no tool", "Give a function"),
}


@pytest.mark.parametrize("make", MAKERS, ids=["ToolNode", "create_agent", "create_react_agent"])
@pytest.mark.parametrize("case", list(BAD_TOOLS))
def test_what_is_no_list_of_tools_is_named(case: str, make: Callable[[Any], object]) -> None:
    tools, problem, fix = BAD_TOOLS[case]

    with pytest.raises(DefinitionError) as error:
        make(tools)

    assert problem in error.value.message
    assert fix in error.value.fix


@pytest.mark.parametrize("make", MAKERS, ids=["ToolNode", "create_agent", "create_react_agent"])
def test_the_same_tool_twice_is_one_tool(make: Callable[[Any], object]) -> None:
    make([search, search])


# -- a ToolNode that is called by hand ---------------------------------------------------------------------------------


def asking(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[call(name, **args)])


def test_a_tool_node_may_be_called_by_hand() -> None:
    node = ToolNode([add])

    assert "6.0" == node.invoke({"messages": [asking("add", a=4)]})["messages"][0].content
    assert "6.0" == asyncio.run(node.ainvoke([asking("add", a=4)]))[0].content
    assert "6.0" == node.invoke([call("add", a=4)])["messages"][0].content


def test_a_list_of_nothing_but_texts_is_told_as_data() -> None:
    def days() -> list[str]:
        """The days."""
        return ["月曜日", "火曜日"]

    result = ToolNode([days]).invoke({"messages": [asking("days")]})

    assert '["月曜日", "火曜日"]' == result["messages"][0].content


def test_a_command_to_the_parent_may_stand_beside_the_answer() -> None:
    def leave() -> list[Any]:
        """Leave."""
        return [Command(graph=Command.PARENT, goto="other"), ToolMessage("left", tool_call_id="c1")]

    command, update = ToolNode([leave]).invoke({"messages": [asking("leave")]})

    assert ("__parent__", "left") == (command.graph, update["messages"][0].content)


def test_beside_a_command_the_results_of_a_list_of_messages_are_lists() -> None:
    def go() -> Command[Any]:
        """Go."""
        return Command(goto="other", update=[ToolMessage("gone", tool_call_id="c1")])

    both = AIMessage("", tool_calls=[call("go"), call("add", "c2", a=4)])
    command, update = ToolNode([go, add]).invoke([both])

    assert ("other", ["6.0"]) == (command.goto, [message.content for message in update])


def test_the_state_that_a_wrap_hook_puts_in_is_what_the_tool_sees() -> None:
    def look(state: Annotated[Any, InjectedState], runtime: ToolRuntime) -> str:
        """Look."""
        return f"{state['is']} {runtime.state['is']}"

    def wrap(request: Any, handler: Any) -> Any:
        return handler(request.override(state={"is": "new"}, runtime=request.runtime))

    node = ToolNode([look], wrap_tool_call=wrap)

    assert "new new" == node.invoke({"messages": [asking("look")], "is": "old"})["messages"][0].content
