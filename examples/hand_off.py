"""Two agents in one graph: the first hands the conversation over to the second by a tool.

Run it with ``python examples/hand_off.py``. It needs no key and no network: the models follow scripts.
"""

from pregel import Command, StateGraph
from pregel.agents import AgentState, ScriptedModel, ToolRuntime, create_agent, tool
from pregel.agents.models import call_tool
from pregel.constants import END, START
from pregel.messages import ToolMessage


class Desk(AgentState):
    """The conversation, and who has it."""

    active: str


@tool
def to_refunds(order: str, runtime: ToolRuntime) -> Command:
    """Hand the conversation over to the refunds desk."""
    told = ToolMessage(f"The refunds desk takes over order {order}.", tool_call_id=runtime.tool_call_id)
    # The parent has not seen what this agent said: its messages go along, and join by id.
    history = [*runtime.state["messages"], told]
    return Command(graph=Command.PARENT, goto="refunds", update={"active": "refunds", "messages": history})


@tool
def refund(order: str) -> str:
    """Refund an order."""
    return f"refunded {order}"


def build():
    front = create_agent(ScriptedModel([call_tool("to_refunds", {"order": "A1"})]), [to_refunds], name="front")
    refunds = create_agent(
        ScriptedModel([call_tool("refund", {"order": "A1"}), "Your money is on its way."]), [refund], name="refunds"
    )
    graph = StateGraph(Desk)
    graph.add_node("front", front, destinations=("refunds", END))
    graph.add_node("refunds", refunds)
    graph.add_edge(START, "front")
    return graph.compile()


def main() -> None:
    result = build().invoke({"messages": "I want my money back for order A1", "active": "front"})
    print("with:", result["active"])
    for message in result["messages"]:
        calls = [call["name"] for call in getattr(message, "tool_calls", [])]
        print(f"{message.name or message.type}: {message.text or calls}")


if __name__ == "__main__":
    main()
