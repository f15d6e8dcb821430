"""A subgraph with a memory of its own: it counts its calls over all runs of the thread; the parent does not know of it.

Run it with ``python examples/subgraph_memory.py``.
"""

from typing import TypedDict

from pregel import END, START, StateGraph
from pregel.checkpoint.memory import InMemorySaver


class Inner(TypedDict, total=False):
    question: str
    calls: int
    answer: str


class Outer(TypedDict, total=False):
    question: str
    answer: str


def reply(state: Inner) -> Inner:
    calls = state.get("calls", 0) + 1
    return {"calls": calls, "answer": f"answer {calls} to {state['question']}"}


inner = (
    StateGraph(Inner)
    .add_node("reply", reply)
    .add_edge(START, "reply")
    .add_edge("reply", END)
    .compile(checkpointer=True)
)
outer = StateGraph(Outer).add_node("expert", inner).add_edge(START, "expert").add_edge("expert", END)
graph = outer.compile(checkpointer=InMemorySaver())


def main() -> None:
    config = {"configurable": {"thread_id": "one"}}
    for question in ("why", "how"):
        print(graph.invoke({"question": question}, config)["answer"])
    print("another thread:", graph.invoke({"question": "why"}, {"configurable": {"thread_id": "two"}})["answer"])
    print("the parent knows:", sorted(graph.get_state(config).values))


if __name__ == "__main__":
    main()
