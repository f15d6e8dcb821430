"""Binding the answers of a call to the open questions of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pregel.checkpoint.records import Saved
from pregel.engine.frame import Frame
from pregel.engine.pending import open_questions
from pregel.errors import AmbiguousResumeError, UnknownInterruptError


class Refused(Exception):
    """An input or an answer that its schema does not admit: `error` is what its check raised."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def bind(
    frame: Frame,
    saved: Saved,
    answers: Mapping[str, Mapping[str, Any]],
    resume: Any,
    handed_down: Mapping[str, Any],
) -> dict[str, dict[str, Any]]:
    """task id -> {interrupt id: answer} for the answers of this call."""
    came = frame.run.outcomes if frame.is_root else {}
    if resume is None and not handed_down and not came:
        return {}
    questions = open_questions(saved, answers)
    given = {id: answer for id, answer in (*handed_down.items(), *came.items()) if id in questions}
    if resume is not None:
        asked = {id: task for id, task in questions.items() if id not in frame.run.waits}  # nobody answers a wait
        new = answers_to(frame, asked, resume, answered=any(answers.values()))
        _check_types(new)
        given.update(new)
    bound: dict[str, dict[str, Any]] = {}
    for id, answer in given.items():
        bound.setdefault(questions[id], {})[id] = answer
    return bound


def _check_types(answers: Mapping[str, Any]) -> None:
    """Have the answers checked whose types this process knows; Refused for one that does not fit."""
    from pregel.engine.pydantic_answers import check_answers  # few runs are answers

    try:
        check_answers(answers)
    except Exception as error:
        raise Refused(error) from error


def answers_to(frame: Frame, questions: Mapping[str, str], resume: Any, *, answered: bool = False) -> dict[str, Any]:
    """interrupt id -> answer, of what a caller resumes with; a named error for what answers no open question."""
    if answered and not questions:
        raise UnknownInterruptError(
            "The question of this checkpoint was answered already.",
            fix="To answer it anew, fork: invoke(None, the checkpoint's config) asks again, with a new id.",
            thread=frame.run.thread,
        )
    pending = ", ".join(questions) or "none"
    place: dict[str, Any] = {"thread": frame.run.thread, "pending_ids": tuple(questions)}
    if is_resume_map(resume):
        unknown = [id for id in resume if id not in questions]
        if unknown or not resume:
            raise UnknownInterruptError(
                f"No question with id {', '.join(unknown)} is pending." if unknown else "The resume map is empty.",
                fix=f"Pending questions: {pending}. Read them from get_state(config).interrupts.",
                reason="not_pending" if unknown else "empty_map",
                interrupt_ids=unknown,
                **place,
            )
        return dict(resume)
    if len(questions) == 1:
        return dict.fromkeys(questions, resume)
    if not questions:
        raise UnknownInterruptError(
            "An answer was given, but no question is pending on this thread.",
            fix="Call invoke(None, config) to continue, or pass an input to start anew.",
            **place,
        )
    raise AmbiguousResumeError(
        f"When there are multiple pending interrupts, you must specify the interrupt id when resuming; "
        f"{len(questions)} are pending.",
        fix=f"Answer with Command(resume={{id: answer}}); pending: {pending}.",
        reason="ambiguous",
        **place,
    )


def is_resume_map(resume: Any) -> bool:
    """Whether a resume value maps interrupt ids (32 lowercase hex characters) to answers."""
    return isinstance(resume, dict) and all(
        isinstance(key, str) and len(key) == 32 and not key.strip("0123456789abcdef") for key in resume
    )
