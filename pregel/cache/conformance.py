"""The laws of caches, to be run on a cache of your own: subclass `CacheLaws` in a test file and say how to open it.

::

    from pregel.cache.conformance import CacheLaws

    class TestMyCache(CacheLaws):
        def open(self):
            return my_cache()           # a context manager, blocking or async, on empty storage

        def pass_time(self, seconds):
            my_clock.advance(seconds)   # or wait

    class TestMyCacheAwaited(TestMyCache):
        awaited = True                  # the async twins, on one event loop a test

Each test opens a cache of its own. The random calls need hypothesis and pass over themselves where it is missing.
"""

from __future__ import annotations

from typing import Any

from pregel.cache.base import FullKey
from pregel.checkpoint.conformance.drawn import Call, drawn
from pregel.checkpoint.conformance.verbs import Opening, Verbs
from pregel.errors import InvalidInputError, SerializationError

NASTY = (
    "",
    "a",
    "a,b",
    "a.b",
    "a:b",
    "a*",
    "a%",
    "a_",
    "[a]",
    "a\\b",
    "a\0b",
    "ä",
    "\U0001f600",
    "\ud800",
    " ",
    "1",
    "'",
)
KEYS: tuple[FullKey, ...] = (
    (("a", "b"), "c"),
    (("a",), "b"),
    (("a", "b", "c"), ""),
    (("a,b",), "c"),
    ((), "a"),
    (("",), "a"),
    (("", ""), "a"),
    (("a",), "bc"),
    (("ab",), "c"),
    *(((text, "x"), text) for text in NASTY),
)


