"""Time travel: a wrong value went into a run. Go back to before it was used, mend it, and let the rest run again.

Run it with ``python examples/repair.py``. The first outcome stays in the history, beside the new one.
"""

from typing import TypedDict

from pregel import END, START, StateGraph
from pregel.checkpoint.memory import InMemorySaver


class Invoice(TypedDict, total=False):
    net: int
    rate: int
    total: int


def tax(state: Invoice) -> Invoice:
    return {"rate": 91}  # a typing error: 19 was meant


def add_up(state: Invoice) -> Invoice:
    return {"total": state["net"] * (100 + state["rate"]) // 100}


builder = StateGraph(Invoice).add_node("tax", tax).add_node("add_up", add_up)
builder.add_edge(START, "tax").add_edge("tax", "add_up").add_edge("add_up", END)
graph = builder.compile(checkpointer=InMemorySaver())


def main() -> None:
    config = {"configurable": {"thread_id": "invoice"}}
    print("wrong:", graph.invoke({"net": 200}, config)["total"])
    before = next(state for state in graph.get_state_history(config) if state.next == ("add_up",))
    mended = graph.update_state(before.config, {"rate": 19})
    print("mended:", graph.invoke(None, mended)["total"])
    totals = [state.values["total"] for state in graph.get_state_history(config) if "total" in state.values]
    print("both are in the history:", totals)


if __name__ == "__main__":
    main()
