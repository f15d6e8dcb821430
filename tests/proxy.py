"""Two things that stand between a client and PostgreSQL: a proxy that cuts connections, a transaction pooler.

Both read just enough of the protocol: a message is a letter, a length, a body; ``Z`` from the server ends an answer,
and tells in one letter whether a transaction is open.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal

from psycopg.conninfo import conninfo_to_dict, make_conninfo

CANCEL = 80877102  # what a connection begins with that only cancels a statement of another one


class Proxy:
    """Leads to the database of a DSN by a `dsn` of its own; `answers` counts the statements that were answered."""

    def __init__(self, dsn: str) -> None:
        self.to = conninfo_to_dict(dsn)
        self.answers = 0
        self.cut_at = 0  # the number of the answer at which the connection is cut
        self.when: Literal["before", "after"] = "after"
        self.cuts = 0
        self.on_cut: Callable[[], object] = lambda: None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def dsn(self) -> str:
        """Leads through here."""
        here: dict[str, Any] = {"host": "127.0.0.1", "port": self._listener.getsockname()[1]}
        return make_conninfo("", **{**self.to, **here, "sslmode": "disable", "gssencmode": "disable"})

    def cut(self, nth: int, when: Literal["before", "after"] = "after") -> None:
        """Cut the nth statement from now: before it reaches the server, or after the server has answered it."""
        with self._lock:
            self.cut_at, self.when = self.answers + nth, when

    def cut_all(self) -> None:
        """Cut every connection now."""
        for one in list(self._open):
            _shut(one)

    def close(self) -> None:
        """Take no more connections, and cut those that are there."""
        _shut(self._listener)  # closing it alone would not wake the thread that waits
        self._listener.close()
        self.cut_all()

    def connect(self) -> socket.socket:
        """A connection to the server."""
        server = socket.create_connection((str(self.to["host"]), int(self.to["port"] or 0)))
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return server

    # -- inside ------------------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError), client, self.connect() as server:
            self._open |= {client, server}
            first = _startup(client)
            server.sendall(first)
            self.session(client, server, first)
        self._open.discard(client)

    def session(self, client: socket.socket, server: socket.socket, first: bytes) -> None:
        """Pass on what both say, until one of them hangs up."""
        if first[4:8] == CANCEL.to_bytes(4, "big"):
            return
        _relay_answer(server, client)
        for message, ends in _messages(client):
            if ends and self._falls("before"):
                self.on_cut()
                break
            server.sendall(message)
            if ends:
                falls = self._falls("after")
                answer, _ = _answer(server)
                self.answers += 1
                if falls:
                    self.on_cut()
                    break  # the server has done it, and nobody hears
                client.sendall(answer)
        _shut(client)
        _shut(server)

    def _falls(self, when: str) -> bool:
        with self._lock:
            falls = self.when == when and self.answers + 1 == self.cut_at
            if falls:
                self.cut_at, self.cuts = 0, self.cuts + 1
            return falls


class Pooler(Proxy):
    """A transaction pooler: the next transaction of a connection goes to the next of its servers.

    Like PgBouncer it greets a client with a process id of its own: no server process is the client's.
    """

    SERVERS = 3

    def session(self, client: socket.socket, server: socket.socket, first: bytes) -> None:
        if first[4:8] == CANCEL.to_bytes(4, "big"):
            return
        others = [self.connect() for _ in range(self.SERVERS - 1)]
        try:
            for other in others:
                other.sendall(first)
                _answer(other)
            greeting, _ = _answer(server)
            client.sendall(_as_nobody(greeting))
            servers = [server, *others]
            for message, ends in _messages(client):
                servers[0].sendall(message)
                if ends:
                    self.answers += 1
                    if _relay_answer(servers[0], client) == b"I":  # no transaction is open
                        servers.append(servers.pop(0))
        finally:
            for other in others:
                other.close()


@contextmanager
def standing(proxy: Proxy) -> Iterator[Proxy]:
    """A proxy for a `with` block."""
    try:
        yield proxy
    finally:
        proxy.close()


# -- the protocol ------------------------------------------------------------------------------------------------------


def _startup(client: socket.socket) -> bytes:
    size = _exactly(client, 4)
    return size + _exactly(client, int.from_bytes(size, "big") - 4)


def _messages(client: socket.socket) -> Iterator[tuple[bytes, bool]]:
    """What a client says, message by message, and whether it awaits an answer now."""
    while True:
        head = _exactly(client, 5)
        yield head + _exactly(client, int.from_bytes(head[1:], "big") - 4), head[:1] in b"SQ"


def _relay_answer(server: socket.socket, client: socket.socket) -> bytes:
    answer, status = _answer(server)
    client.sendall(answer)
    return status


def _answer(server: socket.socket) -> tuple[bytes, bytes]:
    """All messages up to the one that ends an answer, and the state of the transaction after it."""
    parts: list[bytes] = []
    while True:
        head = _exactly(server, 5)
        body = _exactly(server, int.from_bytes(head[1:], "big") - 4)
        parts += (head, body)
        if head[:1] == b"Z":
            return b"".join(parts), body


def _as_nobody(greeting: bytes) -> bytes:
    """A greeting with another process id in its BackendKeyData (``K``)."""
    place = 0
    while greeting[place : place + 1] != b"K":
        place += 1 + int.from_bytes(greeting[place + 1 : place + 5], "big")
    return greeting[: place + 5] + (2**31 - 1).to_bytes(4, "big") + greeting[place + 9 :]


def _exactly(peer: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        got = peer.recv(size - len(parts))
        if not got:
            raise OSError("hung up")
        parts += got
    return parts


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
