"""The world outside of a demo's graph, as a process: it books and reviews, counts its calls, and can hold one of them.

1. A call counts when it is accepted, which is not when it arrives. One that brings a key under which a call was
   accepted gets that one's answer, and does not count.
2. A call that is held is accepted once it is released, and dropped without counting once its client is gone.
3. One JSON line in, one JSON line out, then the connection is closed. Nothing is printed.
4. The process ends when its stdin does, so it outlives nobody.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pregel.cli.demo.reviewer import review_file

PREFIX = {"flight": "FL", "hotel": "HO", "car": "CA"}
PRICE = {"flight": 420, "hotel": 510, "car": 180}
Message = dict[str, Any]  # what JSON carries


@dataclass(slots=True)
class Tool:
    """One tool of the provider: how often it was called, and whether it holds calls."""

    accepted: int = 0
    waiting: int = 0
    dropped: int = 0
    sold_out: bool = False
    holds_after: int | None = None  # hold whatever comes after this many accepted calls
    released: asyncio.Event = field(default_factory=asyncio.Event)
    answers: dict[str, Any] = field(default_factory=dict)  # by key

    @property
    def holds(self) -> bool:
        return self.holds_after is not None and self.accepted >= self.holds_after


class Provider:
    """Answers calls and orders; see the rules above."""

    def __init__(self) -> None:
        self.tools = {name: Tool() for name in DO}

    async def serve(self, listening: socket.socket) -> None:
        server = await asyncio.start_server(self.answer, sock=listening)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
        server.close()  # and no wait for held calls: nobody is left to release them

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = json.loads(await reader.readline())
        order, name = asked["order"], asked.get("tool", "")
        if order == "call":
            answer = await self.call(name, asked["with"], reader)
        else:
            answer = getattr(self, f"order_{order}")(name, asked)
        if answer is not None:
            writer.write(json.dumps(answer).encode() + b"\n")
        writer.close()

    async def call(self, name: str, given: Message, reader: asyncio.StreamReader) -> Message | None:
        tool = self.tools[name]
        if tool.holds:
            tool.waiting += 1
            alive = await _outlasts(reader, tool.released)
            tool.waiting -= 1
            if not alive:
                tool.dropped += 1
                return None
        key = given.get("key")
        if key in tool.answers:
            return dict(tool.answers[key])
        tool.accepted += 1
        answer = DO[name](name, tool, given)
        if key is not None:
            tool.answers[key] = answer
        return answer

    def order_hold(self, name: str, asked: Message) -> Message:
        self.tools[name].holds_after = asked["after"]
        return {}

    def order_release(self, name: str, asked: Message) -> Message:
        tool = self.tools[name]
        tool.holds_after = None
        tool.released.set()
        tool.released = asyncio.Event()
        return {}

    def order_sell_out(self, name: str, asked: Message) -> Message:
        self.tools[name].sold_out = True
        return {}

    def order_counts(self, name: str, asked: Message) -> Message:
        shown = ("accepted", "waiting", "dropped")
        return {name: {part: getattr(tool, part) for part in shown} for name, tool in self.tools.items()}


async def _outlasts(reader: asyncio.StreamReader, released: asyncio.Event) -> bool:
    """Whether the client is still there when the call is released."""
    gone, free = asyncio.create_task(reader.read(1)), asyncio.create_task(released.wait())
    try:
        await asyncio.wait({gone, free}, return_when=asyncio.FIRST_COMPLETED)
        return not gone.done()
    finally:
        gone.cancel()
        free.cancel()


def _book(name: str, tool: Tool, given: Message) -> Message:
    if tool.sold_out:
        return {"status": "failed", "reason": "sold out"}
    return {"status": "booked", "number": f"{PREFIX[name]}-{1000 + tool.accepted}", "price": PRICE[name]}


def _review(name: str, tool: Tool, given: Message) -> Message:
    """Whether the bookings fit the request; bookings that failed are for the caller to see."""
    total = sum(booking.get("price", 0) for booking in given["bookings"].values())
    budget = given["request"]["budget"]
    return {"issues": [f"the total of {total} EUR is over the budget of {budget} EUR"] if total > budget else []}


def _confirm(name: str, tool: Tool, given: Message) -> Message:
    return {"number": f"TRIP-{1000 + tool.accepted}"}


def _review_file(name: str, tool: Tool, given: Message) -> Message:
    return {"review": review_file(given["path"], given["name"])}


DO: dict[str, Callable[[str, Tool, Message], Message]] = {
    "flight": _book,
    "hotel": _book,
    "car": _book,
    "review": _review,
    "confirm": _confirm,
    "reviewer": _review_file,
}


if __name__ == "__main__":
    asyncio.run(Provider().serve(socket.socket(fileno=int(sys.argv[1]))))
