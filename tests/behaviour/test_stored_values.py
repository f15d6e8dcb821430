"""What a thread keeps of the values in its state: classes of the schema, errors as text, and nothing in clear."""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, TypedDict

import attrs
import numpy as np
import pytest
from pydantic import BaseModel, SecretStr

from pregel import END, START, Command, StateGraph, interrupt
from pregel.channels import DeltaChannel
from pregel.checkpoint.base import BaseCheckpointSaver
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.serde.encrypted import DecryptionError, EncryptedSerializer
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import SerializationError

from .conftest import Runner

pytest.importorskip("cryptography")


@dataclass(frozen=True)
class Line:
    what: str
    price: Decimal


@attrs.define
class Customer:
    name: str


class Reference(str):
    pass


class Login(BaseModel):
    user: str
    password: SecretStr


class Order(TypedDict, total=False):
    lines: tuple[Line, ...]
    customer: Customer
    reference: Reference
    login: Login
    weights: Any


def one_node(node: Any, schema: Any = Order) -> StateGraph[Any, Any, Any, Any]:
    return StateGraph(schema).add_node("node", node).add_edge(START, "node").add_edge("node", END)


def test_classes_that_the_schema_mentions_come_back_from_the_store(
    run: Runner, saver: BaseCheckpointSaver[Any], thread: Any
) -> None:
    order = {
        "lines": (Line("tea", Decimal("1.10")),),
        "customer": Customer("Ada"),
        "reference": Reference("r-1"),
        "weights": np.array([1.5, 2]),
    }
    app = one_node(lambda state: order).compile(checkpointer=saver)
    run.invoke(app, {"reference": Reference("r-0")}, thread("t"))

    values = run.state(app, thread("t")).values

    assert values.pop("weights").tolist() == [1.5, 2]
    assert {key: order[key] for key in values} == values
    assert {key: type(order[key]) for key in values} == {key: type(value) for key, value in values.items()}


def test_a_class_that_nothing_mentions_is_refused_where_it_was_written(
    run: Runner, saver: BaseCheckpointSaver[Any], thread: Any
) -> None:
    @dataclass
    class Stray:
        a: int

    app = one_node(lambda state: {"weights": [1, {"k": Stray(1)}]}).compile(checkpointer=saver)

    with pytest.raises(SerializationError, match=r"cannot store .*\[1\]\['k'\]: the class .*Stray") as refused:
        run.invoke(app, {}, thread("t"))

    assert "register_types([Stray])" in refused.value.fix


def test_an_error_is_stored_as_text_with_its_type(run: Runner, saver: BaseCheckpointSaver[Any], thread: Any) -> None:
    def failing(state: Any) -> Any:
        raise ValueError("boom", 1)

    app = one_node(failing).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="boom"):
        run.invoke(app, {"weights": 1}, thread("t"))

    (task,) = run.state(app, thread("t")).tasks

    assert "ValueError('boom', 1)" == task.error


# -- encrypted ---------------------------------------------------------------------------------------------------------

OLD, NEW = b"o" * 32, b"n" * 32


def asking(state: Any) -> Any:
    answer = interrupt({"question": "SECRET-question"})
    return {"customer": Customer(f"SECRET-{answer}"), "login": Login(user="u", password=SecretStr("SECRET-pw"))}


def test_an_encrypted_thread_runs_on_and_leaves_no_value_in_clear(run: Runner, tmp_path: Path, thread: Any) -> None:
    path = tmp_path / "threads.db"
    serde = EncryptedSerializer.from_keys({"one": OLD}, require_encrypted=True)
    with SqliteSaver.from_conn_string(str(path), serde=serde) as saver:
        app = one_node(asking).compile(checkpointer=saver)
        run.invoke(app, {"reference": Reference("SECRET-reference")}, thread("t"))
        run.invoke(app, Command(resume="SECRET-answer"), thread("t"))

        values = run.state(app, thread("t")).values

    assert "SECRET-pw" == values["login"].password.get_secret_value()
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("threads.db*"))
    assert [] == re.findall(rb"SECRET[-\w]*", stored)


def test_a_thread_goes_on_under_a_new_key(run: Runner, thread: Any) -> None:
    saver: InMemorySaver = InMemorySaver(serde=EncryptedSerializer.from_keys({"one": OLD}))
    app = one_node(asking).compile(checkpointer=saver)
    run.invoke(app, {"weights": 1}, thread("t"))

    saver.serde = EncryptedSerializer.from_keys({"two": NEW, "one": OLD})

    assert Customer("SECRET-yes") == run.invoke(app, Command(resume="yes"), thread("t"))["customer"]
    assert 1 == run.state(app, thread("t")).values["weights"]


def test_without_its_key_a_thread_is_a_named_error(run: Runner, thread: Any) -> None:
    saver: InMemorySaver = InMemorySaver(serde=EncryptedSerializer.from_keys({"one": OLD}))
    app = one_node(asking).compile(checkpointer=saver)
    run.invoke(app, {"weights": 1}, thread("t"))

    saver.serde = EncryptedSerializer.from_keys({"two": NEW})

    with pytest.raises(DecryptionError, match="with the key 'one'"):
        run.state(app, thread("t"))


def folded(value: dict[str, Any], writes: list[dict[str, Any]]) -> dict[str, Any]:
    for write in writes:
        value = {**value, **write}
    return value


class Measured(TypedDict, total=False):
    found: Annotated[dict[str, Any], DeltaChannel(folded)]
    log: Annotated[list[str], operator.add]
    n: int


def measuring(state: Measured) -> Measured:
    n = state.get("n", 0) + 1
    return {"n": n, "found": {f"k{n}": np.full(3, math.nan)}, "log": [f"{n:0200}"]}


@pytest.mark.parametrize("cipher", [True, False])
def test_values_that_are_not_equal_to_themselves_are_compared_in_clear(run: Runner, cipher: bool, thread: Any) -> None:
    serde = EncryptedSerializer.from_keys({"one": OLD}) if cipher else None
    saver = InMemorySaver(serde=serde)
    graph = StateGraph(Measured).add_node("measure", measuring).add_edge(START, "measure")
    graph.add_conditional_edges("measure", lambda state: "measure" if state["n"] < 40 else END, ["measure", END])
    app = graph.compile(checkpointer=saver)

    run.invoke(app, {}, thread("t"))

    values = run.state(app, thread("t")).values
    assert ([f"k{n}" for n in range(1, 41)], 40) == ([*values["found"]], len(values["log"]))
    assert [] == saver.verify("t", channels=app.channels)
    assert [] == saver.verify("t")
