"""A random conversation of an agent with a scripted service, drawn from a seed: what may go wrong in one goes wrong.

The service answers with texts, calls of good, failing, asking and unknown tools, unreadable arguments and errors. The
person answers questions, ignores them, cuts runs off, lets them go on, and edits the history. The agent summarises.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pregel import Command
from pregel.agents import create_agent, tool
from pregel.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
    ToolCallLimitMiddleware,
    wrap_model_call,
)
from pregel.agents.models import ChatModel, ModelAPIError, ModelRateLimitError
from pregel.agents.models.anthropic import ChatAnthropic
from pregel.agents.models.openai import ChatOpenAI
from pregel.checkpoint.memory import InMemorySaver
from pregel.messages import AIMessage, HumanMessage, RemoveMessage, tool_call
from pregel.types import interrupt

from .service import Conversation

TURNS = 80  # more than a conversation can use up: a run has at most eight model calls
PICTURE: Any = [{"type": "text", "text": "there"}, {"type": "image", "base64": "aGk=", "mime_type": "image/png"}]
CONFIG: Any = {"configurable": {"thread_id": "t"}}
WORDS = ("", "Well.", "Let me see, it is a longer sentence. " * 4, " \n", "Grüße 🙂 ")


@dataclass
class Talk:
    """One conversation: its chance, the services of its models and of its summaries, and what happened in it."""

    chance: random.Random
    models: list[ChatModel]
    summaries: ChatModel
    happened: Counter[str]

    def __post_init__(self) -> None:
        self.loop = asyncio.Runner()
        self.cut_off = False
        self.agent = self._agent()

    def play(self) -> None:
        """The whole conversation."""
        with self.loop:
            for _ in range(self.chance.randint(5, 9)):
                self._step()

    # -- the agent -----------------------------------------------------------------------------------------------------

    def _agent(self) -> Any:
        middleware: list[Any] = [
            SummarizationMiddleware(
                self.summaries,
                trigger=("messages", self.chance.randint(4, 12)),
                keep=("messages", self.chance.randint(1, 5)),
            ),
            ModelCallLimitMiddleware(run_limit=8, exit_behavior="end"),
        ]
        if self.chance.random() < 0.3:
            mode: Any = self.chance.choice(("continue", "end"))
            middleware.append(ToolCallLimitMiddleware(run_limit=3, exit_behavior=mode))
        if self.chance.random() < 0.3:
            middleware.append(ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=50, keep=1)]))
        if self.chance.random() < 0.3:
            middleware.append(ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False))
        if len(self.models) > 1:
            middleware.append(self._either_model())
        mode = self.chance.choice(("batched", "per_call"))
        middleware.append(HumanInTheLoopMiddleware({"pay": True}, interrupt_mode=mode))
        self.chance.shuffle(middleware)
        return create_agent(
            self.models[0],
            self._tools(),
            system_prompt=self.chance.choice((None, "Be brief.")),
            middleware=middleware,
            checkpointer=InMemorySaver(),
        )

    def _either_model(self) -> Any:
        @wrap_model_call
        def either_model(request: Any) -> Any:
            return (yield request.override(model=self.chance.choice(self.models)))

        return either_model

    def _tools(self) -> list[Any]:
        @tool
        def look(what: str) -> Any:
            """Look at something."""
            if self.cut_off and self.chance.random() < 0.5:
                self.cut_off = False
                raise KeyboardInterrupt
            return {"picture": PICTURE, "nothing": "", "none": None}.get(what, f"seen: {what}")

        @tool
        def fail(why: str = "") -> str:
            """Fail."""
            raise ValueError(why)

        @tool
        def ask(question: str) -> str:
            """Ask the person."""
            return f"said: {interrupt(question)}"

        @tool
        def pay(amount: int) -> str:
            """Pay."""
            return f"paid {amount}"

        @tool(return_direct=True)
        def tell(text: str) -> str:
            """Tell the person."""
            return text

        return [look, fail, ask, pay, tell]

    # -- the person ----------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        state = self.agent.get_state(CONFIG)
        if state.interrupts and self.chance.random() < 0.8:
            self.happened["answered"] += 1
            return self._run(Command(resume={one.id: self._answer(one.value) for one in state.interrupts}))
        if state.next and not state.interrupts and self.chance.random() < 0.5:
            self.happened["went on"] += 1
            return self._run(None)
        if state.values.get("messages") and self.chance.random() < 0.3:
            self._edit(state.values["messages"], pending=bool(state.next))
        self.happened["ignored"] += bool(state.next)
        name = self.chance.choice((None, None, "Ada Lovelace"))
        return self._run({"messages": [HumanMessage(f"Question {self.chance.random()}", name=name)]})

    def _answer(self, asked: Any) -> Any:
        """A random answer to a question; now and then one that is no answer."""
        if not isinstance(asked, dict):
            return self.chance.choice(("yes", "", 7))
        if self.chance.random() < 0.1:
            self.happened["answered badly"] += 1
            return "what?"
        if "action_requests" in asked:
            return {"decisions": [self._decision(one) for one in asked["action_requests"]]}
        return self._decision(asked)

    def _decision(self, action: Any) -> Any:
        kind = self.chance.choice(("approve", "edit", "reject", "respond"))
        self.happened[kind] += 1
        if kind == "edit":
            name = self.chance.choice(("pay", "look"))
            args = {"amount": 2} if name == "pay" else {"what": "money"}
            return {"type": kind, "edited_action": {"name": name, "args": args}}
        return (
            {"type": kind, "message": self.chance.choice(("No.", "It is done."))}
            if kind != "approve"
            else {"type": kind}
        )

    def _edit(self, messages: list[Any], *, pending: bool) -> None:
        """What programs do to a history: take a message out, or add a call that nobody ran."""
        if self.chance.random() < 0.5 and len(messages) > 1 and not pending:  # an update replaces what is pending
            self.happened["removed"] += 1
            change: Any = RemoveMessage(self.chance.choice(messages[1:]).id)
        else:
            self.happened["dangling"] += 1
            id = f"dangling:{self.chance.random()}"
            change = AIMessage("", tool_calls=[tool_call(name="look", args={"what": "it"}, id=id)])
        self.agent.update_state(CONFIG, {"messages": [change]}, as_node=self.chance.choice(("model", "tools")))

    def _run(self, given: Any) -> None:
        how = self.chance.choice((self._invoke, self._stream, self._ainvoke, self._astream))
        self.cut_off = how in (self._invoke, self._stream) and self.chance.random() < 0.2
        try:
            how(given)
        except (ModelAPIError, ModelRateLimitError):  # what a script says; a refusal is neither
            self.happened["model error"] += 1
        except KeyboardInterrupt:
            self.happened["cut off"] += 1

    def _invoke(self, given: Any) -> None:
        self.agent.invoke(given, CONFIG)

    def _stream(self, given: Any) -> None:
        for _ in self.agent.stream(given, CONFIG, stream_mode="messages"):
            pass

    def _ainvoke(self, given: Any) -> None:
        self.loop.run(self.agent.ainvoke(given, CONFIG))

    def _astream(self, given: Any) -> None:
        async def through() -> None:
            async for _ in self.agent.astream(given, CONFIG, stream_mode=["messages", "updates"]):
                pass

        self.loop.run(through())


# -- the service -------------------------------------------------------------------------------------------------------


def script(chance: random.Random, *, unreadable: bool) -> list[dict[str, Any]]:
    """What a service says in a conversation. `unreadable`: some arguments are no JSON, where the provider has such."""
    return [_turn(chance, number, unreadable) for number in range(TURNS)]


def _turn(chance: random.Random, number: int, unreadable: bool) -> dict[str, Any]:
    if chance.random() < 0.05:
        return {"error": {"status": chance.choice((500, 429, 529))}}
    turn: dict[str, Any] = {"id": f"answer-{chance.random()}", "split": number, "text": chance.choice(WORDS)}
    if chance.random() < 0.6:
        calls = [_call(chance, f"{number}_{at}", unreadable) for at in range(chance.randint(1, 3))]
        return {**turn, "tool_calls": calls}
    return turn


CALLS: tuple[Callable[[random.Random], tuple[str, Any]], ...] = (
    lambda chance: ("look", {"what": chance.choice(("it", "nothing", "picture", "none"))}),
    lambda chance: ("look", {"what": "wörter\n日本"}),
    lambda chance: ("fail", {"why": "no reason"}),
    lambda chance: ("ask", {"question": "How much?"}),
    lambda chance: ("pay", {"amount": chance.randint(1, 9)}),
    lambda chance: ("pay", {"amount": "much"}),
    lambda chance: ("tell", {"text": "It is so."}),
    lambda chance: ("nobody", {}),
)


def _call(chance: random.Random, id: str, unreadable: bool) -> dict[str, Any]:
    name, args = chance.choice(CALLS)(chance)
    broken = unreadable and chance.random() < 0.1
    again = chance.random() < 0.1  # some servers count anew in each answer
    return {"id": "call_0" if again else f"call_{id}", "name": name, "args": '{"what": it' if broken else args}


def adapter(provider: str, conversation: Conversation) -> ChatModel:
    """The adapter of a provider, which talks to the service."""
    if provider == "openai":
        return ChatOpenAI("gpt", api_key=conversation.key, base_url=f"{conversation.url}/v1", max_retries=0)
    return ChatAnthropic("claude", api_key=conversation.key, base_url=conversation.url, max_retries=0)
