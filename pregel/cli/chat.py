"""`pregel chat`: a conversation with an agent in the terminal, on a thread that lasts.

1. What is typed is a message, or the answer to the question that the thread waits for. An empty line goes on with a
   run that was stopped or failed; end of input (Ctrl-D) ends the conversation, and the thread stays as it is.
2. What comes from a model, a tool or a question is shown without control characters (`answers.visible`).
3. The exit code says how the last run left the thread, as that of `pregel run` does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.cli.answers import free_answer, visible
from pregel.cli.questions import Questions
from pregel.cli.runs import explained, thread_config
from pregel.cli.screen import Screen
from pregel.cli.target import Graph, is_async, open_graph
from pregel.cli.usage import DONE, FAILED, PAUSED, CallError, writable_database
from pregel.cli.values import shortened
from pregel.errors import GraphDrained, ThreadBusy
from pregel.signals import drain_on_signals
from pregel.types import StateSnapshot

MODES = ["messages", "tools"]


def chat(options: argparse.Namespace, screen: Screen) -> int:
    """Talks until the input ends."""
    if bool(options.graph) == bool(options.model):
        raise CallError("A chat needs an agent or a model.", "Name MODULE:AGENT, or --model openai:NAME; not both.")
    options.thread = options.thread or f"chat-{uuid4().hex[:8]}"
    with _open(options) as graph:
        if "messages" not in getattr(graph, "channels", ()):
            raise CallError(f"{options.graph} has no `messages` in its state.", "Name an agent.")
        return Chat(graph, options, screen).talk()


@contextmanager
def _open(options: argparse.Namespace) -> Iterator[Graph]:
    """The agent: the user's, or one of the model alone."""
    database = writable_database(options.db)
    if options.graph:
        with open_graph(options.graph, database) as graph:
            yield graph
        return
    from pregel.agents import create_agent  # on use: a chat with a graph of the user's may not need it

    try:
        agent: Any = create_agent(options.model, system_prompt=options.system)
    except ImportError as error:
        fix = f'pip install "pregel[agents,{options.model.partition(":")[0]}]"'
        raise CallError(f"{options.model} needs a package that is missing: {error}.", fix) from error
    with SqliteSaver.from_conn_string(database) as saver:
        yield agent.copy(update={"checkpointer": saver})


class Chat:
    """One conversation."""

    def __init__(self, graph: Graph, options: argparse.Namespace, screen: Screen) -> None:
        self.graph, self.options, self.screen = graph, options, screen
        self.config = thread_config(options.thread)
        self.shown = Shown(screen)
        self.questions = Questions(screen, free_answer)
        self.failed = False

    def talk(self) -> int:
        """The exit code."""
        state = self.graph.get_state(self.config)
        self.screen.say(f"Thread {self.options.thread} in {self.options.db}.")
        if state.next and not state.interrupts:
            self.screen.say("Its last run did not end. An empty line goes on with it.")
        while (given := self._next(state)) is not None:
            before = _last_words(state)
            self._run(given if given != "" else None)
            state = self.graph.get_state(self.config)
            if (last := _last_words(state)) != before:
                self.shown.once(*last)
        return self._leave(state)

    def _leave(self, state: StateSnapshot) -> int:
        whom = [self.options.graph] if self.options.graph else ["--model", self.options.model]
        command = ["pregel", "chat", *whom, "--thread", self.options.thread]
        if self.options.db != "pregel.db":
            command += ["--db", self.options.db]
        self.screen.say(f"Go on with: {shlex.join(command)}")
        return FAILED if self.failed else PAUSED if state.next else DONE

    # -- what a person says --------------------------------------------------------------------------------------------

    def _next(self, state: StateSnapshot) -> Any:
        """The next input of the agent; "" to go on with its run, None when there is no more."""
        if state.interrupts:
            return self.questions.answers(state.interrupts)
        while (line := self.questions.line("> ")) is not None:
            if line.strip():
                return {"messages": [("user", line)]}
            if state.next:
                return ""
        return None

    # -- what the agent does -------------------------------------------------------------------------------------------

    def _run(self, given: Any) -> None:
        shown, self.failed = self.shown, False
        try:
            with drain_on_signals() as control:
                if is_async(self.graph):
                    asyncio.run(_awaited(self.graph, given, self.config, control, shown))
                else:
                    for mode, chunk in self.graph.stream(given, self.config, stream_mode=MODES, control=control):
                        shown.take(mode, chunk)
        except ThreadBusy:
            raise
        except GraphDrained:
            shown.end()
            self.screen.say("Stopped. An empty line goes on.")
        except Exception as error:
            shown.end()
            self.failed = True
            self.screen.problem(f"The run failed: {visible(explained(error))}")
        shown.end()


def _last_words(state: StateSnapshot) -> tuple[str, str]:
    """Id and text of the message that the thread ends with, when it is the agent's."""
    messages = state.values.get("messages") or [None]
    last = messages[-1]
    return (str(last.id), last.text) if getattr(last, "type", "") == "ai" else ("", "")


async def _awaited(graph: Graph, given: Any, config: Any, control: Any, shown: Shown) -> None:
    chunks: AsyncIterator[Any] = graph.astream(given, config, stream_mode=MODES, control=control)
    async for mode, chunk in chunks:
        shown.take(mode, chunk)


class Shown:
    """What a run says, as it comes: words piece by piece, a line for each tool call and each result."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.started: set[str] = set()  # the ids of calls: one that asked something starts again with the answer
        self.said: set[str] = set()
        self.speaking: str | None = None  # the id of the message whose words stand at the end of an open line

    def take(self, mode: str, chunk: Any) -> None:
        """Show a chunk of the stream."""
        if mode == "messages":
            self._words(chunk[0])
        else:
            self._tool(chunk)

    def once(self, id: str, text: str) -> None:
        """Show a message that did not come in the stream: a node wrote it in a form of its own."""
        if text and id not in self.said:
            self._line(text)

    def end(self) -> None:
        """End an open line."""
        if self.speaking is not None:
            self.screen.say()
            self.speaking = None

    def _words(self, message: Any) -> None:
        if not message.type.startswith(("ai", "AI")) or not message.text:
            return
        if self.speaking not in (None, message.id):
            self.end()
        self.speaking = message.id or ""
        self.said.add(self.speaking)
        self.screen.piece(visible(message.text))

    def _tool(self, event: Any) -> None:
        match event:
            case {"event": "tool-started", "tool_call_id": id, "tool_name": name, "input": given}:
                if id in self.started:
                    return
                self.started.add(id)
                self._line(f"[{name}] {json.dumps(given, ensure_ascii=False, default=str)}")
            case {"event": "tool-finished", "output": output}:
                self._line(f"  = {shortened(getattr(output, 'text', None) or '(no text)')}")
            case {"event": "tool-error", "message": message}:
                self._line(f"  failed: {shortened(message)}")

    def _line(self, text: str) -> None:
        self.end()
        self.screen.say(visible(text))
