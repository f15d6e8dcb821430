"""Small workflows that die where they are told.

``python -m tests.kill.works DIRECTORY NAME``: begins the workflow of this name on its thread, or goes on with it, and
prints what it came to. What it does outside leaves a line in ``DIRECTORY/log``. It dies once, at the point that KILL_AT
names.
"""

from __future__ import annotations

import json
import operator
import random
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import uuid4

from pregel import START, Command, Runtime, Send, StateGraph, interrupt
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.func import entrypoint
from tests.kill.outside import Outside

CHILDREN = 20


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


class Child(Log, total=False):
    number: int


def provision(outside: Outside, saver: Any) -> Any:
    """A database that is made by an operation which takes three polls."""
    operations = outside.directory / "operations"
    operations.mkdir(exist_ok=True)

    def submit(key: str) -> Path:
        outside.note("submitted")
        operation = operations / key
        if not operation.exists():
            operation.write_text("0")
            outside.note("database created")
        return operation

    def make(state: Log, runtime: Runtime[Any]) -> Log:
        operation = submit(runtime.idempotency_key)
        outside.die_at("accepted")
        while (polls := int(operation.read_text())) < 3:
            operation.write_text(str(polls + 1))
            outside.note("polled")
            outside.die_at("polled")
        return {"log": [operation.name]}

    def announce(state: Log) -> Log:
        outside.die_at("recorded")
        return {"log": ["announced"]}

    return StateGraph(Log).add_sequence([make, announce]).add_edge(START, "make").compile(checkpointer=saver)


class OtherRequest(ValueError):
    """The ledger knows this key with another request."""


def post(outside: Outside, saver: Any, *, immutable: bool = True) -> Any:
    """A posting of what something costs now, under a key; the ledger refuses another request under a known key."""

    def accept(key: str, request: Any) -> None:
        print_, known = sha256(json.dumps(request).encode()).hexdigest(), outside.directory / f"posting-{key}"
        if known.exists() and known.read_text() != print_:
            raise OtherRequest("another request under this key")
        known.write_text(print_)
        outside.once(key, f"posted {request['amount']}")

    def price() -> Any:
        return {"amount": int((outside.directory / "price").read_text())}

    def pay(state: Log, runtime: Runtime[Any]) -> Log:
        request = runtime.step("request", price) if immutable else price()
        try:
            accept(runtime.idempotency_key, request)
        except OtherRequest as refused:
            return {"log": [f"refused: {refused}"]}
        outside.die_at("posted")
        return {"log": [f"posted {request['amount']}"]}

    return StateGraph(Log).add_node("pay", pay).add_edge(START, "pay").compile(checkpointer=saver)


def careless_post(outside: Outside, saver: Any) -> Any:
    """The same, with a request that is made anew each time."""
    return post(outside, saver, immutable=False)


def sends(outside: Outside, saver: Any) -> Any:
    """Three tasks, one at a time."""

    def is_recorded(number: str) -> bool:
        found = saver.get_tuple({"configurable": {"thread_id": "work"}})
        return any(value == [number] for _, _, value in found.pending_writes)

    def work(child: Child, runtime: Runtime[Any]) -> Log:
        info = runtime.execution_info
        assert info is not None
        outside.note(f"{child['number']} {info.task_id} {info.node_attempt}")
        while child["number"] == 1 and not is_recorded("0"):  # it ended, and is being stored while this one runs
            pass
        outside.die_at(f"in {child['number']}")
        return {"log": [str(child["number"])]}

    graph = StateGraph(Log).add_node("work", work)
    graph.add_conditional_edges(START, lambda _: [Send("work", {"number": n}) for n in range(3)], ["work"])
    return graph.compile(checkpointer=saver).with_config(max_concurrency=1)


def draws(outside: Outside, saver: Any) -> Any:
    """A workflow that reads the clock, draws an id and a number, and dies after it has said which."""

    @entrypoint(checkpointer=saver)
    def flow(given: Any, *, runtime: Runtime[Any]) -> list[str]:
        now = runtime.step("now", time.time)
        name = runtime.step("name", uuid4)
        dice = runtime.step("dice", random.random)
        outside.note(f"drew {now!r} {name!r} {dice!r}")
        outside.die_at("drawn")
        return [repr(now), repr(name), repr(dice)]

    return flow


def children(outside: Outside, saver: Any) -> Any:
    """Children that each prepare something, wait for a person, and post it."""

    def prepare(child: Child) -> Log:
        outside.note(f"prepared {child['number']}")
        return {"log": []}

    def ask(child: Child) -> Log:
        return {"log": [f"{child['number']} {interrupt(child['number'])}"]}

    def publish(child: Child, runtime: Runtime[Any]) -> Log:
        outside.once(runtime.idempotency_key, f"posted {child['number']}")
        outside.die_at(f"posted {child['number']}")
        return {"log": []}

    child = StateGraph(Child, output_schema=Log).add_sequence([prepare, ask, publish]).add_edge(START, "prepare")
    graph = StateGraph(Log).add_node("child", child.compile())
    numbers = range(CHILDREN)
    graph.add_conditional_edges(START, lambda _: [Send("child", {"number": n, "log": []}) for n in numbers], ["child"])
    return graph.compile(checkpointer=saver)


PROGRAMS: dict[str, Callable[[Outside, Any], Any]] = {
    program.__name__: program for program in (provision, post, careless_post, sends, draws, children)
}


def main(directory: str, name: str, *answered: str) -> None:
    """Begin or go on; `answered` are the numbers of the children that a person says yes to."""
    outside, config = Outside(Path(directory)), {"configurable": {"thread_id": "work"}}
    with SqliteSaver.from_conn_string(f"{directory}/threads.db") as saver:
        app = PROGRAMS[name](outside, saver)
        state = app.get_state(config)
        given: Any = None if state.created_at else {"log": []}
        if answered:
            numbers = set(map(int, answered))
            given = Command(resume={one.id: "yes" for one in state.interrupts if one.value in numbers})
        app.invoke(given, config)
        state = app.get_state(config)
        values = state.values["log"] if isinstance(state.values, dict) else state.values
        print(json.dumps({"log": values, "asked": sorted(one.value for one in state.interrupts)}), flush=True)
        outside.die_at("waiting")


if __name__ == "__main__":
    main(*sys.argv[1:])
