"""Graphs built by hand from channels and nodes: Pregel and NodeBuilder without StateGraph."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from pregel import NodeBuilder, Pregel
from pregel.channels import BinaryOperatorAggregate, EphemeralValue, LastValue, Topic
from pregel.engine.node import ChannelWriteEntry
from pregel.errors import EmptyInputError
from pregel.types import Command, RetryPolicy, interrupt

from .conftest import Runner
from .marks import Saver, Thread


def upper(value: str) -> str:
    return value.upper()


def pipeline(**options: Any) -> Pregel:
    """in -> first -> mid -> second -> out"""
    first = NodeBuilder().subscribe_only("in").do(upper).write_to("mid")
    second = NodeBuilder().subscribe_only("mid").do(lambda value: value + "!").write_to("out")
    return Pregel(
        nodes={"first": first, "second": second},
        channels={"in": EphemeralValue(str), "mid": LastValue(str), "out": LastValue(str)},
        input_channels="in",
        output_channels="out",
        **options,
    )


def test_bare_channels_take_and_give_bare_values(run: Runner) -> None:
    assert run.invoke(pipeline(), "a") == "A!"


def test_a_raw_graph_streams_the_values_of_all_its_channels_after_each_step(run: Runner) -> None:
    assert run.stream(pipeline(), "a") == [{"mid": "A"}, {"mid": "A", "out": "A!"}]
    assert run.stream(pipeline(stream_channels="out"), "a") == ["A!"]
    assert run.stream(pipeline(), "a", stream_mode="updates", output_keys=["mid", "out"]) == [
        {"first": {"mid": "A"}},
        {"second": {"out": "A!"}},
    ]


def test_a_raw_graph_is_stored_from_its_input_on(run: Runner, saver: Saver, thread: Thread) -> None:
    app = pipeline(checkpointer=saver)

    run.invoke(app, "a", thread("1"))

    history = run.history(app, thread("1"))
    assert [(entry.metadata["source"], entry.metadata["step"], entry.next) for entry in reversed(history)] == [
        ("input", -1, ("first",)),
        ("loop", 0, ("second",)),
        ("loop", 1, ()),
    ]
    assert [entry.values for entry in reversed(history)] == [
        {"in": "a"},
        {"mid": "A"},
        {"mid": "A", "out": "A!"},
    ]
    assert run.invoke(app, "b", thread("1")) == "B!"


def test_a_dict_of_channels_is_read_and_only_some_of_them_wake(run: Runner) -> None:
    seen: list[Any] = []

    def node(values: dict[str, Any]) -> int:
        seen.append(dict(values))
        return int(sum(values.values()))

    builder = NodeBuilder().subscribe_to("a").subscribe_to("b", read=False).read_from("c").do(node).write_to("out")
    app = Pregel(
        nodes={"n": builder},
        channels={**{name: EphemeralValue(int) for name in "ab"}, "c": LastValue(int), "out": LastValue(int)},
        input_channels=["a", "b", "c"],
        output_channels=["out"],
    )

    assert run.invoke(app, {"a": 1, "b": 2, "c": 10}) == {"out": 11}
    assert run.invoke(app, {"b": 2, "c": 10}) == {"out": 10}
    assert run.invoke(app, {"c": 10}) is None
    assert seen == [{"a": 1, "c": 10}, {"c": 10}]


def test_an_input_of_several_channels_is_a_dict_with_one_of_them(run: Runner) -> None:
    app = Pregel(
        nodes={"n": NodeBuilder().subscribe_only("a").write_to("out")},
        channels={"a": EphemeralValue(int), "out": LastValue(int)},
        input_channels=["a"],
        output_channels=["out"],
    )

    with pytest.raises(TypeError, match="Expected a dict"):
        run.invoke(app, 1)
    with pytest.warns(UserWarning, match="none of the input channels"), pytest.raises(EmptyInputError):
        run.invoke(app, {"other": 1})


def test_actions_are_chained_and_writes_mapped(run: Runner) -> None:
    builder = (
        NodeBuilder()
        .subscribe_only("in")
        .do(lambda value: value + 1)
        .do(lambda value: value * 10)
        .write_to("out", ChannelWriteEntry("maybe", mapper=lambda value: value or None, skip_none=True))
        .write_to(fixed="constant", mapped=lambda value: -value)
    )
    names = ["out", "maybe", "fixed", "mapped"]
    app = Pregel(
        nodes={"n": builder},
        channels={"in": EphemeralValue(int), **{name: LastValue(Any) for name in names}},
        input_channels="in",
        output_channels=names,
    )

    assert run.invoke(app, 1) == {"out": 20, "maybe": 20, "fixed": "constant", "mapped": -20}
    assert run.invoke(app, -1) == {"out": 0, "fixed": "constant", "mapped": 0}


def test_a_mapper_that_raises_fails_its_node(run: Runner, saver: Saver, thread: Thread) -> None:
    def refuse(value: int) -> int:
        raise ValueError("mapper")

    app = Pregel(
        nodes={"n": NodeBuilder().subscribe_only("in").write_to(out=refuse)},
        channels={"in": EphemeralValue(int), "out": LastValue(int)},
        input_channels="in",
        output_channels="out",
        checkpointer=saver,
    )

    with pytest.raises(ValueError, match="mapper"):
        run.invoke(app, 1, thread("1"))

    (task,) = run.state(app, thread("1")).tasks
    assert (task.name, task.error) == ("n", "ValueError('mapper')")


def test_a_loop_over_a_channel_ends_when_nothing_is_written(run: Runner) -> None:
    entry = ChannelWriteEntry("value", skip_none=True)
    builder = NodeBuilder().subscribe_only("value").do(lambda v: v + v if len(v) < 10 else None).write_to(entry)
    app = Pregel(
        nodes={"double": builder},
        channels={"value": EphemeralValue(str), "all": Topic(str)},
        input_channels="value",
        output_channels="value",
    )

    assert run.invoke(app, "a") == "a" * 16


def test_two_writers_meet_in_a_reducer(run: Runner) -> None:
    app = Pregel(
        nodes={
            "one": NodeBuilder().subscribe_only("in").do(lambda v: v + 1).write_to("total"),
            "two": NodeBuilder().subscribe_only("in").do(lambda v: v + 2).write_to("total"),
        },
        channels={"in": EphemeralValue(int), "total": BinaryOperatorAggregate(int, operator.add)},
        input_channels="in",
        output_channels="total",
    )

    assert run.invoke(app, 10) == 23


def test_a_raw_node_asks_retries_and_stops(run: Runner, saver: Saver, thread: Thread) -> None:
    trouble: list[Exception] = [ValueError("again")]

    def node(value: str) -> str:
        if trouble:
            raise trouble.pop()
        return f"{value} {interrupt('?')}"

    now = RetryPolicy(initial_interval=0.0, jitter=False, retry_on=ValueError)
    app = Pregel(
        nodes={"n": NodeBuilder().subscribe_only("in").do(node).write_to("out").add_retry_policies(now)},
        channels={"in": EphemeralValue(str), "out": LastValue(str)},
        input_channels="in",
        output_channels="out",
        checkpointer=saver,
        interrupt_after_nodes=["n"],
    )

    paused = run.invoke(app, "a", thread("1"))

    assert [question.value for question in paused["__interrupt__"]] == ["?"]
    assert run.invoke(app, Command(resume="yes"), thread("1")) == "a yes"


# -- definition --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "build",
    [
        lambda: NodeBuilder().subscribe_to("a").subscribe_only("b"),
        lambda: NodeBuilder().subscribe_only("a").subscribe_to("b"),
        lambda: NodeBuilder().subscribe_only("a").subscribe_only("b"),
        lambda: NodeBuilder().subscribe_only("a").read_from("b"),
    ],
)
def test_a_bare_subscription_stands_alone(build: Any) -> None:
    with pytest.raises(ValueError):
        build()


def node(channel: str = "in") -> NodeBuilder:
    return NodeBuilder().subscribe_only(channel).write_to("out")


@pytest.mark.parametrize(
    ("changed", "error", "says"),
    [
        ({"nodes": {"__input__": node()}}, ValueError, "reserved"),
        ({"channels": {"in": LastValue(int), "out": LastValue(int), "__error__": LastValue(int)}}, ValueError, "res"),
        (
            {"channels": {"in": LastValue(int), "out": LastValue(int), "__pregel_tasks": LastValue(int)}},
            ValueError,
            None,
        ),
        ({"nodes": {"n": node("nowhere")}}, ValueError, "nowhere"),
        ({"nodes": {"n": NodeBuilder().subscribe_to("in").read_from("nowhere")}}, ValueError, "nowhere"),
        ({"input_channels": "nowhere"}, ValueError, "nowhere"),
        ({"input_channels": "out"}, ValueError, "out"),
        ({"output_channels": "nowhere"}, ValueError, "nowhere"),
        ({"stream_channels": ["nowhere"]}, ValueError, "nowhere"),
        ({"interrupt_before_nodes": ["nobody"]}, ValueError, "nobody"),
        ({"nodes": {"n": lambda value: value}}, TypeError, None),
    ],
)
def test_what_does_not_fit_together_is_refused(changed: dict[str, Any], error: Any, says: str) -> None:
    parts: dict[str, Any] = {
        "nodes": {"n": node()},
        "channels": {"in": LastValue(int), "out": LastValue(int)},
        "input_channels": "in",
        "output_channels": "out",
    }

    with pytest.raises(error, match=says):
        Pregel(**{**parts, **changed})


@dataclass
class Parcel:
    weight: int


class Priority(Enum):
    HIGH = "high"


def test_the_classes_of_its_channels_types_are_stored(run: Runner, saver: Saver, thread: Thread) -> None:
    weigh = NodeBuilder().subscribe_only("in").do(lambda weight: Parcel(weight)).write_to("parcels", "last")
    rate = NodeBuilder().subscribe_only("last").do(lambda parcel: [Priority.HIGH] * parcel.weight).write_to("rated")
    app = Pregel(
        nodes={"weigh": weigh, "rate": rate},
        channels={
            "in": EphemeralValue(int),
            "parcels": Topic(Parcel, accumulate=True),
            "last": LastValue(Parcel),
            "rated": LastValue(list[Priority]),
        },
        input_channels="in",
        output_channels=["parcels", "rated"],
        checkpointer=saver,
    )

    run.invoke(app, 2, thread("1"))

    values = run.state(app, thread("1")).values
    assert {"parcels": [Parcel(2)], "last": Parcel(2), "rated": [Priority.HIGH] * 2} == values
