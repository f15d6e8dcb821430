"""A thread that is read again is read from where it was read before; what comes is what is stored, nobody else's."""

from __future__ import annotations

import operator
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

from pregel.checkpoint.flows import Many, Sql
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.flow import Flow
from pregel.graph import START, StateGraph
from pregel.graph.message import add_messages
from pregel.messages import AIMessage, BaseMessage, HumanMessage

TEXT = "x" * 800


class Chat(TypedDict, total=False):
    messages: Annotated[list[BaseMessage], add_messages]
    notes: Annotated[list[Any], operator.add]


def chat(saver: Any) -> Any:
    """A node that answers, with all that a message may hold."""

    def answer(state: Chat) -> dict[str, Any]:
        n = len(state["messages"])
        call = {"name": "look", "args": {"at": [n]}, "id": f"c{n}"}
        return {"messages": [AIMessage(TEXT, id=f"a{n}", tool_calls=[call], response_metadata={"use": {"in": n}})]}

    builder = StateGraph(Chat)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    return builder.compile(saver)


def place(thread: str = "1", **more: Any) -> Any:
    return {"configurable": {"thread_id": thread, **more}}


def say(app: Any, text: str, *, thread: str = "1", notes: Sequence[Any] = ()) -> Any:
    return app.invoke({"messages": [HumanMessage(text + TEXT, id=text)], "notes": [*notes]}, place(thread))


def talk(app: Any, turns: int) -> None:
    for turn in range(turns):
        say(app, f"h{turn}", notes=[{"n": turn, "text": TEXT}])


def ids(state: Any) -> list[str]:
    return [message.id for message in state.values["messages"]]


class Counting(InMemorySaver):
    """Counts the rows of values that are read."""

    rows = 0

    def _do_values(self, *args: Any) -> Any:
        found = super()._do_values(*args)
        self.rows += len(found)
        return found


def test_a_long_thread_is_read_from_where_it_was_read_before() -> None:
    saver = Counting()
    app = chat(saver)
    talk(app, 20)
    saver.rows = 0

    say(app, "more")
    app.get_state(place())

    assert saver.rows < 12


def test_what_a_reader_changes_is_nobody_elses(saver: JournalSaver) -> None:
    app = chat(saver)
    talk(app, 4)
    first = app.get_state(place()).values
    stored = [message.to_fields() for message in app.get_state(place()).values["messages"]]

    for message in first["messages"]:
        message.content = "changed"
        message.response_metadata["use"] = "changed"
        if isinstance(message, AIMessage):
            message.tool_calls[0]["args"]["at"].append("changed")
    first["notes"][0]["n"] = "changed"

    again = app.get_state(place()).values
    assert stored[0]["content"] == again["messages"][0].content
    assert {"use": {"in": 1}} == again["messages"][1].response_metadata
    assert {"at": [1]} == again["messages"][1].tool_calls[0]["args"]
    assert {"n": 0, "text": TEXT} == again["notes"][0]


def test_a_thread_that_was_made_anew_is_not_taken_for_the_old_one(saver: JournalSaver) -> None:
    app = chat(saver)
    talk(app, 4)
    app.get_state(place())
    saver.delete_thread("1")

    for turn in range(4):
        say(app, f"other{turn}")

    assert [f"other{turn}" for turn in range(4)] == ids(app.get_state(place()))[::2]


def test_an_older_checkpoint_and_a_fork_of_it_are_read_as_they_are(saver: JournalSaver) -> None:
    app = chat(saver)
    talk(app, 4)
    tip = ids(app.get_state(place()))
    old = [entry for entry in app.get_state_history(place()) if entry.values and not entry.next][2]

    assert tip[:4] == ids(app.get_state(old.config))
    assert tip == ids(app.get_state(place()))
    app.update_state(old.config, {"messages": [HumanMessage(TEXT, id="fork")]})
    assert [*tip[:4], "fork"] == ids(app.get_state(place()))
    say(app, "on")
    assert [*tip[:4], "fork", "on"] == ids(app.get_state(place()))[:6]


def test_a_pruned_thread_goes_on(saver: JournalSaver) -> None:
    app = chat(saver)
    talk(app, 4)
    before = ids(app.get_state(place()))

    saver.prune(["1"])

    assert before == ids(app.get_state(place()))
    say(app, "on")
    assert [*before, "on"] == ids(app.get_state(place()))[:-1]
    assert saver.verify("1") == []


def test_what_another_saver_wrote_is_read(tmp_path: Path) -> None:
    with (
        SqliteSaver.from_conn_string(tmp_path / "one.db") as one,
        SqliteSaver.from_conn_string(tmp_path / "one.db") as two,
    ):
        for turn in range(6):
            say(chat((one, two)[turn % 2]), f"h{turn}")

        assert ids(chat(one).get_state(place())) == ids(chat(two).get_state(place()))
        assert [f"h{turn}" for turn in range(6)] == ids(chat(one).get_state(place()))[::2]


def test_a_database_that_was_set_back_is_read_as_it_is(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "one.db", check_same_thread=False)
    saver = SqliteSaver(connection)
    app = chat(saver)
    talk(app, 5)
    backup = sqlite3.connect(":memory:")
    connection.backup(backup)
    say(app, "lost")
    app.get_state(place())
    with saver.database.kept():
        backup.backup(connection)

    say(chat(SqliteSaver(connection)), "kept")

    assert "kept" == ids(app.get_state(place()))[-2]
    connection.close()
    backup.close()


def test_damage_is_found_in_what_was_read_before() -> None:
    saver = InMemorySaver()
    app = chat(saver)
    talk(app, 4)
    app.get_state(place())

    def damage() -> Flow[None]:
        tno = (yield Sql("lock_thread", ("1",)))[0][0]
        rows = yield Sql("value_keys", (tno, 0))
        first = min(row for row in rows if row[2] == "delta")
        yield Many("delete_value", [(tno, 0, *first[:3])])

    saver.write(damage())

    assert saver.verify("1")


def test_no_more_is_kept_than_it_says() -> None:
    saver = InMemorySaver()
    app = chat(saver)
    saver.recent.largest = 20_000
    for thread in "123456":
        for turn in range(4):
            say(app, f"h{turn}", thread=thread)
        app.get_state(place(thread))
        assert 4_000 < saver.recent.size <= 20_000


def test_items_of_other_classes_are_read_each_time() -> None:
    saver = Counting()
    app = chat(saver)
    for turn in range(4):
        say(app, f"h{turn}", notes=[bytearray(TEXT.encode()), {"in": (turn, bytearray(b"b"))}])

    notes = app.get_state(place()).values["notes"]

    assert [bytearray] * 4 == [type(note) for note in notes[::2]]
    assert [(turn, bytearray(b"b")) for turn in range(4)] == [note["in"] for note in notes[1::2]]
