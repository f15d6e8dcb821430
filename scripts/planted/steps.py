"""Planted bugs in steps: what is applied, what a checkpoint says, questions, subgraphs, drivers."""

from __future__ import annotations

from planted.bug import Edit, Mutant, mutant

FLAT = "tests/simulation/test_explore_flat.py::test_a_fan_out_ends_the_same_in_every_order_and_after_every_death"
DEEP = "tests/simulation/test_explore_deep.py::test_subgraphs_in_sends_survive_every_death_at_every_level"
TYPED = "tests/simulation/test_explore_deep.py::test_subgraphs_whose_input_is_made_by_user_code_survive_every_death"
ANSWERS = "tests/simulation/test_explore_questions.py::test_an_answer_survives_every_death_of_the_run_that_got_it"
ASYNC = "tests/simulation/test_explore_durability.py::test_a_fan_out_ends_the_same_after_every_death[async]"
EXIT = "tests/simulation/test_explore_durability.py::test_subgraphs_end_the_same_after_a_crash_and_a_cancellation[exit]"
AHEAD = "tests/simulation/test_write_ahead.py"
SAVERS = "tests/behaviour/savers/test_appends.py"

MUTANTS = (
    # what is applied, and when
    mutant(
        "apply in completion order",
        FLAT,
        "pregel/engine/loop.py",
        "else barrier.in_order, kept)",
        "else barrier.finished, kept)",
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
        "pregel/engine/pending.py",
        "pending.setdefault(write.task, []).append(write)",
        "pass",
        says="[repeat]",
    ),
    mutant(
        "a finished task without writes leaves no row",
        FLAT,
        "pregel/engine/barrier.py",
        "return kept or WROTE_NOTHING",
        "return kept or None",
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
        "pregel/engine/commits.py",
        "for name in marked},",
        "for name in ()},",
        says="[live]",
    ),
    mutant(
        "a lineage is drawn from the id",
        FLAT,
        "pregel/engine/commits.py",
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
        "pregel/checkpoint/keys.py",
        "str(step), name, kind",
        "name, kind",
    ),
    mutant(
        "a task id without its path",
        DEEP,
        "pregel/checkpoint/keys.py",
        "str(step), name, kind, *parts",
        "str(step), name, kind",
    ),
    mutant(
        "an id may repeat within a tick",
        "tests/unit/test_ids.py",
        "pregel/engine/ids.py",
        "low = self._low + 1",
        "low = self._low",
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
        "tests/behaviour/test_subgraph_state.py"
        "::test_the_output_of_a_subgraph_is_not_routed_when_its_sibling_failed_in_the_meantime",
        "pregel/engine/family.py",
        "elif task in self.leaving:",
        "elif False:",
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
        "        await (work if journal.at_once else whole(lambda: work))\n",
        "        try:\n            await work\n"
        "        except asyncio.CancelledError:\n            self.sound = True\n            raise\n",
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
        "return append.claim is None and append.release is None",
        "return append.release is None",
    ),
    mutant(
        "what is cancelled starts all the same",
        "tests/unit/test_barrier.py",
        "pregel/engine/barrier.py",
        "if task not in wanted]",
        "]",
    ),
    Mutant(
        "the saver keeps the caller's own dicts",
        f"{SAVERS}::test_stored_values_share_nothing_with_the_callers",
        (
            Edit(
                "pregel/checkpoint/ledger.py",
                "typed = self._serde.dumps_typed(value)",
                'typed = ("own", value) if type(value) is dict else self._serde.dumps_typed(value)',
            ),
            Edit(
                "pregel/checkpoint/decode.py",
                "self._loads = serde.loads_typed",
                'self._loads = lambda typed: typed[1] if typed[0] == "own" else serde.loads_typed(typed)',
            ),
        ),
    ),
)
