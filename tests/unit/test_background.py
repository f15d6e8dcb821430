"""What runs hold back is let go after a moment, whenever it comes."""

from __future__ import annotations

import threading

from pregel.checkpoint.records import Append
from pregel.engine.background import Background


class Held:
    """A run that holds one append back."""

    def __init__(self) -> None:
        self.held: Append | None = Append("t", 1, 1, b"r", 0, 1, b"m")
        self.gone = threading.Event()

    def let_go(self, append: Append) -> None:
        if self.held is append:
            self.flush()

    def flush(self) -> None:
        self.held = None
        self.gone.set()


def test_what_is_held_back_is_let_go_also_when_the_thread_had_gone_to_sleep() -> None:
    background = Background(moment=0.0)

    for _ in range(300):
        run = Held()
        background.watch(run)
        assert run.gone.wait(30)


def test_what_a_run_took_itself_is_left_alone() -> None:
    background = Background(moment=0.0)
    taken, after = Held(), Held()
    taken.held = None

    background.watch(taken)
    background.watch(after)

    assert after.gone.wait(30)
    assert not taken.gone.is_set()


def test_at_the_end_of_the_interpreter_nothing_is_held_back() -> None:
    background = Background(moment=60.0)  # it looks once, and not again
    runs = [Held() for _ in range(3)]
    for run in runs:
        background.watch(run)

    background.drain()

    assert [None, None, None] == [run.held for run in runs]


def test_work_is_done_on_another_thread() -> None:
    background = Background()
    names: list[str] = []

    background.submit(lambda: names.append(threading.current_thread().name)).result(30)

    assert names[0].startswith("pregel-journal")
