"""Planted bugs in journaled chunks, and in following them."""

from __future__ import annotations

from planted.bug import mutant

FOLLOWING = "tests/behaviour/test_following.py"
ROWS = "tests/behaviour/savers/test_chunks.py"
KILL = "tests/kill/test_following.py::test_a_follower_sees_the_dead_attempt_and_the_next_one_in_one_stream[sqlite]"
RECORDER = "pregel/engine/recorder.py"

MUTANTS = (
    mutant(
        "a chunk of a step that was never stored looks stored",
        f"{FOLLOWING}::test_one_of_two_tasks_that_run_side_by_side_lands_alone[sync-memory]",
        RECORDER,
        "LANDED if is_through else PENDING",
        "LANDED",
    ),
    mutant(
        "what ran inside of a task does not land with it",
        f"{FOLLOWING}::test_a_graph_that_stores_nothing_itself_lands_with_the_node_that_runs_it[sync-memory]",
        RECORDER,
        'any(f":{outer}" in ns for outer in through)',
        "False",
    ),
    mutant(
        "a retry leaves what its failed attempt had shown",
        f"{FOLLOWING}::test_what_a_failed_attempt_had_shown_is_superseded_by_its_retry[sync-memory-sync]",
        RECORDER,
        "            again.add(task_text(record.task))\n",
        "            pass\n",
    ),
    mutant(
        "the next attempt does not say what was lost",
        f"{FOLLOWING}::test_a_run_that_waits_for_an_answer_says_so_and_its_second_pass_supersedes_the_first[sync-memory]",
        RECORDER,
        "for last, n in self.left])",
        "for last, n in ()])",
    ),
    mutant(
        "what nobody could mark any more looks as if it were under way",
        f"{FOLLOWING}::test_a_run_that_journals_nothing_supersedes_all_the_same[sync-memory]",
        "pregel/engine/follow.py",
        "SUPERSEDED if row.state == PENDING and row.epoch < epoch else row.state",
        "row.state",
    ),
    mutant(
        "an append that brings only chunks is not counted",
        f"{FOLLOWING}::test_progress_shows_while_its_node_still_runs[sync-memory]",
        "pregel/engine/recording.py",
        "        self.seq += 1\n",
        "",
    ),
    mutant(
        "offsets begin anew with each run",
        f"{FOLLOWING}::test_a_run_that_waits_for_an_answer_says_so_and_its_second_pass_supersedes_the_first[sync-sqlite]",
        RECORDER,
        "self.next, self.left = tail.next, tail.pending",
        "self.left = tail.pending",
    ),
    mutant(
        "journaling changes what the caller is shown",
        f"{FOLLOWING}::test_chunks_of_subgraphs_are_journaled_and_the_stream_stays_as_it_was[sync-memory]",
        "pregel/engine/call.py",
        "            return False  # of a subgraph, and only journaled\n",
        "            pass\n",
    ),
    mutant(
        "a follower takes the death of a worker for the end",
        KILL,
        "pregel/checkpoint/chunks.py",
        "return self.thread.run is None",
        'return self.standing["status"] != "running"',
    ),
    mutant(
        "a follower is given a row again from its start",
        f"{FOLLOWING}::test_a_follower_goes_on_from_any_offset[sync-memory]",
        "pregel/engine/follow.py",
        "            if offset >= self.offset:\n",
        "            if True:\n",
    ),
    mutant(
        "a pruned thread counts its chunks from zero",
        f"{ROWS}::test_a_prune_forgets_chunks_and_offsets_go_on[memory]",
        "pregel/checkpoint/memory.py",
        "if row.n or last == end}",
        "if row.n}",
    ),
    mutant(
        "the deletion of a run leaves its chunks",
        f"{ROWS}::test_the_deletion_of_a_run_takes_its_chunks[memory]",
        "pregel/checkpoint/housekeeping.py",
        "        yield from _empty_chunks(row.tno, run_id)\n",
        "        pass\n",
    ),
)
