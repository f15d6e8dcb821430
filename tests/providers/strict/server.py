"""The service as a process: ``python server.py`` prints its port and ends when its standard input closes.

Each API key is a conversation of its own: ``POST /script`` (a list of turns) says what it answers next, ``GET /log``
gives the requests that it got and how each was answered. A request that breaks a rule is refused as the real service
refuses it, and uses up no turn.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from . import anthropic_rules, openai_rules, play
from .refusal import Refused

SCRIPTS: defaultdict[str, deque[play.Turn]] = defaultdict(deque)
LOGS: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
LOCK = threading.Lock()
TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        with LOCK:
            self._json(200, LOGS[self._key()])

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/script":
            with LOCK:
                SCRIPTS[self._key()].extend(json.loads(raw))
            return self._json(200, {})
        openai = self.path.endswith("/chat/completions")
        try:
            body = self._request(raw, openai)
        except Refused as refused:
            self._note(raw, refused.status, refused.message)
            return self._refuse(openai, refused)
        with LOCK:
            script = SCRIPTS[self._key()]
            turn: play.Turn = (
                script.popleft() if script else {"error": {"status": 500, "message": "the script is over"}}
            )
        status = int(turn["error"]["status"]) if "error" in turn else 200
        self._note(raw, status, "")
        if "error" in turn:
            return self._fail(openai, turn["error"])
        return self._answer(openai, body, turn)

    def _request(self, raw: bytes, openai: bool) -> dict[str, Any]:
        if not openai and not self.path.endswith("/messages"):
            raise Refused(f"Unknown path {self.path}", status=404)
        if not self._key():
            raise Refused("No API key was given.", status=401)
        if not openai and not self.headers.get("anthropic-version"):
            raise Refused("anthropic-version: header is required")
        try:
            body = json.loads(raw)
        except ValueError:
            raise Refused("We could not parse the JSON body of your request.") from None
        if not isinstance(body, dict):
            raise Refused("The body must be a JSON object.")
        (openai_rules if openai else anthropic_rules).check(body)
        return body

    def _answer(self, openai: bool, body: dict[str, Any], turn: play.Turn) -> None:
        model = body["model"]
        if not body.get("stream"):
            return self._json(200, play.openai_whole(turn, model) if openai else play.anthropic_whole(turn, model))
        if openai:
            usage = bool((body.get("stream_options") or {}).get("include_usage"))
            return self._stream(play.openai_events(turn, model, usage=usage), turn)
        return self._stream(play.anthropic_events(turn, model), turn)

    def _stream(self, events: Iterator[str], turn: play.Turn) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for part in play.splits(events, turn):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
            self.wfile.flush()
        if "cut" in turn:
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")

    def _refuse(self, openai: bool, refused: Refused) -> None:
        error: dict[str, Any] = {"type": TYPES[refused.status], "message": refused.message}
        if openai:
            return self._json(refused.status, {"error": {**error, "param": refused.param, "code": None}})
        return self._json(refused.status, {"type": "error", "error": error})

    def _fail(self, openai: bool, error: dict[str, Any]) -> None:
        told = {"type": error.get("type", "api_error"), "message": error.get("message", "scripted failure")}
        told |= {"code": error["code"]} if "code" in error else {}
        headers = {"retry-after": str(error["retry_after"])} if "retry_after" in error else {}
        self._json(error["status"], {"error": told} if openai else {"type": "error", "error": told}, headers)

    def _json(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        payload = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, text)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def _key(self) -> str:
        return self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ").strip()

    def _note(self, raw: bytes, status: int, refused: str) -> None:
        entry = {"path": self.path, "body": raw.decode("utf-8", "replace"), "status": status, "refused": refused}
        with LOCK:
            LOGS[self._key()].append(entry)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


def main() -> None:
    """Serve until standard input closes."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
