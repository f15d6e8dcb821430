"""Work that is held against a rubric before it counts as done: a grader sends it back with what is missing.

1. A run is graded when its agent stops, where its input or an earlier one of the thread gave a `rubric`; None takes it
   away. Without one nothing happens.
2. The criteria are those that the grader finds the first time. Work is satisfied when each of them is passed: a grader
   that says so otherwise is not believed.
3. Work is sent back at most `max_iterations` - 1 times. What a grading came to is stored with it: a run that is resumed
   grades nothing twice.
4. A grader that fails ends the grading, not the run: the work is there. `on_evaluation` and the stream are told.
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, cast

from typing_extensions import TypedDict  # pydantic reads no other one before Python 3.12

from pregel.agents.create import create_agent
from pregel.agents.flow import AgentFlow, calling, either
from pregel.agents.middleware.base import AgentMiddleware, hook_config, inline
from pregel.agents.middleware.retry import SIGNALS
from pregel.agents.models.init import as_model
from pregel.agents.state import AgentState, PrivateStateAttr
from pregel.errors import DefinitionError
from pregel.messages import BaseMessage, HumanMessage
from pregel.messages.convert import kind_of

GRADER = "rubric_grader"
"""The name of the messages that send work back."""
LAST, WIDTH = 30, 4000
"""Messages of the end that a grader is shown, after the first of a person, and characters of each."""
PROMPT = """You grade the work of an agent against a rubric. Make criteria of the rubric, or use those that you are
given, each under its name, and say of each whether the work passes it and, if not, what is missing. Believe what you
see in the work, not what the agent says of it. Answer "satisfied" when every criterion is passed, "needs_revision" when
the agent could still pass them, "failed" when it cannot."""
GraderVerdict = Literal["satisfied", "needs_revision", "failed"]
RubricResult: TypeAlias = GraderVerdict | Literal["max_iterations_reached", "grader_error"]


class CriterionEval(TypedDict):
    """One thing that the work must be, and what is missing for it."""

    name: str
    passed: bool
    gap: str


class GraderResponse(TypedDict):
    """What a grader finds."""

    result: GraderVerdict
    explanation: str
    criteria: list[CriterionEval]


class RubricEvaluation(TypedDict):
    """What a grading came to.

    `grading_run_id` is one for all gradings of a run, `iteration` counts them from 0. `explanation` is the error of a
    grader that failed. `unverified`: the grader said "satisfied" while a criterion was open.
    """

    grading_run_id: str
    iteration: int
    result: RubricResult
    explanation: str
    criteria: list[CriterionEval]
    unverified: bool


class RubricState(AgentState):
    """The rubric of a run, and how far its grading is."""

    rubric: NotRequired[str | None]
    _rubric_iterations: NotRequired[Annotated[int, PrivateStateAttr]]
    _rubric_criteria: NotRequired[Annotated[list[str] | None, PrivateStateAttr]]
    _rubric_status: NotRequired[Annotated[RubricResult | None, PrivateStateAttr]]
    _current_grading_run_id: NotRequired[Annotated[str, PrivateStateAttr]]


class RubricMiddleware(AgentMiddleware):
    """Grades what an agent did against ``invoke({..., "rubric": "..."})``, and sends it back until it is good.

    - `model` grades; with `tools` it may look at more than the conversation.
    - `prepare_messages_for_grader`: which messages it is shown, of all of them.
    - `grader_middleware` is the grader's own. With `grader_context_schema` its parts get the context of the run.
    - `grader_state_schema`, a subclass of `AgentState`, gives the grader's state more keys, and
      `build_grader_state(state, iteration)`, which may be awaited, their values, from the whole state of the agent;
      one of a single parameter gets the state.
    - `on_evaluation` is called with every `RubricEvaluation`; mode ``custom`` of the stream shows
      ``rubric_evaluation_start`` and ``rubric_evaluation_end``.
    """

    state_schema = RubricState

    def __init__(
        self,
        *,
        model: Any,
        system_prompt: str | None = None,
        tools: Sequence[Any] | None = None,
        grader_middleware: Sequence[AgentMiddleware] | None = None,
        grader_context_schema: type | None = None,
        grader_state_schema: Any = None,
        prepare_messages_for_grader: Callable[[Sequence[BaseMessage]], Sequence[BaseMessage]] | None = None,
        build_grader_state: Callable[..., Any] | None = None,
        max_iterations: int = 3,
        on_evaluation: Callable[[RubricEvaluation], Any] | None = None,
    ) -> None:
        if max_iterations < 1:
            raise DefinitionError(f"max_iterations is {max_iterations}.", fix="Give a number from 1 on.")
        if build_grader_state is not None and grader_state_schema is None:
            raise DefinitionError(
                "The grader's state has no keys that `build_grader_state` could fill.", fix="Give grader_state_schema."
            )
        self.max_iterations, self.on_evaluation = max_iterations, on_evaluation
        self.has_context = grader_context_schema is not None
        self.build_state, self.built_from = build_grader_state, _parameters(build_grader_state)
        self.prepare = prepare_messages_for_grader or _shown
        self.grader = create_agent(
            as_model(model),
            list(tools or ()),
            system_prompt=system_prompt or PROMPT,
            middleware=list(grader_middleware or ()),
            response_format=GraderResponse,
            state_schema=grader_state_schema,
            context_schema=grader_context_schema,
            name=GRADER,
        )

    @inline
    @hook_config(can_jump_to=[])
    def before_agent(self, state: Any, runtime: Any) -> Any:
        """A new input is graded anew."""
        if not state.get("rubric"):
            return None
        new = {"_rubric_iterations": 0, "_rubric_criteria": None, "_rubric_status": None}
        return {**new, "_current_grading_run_id": str(uuid.uuid4())}

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: Any, runtime: Any) -> AgentFlow[Any]:
        """Grade the work, and send it back when it can be better."""
        if not state.get("rubric"):
            return None
        at = {"grading_run_id": state["_current_grading_run_id"], "iteration": state.get("_rubric_iterations", 0)}
        runtime.stream_writer({"type": "rubric_evaluation_start", **at})
        found = yield from self._graded(state, runtime.context if self.has_context else None)
        if found["result"] == "needs_revision" and at["iteration"] + 1 >= self.max_iterations:
            found["result"] = "max_iterations_reached"
        runtime.stream_writer({"type": "rubric_evaluation_end", **found})
        update: dict[str, Any] = {"_rubric_iterations": at["iteration"] + 1, "_rubric_status": found["result"]}
        if state.get("_rubric_criteria") is None:
            update["_rubric_criteria"] = [one["name"] for one in found["criteria"]] or None
        if found["result"] == "needs_revision":
            back = HumanMessage(_sent_back(found), name=GRADER, additional_kwargs={"lc_source": GRADER})
            update |= {"messages": [back], "jump_to": "model"}
        if self.on_evaluation is not None:
            yield calling(self.on_evaluation, found)
        return update

    def _graded(self, state: Any, context: Any) -> AgentFlow[RubricEvaluation]:
        known, iteration = state.get("_rubric_criteria"), state.get("_rubric_iterations", 0)
        evaluation = RubricEvaluation(
            grading_run_id=state["_current_grading_run_id"],
            iteration=iteration,
            result="grader_error",
            explanation="",
            criteria=[],
            unverified=False,
        )
        question = HumanMessage(_question(self.prepare(state["messages"]), state["rubric"], known))
        try:
            more = (
                {}
                if self.build_state is None
                else (yield calling(self.build_state, *(state, iteration)[: self.built_from]))
            )
            asked, options = {**more, "messages": [question]}, {} if context is None else {"context": context}
            graded = yield either(
                lambda: self.grader.invoke(asked, **options), lambda: self.grader.ainvoke(asked, **options)
            )
            response = cast("GraderResponse", graded["structured_response"])
        except SIGNALS:
            raise
        except Exception as error:
            return {**evaluation, "explanation": f"{type(error).__name__}: {error}"}
        result = _believed(response, known)
        return {
            **evaluation,
            "result": result,
            "explanation": response["explanation"],
            "criteria": list(response["criteria"]),
            "unverified": result != response["result"],
        }


def _parameters(build: Callable[..., Any] | None) -> int:
    """How many of state and iteration a function takes."""
    if build is None:
        return 0
    try:
        inspect.signature(build).bind({}, 0)
    except (TypeError, ValueError):  # ValueError: one that does not say
        return 1
    return 2


def _believed(response: GraderResponse, known: list[str] | None) -> GraderVerdict:
    """The result; not satisfied where a criterion is missing or not passed."""
    passed = {one["name"]: one["passed"] for one in response["criteria"]}
    whole = bool(passed) and all(passed.values()) and set(known or ()) <= passed.keys()
    return "needs_revision" if response["result"] == "satisfied" and not whole else response["result"]


def _question(messages: Sequence[BaseMessage], rubric: str, known: list[str] | None) -> str:
    criteria = "" if known is None else f"The criteria, by name: {', '.join(known)}.\n\n"
    work = "\n\n".join(f"[{kind_of(message)}] {_said(message)}" for message in messages)
    return f"The rubric:\n{rubric}\n\n{criteria}The work:\n\n{work}"


def _said(message: BaseMessage) -> str:
    """What a message says, calls of tools among it, as long as a grader is shown."""
    calls = "".join(f"\n(calls {call['name']} with {call['args']})" for call in getattr(message, "tool_calls", ()))
    text = message.text + calls
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}... ({len(text) - WIDTH} more characters)"


def _shown(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """The first message of a person, and the end."""
    first = next((at for at, message in enumerate(messages) if kind_of(message) == "human"), 0)
    start = max(len(messages) - LAST, 0)
    return messages[start:] if first >= start else [messages[first], *messages[start:]]


def _sent_back(found: RubricEvaluation) -> str:
    gaps = "\n".join(f"- {one['name']}: {one['gap']}" for one in found["criteria"] if not one["passed"])
    return f"The work is not done yet. {found['explanation']}\n{gaps}".rstrip()
