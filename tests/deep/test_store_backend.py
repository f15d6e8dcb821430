"""Files in a store: the laws, blocking and awaited; whose they are; that they outlive threads."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import TypedDict

from pregel.agents.deep import create_deep_agent
from pregel.agents.deep.backends import Backend, CompositeBackend, StateBackend, StoreBackend
from pregel.agents.deep.backends.conformance import BackendLaws, content_of
from pregel.agents.models import ScriptedModel, call_tool
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import DefinitionError, InvalidInputError, OutsideRunError
from pregel.graph import START, StateGraph
from pregel.runtime import Runtime
from pregel.store.base import BaseStore, InvalidNamespaceError
from pregel.store.memory import InMemoryStore
from pregel.store.sqlite import AsyncSqliteStore, SqliteStore

PLACE = ("files", "ann")


class Awaited(Backend):
    """A backend whose blocking verbs are the awaited ones of another, on a loop of their own."""

    def __init__(self, backend: Backend, loop: asyncio.AbstractEventLoop) -> None:
        self.backend, self.loop = backend, loop

    def __getattribute__(self, name: str) -> Any:
        if name in ("ls", "read", "write", "edit", "delete", "grep", "glob", "upload_files", "download_files"):
            verb = getattr(self.backend, f"a{name}")
            return lambda *args, **kwargs: asyncio.run_coroutine_threadsafe(verb(*args, **kwargs), self.loop).result()
        return super().__getattribute__(name)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


class TestStore(BackendLaws):
    @pytest.fixture
    def backend(self) -> Backend:
        return StoreBackend(namespace=PLACE, store=InMemoryStore())


@pytest.mark.slow
class TestStoreOnDisk(BackendLaws):
    examples = 3

    @pytest.fixture
    def backend(self, tmp_path: Path) -> Iterator[Backend]:
        with SqliteStore.from_conn_string(tmp_path / "db", synchronous="NORMAL") as store:
            yield StoreBackend(namespace=PLACE, store=store)


class TestStoreAwaited(BackendLaws):
    """A store that can only be awaited, on the loop that it was made on."""

    examples = 3

    @pytest.fixture
    def backend(self, tmp_path: Path, loop: asyncio.AbstractEventLoop) -> Iterator[Backend]:
        making = AsyncSqliteStore.from_conn_string(tmp_path / "db", synchronous="NORMAL")
        store = asyncio.run_coroutine_threadsafe(making.__aenter__(), loop).result()
        yield Awaited(StoreBackend(namespace=PLACE, store=store), loop)
        asyncio.run_coroutine_threadsafe(making.__aexit__(None, None, None), loop).result()


# -- whose files these are ---------------------------------------------------------------------------------------------


def test_a_namespace_neither_sees_nor_changes_what_lies_below_it_or_beside_it() -> None:
    store = InMemoryStore()
    backends = [StoreBackend(namespace=place, store=store) for place in (("a",), ("a", "b"), ("ab",))]
    for backend in backends:
        backend.write("/x.txt", str(backend.namespace))

    assert [len(backend.glob("*").matches) for backend in backends] == [1, 1, 1]
    assert backends[0].delete("/x.txt").error is None
    assert [len(backend.glob("*").matches) for backend in backends] == [0, 1, 1]


class Context(TypedDict):
    user: str


def users(runtime: Runtime[Any]) -> tuple[str, ...]:
    return ("memories", runtime.context["user"])


def remembering(path: str = "/memories/likes.txt") -> Any:
    """An agent that writes what it is told into its memory, and then reads it."""

    def answer(request: Any) -> Any:
        said = request.messages[-1].text
        if said.startswith("remember "):
            return call_tool("write_file", {"file_path": path, "content": said})
        return call_tool("read_file", {"file_path": path}) if said == "tell" else said

    backend = CompositeBackend(StateBackend(), {"/memories/": StoreBackend(namespace=users)})
    return create_deep_agent(
        ScriptedModel(answer),
        backend=backend,
        context_schema=Context,
        checkpointer=InMemorySaver(),
        store=InMemoryStore(),
    )


@pytest.fixture(params=["sync", "async"])
def say(request: pytest.FixtureRequest) -> Callable[..., str]:
    """The last thing that an agent says to a user on a thread."""

    def say(agent: Any, thread: str, user: str, text: str) -> str:
        args: Any = ({"messages": text}, {"configurable": {"thread_id": thread}})
        context = {"user": user}
        blocking = request.param == "sync"
        state = agent.invoke(*args, context=context) if blocking else asyncio.run(agent.ainvoke(*args, context=context))
        return str(state["messages"][-1].text)

    return say


@pytest.mark.acceptance("S1-62")
def test_what_one_thread_wrote_another_one_reads_and_another_user_does_not(say: Callable[..., str]) -> None:
    agent = remembering()

    assert say(agent, "1", "ann", "remember tea") == "Wrote /memories/likes.txt."
    assert "remember tea" in say(agent, "2", "ann", "tell")
    assert "file_not_found: /memories/likes.txt" in say(agent, "3", "bob", "tell")
    assert not agent.get_state({"configurable": {"thread_id": "1"}}).values["files"]


def test_a_file_of_the_state_stays_with_its_thread(say: Callable[..., str]) -> None:
    agent = remembering("/likes.txt")

    say(agent, "1", "ann", "remember tea")

    assert "file_not_found" in say(agent, "2", "ann", "tell")


@pytest.mark.parametrize("place", [(), ("a.b",), ("langgraph", "x"), ("a", None), "files"])
def test_a_namespace_that_is_none_is_refused_when_the_backend_is_made_and_when_it_is_used(place: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        StoreBackend(namespace=place)
    with pytest.raises(InvalidNamespaceError):
        StoreBackend(namespace=lambda runtime: place, store=InMemoryStore()).ls("/")


class State(TypedDict):
    said: str


def test_a_store_that_is_missing_is_named() -> None:
    backend = StoreBackend(namespace=PLACE)
    graph = StateGraph(State).add_node("node", lambda state: {"said": str(backend.ls("/"))}).add_edge(START, "node")

    with pytest.raises(OutsideRunError, match="none is running"):
        backend.ls("/")
    with pytest.raises(InvalidInputError, match="this graph has none"):
        graph.compile().invoke({"said": ""})
    with pytest.raises(DefinitionError, match="no store"):
        StoreBackend(namespace=PLACE, store={})  # type: ignore[arg-type]


# -- changes -----------------------------------------------------------------------------------------------------------


class Slow(InMemoryStore):
    """A store in which whoever read waits until another one read as well, or nobody else can."""

    def __init__(self, readers: int) -> None:
        super().__init__()
        self.meeting = threading.Barrier(readers)

    def get(self, *args: Any, **kwargs: Any) -> Any:
        found = super().get(*args, **kwargs)
        with contextlib.suppress(threading.BrokenBarrierError):
            self.meeting.wait(0.05)
        return found


def test_edits_that_meet_are_all_kept() -> None:
    store = Slow(2)
    StoreBackend(namespace=PLACE, store=store).write("/a.txt", "1 2")
    backends = [StoreBackend(namespace=PLACE, store=store) for _ in range(2)]
    threads = [
        threading.Thread(target=backend.edit, args=("/a.txt", text, f"{text}!"))
        for backend, text in zip(backends, "12", strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert content_of(backends[0].read("/a.txt")) == "1! 2!"


def test_text_is_found_by_meaning_and_bytes_are_not_embedded() -> None:
    seen: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        seen.extend(texts)
        return [[1.0, 0.0] for _ in texts]

    store: BaseStore = InMemoryStore(index={"dims": 2, "embed": embed, "fields": ["content"]})
    backend = StoreBackend(namespace=PLACE, store=store)
    backend.write("/a.txt", "tea")
    backend.upload_files([("/b.bin", b"\0\xff")])

    assert seen == ["tea"]
