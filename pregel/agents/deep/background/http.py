"""HttpAgentServer: background tasks on a server that speaks the Agent Protocol, by the standard library alone.

1. A run is marked with its key. Before one is started anew the runs of the thread are asked for it: what an earlier
   attempt started is found, whatever became of that attempt. The key is also sent as ``Idempotency-Key``.
2. An unclear answer (no connection, no answer, 5xx, 429) is asked again some times, then it is an UnclearAnswerError.
3. No redirect is followed: headers with keys go to the host that was named, and to no other.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any, Literal
from urllib import request as http
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit

from pregel.agents.deep.background.tasks import (
    AgentServerError,
    AsyncSubAgent,
    Progress,
    TaskStatus,
    UnclearAnswerError,
)
from pregel.errors import DefinitionError

TIMEOUT, TRIES, PAUSE = 30.0, 3, 0.5  # seconds for an answer, attempts, seconds before the second one
LARGEST = 50_000_000  # bytes of an answer
RUNS = 100  # of a thread that are looked through
KEY = "pregel_key"  # of a run's metadata
WHO = "Is this an agent server?"
AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
STATUSES: Mapping[str, TaskStatus] = {
    "pending": "pending",
    "running": "running",
    "success": "success",
    "error": "error",
    "timeout": "timeout",
    "interrupted": "waiting",
}


class HttpAgentServer:
    """A server at `url`. `headers` go with each request; `sleep` is how it waits between attempts."""

    def __init__(
        self, url: str, headers: Mapping[str, str] | None = None, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise DefinitionError(f"The url of a server is {url!r}.", fix="Give one like https://agents.example.com.")
        self.url, self.headers, self._sleep = url.rstrip("/"), dict(headers or {}), sleep
        self._opener = http.build_opener(_NoRedirect)

    def send(
        self,
        agent: AsyncSubAgent,
        task_id: str,
        message: str,
        *,
        key: str,
        strategy: Literal["reject", "interrupt", "enqueue"] = "reject",
        answers: bool = False,
    ) -> Progress:
        """See `AgentServer`."""
        self._ask("POST", "/threads", {"thread_id": task_id, "if_exists": "do_nothing"})
        given: dict[str, Any] = {"command": {"resume": message}} if answers else {"input": _input(message)}
        body = {"assistant_id": agent["graph_id"], **given, "multitask_strategy": strategy, "metadata": {KEY: key}}
        if "webhook" in agent:
            body["webhook"] = agent["webhook"]
        place = f"/threads/{quote(task_id, safe='')}/runs"

        def start() -> Any:
            """The run: that of an earlier attempt, else a new one."""
            known = _runs(self._once("GET", f"{place}?limit={RUNS}"))
            found = [run for run in known if (run.get("metadata") or {}).get(KEY) == key]
            try:
                return found[0] if found else _runs([self._once("POST", place, body, {"Idempotency-Key": key})])[0]
            except _UnreadableAnswerError as error:  # it may well have been started
                raise UnclearAnswerError(str(error)) from error

        run = self._settled(start)
        return Progress(run["run_id"], STATUSES.get(run.get("status", "pending"), "pending"))

    def check(
        self, agent: AsyncSubAgent, task_id: str, run_id: str | None, *, timeout: float | None = None
    ) -> Progress:
        """See `AgentServer`."""
        place = f"/threads/{quote(task_id, safe='')}"
        if run_id is None:
            runs = _runs(self._ask("GET", f"{place}/runs?limit=1", timeout=timeout))
            if not runs:
                return Progress(None, "error", "The server never got this task.")
            run = runs[0]
        else:
            (run,) = _runs([self._ask("GET", f"{place}/runs/{quote(run_id, safe='')}", timeout=timeout)])
        status = STATUSES.get(run.get("status", ""), "unknown")
        if status in ("pending", "running", "unknown"):
            return Progress(run["run_id"], status)
        state = self._ask("GET", f"{place}/state", timeout=timeout)
        try:
            return Progress(run["run_id"], status, _told(status, run, state))
        except (AttributeError, KeyError, TypeError) as error:  # no such shape
            raise _UnreadableAnswerError(f"{place}/state: {error}", fix=WHO) from error

    def cancel(self, agent: AsyncSubAgent, task_id: str, run_id: str) -> None:
        """See `AgentServer`."""
        place = f"/threads/{quote(task_id, safe='')}/runs/{quote(run_id, safe='')}"
        self._ask("POST", f"{place}/cancel?wait=0&action=interrupt", {})

    # -- requests ------------------------------------------------------------------------------------------------------

    def _ask(self, method: str, path: str, body: Any = None, *, timeout: float | None = None) -> Any:
        if timeout is not None:
            return self._once(method, path, body, timeout=timeout)
        return self._settled(lambda: self._once(method, path, body))

    def _settled(self, ask: Callable[[], Any]) -> Any:
        for attempt in range(1, TRIES + 1):
            try:
                return ask()
            except UnclearAnswerError:
                if attempt == TRIES:
                    raise
                self._sleep(PAUSE * 2 ** (attempt - 1))
        raise AssertionError("unreachable")

    def _once(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
    ) -> Any:
        data = None if body is None else json.dumps(body).encode()
        sent = {"Accept": "application/json", "Content-Type": "application/json", **self.headers, **(headers or {})}
        asked = http.Request(f"{self.url}{path}", data, sent, method=method)
        where = f"{method} {self.url}{path.partition('?')[0]}"
        try:
            with self._opener.open(asked, timeout=timeout) as answer:
                text: bytes = answer.read(LARGEST + 1)
        except HTTPError as error:
            with error:
                said = error.read(2_000).decode(errors="replace")
            kind = UnclearAnswerError if error.code in AGAIN else AgentServerError
            raise kind(f"{where}: {error.code} {error.reason} {said}".rstrip()) from error
        except (OSError, HTTPException) as error:
            raise UnclearAnswerError(f"{where}: {error}") from error
        if len(text) > LARGEST:
            raise _UnreadableAnswerError(f"{where}: the answer is longer than {LARGEST:,} bytes.")
        try:
            return json.loads(text) if text.strip() else None
        except ValueError as error:
            raise _UnreadableAnswerError(f"{where}: the answer is no JSON.", fix=WHO) from error


class _UnreadableAnswerError(AgentServerError):
    """The server took the request, and what it answered cannot be understood."""


def _runs(given: Any) -> list[Mapping[str, Any]]:
    """The runs that a server named."""
    runs = given if isinstance(given, list) else [given]
    if not all(isinstance(run, Mapping) and isinstance(run.get("run_id"), str) for run in runs):
        raise _UnreadableAnswerError(f"The server names runs that are none: {str(given)[:200]}.", fix=WHO)
    return runs


class _NoRedirect(http.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _input(message: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": message}]}


def _told(status: TaskStatus, run: Mapping[str, Any], state: Any) -> str:
    """What a run that has ended, or waits, has to say."""
    state = state if isinstance(state, Mapping) else {}
    values = state.get("values") if isinstance(state.get("values"), Mapping) else {}
    if status == "waiting":
        asked = [one.get("value") for task in state.get("tasks") or () for one in task.get("interrupts") or ()]
        return "\n".join(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in asked)
    if status != "success":
        return str(
            run.get("error") or next((task["error"] for task in state.get("tasks") or () if task.get("error")), "")
        )
    if values.get("structured_response") is not None:
        return json.dumps(values["structured_response"], ensure_ascii=False)
    texts = (_text(one.get("content")) for one in reversed(values.get("messages") or ()) if _is_ai(one))
    return next((text for text in texts if text), "")


def _is_ai(message: Mapping[str, Any]) -> bool:
    return message.get("type", message.get("role")) in ("ai", "assistant", "AIMessageChunk")


def _text(content: Any) -> str:
    blocks = content if isinstance(content, list) else [content]
    return "".join(one if isinstance(one, str) else one.get("text", "") for one in blocks if one).rstrip()
