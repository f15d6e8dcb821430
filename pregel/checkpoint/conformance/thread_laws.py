"""The laws of what is about whole threads: `delete_thread`, versions, the history of a channel, several at once."""

from __future__ import annotations

from typing import Any

from pregel.checkpoint.conformance.laws import Laws
from pregel.checkpoint.conformance.verbs import agree, config, id_of


class DeleteLaws(Laws):
    """A deleted thread is gone with everything in it."""

    def test_nothing_of_a_deleted_thread_is_left(self) -> None:
        for ns in ("", "child"):
            where = self.saver.put({"a": ns}, config(checkpoint_ns=ns))
            self.saver.write(where, [("a", 1)])

        self.saver.call("delete_thread", "t")

        agree([None, None], [self.saver.find(config(checkpoint_ns=ns)) for ns in ("", "child")])
        agree([], self.saver.listed(config()))
        agree([], self.saver.listed(None))

    def test_other_threads_stay(self) -> None:
        for thread in ("t", "t2"):
            where = self.saver.put({"a": thread}, config(thread, checkpoint_ns=""))
            self.saver.write(where, [("a", thread)])

        self.saver.call("delete_thread", "t")

        found = self.saver.get(config("t2"))
        agree([{"a": "t2"}, "t2"], [found.checkpoint["channel_values"], (found.pending_writes or [])[0][2]])

    def test_a_thread_that_is_not_there_may_be_deleted(self) -> None:
        self.saver.put({"a": 1})

        self.saver.call("delete_thread", "nobody")

        agree(1, len(self.saver.listed(None)))

    def test_a_deleted_thread_can_start_anew(self) -> None:
        where = self.saver.put({"a": "old"})
        self.saver.write(where, [("a", "old")])
        self.saver.call("delete_thread", "t")

        self.saver.put({"a": "new"})

        (found,) = self.saver.listed(config())
        agree([{"a": "new"}, None, []], [found.checkpoint["channel_values"], found.parent_config, found.pending_writes])


class VersionLaws(Laws):
    """Versions rise, and their integer part counts."""

    def test_versions_rise(self) -> None:
        versions, current = [], None
        for _ in range(12):
            current = self.saver.saver.get_next_version(current, None)
            versions.append(current)

        agree(versions, sorted(versions))
        agree(12, len(set(versions)))

    def test_the_integer_part_of_a_version_counts(self) -> None:
        agree([1, 2, 3], [int(str(self.saver.version(n)).split(".")[0]) for n in (1, 2, 3)])


class HistoryLaws(Laws):
    """`get_delta_channel_history` collects a channel's writes down to the nearest whole value."""

    def _history(self, where: Any, *channels: str) -> dict[str, Any]:
        return dict(self.saver.call("get_delta_channel_history", config=where, channels=channels))

    def _branch(self, *values: dict[str, Any]) -> list[Any]:
        where, places = config(checkpoint_ns=""), []
        for number, stored in enumerate(values):
            versions = dict.fromkeys(("a", "b"), self.saver.version(number + 1))
            where = self.saver.put(stored, where, versions=versions)
            self.saver.write(where, [("a", f"a{number}"), ("b", f"b{number}")])
            places.append(where)
        return places

    def test_writes_are_oldest_first_down_to_the_nearest_value(self) -> None:
        *_, head = self._branch({"a": "older"}, {"a": "seed"}, {}, {})

        found = self._history(head, "a")["a"]

        agree("seed", found["seed"])
        agree(["a1", "a2"], [value for _, _, value in found["writes"]])

    def test_without_a_value_there_is_no_seed(self) -> None:
        *_, head = self._branch({}, {}, {})

        found = self._history(head, "a")["a"]

        agree(False, "seed" in found)
        agree(["a0", "a1"], [value for _, _, value in found["writes"]])

    def test_each_channel_ends_at_its_own_value(self) -> None:
        *_, head = self._branch({"a": 0}, {"b": 1}, {}, {})

        found = self._history(head, "a", "b")

        agree([["a0", "a1", "a2"], ["b1", "b2"]], [[v for _, _, v in found[c]["writes"]] for c in ("a", "b")])
        agree([0, 1], [found[channel]["seed"] for channel in ("a", "b")])

    def test_no_channels_have_no_history(self) -> None:
        *_, head = self._branch({}, {})

        agree({}, self._history(head))


class TogetherLaws(Laws):
    """Two writers at a time lose nothing."""

    def test_writers_of_different_threads_do_not_meet(self) -> None:
        threads = [f"t{number}" for number in range(8)]
        self.saver.together(
            [("put", *self.saver.put_arguments({"a": one}, config(one, checkpoint_ns=""))) for one in threads]
        )

        found = [self.saver.get(config(thread)).checkpoint["channel_values"]["a"] for thread in threads]

        agree(threads, found)

    def test_two_writers_of_one_thread_both_keep_their_branch(self) -> None:
        root = self.saver.put({"a": "root"})
        calls = [("put", *self.saver.put_arguments({"a": number}, root)) for number in range(8)]

        self.saver.together(calls)

        branches = [found for found in self.saver.listed(config()) if id_of(found.config) != id_of(root)]
        agree(set(range(8)), {found.checkpoint["channel_values"]["a"] for found in branches})
        agree([root] * 8, [found.parent_config for found in branches])

    def test_tasks_that_end_at_the_same_time_all_keep_their_writes(self) -> None:
        where = self.saver.put({})
        self.saver.together([("put_writes", where, [("a", n), ("b", n)], f"task-{n}", f"~{n}") for n in range(8)])

        found = [(task, value) for task, _, value in self.saver.get(where).pending_writes or ()]

        agree([(f"task-{n}", n) for n in range(8) for _ in "ab"], sorted(found))
