"""A small server of the Agent Protocol, in a process of its own: ``python tests/deep/agent_server.py`` prints its port.

What a run does its message says: "hold" works until it is told otherwise, "ask" asks, "fail" fails, all else is done at
once. ``POST /control`` takes ``{"finish": true}``, which ends what holds, ``{"lose": n}``, which swallows the next n
answers, ``{"garble": text}``, which is the answer about a state and, once, to a start, ``{"refuse": code}``, which
refuses the next request, and ``{"reset": true}``, which forgets all. ``GET /seen`` gives all runs and the headers of
the last request.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOCK = threading.Lock()
THREADS: dict[str, list[dict[str, Any]]] = {}
CONTROL: dict[str, Any] = {"lose": 0, "garble": None, "refuse": 0, "headers": {}, "requests": 0}


def started(thread: str, body: dict[str, Any]) -> dict[str, Any]:
    """A new run."""
    message = body["command"]["resume"] if "command" in body else body["input"]["messages"][0]["content"]
    runs = THREADS[thread]
    if body["multitask_strategy"] == "interrupt":
        for run in runs:
            run["status"] = "interrupted" if run["status"] == "running" else run["status"]
    status = {"hold": "running", "ask": "interrupted", "fail": "error"}.get(message.split()[0], "success")
    run = {"run_id": f"{thread}-{len(runs)}", "status": status, "metadata": body["metadata"], "body": body}
    runs.append(run | {"message": message, "error": "It broke." if status == "error" else None})
    return run


def state(thread: str) -> dict[str, Any]:
    """The state of a thread."""
    last = THREADS[thread][-1]
    asked = [{"interrupts": [{"value": "Which one?"}]}] if last["status"] == "interrupted" else []
    messages = [{"type": "human", "content": last["message"]}, {"type": "ai", "content": f"done: {last['message']}"}]
    return {"values": {"messages": messages}, "tasks": asked}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self._answer(json.loads(self.rfile.read(length) or b"{}"))

    def _answer(self, body: dict[str, Any]) -> None:
        with LOCK:
            code, found = self._found(self.path.partition("?")[0], body)
            lost = CONTROL["lose"] > 0 and self.command == "POST" and self.path.endswith("/runs")
            CONTROL["lose"] -= lost
            garbled = CONTROL["garble"] if self.path.endswith(("/runs", "/state")) and code == 200 else None
            if garbled is not None and self.command == "POST":
                CONTROL["garble"] = None
        if lost:
            self.close_connection = True
            return
        text = json.dumps(found).encode() if garbled is None else garbled.encode()
        self.send_response(code)
        if code == 302:
            self.send_header("Location", "/seen")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _found(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if path == "/seen":
            return 200, {"runs": [run for runs in THREADS.values() for run in runs], **CONTROL}
        if path == "/control":
            if body.get("reset"):
                THREADS.clear()
                CONTROL.update(lose=0, garble=None, refuse=0, headers={}, requests=0)
            CONTROL.update({name: value for name, value in body.items() if name in CONTROL})
            for run in (run for runs in THREADS.values() for run in runs if body.get("finish")):
                run["status"] = "success" if run["status"] == "running" else run["status"]
            return 200, {}
        CONTROL["headers"], CONTROL["requests"] = dict(self.headers), CONTROL["requests"] + 1
        if CONTROL["refuse"]:
            code, CONTROL["refuse"] = CONTROL["refuse"], 0
            return code, {"detail": "no"}
        if path == "/threads":
            THREADS.setdefault(body["thread_id"], [])
            return 200, {"thread_id": body["thread_id"]}
        thread, rest = re.fullmatch(r"/threads/([^/]+)/(.*)", path).groups()  # type: ignore[union-attr]
        if rest == "state":
            return 200, state(thread)
        if rest == "runs":
            return 200, started(thread, body) if self.command == "POST" else THREADS[thread][::-1]
        found = next((one for one in THREADS[thread] if one["run_id"] == rest.split("/")[1]), None)
        if found is None:
            return 404, {"detail": "no such run"}
        if rest.endswith("/cancel"):
            found["status"] = "interrupted"
        return 200, found


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()  # until whoever started it is gone
