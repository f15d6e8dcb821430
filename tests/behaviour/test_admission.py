"""A batch of invoices: what the input schema refuses is refused at admission, before anything runs or is written."""

from __future__ import annotations

import operator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, ValidationError, field_validator

from pregel.graph import START, StateGraph
from pregel.types import Send

from .conftest import Runner
from .marks import Saver, Thread


class Invoice(BaseModel):
    key: str
    amount: int


class Batch(BaseModel):
    """One to eight invoices, each key once."""

    invoices: Annotated[list[Invoice], Field(min_length=1, max_length=8)]

    @field_validator("invoices")
    @classmethod
    def _each_key_once(cls, invoices: list[Invoice]) -> list[Invoice]:
        keys = [invoice.key for invoice in invoices]
        if len(set(keys)) < len(keys):
            raise ValueError("two invoices have one key")
        return invoices


class Posted(BaseModel):
    invoices: list[Invoice] = []
    posted: Annotated[list[str], operator.add] = []


def batch(*keys: str) -> dict[str, Any]:
    return {"invoices": [{"key": key, "amount": 100} for key in keys]}


def posting(posted: list[str]) -> StateGraph[Posted, None, Batch, Posted]:
    """A graph that posts each invoice of a batch in a task of its own."""

    def post(invoice: Invoice) -> dict[str, Any]:
        posted.append(invoice.key)
        return {"posted": [invoice.key]}

    graph = StateGraph(Posted, input_schema=Batch)
    graph.add_node("post", post)
    return graph.add_conditional_edges(
        START, lambda state: [Send("post", invoice) for invoice in state.invoices], ["post"]
    )


NINE = [f"inv-{n}" for n in range(9)]
REFUSED = {
    "none": (batch(), "at least 1 item"),
    "more than eight": (batch(*NINE), "at most 8 items"),
    "one key twice": (batch("inv-1", "inv-2", "inv-1"), "two invoices have one key"),
}


@pytest.mark.acceptance("S2-1")
@pytest.mark.parametrize("case", list(REFUSED))
def test_a_batch_that_is_wrong_is_refused_at_admission(run: Runner, saver: Saver, thread: Thread, case: str) -> None:
    posted: list[str] = []
    app = posting(posted).compile(checkpointer=saver)
    given, problem = REFUSED[case]

    with pytest.raises(ValidationError, match=problem):
        run.invoke(app, given, thread("1"))

    assert ([], []) == (posted, run.history(app, thread("1")))


@pytest.mark.acceptance("S2-1")
@pytest.mark.parametrize("size", [1, 8])
def test_a_batch_of_one_to_eight_invoices_is_posted(run: Runner, saver: Saver, thread: Thread, size: int) -> None:
    posted: list[str] = []
    app = posting(posted).compile(checkpointer=saver)

    result = run.invoke(app, batch(*NINE[:size]), thread("1"))

    assert (NINE[:size], NINE[:size]) == (sorted(posted), result["posted"])
