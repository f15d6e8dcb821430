"""What a channel knows of how its list grew."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from pregel.channels import BinaryOperatorAggregate, DeltaChannel
from pregel.channels.growth import Log
from pregel.messages import AIMessage, RemoveMessage
from pregel.messages.reducer import add_messages, messages_delta_reducer
from pregel.types import Overwrite


def kept(channel: Any, *steps: Sequence[Any]) -> list[int | None]:
    """How much is kept of the list at each step; None when it is no log."""
    found: list[int | None] = []
    for writes in steps:
        channel.update(writes)
        value = channel.snapshot() if isinstance(channel, DeltaChannel) else channel.checkpoint()
        log = value if channel.growth is None else channel.growth.log(value)
        found.append(log.kept if isinstance(log, Log) else None)
    return found


def listed(typ: Any = list, reducer: Callable[[Any, Any], Any] = operator.add) -> BinaryOperatorAggregate[Any]:
    return BinaryOperatorAggregate(typ, reducer)


def messages() -> BinaryOperatorAggregate[Any]:
    return listed(list, add_messages)


def said(n: int) -> AIMessage:
    return AIMessage("hi", id=f"m{n}")


def test_lists_under_plus_keep_all_that_was_there() -> None:
    assert [0, 1, 3] == kept(listed(), [[1]], [[2], [3]], [[4]])


def test_several_updates_between_two_checkpoints_count_together() -> None:
    channel = listed()
    kept(channel, [[1, 2]])
    channel.update([[3]])

    assert [2] == kept(channel, [[4]])


def test_an_overwrite_keeps_nothing() -> None:
    assert [0, 0, 2] == kept(listed(), [[1]], [Overwrite([1, 2])], [[3]])
    assert [0, 0, 2] == kept(
        DeltaChannel(messages_delta_reducer), [[said(0)]], [Overwrite([said(0), said(1)])], [[said(2)]]
    )


def test_a_list_of_another_class_may_have_put_itself_first() -> None:
    class First(list[int]):
        def __radd__(self, other: list[int]) -> list[int]:
            return [*self, *other]

    assert [0, 0] == kept(listed(), [[1, 2]], [First([3])])


def test_messages_keep_what_stands_before_the_first_change() -> None:
    assert [0, 2, 1, 1] == kept(
        messages(), [[said(0), said(1)]], [[said(2)]], [[said(1)]], [[RemoveMessage(id="m1"), said(7)]]
    )


def test_a_message_that_was_changed_in_place_and_written_again_is_not_kept() -> None:
    channel = messages()
    kept(channel, [[said(0), said(1), said(2)]])
    changed = channel.get()[1]
    changed.content = "changed"

    assert [1] == kept(channel, [[changed]])


def test_a_message_that_a_delta_reducer_was_given_again_is_not_kept() -> None:
    channel = DeltaChannel(messages_delta_reducer)
    kept(channel, [[said(1), said(2)]])
    message = channel.get()[0]
    message.content = "changed"

    assert [0] == kept(channel, [[message, said(4)]])


def test_a_reducer_that_may_do_anything_to_items_makes_no_log() -> None:
    assert [None, None] == kept(listed(list, lambda old, new: old + new), [[1]], [[2]])


def test_a_class_of_the_users_makes_no_log() -> None:
    class Own(BinaryOperatorAggregate[list[int]]):
        pass

    assert [None] == kept(Own(list, operator.add), [[1]])


def test_a_number_under_plus_makes_no_log() -> None:
    assert [None, None] == kept(listed(int), [1], [2])


def test_a_stored_list_is_kept_by_the_channel_that_starts_from_it() -> None:
    assert [2] == kept(listed().from_checkpoint([1, 2]), [[3]])


def test_a_value_that_is_no_list_starts_anew() -> None:
    class Lists(list[int]):
        pass

    assert [0, None, 0] == kept(listed(), [[1, 2]], [Overwrite(Lists([3]))], [Overwrite([1, 2])])


def test_a_copy_knows_nothing() -> None:
    channel = listed()
    kept(channel, [[1]])

    assert [0] == kept(channel.copy(), [[2]])
    assert [1] == kept(channel, [[2]])


def test_messages_that_go_leave_runs_of_the_others() -> None:
    channel = messages()
    kept(channel, [[said(n) for n in range(6)]])

    channel.update([[RemoveMessage(id="m0"), RemoveMessage(id="m3"), said(7)]])
    assert channel.growth is not None
    log: Any = channel.growth.log(channel.checkpoint())

    assert (0, [(0, 1, 2), (2, 4, 2)]) == (log.kept, log.runs)


def test_a_message_that_was_written_again_is_in_no_run() -> None:
    channel = messages()
    kept(channel, [[said(n) for n in range(4)]])

    channel.update([[RemoveMessage(id="m0"), channel.get()[2]]])
    assert channel.growth is not None
    log: Any = channel.growth.log(channel.checkpoint())

    assert [(0, 1, 1), (2, 3, 1)] == log.runs
