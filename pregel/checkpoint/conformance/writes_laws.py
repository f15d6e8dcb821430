"""The laws of `put_writes`."""

from __future__ import annotations

from typing import Any

from pregel.checkpoint.conformance.laws import Laws
from pregel.checkpoint.conformance.put_laws import VALUES
from pregel.checkpoint.conformance.verbs import agree, config
from pregel.checkpoint.records import ERROR, INTERRUPT, RESUME
from pregel.config import RunnableConfig


class WritesLaws(Laws):
    """What a task wrote stays with the checkpoint it started from, once."""

    def _pending(self, where: RunnableConfig) -> list[tuple[str, str, Any]]:
        return [tuple(write) for write in self.saver.get(where).pending_writes or ()]

    def test_writes_show_at_their_checkpoint(self) -> None:
        where = self.saver.put({})
        self.saver.write(where, [("a", 1), ("b", [2])], "task-1")

        agree([("task-1", "a", 1), ("task-1", "b", [2])], self._pending(where))

    def test_several_tasks_show_side_by_side(self) -> None:
        where = self.saver.put({})
        for task in ("task-1", "task-2", "task-3"):
            self.saver.write(where, [("a", task)], task)

        agree([(task, "a", task) for task in ("task-1", "task-2", "task-3")], sorted(self._pending(where)))

    def test_writes_are_in_the_order_of_path_task_and_position(self) -> None:
        where = self.saver.put({})
        self.saver.write(where, [("a", 1)], "task-1", "~2")
        self.saver.write(where, [("a", 2), ("b", 3)], "task-3", "~1")
        self.saver.write(where, [("a", 4)], "task-2", "~1")

        agree([4, 2, 3, 1], [value for _, _, value in self._pending(where)])

    def test_a_path_may_be_left_out(self) -> None:
        where = self.saver.put({})
        self.saver.call("put_writes", where, [("a", 1)], "task-1")

        agree([("task-1", "a", 1)], self._pending(where))

    def test_values_come_back_equal(self) -> None:
        where = self.saver.put({})
        self.saver.write(where, list(VALUES.items()))

        agree(VALUES, {channel: value for _, channel, value in self._pending(where)})

    def test_one_channel_may_be_written_twice(self) -> None:
        where = self.saver.put({})
        self.saver.write(where, [("a", 1), ("a", 2)])

        agree([1, 2], [value for _, _, value in self._pending(where)])

    def test_the_same_call_again_changes_nothing(self) -> None:
        where = self.saver.put({})
        for _ in range(2):
            self.saver.write(where, [("a", 1), ("b", 2)], "task-1")

        agree([("task-1", "a", 1), ("task-1", "b", 2)], self._pending(where))

    def test_the_first_write_of_a_task_stays(self) -> None:
        where = self.saver.put({})
        self.saver.write(where, [("a", "first")], "task-1")
        self.saver.write(where, [("a", "second")], "task-1")

        agree([("task-1", "a", "first")], self._pending(where))

    def test_an_error_and_a_question_are_kept_and_replaced(self) -> None:
        where = self.saver.put({})
        for channel in (ERROR, INTERRUPT, RESUME):
            for value in ("first", "second"):
                self.saver.write(where, [(channel, value)], "task-1")

        agree(dict.fromkeys((ERROR, INTERRUPT, RESUME), "second"), {c: v for _, c, v in self._pending(where)})
        agree(3, len(self._pending(where)))

    def test_a_question_takes_no_position_from_a_result(self) -> None:
        where = self.saver.put({})
        self.saver.write(where, [(INTERRUPT, ["?"])], "task-1")
        self.saver.write(where, [("a", 1)], "task-1")

        agree([(INTERRUPT, ["?"]), ("a", 1)], sorted((channel, value) for _, channel, value in self._pending(where)))

    def test_writes_stay_at_their_checkpoint(self) -> None:
        first = self.saver.put({})
        self.saver.write(first, [("a", 1)])
        second = self.saver.put({}, first)

        agree([[("task", "a", 1)], []], [self._pending(first), self._pending(second)])

    def test_writes_stay_in_their_namespace_and_thread(self) -> None:
        for thread, ns in (("t", ""), ("t", "child"), ("u", "")):
            where = self.saver.put({}, config(thread, checkpoint_ns=ns))
            self.saver.write(where, [("a", [thread, ns])])

        found = [
            self._pending(config(thread, checkpoint_ns=ns)) for thread, ns in (("t", ""), ("t", "child"), ("u", ""))
        ]
        agree([["t", ""], ["t", "child"], ["u", ""]], [pending[0][2] for pending in found])
        agree([1, 1, 1], [len(pending) for pending in found])

    def test_what_the_caller_does_to_a_write_later_changes_nothing(self) -> None:
        where, value = self.saver.put({}), [1]
        self.saver.write(where, [("a", value)])
        value.append(2)
        self._pending(where)[0][2].append(3)

        agree([1], self._pending(where)[0][2])
