"""An async generator that another one owns: what becomes of it when its owner is thrown away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from pregel.owned import Owned


async def numbers(ends: list[str]) -> AsyncIterator[int]:
    try:
        for number in range(10):
            yield number
            await asyncio.sleep(0)
    finally:
        ends.append("ended")


def test_an_owner_that_leaves_early_ends_it() -> None:
    ends: list[str] = []

    async def play() -> list[int]:
        async with Owned(numbers(ends)) as chunks:
            async for chunk in chunks:
                return [chunk]
        return []

    assert (asyncio.run(play()), ends) == ([0], ["ended"])


def test_an_owner_that_is_thrown_away_while_it_waits_inside_goes_without_an_error() -> None:
    """A loop that an exit has stopped leaves coroutines behind, which are closed when they are collected."""
    ends: list[str] = []

    async def read() -> None:
        async with Owned(numbers(ends)) as chunks:
            async for _ in chunks:
                pass

    owner = read()
    owner.send(None)  # it waits in the generator
    owner.close()

    with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
        owner.send(None)
