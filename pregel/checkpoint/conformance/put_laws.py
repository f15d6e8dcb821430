"""The laws of `put`."""

from __future__ import annotations

from typing import Any

from pregel.checkpoint.conformance.laws import Laws
from pregel.checkpoint.conformance.verbs import agree, config, fresh_id, id_of
from pregel.config import RunnableConfig

VALUES: dict[str, Any] = {
    "none": None,
    "text": "naïve \N{SNOWMAN}",
    "long": "x" * 5000,
    "number": 2**40,
    "fraction": 0.1,
    "truth": True,
    "bytes": b"\x00\xff",
    "list": [1, "two", [3.0, None]],
    "mapping": {"a": {"b": [1, 2]}, "c": None},
    "empty": [],
}


class PutLaws(Laws):
    """A checkpoint comes back as it was put, where it was put."""

    def test_put_gives_the_coordinates_and_nothing_else(self) -> None:
        where = self.saver.put({"a": 1}, config("t", checkpoint_ns="n"), id="1" * 8 + "-0000-6000-8000-" + "0" * 12)

        agree(config("t", checkpoint_ns="n", checkpoint_id="1" * 8 + "-0000-6000-8000-" + "0" * 12), where)

    def test_a_checkpoint_comes_back_whole(self) -> None:
        version = self.saver.version(3)
        fields: dict[str, Any] = {
            "id": fresh_id(),
            "ts": "2020-02-02T02:02:02+00:00",
            "versions_seen": {"node": {"a": self.saver.version(2)}, "other": {}},
            "updated_channels": ["a"],
        }
        where = self.saver.put({"a": [1]}, versions={"a": version}, **fields)

        found = self.saver.get(where).checkpoint

        agree(fields, {key: found[key] for key in fields})  # type: ignore[literal-required]
        agree({"a": [1]}, found["channel_values"])
        agree({"a": version}, found["channel_versions"])

    def test_values_come_back_equal_and_of_their_types(self) -> None:
        found = self.saver.get(self.saver.put(VALUES)).checkpoint["channel_values"]

        agree(VALUES, found)
        for name, value in VALUES.items():
            agree(type(value), type(found[name]))

    def test_metadata_comes_back_with_what_the_caller_added(self) -> None:
        metadata = {"source": "update", "step": 7, "parents": {"": "x"}, "run_id": "r", "mine": "m", "n": 3}

        agree(metadata, dict(self.saver.get(self.saver.put({}, metadata=metadata)).metadata))

    def test_the_parent_is_the_checkpoint_that_the_config_names(self) -> None:
        first = self.saver.put({"a": 1})
        second = self.saver.put({"a": 2}, first)

        agree(None, self.saver.get(first).parent_config)
        agree(first, self.saver.get(second).parent_config)

    def test_every_checkpoint_of_a_thread_stays(self) -> None:
        where, places = None, []
        for number in range(5):
            where = self.saver.put({"a": number}, where)
            places.append(where)

        agree(list(range(5)), [self.saver.get(place).checkpoint["channel_values"]["a"] for place in places])

    def test_branches_from_one_checkpoint_keep_their_own_values(self) -> None:
        root = self.saver.put({"a": "root", "b": "root"})
        left = self.saver.put({"a": "left", "b": "root"}, root, **self._next(root, "a"))
        right = self.saver.put({"a": "right", "b": "root"}, root, **self._next(root, "a"))

        found = [self.saver.get(place).checkpoint["channel_values"]["a"] for place in (root, left, right)]

        agree(["root", "left", "right"], found)

    def _next(self, where: RunnableConfig, *changed: str) -> dict[str, Any]:
        """The versions after these channels changed."""
        versions = self.saver.get(where).checkpoint["channel_versions"]
        new = dict.fromkeys(changed, self.saver.saver.get_next_version(max(versions.values()), None))
        return {"versions": {**versions, **new}, "new": new}

    def test_a_channel_that_did_not_change_needs_no_new_version(self) -> None:
        first = self.saver.put({"a": "old", "b": "old"})
        second = self.saver.put({"a": "new", "b": "old"}, first, **self._next(first, "a"))

        agree({"a": "new", "b": "old"}, self.saver.get(second).checkpoint["channel_values"])
        agree({"a": "old", "b": "old"}, self.saver.get(first).checkpoint["channel_values"])

    def test_a_channel_may_come_later(self) -> None:
        first = self.saver.put({"a": 1})
        second = self.saver.put({"a": 1, "b": 2}, first, **self._next(first, "b"))

        agree({"a": 1, "b": 2}, self.saver.get(second).checkpoint["channel_values"])

    def test_a_channel_that_has_no_value_any_more_is_not_there(self) -> None:
        first = self.saver.put({"a": 1, "b": [2]})
        second = self.saver.put({"a": 1}, first, **self._next(first, "b"))

        agree({"a": 1}, self.saver.get(second).checkpoint["channel_values"])

    def test_namespaces_are_apart(self) -> None:
        root = self.saver.put({"a": "root"})
        child = self.saver.put({"a": "child"}, config(checkpoint_ns="child:1"))

        agree(id_of(root), id_of(self.saver.get(config(checkpoint_ns="")).config))
        agree(id_of(child), id_of(self.saver.get(config(checkpoint_ns="child:1")).config))

    def test_without_a_namespace_the_root_is_meant(self) -> None:
        where = self.saver.put({"a": 1}, config())

        agree("", where["configurable"]["checkpoint_ns"])
        agree(id_of(where), id_of(self.saver.get(config(checkpoint_ns="")).config))

    def test_threads_are_apart(self) -> None:
        for thread in ("one", "two"):
            self.saver.put({"a": thread}, config(thread, checkpoint_ns=""))

        found = [self.saver.get(config(thread)).checkpoint["channel_values"]["a"] for thread in ("one", "two")]

        agree(["one", "two"], found)

    def test_what_the_caller_does_to_a_value_later_changes_nothing(self) -> None:
        value, args = [1], self.saver.put_arguments({"a": []})
        args[1]["channel_values"]["a"] = value
        where = self.saver.call("put", *args)
        value.append(2)
        args[1]["channel_versions"].clear()
        args[2]["step"] = 99

        found = self.saver.get(where)

        agree([1], found.checkpoint["channel_values"]["a"])
        agree(["a"], list(found.checkpoint["channel_versions"]))
        agree(1, found.metadata["step"])

    def test_what_is_done_to_a_value_that_was_given_out_changes_nothing(self) -> None:
        where = self.saver.put({"a": [1]})
        self.saver.get(where).checkpoint["channel_values"]["a"].append(2)

        agree([1], self.saver.get(where).checkpoint["channel_values"]["a"])
