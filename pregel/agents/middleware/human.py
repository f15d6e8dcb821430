"""A person decides about tool calls before they run.

1. All calls of an answer that need a decision are one question (or, "per_call", one question each, in their tasks).
2. **A call that needs a decision never runs without one**, whatever jumps where: a call whose decision is not in the
   state asks for it where it is about to run. A decision is for the call as it was shown; one that was changed since
   is shown again.
3. A rejected call is answered at once, so that it is not pending any more.
4. An answer that does not fit is not taken: the question is asked again and says what was wrong, and nothing is lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from pregel.agents.history import last_answer, pending_calls
from pregel.agents.middleware.base import AgentMiddleware, hook_config, inline
from pregel.agents.middleware.requests import ToolCallRequest
from pregel.agents.state import AgentState, PrivateStateAttr
from pregel.errors import DefinitionError
from pregel.messages import ToolMessage
from pregel.types import interrupt
from pregel.warnings import warn_caller

DecisionType = Literal["approve", "edit", "reject", "respond"]
DECISIONS: tuple[DecisionType, ...] = ("approve", "edit", "reject", "respond")


class Action(TypedDict):
    """A tool call as a person sees and edits it."""

    name: str
    args: dict[str, Any]


class InterruptOnConfig(TypedDict, total=False):
    """How calls of one tool are reviewed. `when` (of a ToolCallRequest) limits it to some calls."""

    allowed_decisions: Sequence[DecisionType]
    description: str | Callable[..., str]
    args_schema: dict[str, Any]
    when: Callable[[Any], bool]


class Decided(TypedDict):
    """A decision that lets a call run: what was shown, and what shall run."""

    shown: Action
    run: Action


def _merged(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    return {**(left or {}), **(right or {})}


class HumanState(AgentState):
    """The decisions that were made, by call id."""

    hitl_decided: NotRequired[Annotated[dict[str, Decided], PrivateStateAttr, _merged]]


class HumanInTheLoopMiddleware(AgentMiddleware):
    """Asks a person about calls of the tools in `interrupt_on`: True for all decisions, or an `InterruptOnConfig`.

    The question's value is {"action_requests": [{name, args, description}], "review_configs": [{action_name,
    allowed_decisions}]}; the answer is {"decisions": [...]} in the same order, each {"type": "approve"},
    {"type": "edit", "edited_action": {name, args}}, {"type": "reject", "message"?} or {"type": "respond", "message"}.
    With ``interrupt_mode="per_call"`` each call asks for itself, with {"type": "tool_approval", "tool_call_id", name,
    args, description}, and takes one decision.
    """

    state_schema = HumanState

    def __init__(
        self,
        interrupt_on: Mapping[str, bool | InterruptOnConfig],
        *,
        description_prefix: str = "This tool call needs your approval",
        edit_notice: str | None = "A person changed this call before it ran. What ran: {name} with {args}.",
        interrupt_mode: Literal["batched", "per_call"] = "batched",
    ) -> None:
        self.interrupt_on = {name: _config(name, given) for name, given in interrupt_on.items() if given is not False}
        self._settled = frozenset(interrupt_on)  # names that somebody thought about, True or False
        self.description_prefix, self.edit_notice, self.mode = description_prefix, edit_notice, interrupt_mode

    def warn_of_misspelt(self, tools: Iterable[str]) -> None:
        """PregelWarning for a name that is almost a tool's: that tool would run without being asked about.

        Other names that no tool has are left alone: a hook may bring their tools along later.
        """
        from difflib import get_close_matches  # only somebody who names other tools pays for it

        known = set(tools)
        for name in sorted(self.interrupt_on.keys() - known):
            for near in get_close_matches(name, sorted(known - self._settled), n=1):
                warn_caller(
                    f"A person is to be asked about the tool {name!r}, which the agent does not have; {near!r} "
                    f"is there, and runs unasked. Write {near!r}, or add {{{near!r}: False}} if that is meant."
                )

    @inline
    @hook_config(can_jump_to=[])
    def after_model(self, state: Any, runtime: Any) -> Any:
        """Ask about all calls of the answer at once."""
        answer, after = last_answer(state["messages"])
        if answer is None or self.mode == "per_call":
            return None
        calls = [call for call in pending_calls(answer, after) if self._needs_decision(call, state, runtime)]
        if not calls:
            return None
        decisions = self._ask(calls, state, runtime)
        results = [self._answered(call, decision) for call, decision in zip(calls, decisions, strict=True)]
        return {
            "messages": [message for message, _ in results if message is not None],
            "hitl_decided": {call["id"]: run for call, (_, run) in zip(calls, results, strict=True) if run is not None},
        }

    def wrap_tool_call(self, request: ToolCallRequest, *_: Any) -> Any:
        """Run what was decided; ask now where nothing was."""
        call = request.tool_call
        decided = _of(request.state).get(str(call["id"]))
        if decided is not None and decided["shown"] != _action(call):
            decided = None
        if decided is None and not self._needs_decision(call, request.state, request.runtime):
            return (yield request)
        problem = _no_tool(decided["run"], request) if decided is not None else ""
        if decided is None or problem:
            message, decided = self._answered(call, self._ask_one(request, problem))
            if decided is None:
                return message
        run = decided["run"]
        if run == decided["shown"]:
            return (yield request)
        return self._noticed((yield _edited(request, run)), run)

    # -- asking --------------------------------------------------------------------------------------------------------

    def _needs_decision(self, call: Any, state: Any, runtime: Any) -> bool:
        config = self.interrupt_on.get(call["name"])
        if config is None:
            return False
        when = config.get("when")
        return when is None or bool(when(ToolCallRequest(tool_call=call, tool=None, state=state, runtime=runtime)))

    def _ask(self, calls: Sequence[Any], state: Any, runtime: Any) -> list[Any]:
        question: dict[str, Any] = {
            "action_requests": [self._shown(call, state, runtime) for call in calls],
            "review_configs": [
                {"action_name": call["name"], "allowed_decisions": list(self._allowed(call))} for call in calls
            ],
        }
        while True:
            answer = interrupt(question)
            decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
            if not isinstance(decisions, Sequence) or len(decisions) != len(calls):
                problem = f'The answer must be {{"decisions": [...]}} with {len(calls)} decisions.'
            else:
                problem = "; ".join(filter(None, map(self._problem, calls, decisions)))
            if not problem:
                return list(decisions or ())
            question = {**question, "error": problem}

    def _ask_one(self, request: ToolCallRequest, problem: str) -> Any:
        """The decision about a call that is about to run; `problem` is what was wrong with the one before."""
        call = request.tool_call
        shown = self._shown(call, request.state, request.runtime)
        question = {"type": "tool_approval", "tool_call_id": call["id"], **shown}
        question["allowed_decisions"] = list(self._allowed(call))
        while True:
            decision = interrupt({**question, "error": problem} if problem else question)
            problem = self._problem(call, decision)
            if not problem and decision["type"] == "edit":
                problem = _no_tool(decision["edited_action"], request)
            if not problem:
                return decision

    def _shown(self, call: Any, state: Any, runtime: Any) -> dict[str, Any]:
        config = self.interrupt_on[call["name"]]
        description = config.get("description")
        if callable(description):
            description = description(call, state, runtime)
        if description is None:
            args = json.dumps(call["args"], ensure_ascii=False, default=str)
            description = f"{self.description_prefix}\n\nTool: {call['name']}\nArguments: {args}"
        schema = {"args_schema": config["args_schema"]} if "args_schema" in config else {}
        return {**_action(call), "description": description, **schema}

    def _allowed(self, call: Any) -> Sequence[DecisionType]:
        return self.interrupt_on[call["name"]]["allowed_decisions"]

    def _problem(self, call: Any, decision: Any) -> str:
        """What is wrong with a decision; empty when nothing is."""
        kind = decision.get("type") if isinstance(decision, Mapping) else None
        allowed = self._allowed(call)
        if kind not in allowed:
            return f"{kind!r} is no decision about {call['name']!r}: the decisions are {', '.join(allowed)}."
        action = decision.get("edited_action")
        if kind == "edit" and not (
            isinstance(action, Mapping)
            and isinstance(action.get("name"), str)
            and isinstance(action.get("args"), Mapping)
        ):
            return 'An edit needs "edited_action": {"name": ..., "args": {...}}.'
        if kind == "respond" and "message" not in decision:
            return 'A respond needs a "message".'
        return ""

    # -- what became of it ---------------------------------------------------------------------------------------------

    def _answered(self, call: Any, decision: Any) -> tuple[ToolMessage | None, Decided | None]:
        """The message that answers a call instead of its tool, or what shall run."""
        kind = decision["type"]
        if kind in ("approve", "edit"):
            run = _action(decision["edited_action"] if kind == "edit" else call)
            return None, {"shown": _action(call), "run": run}
        text = decision.get("message") or f"A person rejected the call of {call['name']!r}. Do not repeat it unasked."
        told = ToolMessage(
            text,
            tool_call_id=call["id"],
            name=call["name"],
            status="error" if kind == "reject" else "success",
            additional_kwargs={"lc_source": "hitl_interrupt_decision", "lc_data": {"decision": kind}},
        )
        return told, None

    def _noticed(self, result: Any, run: Action) -> Any:
        """The result of an edited call, with a notice of what ran."""
        if self.edit_notice is None or not isinstance(result, ToolMessage):
            return result
        args = json.dumps(run["args"], ensure_ascii=False, default=str)
        notice = self.edit_notice.replace("{name}", run["name"]).replace("{args}", args)
        content = result.content
        whole: Any = f"{notice}\n\n{content}" if isinstance(content, str) else [notice, *content]
        return result.model_copy(update={"content": whole, "name": run["name"]})


def _config(name: str, given: bool | InterruptOnConfig) -> InterruptOnConfig:
    if given is True:
        return {"allowed_decisions": DECISIONS}
    assert not isinstance(given, bool)
    allowed = given.get("allowed_decisions")
    if not allowed or not set(allowed) <= set(DECISIONS):
        raise DefinitionError(
            f"The allowed_decisions about {name!r} are {allowed!r}.", fix=f"Name some of {', '.join(DECISIONS)}."
        )
    return given


def _of(state: Any) -> Mapping[str, Decided]:
    found = state.get("hitl_decided") if isinstance(state, Mapping) else getattr(state, "hitl_decided", None)
    return found or {}


def _action(call: Any) -> Action:
    return {"name": call["name"], "args": dict(call["args"])}


def _edited(request: ToolCallRequest, run: Action) -> ToolCallRequest:
    """The request with the action that a person wrote, which may be another tool's."""
    tools = {tool.name: tool for tool in request.runtime.tools}
    call: Any = {**request.tool_call, "name": run["name"], "args": run["args"]}
    return request.override(tool_call=call, tool=tools.get(run["name"], request.tool))


def _no_tool(run: Any, request: ToolCallRequest) -> str:
    """What is wrong with an edit that calls a tool which the agent does not have; empty when nothing is."""
    names = [tool.name for tool in request.runtime.tools]
    if run["name"] in (*names, request.tool_call["name"]):
        return ""
    return f"The edited call is of {run['name']!r}, which is no tool of this agent. Its tools: {', '.join(names)}."
