"""Planted bugs in what is done outside of a thread, and in rewinds."""

from __future__ import annotations

from planted.bug import mutant

EFFECTS = "tests/behaviour/test_effects.py"
REWIND = "tests/behaviour/test_rewind.py"
INTENT = f"{EFFECTS}::test_an_intent_is_stored_before_the_call_and_the_result_before_it_is_used"

MUTANTS = (
    mutant(
        "async: an intent waits for its moment",
        f"{INTENT}[sync-sqlite-async]",
        "pregel/engine/journal.py",
        "self.holds_back and not step.at_once and self.may_wait(append)",
        "self.holds_back and self.may_wait(append)",
    ),
    mutant(
        "exit: an intent waits for the end",
        f"{INTENT}[sync-memory-exit]",
        "pregel/engine/journal.py",
        "self.claimed and step.release is None and not step.at_once",
        "self.claimed and step.release is None",
    ),
    mutant(
        "what may have happened is done again",
        f"{EFFECTS}::test_what_may_have_happened_is_not_done_again_blindly[sync-memory-sync]",
        "pregel/engine/calls.py",
        'if not before["idempotent"]:',
        "if False:",
    ),
    mutant(
        "an error handler has an outcome that is unknown",
        f"{EFFECTS}::test_neither_a_retry_nor_a_handler_nor_an_except_passes_an_unknown_outcome[sync-True]",
        "pregel/engine/barrier.py",
        "InternalError, OutcomeUnknownError, StepTimeoutError)",
        "InternalError, StepTimeoutError)",
    ),
    mutant(
        "a settled effect is looked for at the root only",
        f"{EFFECTS}::test_a_rewind_lists_what_the_failed_step_may_have_done_and_undoes_nothing[sync-memory]",
        "pregel/engine/open_step.py",
        "while row.next_ns > 1 and",
        "while row.next_ns > 99 and",
    ),
    mutant(
        "whatever stands still is rewound",
        f"{REWIND}::test_only_a_thread_that_failed_is_rewound[memory-sync-finished]",
        "pregel/engine/rewind.py",
        'if saved is None or info.status != "failed":',
        'if saved is None or info.status == "running":',
    ),
    mutant(
        "a rewind that is asked for twice is done twice",
        f"{REWIND}::test_a_rewind_only_asks_and_asking_again_changes_nothing",
        "pregel/engine/rewind.py",
        "info.reason.startswith(REWOUND)",
        "not info.reason",
    ),
)
