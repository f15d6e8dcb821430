"""Keeps personal data out of what an agent's model is asked, of what it answers, and of what tools tell it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pregel.agents.history import last_answer
from pregel.agents.middleware.base import AgentMiddleware, hook_config, inline
from pregel.agents.middleware.pii_detectors import Detector
from pregel.agents.middleware.pii_stream import CleanOutput, CleanSink, clean_content, with_content
from pregel.agents.middleware.redaction import RedactionRule, Strategy
from pregel.messages import BaseMessage, is_message
from pregel.messages.convert import kind_of
from pregel.tokens import Sink, screening
from pregel.types import Command


class PIIMiddleware(AgentMiddleware):
    """Keeps one type of personal data out of what the model is asked, the state and its values.

    Types: email, credit_card, ip, mac_address, url, or any with a `detector`. `apply_to_input`: the last human message,
    before each model call; `apply_to_tool_results`: those behind the last answer; `apply_to_output`: the answer. What
    is found is replaced in the state as well, and stored nowhere; what the input of a run held is stored with it.
    "block" raises PIIDetectionError. Arguments of tool calls are left as they are.

    **Streams.** The words of an answer, and what a tool puts out, show when it is certain that they are clean: at most
    a word late for the types above. With a `detector` of your own they show when the text is whole, or, with `breaks`,
    as soon as a character follows that this regular expression matches, and that no match of the detector holds
    (``breaks=r"\\s"``). Where an answer is blocked, nothing shows from the match on.
    """

    def __init__(
        self,
        pii_type: str,
        *,
        strategy: Strategy = "redact",
        detector: str | Detector | None = None,
        breaks: str | None = None,
        apply_to_input: bool = True,
        apply_to_output: bool = False,
        apply_to_tool_results: bool = False,
    ) -> None:
        self.pii_type, self.strategy = pii_type, strategy
        self.clean = RedactionRule(pii_type, strategy, detector, breaks).resolved()
        self.input, self.output, self.results = apply_to_input, apply_to_output, apply_to_tool_results
        if apply_to_tool_results and strategy != "block":  # what is blocked is so before the model is asked
            self.wrap_tool_call = self._clean_tool  # type: ignore[method-assign]  # a hook that others have no node for

    @property
    def name(self) -> str:
        """With the type, so that an agent may have several."""
        return f"PIIMiddleware[{self.pii_type}]"

    @inline
    @hook_config(can_jump_to=[])
    def before_model(self, state: Any, runtime: Any) -> Any:
        """Clean what the model is about to read."""
        messages = state["messages"]
        chosen: list[BaseMessage] = []
        if self.input:
            chosen += [one for one in reversed(messages) if kind_of(one) == "human"][:1]
        if self.results:
            chosen += [one for one in last_answer(messages)[1] if kind_of(one) == "tool"]
        changed = [clean for one in chosen if (clean := self._cleaned(one)) is not one]
        return {"messages": changed} if changed else None

    def wrap_model_call(self, request: Any, *_: Any) -> Any:
        """Clean the answer before it is stored, and its pieces before they show."""
        if not self.output:
            return (yield request)
        sinks: list[CleanSink] = []

        def screen(sink: Sink) -> Sink:
            sinks.append(CleanSink(self.clean, sink))
            return sinks[-1]

        with screening(screen):
            response = yield request
        result = [self._cleaned(one) for one in response.result]
        ids = {one.id for one in result}
        for sink in sinks:
            sink.end(ids)
        return replace(response, result=result)

    def _clean_tool(self, request: Any, *_: Any) -> Any:
        """Clean what a tool tells, and what it puts out on the way."""
        shown = CleanOutput(self.clean, request.runtime.emit_output_delta)
        result = yield request.override(runtime=request.runtime.override(_emit=shown))
        shown.end()
        return self._in_result(result)

    def _in_result(self, result: Any) -> Any:
        """A tool's result with every message of a tool in it cleaned."""
        if isinstance(result, list):
            return [self._in_result(one) for one in result]
        if isinstance(result, Command) and isinstance(result.update, dict) and result.update.get("messages"):
            return replace(result, update={**result.update, "messages": self._in_result(result.update["messages"])})
        return self._cleaned(result) if is_message(result) and kind_of(result) == "tool" else result

    def _cleaned(self, message: BaseMessage) -> BaseMessage:
        """The message without what is looked for; the very same when there is nothing of it."""
        cleaned: BaseMessage = with_content(message, clean_content(self.clean, message.content))
        return cleaned
