"""Planted bugs: each is put into a copy of the package, and the net that is named beside it must catch it.

    python scripts/mutants.py               all of them, as many at once as there are cores
    python scripts/mutants.py seq claim     those whose names hold one of these words

A bug that no net catches, or whose place in the source is gone, fails the script: the list follows the code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("pregel", "tests", "docs", "pyproject.toml")

FLAT = "tests/simulation/test_explore_flat.py::test_a_fan_out_ends_the_same_in_every_order_and_after_every_death"
TURNS = "tests/simulation/test_explore_flat.py::test_a_second_input_on_the_thread_goes_the_same_way"
DEEP = "tests/simulation/test_explore_deep.py::test_subgraphs_in_sends_survive_every_death_at_every_level"
MANY = "tests/simulation/test_explore_deep.py::test_subgraphs_survive_every_death_in_many_orders"
TYPED = "tests/simulation/test_explore_deep.py::test_subgraphs_whose_input_is_made_by_user_code_survive_every_death"
ANSWERS = "tests/simulation/test_explore_questions.py::test_an_answer_survives_every_death_of_the_run_that_got_it"
ASYNC = "tests/simulation/test_explore_durability.py::test_a_fan_out_ends_the_same_after_every_death[async]"
EXIT = "tests/simulation/test_explore_durability.py::test_subgraphs_end_the_same_after_a_crash_and_a_cancellation[exit]"
CALLS = "tests/simulation/test_explore_calls.py::test_tasks_end_the_same_after_every_death"
TASKS = "tests/behaviour/test_tasks.py"
POLICIES = "tests/simulation/test_explore_policies.py"
AHEAD = "tests/simulation/test_write_ahead.py"
SAVERS = "tests/behaviour/savers/test_appends.py"
UPKEEP = "tests/behaviour/savers/test_housekeeping.py"
LOGS = "tests/simulation/test_explore_logs.py::test_logs_end_the_same_in_every_order_and_after_every_death"
LISTS = "tests/behaviour/savers/test_log_channels.py"
BATCHES = "tests/unit/test_batches.py"
AUTHORITY = "tests/behaviour/test_authority.py"
FIRST_TIER = "tests/behaviour/test_first_tier_savers.py"


@dataclass(frozen=True)
class Edit:
    """One text of one file, and what stands there instead."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """A bug: its edits, the test that must fail, and what the failure must say where a test holds several nets."""

    name: str
    net: str
    edits: tuple[Edit, ...]
    says: str = ""


def mutant(name: str, net: str, file: str, old: str, new: str, says: str = "") -> Mutant:
    return Mutant(name, net, (Edit(file, old, new),), says)


MUTANTS = (
    # what is applied, and when
    mutant(
        "apply in completion order",
        FLAT,
        "pregel/engine/loop.py",
        "finished = barrier.in_order",
        "finished = barrier.finished",
        says="[history]",
    ),
    mutant(
        "a checkpoint although apply raised",
        f"{AHEAD}::test_a_step_that_cannot_be_applied_leaves_its_writes_and_no_checkpoint",
        "pregel/engine/loop.py",
        "        return error\n    if frame.journal is None:",
        '        commit(frame, step, ((), ()), "loop", ())\n        return error\n    if frame.journal is None:',
    ),
    mutant(
        "stored writes are dropped",
        FLAT,
        "pregel/engine/resume.py",
        "pending.setdefault(write.task, []).append(write)",
        "pass",
        says="[repeat]",
    ),
    mutant(
        "a finished task without writes leaves no row",
        FLAT,
        "pregel/engine/barrier.py",
        "return row_of(frame, task, rows or [(NO_WRITES, None)])",
        "return row_of(frame, task, rows) if rows else None",
    ),
    mutant(
        "writes wait for the end of their step",
        FLAT,
        "pregel/engine/barrier.py",
        "if self.open and self.unsaved:  # somebody",
        "if False:  # somebody",
        says="[rules]",
    ),
    mutant(
        "finished writes are not flushed on a cancellation",
        "tests/simulation/test_explore_flat.py::test_attempts_beside_other_work_repeat_nothing_that_is_stored",
        "pregel/engine/loop.py",
        "    step.writes.extend(barrier.unsaved)\n    if barrier.cancelled:",
        "    if not barrier.cancelled:\n        step.writes.extend(barrier.unsaved)\n    if barrier.cancelled:",
        says="[rules]",
    ),
    # what a checkpoint says
    mutant(
        "seen versions are not saved",
        FLAT,
        "pregel/engine/resume.py",
        "for name in marked},",
        "for name in ()},",
        says="[live]",
    ),
    mutant(
        "a lineage is drawn from the id",
        FLAT,
        "pregel/engine/resume.py",
        'paths if source == "loop" else (source, str(state.counter)))',
        "(source, state.checkpoint))",
        says="[history]",
    ),
    mutant(
        "ids follow the clock alone",
        FLAT,
        "pregel/engine/journal.py",
        "self.ids.follow(opened.thread.last_id)",
        "pass",
        says="[live]",
    ),
    mutant(
        "an id is only above its parent",
        "tests/behaviour/test_replay.py::test_ids_grow_over_every_id_of_the_thread_also_those_of_a_clock_that_is_ahead",
        "pregel/engine/journal.py",
        "self.ids.follow(opened.thread.last_id)",
        'self.ids.follow(max((one.id for one in opened.saved if one is not None), default=""))',
    ),
    mutant(
        "exit: the last id is that of the last graph",
        EXIT,
        "pregel/engine/journal.py",
        "sorted(self.held_saves.values(), key=_id), {}",
        "list(self.held_saves.values()), {}",
        says="[laws]",
    ),
    mutant(
        "a task id without its step",
        "tests/unit/test_ids.py",
        "pregel/engine/ids.py",
        "str(step), name, kind",
        "name, kind",
    ),
    mutant(
        "a task id without its path",
        DEEP,
        "pregel/engine/ids.py",
        "str(step), name, kind, *parts",
        "str(step), name, kind",
    ),
    mutant(
        "an id may repeat within a tick",
        "tests/unit/test_ids.py",
        "pregel/engine/ids.py",
        "max(self.clock() + EPOCH, self.last + 1)",
        "max(self.clock() + EPOCH, self.last)",
    ),
    # questions
    mutant(
        "answers are not stored with the claim",
        ANSWERS,
        "pregel/engine/resume.py",
        "        step.writes.append(TaskWrites(frame.ns, saved.id, task, name, path, [(RESUME, answers[task])]))",
        "        del name, path",
        says="[end]",
    ),
    mutant(
        "a question is not stored",
        ANSWERS,
        "pregel/engine/barrier.py",
        "            rows.append((RESUME, dict(task.answers)))\n        self.keep(task, rows)",
        "            rows.append((RESUME, dict(task.answers)))",
    ),
    # subgraphs
    mutant(
        "a child is always fresh",
        DEEP,
        "pregel/engine/family.py",
        "fresh=task.fresh and graph.checkpointer is not True,",
        "fresh=True,",
    ),
    mutant(
        "a cancellation goes down one level at a time",
        DEEP,
        "pregel/engine/family.py",
        "for member in self._live(self.root):",
        "for member in (self.root,):",
        says="[rules]",
    ),
    mutant(
        "the second half of a subgraph task starts after it was cancelled",
        MANY,
        "pregel/engine/family.py",
        "elif task in self.leaving:",
        "elif False:",
        says="[rules]",
    ),
    mutant(
        "a subgraph begins when its input was read during a cancellation",
        TYPED,
        "pregel/engine/family.py",
        "if cancelled or event.task in self.stopped:",
        "if cancelled:",
        says="[rules]",
    ),
    mutant(
        "a subgraph that keeps its state resumes what it did for another input",
        "tests/simulation/test_explore_subgraphs.py",
        "pregel/engine/resume.py",
        "entry.resuming and saved is not None and _is_of_this_task(frame, saved)",
        "entry.resuming and saved is not None",
        says="[end]",
    ),
    # authority
    mutant(
        "START before the claim",
        FLAT,
        "pregel/engine/resume.py",
        "step.claim = frame.journal is not None",
        "step.claim = False",
        says="[rules]",
    ),
    mutant(
        "an append is compared with nothing",
        FLAT,
        "pregel/checkpoint/memory.py",
        "                or thread.seq != append.seq\n"
        "                or thread.run != append.run\n"
        "                or thread.epoch != append.epoch\n",
        "",
        says="[zombie]",
    ),
    mutant(
        "an append is not compared with seq",
        f"{SAVERS}::test_a_late_duplicate_is_refused",
        "pregel/checkpoint/memory.py",
        "                or thread.seq != append.seq\n",
        "",
    ),
    mutant(
        "a claim is not compared with what was loaded",
        TURNS,
        "pregel/checkpoint/memory.py",
        "(thread.tno, thread.epoch, thread.seq, thread.gen) == (append.tno, claim.epoch, append.seq, claim.gen)",
        "thread.tno == append.tno",
        says="[zombie]",
    ),
    mutant(
        "sqlite: an append is not compared with seq",
        f"{SAVERS}::test_a_late_duplicate_is_refused",
        "pregel/checkpoint/sql/sqlite.sql",
        "WHERE tno = ?6 AND epoch = ?7 AND run = ?8 AND seq = ?9",
        "WHERE tno = ?6 AND epoch = ?7 AND run = ?8 AND ?9",
    ),
    mutant(
        "sqlite: a claim is not compared with seq",
        f"{SAVERS}::test_a_claim_needs_the_thread_as_it_was_loaded",
        "pregel/checkpoint/sql/sqlite.sql",
        "WHERE tno = ?6 AND epoch = ?7 AND gen = ?8 AND seq = ?9",
        "WHERE tno = ?6 AND ?7 AND gen = ?8 AND ?9",
    ),
    # who owns a thread
    mutant(
        "a lapsed lease is never taken over",
        f"{AUTHORITY}::test_a_thread_whose_lease_has_lapsed_is_taken_over[sync-memory]",
        "pregel/checkpoint/memory.py",
        "thread.run is None or claim.dead or thread.lapsed(now)",
        "thread.run is None or claim.dead",
    ),
    mutant(
        "a live lease is taken for a lapsed one",
        f"{AUTHORITY}::test_a_thread_that_another_host_holds_is_busy_until_its_lease_lapses[sync-memory]",
        "pregel/engine/authority.py",
        "        if row.lapsed:\n            return False",
        "        if True:\n            return True",
    ),
    mutant(
        "the epoch does not rise with a takeover",
        f"{AUTHORITY}::test_a_thread_whose_lease_has_lapsed_is_taken_over[sync-memory]",
        "pregel/checkpoint/memory.py",
        "            thread.epoch = max(thread.epoch + 1, int(now * 1000))\n",
        "",
    ),
    mutant(
        "two owners: an append is not compared with the run",
        "tests/simulation/test_two_owners.py::test_in_every_order_no_two_appends_land_under_one_expectation[sync]",
        "pregel/checkpoint/memory.py",
        "                or thread.seq != append.seq\n"
        "                or thread.run != append.run\n"
        "                or thread.epoch != append.epoch\n",
        "",
    ),
    mutant(
        "a renewal is not compared with the run",
        f"{AUTHORITY}::test_a_lost_lease_is_found_out_by_the_heartbeat[memory]",
        "pregel/checkpoint/memory.py",
        "thread is not None and (thread.epoch, thread.run) == (epoch, run) else None",
        "thread is not None else None",
    ),
    mutant(
        "the heartbeat renews nothing",
        f"{AUTHORITY}::test_the_heartbeat_renews_what_has_not_moved_since_it_looked[memory]",
        "pregel/checkpoint/heartbeat.py",
        "if not holder.has_moved(since):",
        "if holder.has_moved(since):",
    ),
    mutant(
        "exit: a late run starts its next task",
        f"{AUTHORITY}::test_a_run_that_lost_its_thread_writes_nothing_and_starts_nothing[sync-memory-exit]",
        "pregel/engine/authority.py",
        "return lease.uptime() >= self.deadline and self.renews",
        "return False",
    ),
    mutant(
        "a run's copy in a forked child goes on",
        "tests/kill/test_owners.py::test_the_copy_of_a_run_in_a_forked_child_never_writes[sqlite]",
        "pregel/engine/authority.py",
        "self.epoch, self.deadline = -1, 0.0",
        "pass",
    ),
    mutant(
        "what another run asks is not heard",
        "tests/behaviour/test_concurrency.py::"
        "test_interrupt_stops_the_other_run_after_its_step_and_keeps_what_it_did[sync-memory]",
        "pregel/engine/authority.py",
        "            self.asked = asked\n",
        "            pass\n",
    ),
    mutant(
        "a run that meets its own thread is not told so",
        "tests/behaviour/test_concurrency.py::"
        "test_a_run_that_meets_its_own_thread_is_told_so_in_any_mode[sync-memory-reject]",
        "pregel/engine/authority.py",
        "        if run in self.around:",
        "        if not run:",
    ),
    mutant(
        "a stream that is pulled gives way to anybody",
        f"{AUTHORITY}::test_a_stream_that_another_task_pulls_is_busy",
        "pregel/engine/parked.py",
        "return caller == self.caller or lease.uptime() - self.since >= GRACE",
        "return True",
    ),
    mutant(
        "a refused append is taken for one that landed",
        FLAT,
        "pregel/engine/journal.py",
        "        if receipt.landed:\n",
        "        if True:\n",
        says="[rules]",
    ),
    mutant(
        "an unreaped owner counts as alive",
        "tests/unit/test_lease.py",
        "pregel/checkpoint/lease.py",
        "return state in GONE and not _has_other_threads(owner.pid)",
        "return False",
    ),
    # drivers and durability
    Mutant(
        "blocking: nodes start before their checkpoint is stored",
        AHEAD,
        (
            Edit(
                "pregel/engine/drive_sync.py",
                "                if self.journal is not None:\n                    self.record(step, reply)\n",
                "",
            ),
            Edit(
                "pregel/engine/drive_sync.py",
                "                    reply.append(event)\n",
                "                    reply.append(event)\n                    self.record(step, reply)\n",
            ),
            Edit(
                "pregel/engine/drive_sync.py",
                "                self.set_off(step, reply)\n                while step.wait and not reply:\n",
                "                self.set_off(step, reply)\n                self.record(step, reply)\n"
                "                while step.wait and not reply:\n",
            ),
        ),
    ),
    Mutant(
        "blocking: Ctrl-C finds the news of the step before",
        "tests/simulation/test_ctrl_c.py",
        (
            Edit("pregel/engine/drive_sync.py", "self.news = reply = []", "reply = []"),
            Edit(
                "pregel/engine/drive_sync.py",
                "                while step.wait and not reply:",
                "                self.news = reply\n                while step.wait and not reply:",
            ),
        ),
    ),
    mutant(
        "awaiting: a cancellation cuts a load and an append in two",
        "tests/simulation/test_cancel_async.py",
        "pregel/engine/drive_async.py",
        "            await whole(lambda: self._journaled(journal, step, events))\n",
        "            try:\n                await self._journaled(journal, step, events)\n"
        "            except asyncio.CancelledError:\n                self.sound = True\n                raise\n",
    ),
    mutant(
        "async: an append is held back with the one before",
        ASYNC,
        "pregel/engine/journal.py",
        "            append = held.followed_by(append)\n        elif self.holds",
        "            append = held.followed_by(append)\n        if self.holds",
    ),
    mutant(
        "async: what is held back waits for the next append, however long that takes",
        "tests/behaviour/test_durability_async.py",
        "pregel/engine/journal.py",
        "            if self.held is append:\n",
        "            if self.held is not append:\n",
    ),
    mutant(
        "sqlite: what a disk error left unclear is not sent again",
        "tests/behaviour/test_disk_faults.py",
        "pregel/checkpoint/sqlite/saver.py",
        "            if not is_io_error(error):\n                raise explanation(",
        "            if True:\n                raise explanation(",
    ),
    mutant(
        "async: the claim is not waited for",
        ASYNC,
        "pregel/engine/journal.py",
        "append.claim is None and append.release is None and self.failure is None:\n            self.defer",
        "append.release is None and self.failure is None:\n            self.defer",
    ),
    mutant(
        "what is cancelled starts all the same",
        "tests/unit/test_barrier.py",
        "pregel/engine/barrier.py",
        "if task not in stopped]",
        "]",
    ),
    Mutant(
        "the saver keeps the caller's own dicts",
        f"{SAVERS}::test_stored_values_share_nothing_with_the_callers",
        (
            Edit(
                "pregel/checkpoint/ledger.py",
                "typed = self._dumps(value)",
                'typed = ("own", value) if type(value) is dict else self._dumps(value)',
            ),
            Edit(
                "pregel/checkpoint/decode.py",
                "self._loads = serde.loads_typed",
                'self._loads = lambda typed: typed[1] if typed[0] == "own" else serde.loads_typed(typed)',
            ),
        ),
    ),
    # prune, copies, other people's savers
    mutant(
        "a pruned checkpoint leans on one that is gone",
        f"{UPKEEP}::test_a_large_graph_is_pruned_to_one_whole_manifest",
        "pregel/checkpoint/housekeeping.py",
        '    yield Sql("rewrite_checkpoint", (_whole(row, read), tno, row.ns, row.id))\n',
        "",
    ),
    mutant(
        "a claim is not told of a prune",
        f"{UPKEEP}::test_a_prune_between_load_and_claim_makes_the_claim_miss",
        "pregel/checkpoint/housekeeping.py",
        '    yield Sql("bump_gen", (tno,))\n',
        "",
    ),
    mutant(
        "a prune takes a live run's records away",
        f"{UPKEEP}::test_prune_leaves_a_live_thread_alone_and_says_so",
        "pregel/checkpoint/housekeeping.py",
        "        return False\n    if strategy",
        "        pass\n    if strategy",
    ),
    mutant(
        "a value goes with a run although a survivor needs it",
        f"{UPKEEP}::test_a_value_that_a_survivor_shares_with_a_deleted_run_stays",
        "pregel/checkpoint/housekeeping.py",
        "kept.update(Decoder.addresses(Read(row.id, row.manifest, None)))",
        "pass",
    ),
    mutant(
        "a verb of the old contract is passed by",
        f"{FIRST_TIER}::test_an_override_of_ours_is_called",
        "pregel/checkpoint/base.py",
        "return all(depth is None or depth >= append for depth in depths)",
        "return True",
    ),
    mutant(
        "another's saver keeps a node's own container",
        f"{FIRST_TIER}::test_what_a_node_does_to_its_result_later_is_not_in_the_record",
        "pregel/checkpoint/book.py",
        "else copy_container(value))",
        "else value)",
    ),
    mutant(
        "another's saver gets the checkpoint before the writes",
        f"{FIRST_TIER}::test_a_tasks_writes_are_stored_before_the_checkpoint_that_holds_them",
        "pregel/checkpoint/first_tier.py",
        "[one for one in writes if one.checkpoint not in coming]",
        "[]",
    ),
    Mutant(
        "a run on another's saver goes on from what another run has left behind",
        f"{FIRST_TIER}::test_a_run_that_loaded_before_another_one_loads_again",
        (
            Edit("pregel/checkpoint/held.py", "if held is None or held.seq != append.seq:", "if held is None:"),
            Edit("pregel/checkpoint/held.py", "if held.epoch != claim.epoch or not (", "if not ("),
        ),
    ),
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
        f"{TASKS}::test_a_question_nobody_waits_for_still_pauses",
        "pregel/engine/calls.py",
        "if out := self.out.get(task):",
        "if (out := self.out.get(task)) and False:",
    ),
    mutant(
        "call: it goes on although its caller failed",
        f"{TASKS}::test_a_caller_that_fails_cancels_its_calls",
        "pregel/engine/calls.py",
        "            if isinstance(event, Failed | Gone):\n",
        "            if False:\n",
    ),
    mutant(
        "call: a question that nobody waits for is dropped",
        f"{TASKS}::test_a_question_nobody_waits_for_still_pauses",
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
        f"{TASKS}::test_a_consumer_that_leaves_loses_no_result",
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
        "a rejected answer stays bound",
        "tests/behaviour/test_answers.py::test_an_answer_of_the_wrong_kind_leaves_the_question_open",
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
        "pregel/engine/resume.py",
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
    # lists that grow, and channels that are folded
    mutant(
        "logs: a delta names another predecessor",
        LOGS,
        "pregel/checkpoint/ledger.py",
        "kind, blob, before.at, before.base, news.layout, news.n)]",
        "kind, blob, before.base, before.base, news.layout, news.n)]",
    ),
    mutant(
        "logs: a cache is written without being compared",
        f"{BATCHES}::test_a_reducer_that_does_not_give_the_same_again_is_found_before_a_cache_is_written",
        "pregel/checkpoint/batches.py",
        "    if encode(found) == whole:\n        return True\n",
        "    return True\n",
    ),
    mutant(
        "logs: a batch in another order",
        f"{BATCHES}::test_several_writes_and_several_supersteps_fold_as_they_were_recorded",
        "pregel/checkpoint/batches.py",
        "[encode(write) for write in batch] for batch in batches",
        "[encode(write) for write in reversed(batch)] for batch in batches",
    ),
    mutant(
        "logs: the batches of a run become one",
        f"{LISTS}::test_exit_keeps_the_batches_of_its_supersteps_apart[memory]",
        "pregel/engine/journal.py",
        "batches=[*held.batches, *log.batches]",
        "batches=[[write for batch in (*held.batches, *log.batches) for write in batch]]",
    ),
    mutant(
        "logs: another reducer folds",
        f"{BATCHES}::test_another_reducer_is_refused",
        "pregel/channels/batches.py",
        "if fold != self.fold:",
        "if not fold:",
    ),
    mutant(
        "logs: deltas stand on what another branch stored",
        f"{BATCHES}::test_a_tip_of_another_value_is_not_built_on",
        "pregel/checkpoint/batches.py",
        " or log.base is not tip.last",
        "",
    ),
    mutant(
        "logs: an item that was written again counts as kept",
        "tests/unit/test_channel_growth.py::test_a_message_that_was_written_again_is_in_no_run",
        "pregel/channels/growth.py",
        "if place < beyond or id(item) in written:",
        "if place < beyond:",
    ),
    mutant(
        "logs: messages join by an index that forgot some",
        "tests/unit/test_message_index.py::test_whatever_is_previewed_and_written_the_answer_is_that_of_the_reducer",
        "pregel/messages/index.py",
        "or places.get(key, length) < length",
        "or places.get(key, length) < length - 1",
    ),
    mutant(
        "logs: prune keeps no chain",
        f"{LISTS}::test_prune_keeps_what_the_newest_checkpoint_stands_on_and_little_more[memory]",
        "pregel/checkpoint/housekeeping.py",
        '            kept.add((*address, "delta"))\n            address =',
        "            address =",
    ),
    mutant(
        "logs: a write that a delta holds is not that delta's",
        f"{LISTS}::test_writes_that_a_delta_holds_read_back[memory]",
        "pregel/checkpoint/ledger.py",
        "row.blob == value.blob and ",
        "",
    ),
)


def main(words: Sequence[str]) -> int:
    """0 when every chosen bug was caught."""
    chosen = [one for one in MUTANTS if not words or any(word in one.name for word in words)]
    workers = min(len(chosen), os.cpu_count() or 1) or 1
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(workers) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            copies.put(copied(Path(place) / str(number)))
        verdicts = list(pool.map(lambda one: tried(one, copies), chosen))
    caught = verdicts.count("")
    print(f"{caught} of {len(chosen)} bugs caught")
    return 0 if chosen and caught == len(chosen) else 1


def copied(place: Path) -> Path:
    """A copy of what the nets need."""
    ignore = shutil.ignore_patterns("__pycache__", ".*")
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=ignore)
        else:
            shutil.copy(source, place / name)
    return place


def tried(one: Mutant, copies: SimpleQueue[Path]) -> str:
    """Empty when the net caught the bug, else what went wrong; says so as well."""
    place = copies.get()
    originals = {edit.file: (place / edit.file).read_text(encoding="utf-8") for edit in one.edits}
    try:
        problem = planted(one, place, originals) or run_net(one, place)
    finally:
        for file, text in originals.items():
            (place / file).write_text(text, encoding="utf-8")
        copies.put(place)
    print(f"{'caught' if not problem else 'MISSED'}  {one.name}{': ' + problem if problem else ''}", flush=True)
    return problem


def planted(one: Mutant, place: Path, originals: dict[str, str]) -> str:
    texts = dict(originals)
    for edit in one.edits:
        count = texts[edit.file].count(edit.old)
        if not count:
            return f"{edit.file} does not hold the text any more: {edit.old!r}"
        texts[edit.file] = texts[edit.file].replace(edit.old, edit.new)
    for file, text in texts.items():
        (place / file).write_text(text, encoding="utf-8")
    return ""


def run_net(one: Mutant, place: Path) -> str:
    options = ["-x", "-q", "-n0", "-m", "", "-p", "no:cacheprovider", "-p", "no:randomly", "--timeout=120"]
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**outside, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, one.net],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return f"{one.net} passed"
    if done.returncode != 1:
        return f"{one.net} could not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    if one.says not in done.stdout:
        return f"{one.net} failed without {one.says}:\n{done.stdout[-3000:]}"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
