"""The laws of `prune`, `copy_thread` and `delete_for_runs`."""

from __future__ import annotations

from pregel.checkpoint.conformance.laws import Laws
from pregel.checkpoint.conformance.run import Run, values_of
from pregel.checkpoint.conformance.verbs import agree, config, id_of, refused
from pregel.errors import ThreadBusy

LONG = "x" * 200


class HousekeepingLaws(Laws):
    """What is removed is gone, what is kept is whole."""

    def _thread(self, name: str = "t", n: int = 4) -> list[str]:
        run = Run(self.saver, name)
        ids = [run.save({"a": [LONG, number]}, {"run_id": f"run-{number % 2}"}) for number in range(n)]
        run.write([("a", "pending")])
        run.release()
        return ids

    def test_prune_keeps_the_newest_of_each_namespace_with_its_writes(self) -> None:
        *_, newest = self._thread()
        for number in range(3):
            self.saver.put({"a": number}, config(checkpoint_ns="child"))

        self.saver.call("prune", ["t"])

        (kept,) = self.saver.listed(config(checkpoint_ns=""))
        agree(
            [newest, None, {"a": [LONG, 3]}],
            [id_of(kept.config), kept.parent_config, kept.checkpoint["channel_values"]],
        )
        agree(["pending"], [value for _, _, value in kept.pending_writes or ()])
        agree(
            [{"a": 2}], [one.checkpoint["channel_values"] for one in self.saver.listed(config(checkpoint_ns="child"))]
        )

    def test_a_run_goes_on_after_a_prune(self) -> None:
        self._thread()
        self.saver.call("prune", ["t"], strategy="keep_latest")

        Run(self.saver).save({"b": 1})

        agree([{"a": [LONG, 3], "b": 1}, {"a": [LONG, 3]}], values_of(self.saver))

    def test_prune_may_delete(self) -> None:
        self._thread()
        self._thread("other")

        self.saver.call("prune", ["t", "nobody"], strategy="delete")

        agree([], self.saver.listed(config("t")))
        agree(4, len(values_of(self.saver, "other")))

    def test_prune_of_nothing_does_nothing(self) -> None:
        self._thread()

        self.saver.call("prune", [])

        agree(4, len(values_of(self.saver)))

    def test_what_prune_does_not_know_is_refused(self) -> None:
        refused(TypeError, lambda: self.saver.call("prune", "t"))
        refused(ValueError, lambda: self.saver.call("prune", ["t"], strategy="something"))

    def test_prune_leaves_a_live_run_alone(self) -> None:
        self._thread("other")
        run = Run(self.saver)
        run.save({"a": 1})
        run.save({"a": 2})

        refused(ThreadBusy, lambda: self.saver.call("prune", ["t", "other"]))

        agree([2, 1], [len(values_of(self.saver, thread)) for thread in ("t", "other")])
        run.save({"a": 3})

    def test_a_prune_makes_a_claim_that_was_loaded_before_it_miss(self) -> None:
        self._thread()
        late = Run(self.saver)

        self.saver.call("prune", ["t"])

        agree([False, True], [late.claim().landed, Run(self.saver).claim().landed])

    def test_a_copy_has_everything(self) -> None:
        ids = self._thread()
        self.saver.put({"a": "child"}, config(checkpoint_ns="child"))

        self.saver.call("copy_thread", "t", "copy")

        source, copied = self.saver.listed(config("t")), self.saver.listed(config("copy"))
        agree(5, len(copied))
        for one, other in zip(source, copied, strict=True):
            agree(
                [one.checkpoint, one.metadata, one.pending_writes],
                [other.checkpoint, other.metadata, other.pending_writes],
            )
            agree("copy", other.config["configurable"]["thread_id"])
        agree(ids[::-1], self.saver.ids(config("t", checkpoint_ns="")))

    def test_a_copy_goes_its_own_way(self) -> None:
        self._thread(n=1)
        self.saver.call("copy_thread", "t", "copy")

        Run(self.saver, "copy").save({"a": "copy"})
        self.saver.call("delete_thread", "t")

        agree([{"a": "copy"}, {"a": [LONG, 0]}], values_of(self.saver, "copy"))

    def test_nothing_is_copied_over_a_thread_or_from_nothing(self) -> None:
        self._thread("one", 1)
        self._thread("two", 2)

        self.saver.call("copy_thread", "nobody", "new")
        refused(ValueError, lambda: self.saver.call("copy_thread", "one", "two"))

        agree([], self.saver.listed(config("new")))
        agree(2, len(values_of(self.saver, "two")))

    def test_the_checkpoints_of_a_run_are_deleted(self) -> None:
        ids = self._thread()
        self._thread("other", 1)

        self.saver.call("delete_for_runs", ["run-1", "nobody"])

        agree([ids[2], ids[0]], self.saver.ids(config("t")))
        agree(1, len(values_of(self.saver, "other")))
        newest, oldest = self.saver.listed(config("t"))
        agree([oldest.config, []], [newest.parent_config, newest.pending_writes])

    def test_deleting_no_runs_does_nothing(self) -> None:
        self._thread()

        self.saver.call("delete_for_runs", [])
        self.saver.call("delete_for_runs", ["nobody"])

        agree(4, len(values_of(self.saver)))
