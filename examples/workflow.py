"""A workflow as a function. Its first run dies in the middle; the second one continues with what was stored.

Run it with ``python examples/workflow.py``.
"""

import tempfile
from pathlib import Path

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.func import entrypoint, task

CONFIG = {"configurable": {"thread_id": "report-7"}}
CALLS: list[str] = []
POWER = {"on": False}


@task
def fetch(source: str) -> str:
    CALLS.append(source)
    return f"data of {source}"


@task
def publish(parts: list[str]) -> str:
    CALLS.append("publish")
    if not POWER["on"]:
        raise RuntimeError("the printer is off")
    return f"published {len(parts)} parts"


def build(saver: SqliteSaver):
    @entrypoint(checkpointer=saver)
    def report(sources: list[str]) -> str:
        running = [fetch(source) for source in sources]  # side by side
        return publish([one.result() for one in running]).result()

    return report


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "threads.db")
        with SqliteSaver.from_conn_string(path) as saver:
            try:
                build(saver).invoke(["sales", "stock"], CONFIG)
            except RuntimeError as error:
                print("stopped:", error)
        POWER["on"] = True
        with SqliteSaver.from_conn_string(path) as saver:  # the next process
            print(build(saver).invoke(None, CONFIG))
    print("fetched once each:", sorted(CALLS) == ["publish", "publish", "sales", "stock"])


if __name__ == "__main__":
    main()
