"""Planted bugs in calls of tasks and graphs, and the policies of nodes."""

from __future__ import annotations

from planted.bug import mutant

CALLS = "tests/simulation/test_explore_calls.py::test_tasks_end_the_same_after_every_death"
CALLERS = "tests/behaviour/test_task_callers.py"
REPLAY = "tests/behaviour/test_task_replay.py"
TASKS = "tests/behaviour/test_tasks.py"
POLICIES = "tests/simulation/test_explore_policies.py"

MUTANTS = (
    # calls
    mutant(
        "call: its result is not stored",
        CALLS,
        "pregel/engine/calls.py",
        "        self.barrier.keep(call, rows)\n",
        "",
        says="[rules]",
    ),
    mutant(
        "call: a stored result is not read",
        CALLS,
        "pregel/engine/calls.py",
        "stored = self.frame.recalled.get(made.id)",
        "stored = None",
        says="[laws]",
    ),
    mutant(
        "call: its caller ends before it",
        f"{CALLERS}::test_a_question_nobody_waits_for_still_pauses",
        "pregel/engine/calls.py",
        "if out := self.out.get(task):",
        "if (out := self.out.get(task)) and False:",
    ),
    mutant(
        "call: it goes on although its caller failed",
        f"{CALLERS}::test_a_caller_that_fails_cancels_its_calls",
        "pregel/engine/calls.py",
        "            if isinstance(event, Failed | Gone):\n",
        "            if False:\n",
    ),
    mutant(
        "call: a question that nobody waits for is dropped",
        f"{CALLERS}::test_a_question_nobody_waits_for_still_pauses",
        "pregel/engine/calls.py",
        "if isinstance(event, Done) and (asked := self.asked.get(task)):",
        "if False and (asked := self.asked.get(task)):",
    ),
    mutant(
        "call: what is done once is not stored",
        "tests/behaviour/test_called_graphs.py::test_what_changes_is_kept_by_a_step",
        "pregel/engine/calls.py",
        "            step.writes.append(record)\n",
        "            pass\n",
    ),
    mutant(
        "call: a future is left when the consumer leaves",
        f"{CALLERS}::test_a_consumer_that_leaves_loses_no_result",
        "pregel/engine/drive_sync.py",
        "        self._withdraw_calls()  # what the last Step wanted settled may not have been\n",
        "",
    ),
    mutant(
        "call: a graph starts anew on a resume",
        "tests/simulation/test_explore_calls.py::test_called_graphs_end_the_same_after_every_death",
        "pregel/engine/family.py",
        "resuming=not task.fresh, fingerprint",
        "resuming=False, fingerprint",
    ),
    mutant(
        "call: the input of a graph that goes on is not compared",
        "tests/behaviour/test_called_graphs.py::test_a_replay_with_another_input_is_an_error",
        "pregel/engine/resume.py",
        "if resuming and saved is not None and saved.metadata",
        "if False and saved is not None and saved.metadata",
    ),
    mutant(
        "call: a failure that was caught is not kept",
        f"{REPLAY}::test_a_failure_that_was_caught_is_told_again",
        "pregel/engine/calls.py",
        "rows.append((MEMO, packed(",
        "list().append((MEMO, packed(",
    ),
    mutant(
        "call: a failure that ended its caller is kept",
        f"{REPLAY}::test_a_failure_that_ended_its_caller_is_tried_again",
        "pregel/engine/calls.py",
        "if not went_on or comes_from(error, failure.error):",
        "if False:",
    ),
    mutant(
        "call: its arguments are not compared",
        f"{REPLAY}::test_another_call_in_the_place_of_one_that_ended_is_an_error",
        "pregel/engine/calls.py",
        "failure.fingerprint) != made.fingerprint:",
        "failure.fingerprint) is None:",
    ),
    mutant(
        "update: the graphs around a subgraph go on asking",
        "tests/behaviour/test_updates_pending.py::test_an_update_of_a_subgraph_takes_its_question_from_the_graphs_around_it",
        "pregel/engine/admin.py",
        "    step.writes += unasked\n",
        "",
    ),
    mutant(
        "an answer is judged before its turn",
        "tests/behaviour/test_concurrency.py::test_an_answer_is_judged_when_its_turn_has_come",
        "pregel/engine/resume.py",
        "            frame.journal.may_begin()\n",
        "",
    ),
    mutant(
        "a rejected answer stays bound",
        "tests/behaviour/test_answers.py::test_a_rejected_answer_is_not_tried_again_and_other_answers_stay[sync-memory-known-to-the-node-only]",
        "pregel/engine/barrier.py",
        "[(ERROR, error), *reopened(task, error)]",
        "[(ERROR, error)]",
    ),
    mutant(
        "exit: a load does not find what is held back",
        "tests/behaviour/test_subgraph_state.py::test_a_persistent_subgraph_that_runs_twice_in_a_call_goes_on_from_its_first_run",
        "pregel/engine/journal.py",
        "            if self.held_saves:\n",
        "            if False:\n",
    ),
    # policies
    mutant(
        "a handled failure is not the handler's on a resume",
        f"{POLICIES}::test_a_handled_failure_ends_the_same_after_every_death",
        "pregel/engine/pending.py",
        "for task, error in failures.items() if task in sources",
        "for task, error in () if task in sources",
    ),
    mutant(
        "a handler's stored work is done again",
        "tests/behaviour/test_error_handlers.py::test_a_handler_whose_work_is_stored_does_not_run_again",
        "pregel/engine/loop.py",
        "        if stored is not None:\n            task.writes = [(w",
        "        if stored is not None and task.origin is None:\n            task.writes = [(w",
    ),
    mutant(
        "a crash gives a new allowance of attempts",
        "tests/behaviour/test_retries.py::test_a_crash_is_one_more_delivery_and_gives_no_new_allowance",
        "pregel/engine/loop.py",
        "task.tries = Tries(*stored) if stored is not None else None",
        "task.tries = None",
    ),
    mutant(
        "what ends after its limit counts",
        "tests/behaviour/test_timeouts.py",
        "pregel/engine/clock.py",
        "if late is None or not isinstance(event, Done):",
        "if True:",
    ),
    mutant(
        "an attempt that was left behind is tried again while it lives",
        "tests/behaviour/test_timeouts.py",
        "pregel/engine/pool.py",
        "return bool(_left) and _name(task) in _left",
        "return False",
    ),
    mutant(
        "text and bytes from a key function share a result",
        "tests/behaviour/test_node_cache.py::test_a_key_function_says_what_counts_and_text_is_not_bytes",
        "pregel/engine/caching.py",
        "input_key(self.identity, made)",
        "input_key(self.identity, made if isinstance(made, str) else made.decode())",
    ),
    mutant(
        "a drained subgraph counts as failed",
        "tests/behaviour/test_drain.py",
        "pregel/engine/barrier.py",
        "if isinstance(error, GraphDrained):",
        "if False:",
    ),
)
