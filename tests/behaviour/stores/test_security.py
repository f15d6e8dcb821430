"""Nothing that a caller says reaches a database as SQL, and tenants never see each other."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pregel.checkpoint.flows import Sql
from pregel.errors import InvalidInputError
from pregel.store.base import BaseStore, PutOp
from pregel.store.filters import OPERATORS, compiled
from pregel.store.memory import InMemoryStore
from pregel.store.postgres import PostgresStore
from pregel.store.postgres.words import words_of
from pregel.store.sqlite import SqliteStore
from pregel.store.sqlite.functions import BY_PYTHON
from pregel.store.sqlite.store import words as sqlite_words
from pregel.store.vectors import Index
from pregel.store.words import words

QUIET = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck), database=None)
NASTY = st.text("'\"\\;%_-*.$?:(){}[]@#\0\x01 aé\ud800", max_size=6) | st.sampled_from(
    [
        "' OR 1=1 --",
        "'; DROP TABLE pregel_store; --",
        "$1",
        "?1",
        ":a",
        "%(a)s",
        "{score}",
        "{filter}",
        "x')--",
        "$.a",
        "{}",
    ]
)
LABEL = NASTY.filter(lambda text: text and "." not in text and "\0" not in text and "\ud800" not in text)
SCALAR = NASTY | st.integers(-3, 3) | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False)
FILTER = st.dictionaries(
    NASTY,
    SCALAR
    | st.dictionaries(st.sampled_from(["$eq", "$ne", "$gt", "$lte"]), SCALAR, min_size=1, max_size=2)
    | st.dictionaries(NASTY.filter(lambda text: not text.startswith("$")), SCALAR, max_size=2),
    max_size=2,
)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    with ExitStack() as stack:
        if request.param == "sqlite":
            path = tmp_path / "store.db"
            yield stack.enter_context(SqliteStore.from_conn_string(path, synchronous="NORMAL"))
        else:
            yield stack.enter_context(PostgresStore.from_conn_string(request.getfixturevalue("dsn")))


def test_what_a_caller_says_finds_what_it_finds_in_memory(store: BaseStore) -> None:
    names = iter(range(1_000_000))

    @QUIET
    @given(LABEL, NASTY, st.dictionaries(NASTY, SCALAR, max_size=3), FILTER)
    def same(label: str, key: str, value: dict[str, Any], wanted: dict[str, Any]) -> None:
        place = (f"p{next(names)}", label)
        model = InMemoryStore()
        for one in (store, model):
            one.put(place, key, value)
        assert _found(model, place, wanted) == _found(store, place, wanted)
        assert value == getattr(store.get(place, key), "value", None)
        assert [place] == store.list_namespaces(prefix=place)

    same()


def _found(store: BaseStore, place: tuple[str, ...], wanted: dict[str, Any]) -> Any:
    try:
        return [item.key for item in store.search(place, filter=wanted)]
    except InvalidInputError as error:
        return error.message


@QUIET
@given(FILTER)
def test_a_statement_depends_on_the_shape_of_a_filter_alone(wanted: dict[str, Any]) -> None:
    try:
        mine, plain = compiled(wanted), compiled(_renamed(wanted))
    except InvalidInputError:
        return
    if mine is None or plain is None:
        return
    args = ("a.", "a/", 0.0, 10, 0)

    assert _postgres_text((*args, plain)) == _postgres_text((*args, mine))
    assert (
        sqlite_words("search_filtered", (*args, plain), None, {})[0]
        == (sqlite_words("search_filtered", (*args, mine), None, {})[0])
    )


def _postgres_text(args: tuple[Any, ...]) -> str:
    ((text, _),) = words_of(None)(Sql("search_filtered", args))
    return text


@QUIET
@given(NASTY, LABEL)
def test_a_statement_does_not_depend_on_the_words_of_a_query(query: str, label: str) -> None:
    config: Any = {"dims": 1, "embed": lambda texts: [[1.0] for _ in texts], "hybrid": 0.5}
    index, vector, asked = Index.of(config), array("f", [1.0]), words([query])
    place, other = (f".{label}.", f".{label}/", 0.0), (".a.", ".a/", 0.0)

    for mine, plain in (
        (Sql("word_counts", (*place, asked)), Sql("word_counts", (*other, ["tea"]))),
        (
            Sql("hybrid", (*place, 10, 0, vector, dict.fromkeys(asked, 0.5))),
            Sql("hybrid", (*other, 10, 0, vector, {"tea": 1.0})),
        ),
    ):
        assert words_of(index)(plain)[0][0] == words_of(index)(mine)[0][0]
        in_sqlite = [sqlite_words(one.name, one.args, index, BY_PYTHON)[0] for one in (plain, mine)]
        assert in_sqlite[0] == in_sqlite[1]
    assert all(word.isalnum() for word in asked)


def _renamed(wanted: Any) -> Any:
    """A filter of the same shape whose every text is harmless."""
    if isinstance(wanted, dict):
        names = {name: name if name in OPERATORS else f"name{place}" for place, name in enumerate(wanted)}
        return {names[name]: _renamed(value) for name, value in wanted.items()}
    return "text" if isinstance(wanted, str) else wanted


def test_tenants_never_see_each_other(store: BaseStore) -> None:
    tenants = ["a", "ab", "a%", "a_", "*", "%", "A", "á", "a'"]
    for tenant in tenants:
        store.batch([PutOp(("memories", tenant, kind), "k", {"of": tenant}) for kind in ("facts", "notes")])
    for tenant in tenants:
        mine = [("memories", tenant, "facts"), ("memories", tenant, "notes")]

        assert {tenant} == {item.value["of"] for item in store.search(("memories", tenant), limit=100)}
        assert [] == store.search(("memories", tenant), filter={"of": {"$ne": tenant}})
        if tenant != "*":
            assert mine == store.list_namespaces(prefix=("memories", tenant))
        store.delete(("memories", tenant, "facts"), "k")

    assert {("memories", tenant, "notes") for tenant in tenants} == set(store.list_namespaces())


def test_what_postgres_cannot_index_is_refused_at_once(dsn: str) -> None:
    """It was taken for a server that is away, and tried again until the patience was at its end."""
    long = "".join(map(str, range(6_000)))
    with PostgresStore.from_conn_string(dsn, patience=0.0) as store:
        for namespace, key in ((("a",), long), ((long,), "k")):
            with pytest.raises(InvalidInputError, match="2,000 bytes"):
                store.batch([PutOp(("a",), "k", {}), PutOp(namespace, key, {})])

        assert store.search(("a",)) == []
