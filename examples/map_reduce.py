"""Map-reduce over documents: one task a document, as many at once as you allow, and a summary when all are in.

Run it with ``python examples/map_reduce.py``. A document that fails is tried again alone; the others do not run twice.
"""

import operator
from typing import Annotated, TypedDict

from pregel import END, START, RetryPolicy, Send, StateGraph
from pregel.checkpoint.memory import InMemorySaver


class State(TypedDict):
    documents: list[str]
    counts: Annotated[list[tuple[str, int]], operator.add]
    report: str


class Document(TypedDict):
    text: str


attempts = {"flaky": 0}


def spread(state: State) -> list[Send]:
    return [Send("count", Document(text=text)) for text in state["documents"]]


def count(document: Document) -> dict:
    if document["text"].startswith("flaky"):
        attempts["flaky"] += 1
        if attempts["flaky"] == 1:
            raise ConnectionError("the reader was away")
    return {"counts": [(document["text"].split()[0], len(document["text"].split()))]}


def report(state: State) -> dict:
    total = sum(number for _, number in state["counts"])
    return {"report": f"{total} words in {len(state['counts'])} documents"}


builder = StateGraph(State)
builder.add_node("count", count, retry_policy=RetryPolicy(initial_interval=0.01, jitter=False))
builder.add_node("report", report, defer=True)
builder.add_conditional_edges(START, spread, ["count"])
builder.add_edge("count", "report")
builder.add_edge("report", END)
graph = builder.compile(checkpointer=InMemorySaver())


def main() -> None:
    documents = ["one two three", "flaky four five six", "seven"]
    config = {"configurable": {"thread_id": "words"}, "max_concurrency": 2}
    result = graph.invoke({"documents": documents}, config)
    print(result["report"], "after", attempts["flaky"], "attempts at the flaky one")
    print("in the order of the documents:", [name for name, _ in result["counts"]])


if __name__ == "__main__":
    main()