class CacheLaws:
    """Subclass it in a test file, define `open` and `pass_time`."""

    awaited: bool = False
    """Whether the async twins are called."""

    ttl: float = 60.0
    """Seconds that entries of these tests live."""

    examples: int = 40
    """How many series of random calls are drawn."""

    cache: Verbs

    def open(self) -> Opening:
        """A context manager, blocking or async, that gives a cache on empty storage."""
        raise NotImplementedError(f"{type(self).__name__} must define open().")

    def pass_time(self, seconds: float) -> None:
        """Let the cache see that so many seconds are over."""
        raise NotImplementedError(f"{type(self).__name__} must define pass_time().")

    def setup_method(self) -> None:
        """Open the cache of one test. pytest calls it."""
        self.cache = Verbs(self.open(), awaited=self.awaited)

    def teardown_method(self) -> None:
        """Close the cache of one test. pytest calls it."""
        self.cache.close()

    def put(self, key: FullKey, value: Any, ttl: float | None = None) -> None:
        """Set one value."""
        self.cache.call("set", {key: (value, ttl)})

    def kept(self, *keys: FullKey) -> dict[FullKey, Any]:
        """What is found of these keys."""
        found: dict[FullKey, Any] = self.cache.call("get", keys)
        return found

    # -- addresses ---------------------------------------------------------------------------------------------------

    def test_a_value_comes_back(self) -> None:
        self.put((("a", "b"), "k"), {"x": [1, 2.5, None, (1, b"\0")]})

        assert self.kept((("a", "b"), "k"), (("a", "b"), "l")) == {(("a", "b"), "k"): {"x": [1, 2.5, None, (1, b"\0")]}}

    def test_nothing_is_found_of_nothing(self) -> None:
        assert self.kept() == {}
        assert self.kept((("a",), "k")) == {}

    def test_a_key_that_is_asked_for_twice_is_found_once(self) -> None:
        self.put((("a",), "k"), 1)

        assert self.kept((("a",), "k"), (("a",), "k")) == {(("a",), "k"): 1}

    def test_no_two_addresses_meet(self) -> None:
        self.cache.call("set", {key: (number, None) for number, key in enumerate(KEYS)})

        assert {key: number for number, key in enumerate(KEYS)} == self.kept(*KEYS)

    def test_a_namespace_may_be_any_sequence_of_texts(self) -> None:
        self.cache.call("set", {(("a",), "k"): (1, None)})

        assert self.cache.call("get", [[["a"], "k"]]) == {(("a",), "k"): 1}

    def test_many_keys_at_once(self) -> None:
        keys = [(("many",), str(number)) for number in range(2_500)]
        self.cache.call("set", {key: (number, None) for number, key in enumerate(keys)})

        assert dict(zip(keys, range(2_500), strict=True)) == self.kept(*keys)

    # -- values ------------------------------------------------------------------------------------------------------

    def test_none_is_a_value(self) -> None:
        self.put((("a",), "k"), None)

        assert self.kept((("a",), "k")) == {(("a",), "k"): None}

    def test_a_later_value_replaces_an_earlier_one_and_its_ttl(self) -> None:
        self.put((("a",), "k"), 1, self.ttl)
        self.put((("a",), "k"), 2)
        self.pass_time(self.ttl * 2)

        assert self.kept((("a",), "k")) == {(("a",), "k"): 2}

    def test_what_is_done_to_a_value_later_does_not_reach_the_cache(self) -> None:
        value = {"x": [1]}
        self.put((("a",), "k"), value)
        value["x"].append(2)
        self.kept((("a",), "k"))[("a",), "k"]["x"].append(3)

        assert self.kept((("a",), "k")) == {(("a",), "k"): {"x": [1]}}

    def test_a_value_that_cannot_be_stored_is_refused_with_all_that_came_with_it(self) -> None:
        error = self._refused({(("a",), "k"): (1, None), (("a",), "l"): (object(), None)})

        assert isinstance(error, SerializationError)
        assert self.kept((("a",), "k")) == {}

    # -- time --------------------------------------------------------------------------------------------------------

    def test_a_value_is_gone_when_its_time_is_over(self) -> None:
        self.put((("a",), "short"), 1, self.ttl)
        self.put((("a",), "long"), 2, self.ttl * 1_000)
        self.put((("a",), "ever"), 3)
        self.pass_time(self.ttl * 2)

        assert self.kept((("a",), "short"), (("a",), "long"), (("a",), "ever")) == {
            (("a",), "long"): 2,
            (("a",), "ever"): 3,
        }

    def test_a_value_lives_until_then(self) -> None:
        self.put((("a",), "k"), 1, self.ttl * 1_000)
        self.pass_time(self.ttl / 2)

        assert self.kept((("a",), "k")) == {(("a",), "k"): 1}

    def test_a_ttl_may_be_for_ever(self) -> None:
        self.put((("a",), "k"), 1, float("inf"))

        assert self.kept((("a",), "k")) == {(("a",), "k"): 1}

    def test_a_ttl_that_is_no_time_is_refused(self) -> None:
        for ttl in (0, -1, float("nan"), "60", True):
            assert isinstance(self._refused({(("a",), "k"): (1, ttl)}), InvalidInputError)

        assert self.kept((("a",), "k")) == {}

    # -- clearing ----------------------------------------------------------------------------------------------------

    def test_clear_forgets_exactly_these_namespaces(self) -> None:
        self.cache.call("set", {key: (number, None) for number, key in enumerate(KEYS)})
        self.cache.call("clear", [("a", "b"), ("a*", "x"), ()])
        gone = {("a", "b"), ("a*", "x"), ()}

        assert {key: number for number, key in enumerate(KEYS) if key[0] not in gone} == self.kept(*KEYS)

    def test_clear_of_no_namespace_forgets_nothing(self) -> None:
        self.put((("a",), "k"), 1)
        self.cache.call("clear", [])

        assert self.kept((("a",), "k")) == {(("a",), "k"): 1}

    def test_clear_forgets_everything(self) -> None:
        self.cache.call("set", {key: (number, None) for number, key in enumerate(KEYS)})
        self.cache.call("clear")

        assert self.kept(*KEYS) == {}

    # -- what is refused ---------------------------------------------------------------------------------------------

    def test_an_address_that_is_none_is_refused(self) -> None:
        for key in ("k", (("a",), 1), ("ab", "k"), ((1,), "k"), (("a",), "k", "l"), None):
            assert isinstance(self._refused({key: (1, None)}), InvalidInputError)

    def _refused(self, pairs: dict[Any, Any]) -> BaseException | None:
        try:
            self.cache.call("set", pairs)
        except (InvalidInputError, SerializationError) as error:
            return error
        return None

    # -- at random ---------------------------------------------------------------------------------------------------

    def test_random_calls_do_what_they_do_to_a_dict(self) -> None:
        drawn({"set": 4, "get": 3, "clear": 2, "empty": 1}, self._walk, examples=self.examples)

    def _walk(self, calls: list[Call]) -> None:
        self.cache.call("clear")
        model: dict[FullKey, Any] = {}
        for word, (a, b, c) in calls:
            some = list(dict.fromkeys(KEYS[(a + number * b) % len(KEYS)] for number in range(c % 5)))
            if word == "set":
                self.cache.call("set", dict.fromkeys(some, (a + b, None)))
                model |= dict.fromkeys(some, a + b)
            elif word == "get":
                assert {key: model[key] for key in some if key in model} == self.kept(*some)
            else:
                gone = {key[0] for key in (some if word == "clear" else model)}
                self.cache.call("clear", list(gone) if word == "clear" else None)
                model = {key: value for key, value in model.items() if key[0] not in gone}
        assert model == self.kept(*KEYS)
