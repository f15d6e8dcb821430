"""Planted bugs in what is stored: housekeeping, other people's savers, lists that grow."""

from __future__ import annotations

from planted.bug import Edit, Mutant, mutant

UPKEEP = "tests/behaviour/savers/test_housekeeping.py"
LOGS = "tests/simulation/test_explore_logs.py::test_logs_end_the_same_in_every_order_and_after_every_death"
LISTS = "tests/behaviour/savers/test_log_channels.py"
BATCHES = "tests/unit/test_batches.py"
FIRST_TIER = "tests/behaviour/test_first_tier_savers.py"

MUTANTS = (
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
        "    if encode(found) == written:\n        return True\n",
        "    return True\n",
    ),
    mutant(
        "logs: what a cipher wrote is compared",
        "tests/behaviour/test_stored_values.py::test_values_that_are_not_equal_to_themselves_are_compared_in_clear",
        "pregel/checkpoint/batches.py",
        "written = whole if compared is None else compared(log.value)",
        "written, compared = whole, None",
    ),
    mutant(
        "logs: verify trusts the caches",
        "tests/behaviour/savers/test_log_channels.py::test_a_cache_that_is_not_what_its_deltas_make_is_found",
        "pregel/checkpoint/verify.py",
        "saved_flow(decoder, tno, ns, page, caches=False)",
        "saved_flow(decoder, tno, ns, page)",
    ),
    mutant(
        "logs: by the size of a list that only grows no cache is ever due",
        "tests/unit/test_log_storage.py::test_a_read_takes_two_sizes_of_the_list_at_most",
        "pregel/checkpoint/logs.py",
        "return tip.whole + weight >= 2 * max(size, SMALL)",
        "return False",
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
