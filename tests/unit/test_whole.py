"""What is done whole is done to its end, whatever is cancelled meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from pregel.engine.journal_async import whole


def test_what_was_cancelled_before_it_began_is_done_all_the_same() -> None:
    done: list[str] = []

    async def work() -> None:
        done.append("work")

    async def main() -> None:
        caller = asyncio.create_task(whole(work))
        await asyncio.sleep(0)  # the caller waits, its work has not begun
        for task in asyncio.all_tasks() - {asyncio.current_task()}:  # as the end of a loop does
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller

    asyncio.run(main())

    assert done == ["work"]


def test_work_that_cancels_itself_is_not_begun_again() -> None:
    begun: list[str] = []

    async def work() -> None:
        begun.append("work")
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(whole(work))

    assert begun == ["work"]


def test_an_exit_is_heard_by_whoever_waits() -> None:
    async def work() -> None:
        raise SystemExit(3)

    async def main() -> str:
        try:
            await whole(work)
        except SystemExit:
            return "heard"
        return "lost"

    assert asyncio.run(main()) == "heard"
