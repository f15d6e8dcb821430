"""The status page: a small HTTP server that says how threads stand, for those who started them."""

from __future__ import annotations

import json
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote

from pregel.engine.pregel import Pregel
from pregel.errors import PregelError, ThreadNotFoundError

PREFIX = "/threads/"


class StatusPage:
    """Serves ``GET /threads/ID`` as JSON, on a thread of its own, for a ``with`` block.

    It answers 200 with ``thread_id``, ``status``, ``reason``, ``can_resume`` and ``updated_at``, and 404 for a thread
    that is not there. It shows no values, and asks nobody who they are: bind it where only those reach it who may know.
    """

    def __init__(self, graph: Pregel, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._server = ThreadingHTTPServer((host, port), _handler(graph))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="pregel-status", daemon=True)

    @property
    def url(self) -> str:
        """What goes before the path: the `base_url` of a start."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(graph: Pregel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, told = _answer(graph, self.path)
            body = json.dumps(told).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing on stderr."""

    return Handler


def _answer(graph: Pregel, path: str) -> tuple[HTTPStatus, dict[str, Any]]:
    if not path.startswith(PREFIX):
        return HTTPStatus.NOT_FOUND, {"error": "There is only /threads/ID."}
    try:
        info = graph.threads.status(unquote(path.removeprefix(PREFIX)))
    except ThreadNotFoundError as error:
        return HTTPStatus.NOT_FOUND, {"error": str(error)}
    except PregelError as error:
        return HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)}
    return HTTPStatus.OK, {
        "thread_id": info.thread_id,
        "status": info.status,
        "reason": info.reason,
        "can_resume": info.can_resume,
        "updated_at": info.updated_at and info.updated_at.isoformat(),
    }
