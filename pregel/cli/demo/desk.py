"""The way to a provider process: starts one, calls its tools for a node, gives it orders for a story or a test."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ADDRESS = "PREGEL_DEMO_PROVIDER"  # the environment variable that tells a child where its provider is
PATIENCE = 60.0  # seconds that a call may be held
Answer = dict[str, Any]  # what JSON carries


class Desk:
    """A provider at ``host:port``."""

    def __init__(self, address: str) -> None:
        self.address = address

    def call(self, tool: str, **given: object) -> Answer:
        """What a tool answers; this waits while the provider holds the call."""
        return self._ask({"order": "call", "tool": tool, "with": given})

    def hold(self, tool: str, after: int = 0) -> None:
        """Accept no call of a tool beyond the first `after` until it is released."""
        self._ask({"order": "hold", "tool": tool, "after": after})

    def release(self, tool: str) -> None:
        self._ask({"order": "release", "tool": tool})

    def sell_out(self, tool: str) -> None:
        self._ask({"order": "sell_out", "tool": tool})

    def accepted(self, *tools: str) -> dict[str, int]:
        """How many calls of these tools counted."""
        counts = self._ask({"order": "counts"})
        return {tool: counts[tool]["accepted"] for tool in tools}

    def held(self, tool: str) -> int:
        """How many calls of a tool are held right now."""
        return int(self._ask({"order": "counts"})[tool]["waiting"])

    def dropped(self, tool: str) -> int:
        """How many held calls of a tool were dropped because their client was gone."""
        return int(self._ask({"order": "counts"})[tool]["dropped"])

    def _ask(self, message: Answer) -> Answer:
        host, _, port = self.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            connection.sendall(json.dumps(message).encode() + b"\n")
            with connection.makefile("rb") as replies:
                answer: Answer = json.loads(replies.readline())
        return answer


def call(tool: str, **given: object) -> Answer:
    """What a tool of this process's own provider answers."""
    return Desk(os.environ[ADDRESS]).call(tool, **given)


@contextmanager
def open_provider() -> Iterator[Desk]:
    """A provider process of one's own, ended on the way out."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        handed_over = listening.fileno()
        command = [sys.executable, "-m", "pregel.cli.demo.provider", str(handed_over)]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            pass_fds=[handed_over],
            env=child_environment(),
            start_new_session=True,  # a Ctrl-C is for the story; the provider ends when its stdin does
        )
        host, port = listening.getsockname()
    try:
        yield Desk(f"{host}:{port}")
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(PATIENCE)


def child_environment(**added: str) -> dict[str, str]:
    """This process's environment, such that a child imports the same `pregel`."""
    root = str(Path(__file__).parents[3])
    inherited = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([inherited, root] if inherited else [root]), **added}
