"""The shipped laws on every saver of ours, and on savers as others write them."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from pregel.checkpoint.conformance import JournalLaws, SaverLaws
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.checkpoint.sqlite.aio import AsyncSqliteSaver
from tests.behaviour.savers.third_party import Aliasing, AsyncOnly, ByVersion, FiveVerbs, TextVersions


@contextmanager
def sqlite_file() -> Iterator[Any]:
    with (
        tempfile.TemporaryDirectory() as place,
        SqliteSaver.from_conn_string(Path(place, "threads.db"), synchronous="NORMAL") as saver,
    ):
        yield saver


@asynccontextmanager
async def awaited_file() -> AsyncIterator[Any]:
    with tempfile.TemporaryDirectory() as place:
        async with AsyncSqliteSaver.from_conn_string(Path(place, "threads.db"), synchronous="NORMAL") as saver:
            yield saver


@asynccontextmanager
async def awaited_connection() -> AsyncIterator[Any]:
    async with aiosqlite.connect(":memory:") as connection:
        yield AsyncSqliteSaver(connection)


@pytest.mark.acceptance("S1-35")
class TestMemory(JournalLaws):
    def open(self) -> Any:
        return nullcontext(InMemorySaver())


class TestMemoryAwaited(TestMemory):
    awaited = True


@pytest.mark.acceptance("S1-35")
class TestSqlite(JournalLaws):
    def open(self) -> Any:
        return sqlite_file()


class TestSqliteAwaited(TestSqlite):
    awaited = True


@pytest.mark.slow
class TestSqliteInMemory(JournalLaws):
    def open(self) -> Any:
        return SqliteSaver.from_conn_string(":memory:")


@pytest.mark.acceptance("S1-35")
class TestAsyncSqlite(JournalLaws):
    awaited = True

    def open(self) -> Any:
        return awaited_file()


@pytest.mark.slow
class TestAsyncSqliteConnection(JournalLaws):
    awaited = True

    def open(self) -> Any:
        return awaited_connection()


@pytest.mark.acceptance("S1-35")
class TestFiveVerbs(SaverLaws):
    def open(self) -> Any:
        return nullcontext(FiveVerbs())


class TestTextVersions(SaverLaws):
    def open(self) -> Any:
        return nullcontext(TextVersions())


class TestByVersion(SaverLaws):
    def open(self) -> Any:
        return nullcontext(ByVersion())


class TestAsyncOnly(SaverLaws):
    awaited = True

    def open(self) -> Any:
        return nullcontext(AsyncOnly())


# -- the laws find faults ----------------------------------------------------------------------------------------------


class LosesMetadata(FiveVerbs):
    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        return super().put(config, checkpoint, {"source": "loop", "step": 1, "parents": {}}, new_versions)


class ForgetsParents(FiveVerbs):
    def put(self, config: Any, *args: Any) -> Any:
        place = {key: value for key, value in config["configurable"].items() if key != "checkpoint_id"}
        return super().put({"configurable": place}, *args)


class OneNamespace(FiveVerbs):
    def get_tuple(self, config: Any) -> Any:
        return super().get_tuple({"configurable": {**config["configurable"], "checkpoint_ns": ""}})


class LastWriteWins(FiveVerbs):
    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        rows = self.writes.setdefault(self._key(config), {})
        for where in [where for where in rows if where[0] == task_id]:
            del rows[where]
        super().put_writes(config, writes, task_id, task_path)


class UnsortedWrites(FiveVerbs):
    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        super().put_writes(config, writes, task_id, "")


class OldestFirst(FiveVerbs):
    def list(self, config: Any, **options: Any) -> Any:
        return iter(list(super().list(config, **options))[::-1])


class LimitBeforeFilter(FiveVerbs):
    def list(self, config: Any, *, filter: Any = None, limit: Any = None, **options: Any) -> Any:
        found = super().list(config, limit=limit, **options)
        return iter([one for one in found if all(one.metadata.get(k) == v for k, v in (filter or {}).items())])


class BeforeIsIncluded(FiveVerbs):
    def list(self, config: Any, *, before: Any = None, **options: Any) -> Any:
        yield from [] if before is None else [self.get_tuple(before)]
        yield from super().list(config, before=before, **options)


class KeepsWritesOfDeleted(FiveVerbs):
    def delete_thread(self, thread_id: str) -> None:
        kept = {key: dict(rows) for key, rows in self.writes.items()}
        super().delete_thread(thread_id)
        self.writes = kept


class DeletesByPrefix(FiveVerbs):
    def delete_thread(self, thread_id: str) -> None:
        for thread in {key[0] for key in self.checkpoints if key[0].startswith(thread_id)}:
            super().delete_thread(thread)


class StandingVersions(FiveVerbs):
    def get_next_version(self, current: Any, channel: Any = None) -> Any:
        return 1


class ValuesByVersionOnly(ByVersion):
    """Forks share a version, so the second one gets the first one's value."""

    def get_next_version(self, current: Any, channel: Any = None) -> Any:
        return 1 if current is None else current + 1


RANDOM = (pytest.mark.slow, pytest.mark.timeout(400))  # what is found is made smaller, which takes a while
FAULTS = [
    (Aliasing, "test_what_the_caller_does_to_a_value_later_changes_nothing"),
    (Aliasing, "test_what_is_done_to_a_value_that_was_given_out_changes_nothing"),
    (LosesMetadata, "test_metadata_comes_back_with_what_the_caller_added"),
    (ForgetsParents, "test_the_parent_is_the_checkpoint_that_the_config_names"),
    (OneNamespace, "test_namespaces_are_apart"),
    (LastWriteWins, "test_the_first_write_of_a_task_stays"),
    (LastWriteWins, "test_a_question_takes_no_position_from_a_result"),
    (UnsortedWrites, "test_writes_are_in_the_order_of_path_task_and_position"),
    (OldestFirst, "test_the_newest_is_first"),
    (LimitBeforeFilter, "test_filter_before_and_limit_go_together"),
    (BeforeIsIncluded, "test_before_means_older_than"),
    (DeletesByPrefix, "test_other_threads_stay"),
    (StandingVersions, "test_versions_rise"),
    (ValuesByVersionOnly, "test_branches_from_one_checkpoint_keep_their_own_values"),
    pytest.param(LosesMetadata, "test_random_calls_agree_with_a_dict", marks=RANDOM),
    pytest.param(LastWriteWins, "test_random_calls_agree_with_a_dict", marks=RANDOM),
    pytest.param(ForgetsParents, "test_random_calls_agree_with_a_dict", marks=RANDOM),
    pytest.param(BeforeIsIncluded, "test_random_calls_agree_with_a_dict", marks=RANDOM),
]


@pytest.mark.acceptance("S1-35")
@pytest.mark.parametrize(("kind", "law"), FAULTS)
def test_a_saver_with_a_fault_breaks_a_law(kind: type[FiveVerbs], law: str) -> None:
    class Laws(SaverLaws):
        examples = 300

        def open(self) -> Any:
            return nullcontext(kind())

    laws = Laws()
    laws.setup_method()
    try:
        with pytest.raises(AssertionError):
            getattr(laws, law)()
    finally:
        laws.teardown_method()


def test_the_laws_are_many() -> None:
    def laws_of(kind: type[SaverLaws]) -> int:
        return sum(name.startswith("test_") for name in dir(kind))

    assert 50 < laws_of(SaverLaws) < laws_of(JournalLaws) - 25
