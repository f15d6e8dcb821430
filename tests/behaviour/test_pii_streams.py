"""Personal data does not show in a stream before it is redacted: the words that show add up to what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pregel.agents import ScriptedModel, ToolRuntime, create_agent, tool
from pregel.agents.middleware import (
    AgentMiddleware,
    ModelRetryMiddleware,
    PIIDetectionError,
    PIIMiddleware,
    RedactionRule,
    wrap_model_call,
)
from pregel.agents.middleware.pii_stream import CleanText
from pregel.agents.models import ModelRateLimitError, call_tool
from pregel.agents.models.scripted import Turn
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.engine.spoken import Speaker
from pregel.graph import START, MessagesState, StateGraph
from pregel.messages import AIMessage, AIMessageChunk
from pregel.tokens import token_sink

from .conftest import Runner
from .run_objects import read

HI = {"messages": "hi"}
SECRET = "ann@mail.org"
SPLIT = ["Write to an", "n@mail", ".", "org", " or", " come", "."]


def saying(*pieces: Any, last: bool = True, **fields: Any) -> Turn:
    """An answer that streams in these pieces."""
    chunks = [AIMessageChunk(piece) for piece in pieces]
    return Turn(chunks=[*chunks, AIMessageChunk("", chunk_position="last")] if last else chunks, **fields)


def agent(*turns: Any, strategy: Any = "redact", more: Sequence[AgentMiddleware] = (), **options: Any) -> Any:
    redacting = PIIMiddleware("email", strategy=strategy, apply_to_output=True, **options)
    return create_agent(ScriptedModel(turns), middleware=[redacting, *more])


def words(chunks: list[Any]) -> str:
    return "".join(chunk.text for chunk, _ in chunks)


@pytest.mark.parametrize("strategy", ["redact", "mask", "hash"])
def test_what_shows_adds_up_to_what_is_stored(run: Runner, strategy: Any) -> None:
    for last in (True, False):
        app = agent(saying(*SPLIT, last=last), strategy=strategy)
        chunks = run.stream(app, HI, stream_mode=["messages", "values"])
        shown = words([data for mode, data in chunks if mode == "messages"])

        assert chunks[-1][1]["messages"][-1].text == shown
        assert SECRET not in shown
        assert shown.endswith(" or come.")


def test_run_objects_show_the_redacted_words(run: Runner) -> None:
    found = read(run, agent(saying(*SPLIT)), "messages events", HI)

    ((text, pieces),) = found["messages"]
    assert "Write to [REDACTED_EMAIL] or come." == text == "".join(pieces)
    assert "mail" not in str(found["events"])


def test_words_are_held_back_only_while_they_may_be_part_of_a_match(run: Runner) -> None:
    heard: list[str] = []

    run.follow(lambda part: heard.append(part[0].text), agent(saying(*SPLIT)), HI, stream_mode="messages")

    assert ["Write to ", "[REDACTED_EMAIL] ", "or ", "come."] == [piece for piece in heard if piece]


def test_a_blocked_answer_shows_nothing_of_the_match_or_behind_it(run: Runner) -> None:
    heard: list[str] = []
    blocked = agent(saying(*SPLIT), strategy="block")

    with pytest.raises(PIIDetectionError):
        run.follow(lambda part: heard.append(part[0].text), blocked, HI, stream_mode="messages")

    assert "Write to " == "".join(heard)


def test_texts_of_blocks_are_told_apart(run: Runner) -> None:
    def block(text: str, index: int) -> list[Any]:
        return [{"type": "text", "text": text, "index": index}]

    turn = saying(block("to ann@ma", 0), block("il.org", 0), block("x", 1), block("y@b.org", 1))
    chunks = run.stream(agent(turn), HI, stream_mode="messages")

    whole = chunks[0][0] + [chunk for chunk, _ in chunks[1:]]
    assert ["to [REDACTED_EMAIL]", "[REDACTED_EMAIL]"] == [one["text"] for one in whole.content]


def test_tool_calls_and_usage_still_show(run: Runner) -> None:
    @tool
    def noted(text: str) -> str:
        """Note."""
        return "ok"

    redacting = PIIMiddleware("email", apply_to_output=True)
    calls = AIMessage(f"I note {SECRET}", tool_calls=call_tool("noted", {"text": "x"}, id="1").tool_calls)
    app = create_agent(ScriptedModel([calls, "Done."]), [noted], middleware=[redacting])

    chunks = [chunk for chunk, where in run.stream(app, HI, stream_mode="messages") if "Chunk" in type(chunk).__name__]

    first = [chunk for chunk in chunks if chunk.id == chunks[0].id]
    whole = first[0] + first[1:]
    assert ("I note [REDACTED_EMAIL]", "noted") == (whole.text, whole.tool_calls[0]["name"])


def test_several_types_are_looked_for_at_once(run: Runner) -> None:
    both = agent(
        saying("ann@ma", "il.org at 10.0", ".0.1 now"),
        more=[PIIMiddleware("ip", strategy="mask", apply_to_output=True)],
    )

    assert "[REDACTED_EMAIL] at *.*.*.1 now" == words(run.stream(both, HI, stream_mode="messages"))


def test_an_attempt_that_failed_shows_no_more_of_what_was_held(run: Runner) -> None:
    failed = Turn(chunks=[AIMessageChunk("call ann@ma")], error=ModelRateLimitError("slow down"))
    retried = agent(failed, saying("Done."), more=[ModelRetryMiddleware(initial_delay=0)])

    assert "call Done." == words(run.stream(retried, HI, stream_mode="messages"))


def test_a_model_that_a_hook_asks_itself_is_heard_through_it_too(run: Runner) -> None:
    other = ScriptedModel([f"from {SECRET}"])

    @wrap_model_call
    def elsewhere(request: Any, handler: Any) -> Any:
        return other.invoke(request.messages)

    assert "from [REDACTED_EMAIL]" == words(run.stream(agent(more=[elsewhere]), HI, stream_mode="messages"))


def test_a_detector_of_ones_own_is_given_the_whole_text_unless_it_says_what_parts_matches(run: Runner) -> None:
    def heard(**options: Any) -> list[str]:
        redacting = PIIMiddleware("staff", detector=r"E-\d+", apply_to_output=True, **options)
        app = create_agent(ScriptedModel([saying("ask E", "-1", "2 or", " E-3")]), middleware=[redacting])
        return [part.text for part, _ in run.stream(app, HI, stream_mode="messages") if part.text]

    assert ["ask [REDACTED_STAFF] or [REDACTED_STAFF]"] == heard()
    assert ["ask ", "[REDACTED_STAFF] ", "or ", "[REDACTED_STAFF]"] == heard(breaks=r"\s")


def test_a_detector_that_fails_ends_the_run_when_the_answer_is_whole_and_shows_nothing(run: Runner) -> None:
    def failing(text: str) -> list[Any]:
        raise LookupError("no list of names")

    heard: list[str] = []
    redacting = PIIMiddleware("name", detector=failing, breaks=r"\s", apply_to_input=False, apply_to_output=True)
    app = create_agent(ScriptedModel([saying("it is ", "Ann")]), middleware=[redacting])

    with pytest.raises(LookupError):
        run.follow(lambda part: heard.append(part[0].text), app, HI, stream_mode="messages")

    assert "" == "".join(heard)


def test_what_a_tool_puts_out_is_clean_and_stored_so_at_once(run: Runner) -> None:
    @tool
    def look(runtime: ToolRuntime) -> str:
        """Look."""
        for piece in ("ann@", "mail.org", " and", 1):
            runtime.emit_output_delta(piece)
        return f"found {SECRET}"

    redacting = PIIMiddleware("email", apply_to_tool_results=True)
    app = create_agent(ScriptedModel([call_tool("look"), "Done."]), [look], middleware=[redacting])

    chunks = run.stream(app, HI, stream_mode=["tools", "updates", "messages"])

    assert "mail.org" not in str(chunks)
    deltas = [data["delta"] for mode, data in chunks if mode == "tools" and data["event"] == "tool-output-delta"]
    assert ["[REDACTED_EMAIL] ", 1, "and"] == deltas


@pytest.mark.parametrize("strategy", ["redact", "block"])
def test_an_answer_is_nowhere_stored_as_it_came(run: Runner, tmp_path: Path, strategy: Any) -> None:
    redacting = PIIMiddleware("email", strategy=strategy, apply_to_output=True)
    path = str(tmp_path / "threads.db")
    with SqliteSaver.from_conn_string(path) as saver:
        app = create_agent(ScriptedModel([f"ask {SECRET}"]), middleware=[redacting], checkpointer=saver)
        with pytest.raises(PIIDetectionError) if strategy == "block" else nullcontext():
            run.invoke(app, HI, {"configurable": {"thread_id": "1"}})

    assert SECRET.encode() not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_a_run_that_does_not_look_for_anything_reports_to_the_task_itself() -> None:
    found: list[Any] = []

    def node(state: MessagesState) -> None:
        found.append(token_sink())

    app = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node").compile()
    list(app.stream({"messages": []}, stream_mode="messages"))

    assert isinstance(found[0], Speaker)


def test_models_beside_it_are_not_screened() -> None:
    """Two agents of one event loop at once: one redacts, the other does not."""
    plain = create_agent(ScriptedModel([saying(*SPLIT)]))

    async def heard(app: Any) -> str:
        return words([part async for part in app.astream(HI, stream_mode="messages")])

    async def both() -> list[str]:
        return list(await asyncio.gather(heard(agent(saying(*SPLIT))), heard(plain)))

    assert ["Write to [REDACTED_EMAIL] or come.", "".join(SPLIT)] == asyncio.run(both())


BITS = [
    *(
        "ann",
        "@",
        "mail",
        ".org",
        ".",
        " ",
        "-",
        "10.0.0.1",
        "7",
        "4111 1111",
        " 1111",
        "1111",
        "00:1B:44",
        ":11:3A:B7",
    ),
    *("http", "s", ":", "//", "www.", "x", "ü", "_", ",", "\n", "(", '"', "你"),
]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["email", "credit_card", "ip", "mac_address", "url"]), st.lists(st.sampled_from(BITS), max_size=14)
)
def test_any_split_of_any_text_shows_the_clean_text(kind: str, pieces: list[str]) -> None:
    redaction = RedactionRule(kind).resolved()
    text = CleanText(redaction)

    shown = "".join([*map(text.take, pieces), text.end()])

    assert redaction("".join(pieces)) == shown
