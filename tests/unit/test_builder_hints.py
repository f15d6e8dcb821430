"""Which annotation of a node's function counts, and that only the one that is asked for is resolved."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from pregel.graph.hints import input_hint, return_hint
from pregel.graph.spec import command_ends_of, input_schema_of
from pregel.types import Command

if TYPE_CHECKING:
    from decimal import Decimal as Unknown


class State(TypedDict):
    n: int


def known(state: State, other: Unknown) -> dict[str, Any]:
    return {}


def routed(state: Unknown) -> Command[Literal["a", "b"]]:
    return Command()


def test_an_annotation_that_cannot_be_resolved_does_not_hide_the_others() -> None:
    assert (input_hint(known), return_hint(known)) == (State, dict[str, Any])
    assert input_hint(routed) is None
    assert command_ends_of(routed) == ("a", "b")


def test_a_text_means_what_its_module_has_now() -> None:
    space: dict[str, Any] = {"State": State}
    exec("def node(state: 'State'): ...", space)
    assert input_schema_of(space["node"]) is State

    class Later(TypedDict):
        m: int

    space["State"] = Later

    assert input_schema_of(space["node"]) is Later


def test_a_method_is_described_by_its_second_parameter() -> None:
    class Steps:
        def node(self, state: State) -> None: ...

        def __call__(self, state: State) -> None: ...

    assert input_hint(Steps().node) is State
    assert input_hint(Steps()) is State


def test_a_wrapper_is_resolved_where_the_wrapped_function_lives() -> None:
    @functools.wraps(known)
    def wrapper(*args: Any) -> Any: ...

    assert input_hint(wrapper) is State


def test_a_nested_text_is_resolved_and_annotated_is_taken_off() -> None:
    def node(state: Any) -> Any:
        return {}

    node.__annotations__ = {"state": Annotated["State", "words"], "return": "Command[Literal['c']]"}

    assert input_hint(node) is State
    assert command_ends_of(node) == ("c",)


def test_what_has_no_annotations_says_nothing() -> None:
    assert input_hint(functools.partial(known, State(n=1))) is None
    assert input_hint(lambda state: None) is None
    assert return_hint(len) is None
