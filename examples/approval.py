"""An agent asks before it pays. The process may end between the question and the answer: the thread is in a file.

Run it with ``python examples/approval.py``. It needs no key and no network: the model follows a script.
"""

import tempfile
from pathlib import Path

from pregel import Command
from pregel.agents import ScriptedModel, ToolRuntime, create_agent, tool
from pregel.agents.middleware import HumanInTheLoopMiddleware
from pregel.agents.models import call_tool
from pregel.checkpoint.sqlite import SqliteSaver

CONFIG = {"configurable": {"thread_id": "invoice-17"}}


@tool
def pay(invoice: str, amount: int, runtime: ToolRuntime) -> str:
    """Pay an invoice."""
    # The key is the same when this call runs again after a crash: a payment provider takes it to pay only once.
    return f"paid {amount} for {invoice} (key {runtime.idempotency_key[:6]}...)"


def build(saver: SqliteSaver):
    model = ScriptedModel(
        [call_tool("pay", {"invoice": "17", "amount": 900}), lambda request: f"Done: {request.messages[-1].text}"],
        by_turn=True,
    )
    approval = HumanInTheLoopMiddleware({"pay": {"allowed_decisions": ["approve", "edit", "reject"]}})
    return create_agent(model, [pay], middleware=[approval], checkpointer=saver)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "threads.db")
        with SqliteSaver.from_conn_string(path) as saver:
            paused = build(saver).invoke({"messages": "Pay invoice 17"}, CONFIG)
            (question,) = paused["__interrupt__"]
            print("asked:", question.value["action_requests"][0]["args"])

        with SqliteSaver.from_conn_string(path) as saver:  # another process, another day
            edited = {"type": "edit", "edited_action": {"name": "pay", "args": {"invoice": "17", "amount": 90}}}
            result = build(saver).invoke(Command(resume={"decisions": [edited]}), CONFIG)
            for message in result["messages"]:
                print(f"{message.type}: {message.text}")


if __name__ == "__main__":
    main()
