"""Planted bugs in who may write to a thread."""

from __future__ import annotations

from planted.bug import mutant

FLAT = "tests/simulation/test_explore_flat.py::test_a_fan_out_ends_the_same_in_every_order_and_after_every_death"
TURNS = "tests/simulation/test_explore_flat.py::test_a_second_input_on_the_thread_goes_the_same_way"
SAVERS = "tests/behaviour/savers/test_appends.py"
WAY = "tests/behaviour/test_making_way.py"
GROUPS = "tests/behaviour/postgres/test_groups.py"
AUTHORITY = "tests/behaviour/test_authority.py"

MUTANTS = (
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
        "a usual step is compared with nothing",
        "tests/behaviour/test_usual_steps.py::test_a_run_that_lost_its_thread_keeps_nothing_of_its_next_step[sync]",
        "pregel/checkpoint/appender.py",
        "thread is None or thread.seq != seq or thread.run != run or thread.epoch != epoch or thread.tno != tno",
        "thread is None",
    ),
    mutant(
        "a usual step keeps what may change",
        "tests/behaviour/test_usual_steps.py::test_what_changes_later_changes_no_step_that_is_kept[sync]",
        "pregel/checkpoint/late.py",
        "if not self._kept.issuperset(map(type, values)):",
        "if False:",
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
    mutant(
        "sqlite: an append is compared with seq alone",
        f"{SAVERS}::test_an_append_that_expects_something_else_is_refused_and_changes_nothing[sqlite-epoch]",
        "pregel/checkpoint/sql/sqlite.sql",
        "WHERE tno = ?6 AND epoch = ?7 AND run = ?8 AND seq = ?9",
        "WHERE tno = ?6 AND ?7 AND ?8 IS NOT NULL AND seq = ?9",
    ),
    mutant(
        "postgres: an append is not compared with seq",
        f"{SAVERS}::test_a_late_duplicate_is_refused[postgres]",
        "pregel/checkpoint/sql/postgres.sql",
        "WHERE tno = $6::bigint AND epoch = $7::bigint AND run = $8::bytea AND seq = $9::bigint",
        "WHERE tno = $6::bigint AND epoch = $7::bigint AND run = $8::bytea AND $9::bigint IS NOT NULL",
    ),
    mutant(
        "postgres: an append is compared with seq alone",
        f"{SAVERS}::test_an_append_that_expects_something_else_is_refused_and_changes_nothing[postgres-epoch]",
        "pregel/checkpoint/sql/postgres.sql",
        "WHERE tno = $6::bigint AND epoch = $7::bigint AND run = $8::bytea AND seq = $9::bigint",
        "WHERE tno = $6::bigint AND $7::bigint IS NOT NULL AND $8::bytea IS NOT NULL AND seq = $9::bigint",
    ),
    mutant(
        "postgres: a claim is not compared with seq",
        f"{SAVERS}::test_a_claim_needs_the_thread_as_it_was_loaded[postgres]",
        "pregel/checkpoint/sql/postgres.sql",
        "WHERE tno = $6::bigint AND epoch = $7::bigint AND gen = $8::bigint AND seq = $9::bigint",
        "WHERE tno = $6::bigint AND $7::bigint IS NOT NULL AND gen = $8::bigint AND $9::bigint IS NOT NULL",
    ),
    mutant(
        "postgres: of two that make one thread at once both are told that they did",
        f"{GROUPS}::test_of_two_that_make_one_thread_at_once_only_the_first_is_told_that_it_did",
        "pregel/checkpoint/postgres/groups.py",
        "v.a1 = c.thread AND v.a6 = c.mark",
        "v.a1 = c.thread",
    ),
    mutant(
        "postgres: a group waits for a thread that is locked",
        f"{GROUPS}::test_a_thread_that_somebody_has_locked_holds_up_nobody_else",
        "pregel/checkpoint/postgres/groups.py",
        "FOR UPDATE OF p SKIP LOCKED",
        "FOR UPDATE OF p",
    ),
    mutant(
        "postgres: what does not land with a group is given up",
        f"{GROUPS}::test_what_is_sent_again_after_an_unclear_answer_is_known",
        "pregel/checkpoint/postgres/aio.py",
        "        try:\n            return await self._append_alone(append)",
        "        try:\n            return Receipt(False)",
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
        "self.epoch, self.deadline, self.appender = -1, 0.0, None",
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
        "who makes way starts another node",
        f"{WAY}::test_a_run_that_hears_of_it_with_its_append_starts_nothing_more[sync-memory-sync]",
        "pregel/engine/drive_sync.py",
        "        self.live = True  # no other node comes there\n",
        "",
    ),
    mutant(
        "awaiting: the cancellation of a node in place is left standing",
        f"{WAY}::test_an_async_node_is_cancelled_and_the_newcomer_goes_on[sync-memory]",
        "pregel/engine/puller.py",
        "task.uncancel() <= self._cancels",
        "task.cancelling() > self._cancels",
    ),
    mutant(
        "awaiting: a node that swallows its cancellation leaves it standing",
        f"{WAY}::test_a_node_that_swallows_its_cancellation_has_ended_well",
        "pregel/engine/drive_async.py",
        "                self.puller.was_torn_alone()  # a cancellation that the node swallowed is over as well\n",
        "",
    ),
    mutant(
        "a node makes one more value although its run makes way",
        f"{WAY}::test_a_blocking_node_is_met_at_its_next_step[sync-memory]",
        "pregel/engine/running.py",
        "        self.goes_on()\n        self.make_way()\n",
        "        self.goes_on()\n",
    ),
    mutant(
        "who gave up waiting is not told what stays asked",
        f"{WAY}::test_who_gave_up_waiting_is_told_that_the_other_run_stops_all_the_same[sync-memory-interrupt]",
        "pregel/engine/contend.py",
        "raise self._given_up(error)",
        "raise error",
    ),
    mutant(
        "a run of which nothing is left counts as one to go on with",
        "tests/behaviour/test_thread_api.py::test_a_run_of_which_nothing_was_stored_is_lost_and_says_so[sync-memory]",
        "pregel/checkpoint/standing.py",
        'if status == "abandoned" and not row.last_id:',
        "if False:",
    ),
    mutant(
        "on another's saver a count of attempts takes a write's place",
        "tests/behaviour/test_first_tier_savers.py::"
        "test_rows_that_only_this_engine_has_take_no_write_of_their_task[sync]",
        "pregel/checkpoint/book.py",
        "OURS = frozenset((ATTEMPT, ERROR_SOURCE, REJECTED))",
        "OURS = frozenset[str]()",
    ),
    mutant(
        "what a node does to its value reaches its next attempt",
        "tests/behaviour/test_steps_in_nodes.py::"
        "test_what_a_node_does_to_its_value_does_not_reach_the_next_attempt[sync-True]",
        "pregel/engine/memos.py",
        "    return serde.loads_typed(serde.dumps_typed(value))\n",
        "    return serde.dumps_typed(value) and value\n",
    ),
    mutant(
        "a claim takes away a ticket that it never saw",
        "tests/behaviour/savers/test_appends.py::"
        "test_a_ticket_is_left_whoever_holds_the_thread_and_kept_until_a_claim_has_seen_it[memory]",
        "pregel/checkpoint/memory.py",
        'if not thread.asked.startswith("~") or thread.asked == claim.heard:',
        "if True:",
    ),
    mutant(
        "who is beaten to a thread again and again gets no place in the queue",
        "tests/unit/test_waiting.py::test_a_call_that_is_beaten_to_a_free_thread_again_and_again_asks_for_its_turn",
        "pregel/engine/contend.py",
        "        yield from self._queue_up(row)\n\n    def _queue_up",
        "        yield from ()\n\n    def _queue_up",
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
)
