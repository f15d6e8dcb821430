"""The laws of `get_tuple` and `list`."""

from __future__ import annotations

from pregel.checkpoint.conformance.laws import Laws
from pregel.checkpoint.conformance.verbs import agree, config, fresh_id, id_of
from pregel.config import RunnableConfig


class GetLaws(Laws):
    """A config names one checkpoint, or the newest; asking changes nothing."""

    def test_the_newest_is_given_when_no_id_is(self) -> None:
        first = self.saver.put({"a": 1})
        second = self.saver.put({"a": 2}, first)

        agree(second, self.saver.get(config(checkpoint_ns="")).config)

    def test_the_newest_is_the_last_one_also_over_branches(self) -> None:
        first = self.saver.put({"a": 1})
        self.saver.put({"a": 2}, first)
        fork = self.saver.put({"a": 3}, first)

        agree(fork, self.saver.get(config(checkpoint_ns="")).config)

    def test_an_id_names_exactly_one(self) -> None:
        first = self.saver.put({"a": 1})
        self.saver.put({"a": 2}, first)

        found = self.saver.get(first)

        agree(first, {"configurable": {key: found.config["configurable"][key] for key in first["configurable"]}})
        agree({"a": 1}, found.checkpoint["channel_values"])

    def test_what_is_not_there_is_none(self) -> None:
        self.saver.put({"a": 1})

        agree(None, self.saver.find(config("nobody")))
        agree(None, self.saver.find(config(checkpoint_ns="nowhere")))
        agree(None, self.saver.find(config(checkpoint_ns="", checkpoint_id=fresh_id())))

    def test_asking_makes_nothing(self) -> None:
        self.saver.find(config("nobody"))
        self.saver.listed(config("nobody"))

        agree([], self.saver.listed(None))

    def test_get_gives_the_checkpoint_alone(self) -> None:
        where = self.saver.put({"a": 1})

        agree({"a": 1}, self.saver.call("get", where)["channel_values"])
        agree(None, self.saver.call("get", config("nobody")))


class ListLaws(Laws):
    """`list` gives the newest first, and all that it is asked for."""

    def _chain(self, n: int, thread: str = "t", ns: str = "") -> list[RunnableConfig]:
        where, places = config(thread, checkpoint_ns=ns), []
        for number in range(n):
            metadata = {"step": number, "source": "loop" if number else "input", "even": number % 2 == 0, "who": thread}
            where = self.saver.put({"a": number}, where, metadata=metadata)
            places.append(where)
        return places

    def test_the_newest_is_first(self) -> None:
        places = self._chain(5)

        agree([id_of(place) for place in reversed(places)], self.saver.ids(config(checkpoint_ns="")))

    def test_entries_are_whole(self) -> None:
        first, second = self._chain(2)
        self.saver.write(second, [("a", "pending")])

        newest, oldest = self.saver.listed(config(checkpoint_ns=""))

        agree([second, first, first, None], [newest.config, newest.parent_config, oldest.config, oldest.parent_config])
        agree([{"a": 1}, {"a": 0}], [found.checkpoint["channel_values"] for found in (newest, oldest)])
        agree([1, 0], [found.metadata["step"] for found in (newest, oldest)])
        agree(["pending"], [value for _, _, value in newest.pending_writes or ()])

    def test_a_config_without_a_namespace_means_all_of_the_thread(self) -> None:
        root, child = self._chain(2), self._chain(2, ns="child")
        self._chain(1, "other")

        agree(sorted(map(id_of, root + child)), sorted(self.saver.ids(config())))
        agree([id_of(place) for place in reversed(child)], self.saver.ids(config(checkpoint_ns="child")))

    def test_no_config_means_all_threads(self) -> None:
        places = self._chain(2, "one") + self._chain(2, "two")

        agree(sorted(map(id_of, places)), sorted(self.saver.ids(None)))

    def test_an_empty_thread_is_an_empty_list(self) -> None:
        self._chain(1)

        agree([], self.saver.listed(config("nobody")))

    def test_a_filter_is_equality_of_every_key(self) -> None:
        places = [id_of(place) for place in self._chain(4)]

        def found(**wanted: object) -> list[str]:
            return self.saver.ids(config(checkpoint_ns=""), filter=wanted)

        agree([places[0]], found(source="input"))
        agree([places[3], places[2], places[1]], found(source="loop"))
        agree([places[2]], found(source="loop", even=True))
        agree([places[3]], found(step=3))
        agree(places[::-1], found(who="t"))
        agree([], found(who="somebody else"))
        agree([], found(source="loop", step=0))

    def test_a_filter_reaches_over_threads(self) -> None:
        self._chain(3, "one")
        two = self._chain(3, "two")

        agree([id_of(two[2])], self.saver.ids(None, filter={"who": "two", "step": 2}))

    def test_before_means_older_than(self) -> None:
        places = self._chain(4)

        agree([id_of(places[1]), id_of(places[0])], self.saver.ids(config(checkpoint_ns=""), before=places[2]))
        agree([], self.saver.ids(config(checkpoint_ns=""), before=places[0]))

    def test_a_limit_counts_from_the_newest(self) -> None:
        places = [id_of(place) for place in self._chain(4)]

        agree([places[3]], self.saver.ids(config(checkpoint_ns=""), limit=1))
        agree(places[:1:-1], self.saver.ids(config(checkpoint_ns=""), limit=2))
        agree(places[::-1], self.saver.ids(config(checkpoint_ns=""), limit=100))
        agree([], self.saver.ids(config(checkpoint_ns=""), limit=0))

    def test_a_config_that_names_a_checkpoint_lists_that_one(self) -> None:
        places = self._chain(4)

        for limit in (None, 1, 3):
            agree([id_of(places[1])], self.saver.ids(places[1], limit=limit))
        agree([id_of(places[1])], self.saver.ids(places[1], filter={"step": 1}))
        agree([], self.saver.ids(places[1], filter={"step": 2}))
        agree([], self.saver.ids(places[1], before=places[0]))

    def test_filter_before_and_limit_go_together(self) -> None:
        places = self._chain(9)

        found = self.saver.ids(config(checkpoint_ns=""), filter={"even": True}, before=places[7], limit=2)

        agree([id_of(places[6]), id_of(places[4])], found)

    def test_a_long_thread_is_listed_to_its_end(self) -> None:
        places = self._chain(130)

        agree([id_of(place) for place in reversed(places)], self.saver.ids(config(checkpoint_ns="")))
