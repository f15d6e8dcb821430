"""The strict service for tests: started once a session in a process of its own, one conversation an API key."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Conversation:
    """One API key of the service: what it will say, and what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.key = f"key-{uuid.uuid4().hex}"

    def will_say(self, *turns: dict[str, Any]) -> Conversation:
        """Script the next answers (see `play.Turn`)."""
        self._call("/script", list(turns))
        return self

    @property
    def log(self) -> list[dict[str, Any]]:
        """The requests so far: path, body, status, refused (why, or empty)."""
        return [{**entry, "body": json.loads(entry["body"])} for entry in self._call("/log")]

    @property
    def refused(self) -> list[str]:
        """Why requests were refused."""
        return [entry["refused"] for entry in self.log if entry["refused"]]

    def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, dict[str, Any]]:
        """Status and answer to a raw request, for what no client would send."""
        default = {"x-api-key": self.key, "anthropic-version": "2023-06-01", "content-type": "application/json"}
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = default if headers is None else headers
        request = urllib.request.Request(self.url + path, raw, given, method="POST")
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def _call(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"x-api-key": self.key})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


class Service:
    """The process."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.providers.strict.server"]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}"

    def conversation(self) -> Conversation:
        """A new API key."""
        return Conversation(self.url)

    def stop(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
