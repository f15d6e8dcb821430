"""Search by meaning with a real sentence model: near sentences come first on every store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pregel.store.base import BaseStore, IndexConfig
from pregel.store.memory import InMemoryStore
from pregel.store.postgres import PostgresStore
from pregel.store.sqlite import SqliteStore
from tests import minilm

pytestmark = pytest.mark.slow  # half a second a sentence on a busy machine

SENTENCES = {
    "drink": "She always has a cup of Earl Grey in the morning.",
    "pet": "His dog sleeps on the sofa all day.",
    "money": "The invoice was paid three weeks late.",
    "travel": "They flew to Lisbon for the conference.",
    "health": "He is allergic to penicillin.",
    "music": "She plays the cello in an orchestra.",
}
QUESTIONS = {
    "Which tea does she like?": "drink",
    "Does he own an animal?": "pet",
    "Was the bill settled on time?": "money",
    "Where did they go on their trip?": "travel",
    "Which medicine must we not give him?": "health",
    "Does she know an instrument?": "music",
}


@pytest.fixture(scope="module")
def model() -> minilm.MiniLM:
    place = minilm.home()
    if place is None:
        pytest.skip(minilm.MISSING)
    return minilm.MiniLM(place)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(model: minilm.MiniLM, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    index: IndexConfig = {"dims": minilm.DIMS, "embed": model, "fields": ["text"]}
    with ExitStack() as stack:
        made: Any
        if request.param == "memory":
            made = InMemoryStore(index=index)
        elif request.param == "sqlite":
            made = stack.enter_context(SqliteStore.from_conn_string(tmp_path / "db", index=index))
        else:
            made = stack.enter_context(PostgresStore.from_conn_string(request.getfixturevalue("dsn"), index=index))
        yield made


def test_near_sentences_come_first(store: BaseStore) -> None:
    for key, text in SENTENCES.items():
        store.put(("facts",), key, {"text": text})
    found = {question: store.search(("facts",), query=question, limit=1)[0].key for question in QUESTIONS}

    assert QUESTIONS == found


def test_a_sentence_is_nearest_to_itself(store: BaseStore) -> None:
    store.put(("facts",), "pet", {"text": SENTENCES["pet"]})
    (found,) = store.search(("facts",), query=SENTENCES["pet"])

    assert round(found.score or 0, 4) == 1.0
