"""A long conversation in a file: what it costs a message, and how to forget its history but not its end.

Run it with ``python examples/long_conversation.py``. A turn stores what is new in the list of messages, not the list.
"""

import os
import tempfile

from pregel import END, START, MessagesState, StateGraph
from pregel.checkpoint.sqlite import SqliteSaver

CONFIG = {"configurable": {"thread_id": "chat"}}
TURNS = 100


def answer(state: MessagesState) -> dict:
    return {"messages": [("assistant", f"You said: {state['messages'][-1].content[:20]}")]}


builder = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").add_edge("answer", END)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "chat.db")
        with SqliteSaver.from_conn_string(path) as saver:
            graph = builder.compile(checkpointer=saver)
            for turn in range(TURNS):
                graph.invoke({"messages": [("user", f"message {turn} " + "x" * 280)]}, CONFIG)
            messages = graph.get_state(CONFIG).values["messages"]
            history = len(list(graph.get_state_history(CONFIG)))
            graph.threads.prune(["chat"])
            left = len(list(graph.get_state_history(CONFIG)))
            kept = graph.get_state(CONFIG).values["messages"]
        size = sum(os.path.getsize(os.path.join(directory, name)) for name in os.listdir(directory))
    print(f"{len(messages)} messages in {history} checkpoints")
    print(f"after pruning: {len(kept)} messages in {left} checkpoint")
    print("under 4 kB a message:", size / len(messages) < 4000)


if __name__ == "__main__":
    main()
