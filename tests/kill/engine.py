"""Another durable engine, in a process of its own: it keeps the outcome of each work by its key, and does none twice.

``python -m tests.kill.engine DIRECTORY``: serves at ``DIRECTORY/engine``. What it has done is in ``DIRECTORY/done``.
"""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import Future
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from threading import Lock, Thread
from typing import Any

SECRET = b"of this test"


class Engine:
    """The executor that hands work to the engine at an address."""

    def __init__(self, directory: Path) -> None:
        self.address = str(directory / "engine")

    def submit(self, work: Any) -> Future[Any]:
        future: Future[Any] = Future()
        Thread(target=self._ask, args=(work, future), daemon=True).start()
        return future

    def _ask(self, work: Any, future: Future[Any]) -> None:
        try:
            with Client(self.address, authkey=SECRET) as line:
                line.send((work.key, pickle.dumps(work)))
                future.set_result(pickle.loads(line.recv_bytes()))
        except Exception as error:
            future.set_exception(error)


def serve(directory: Path) -> None:
    """Take work until the process ends; whoever asks for work that is being done waits for it."""
    done, locks = directory / "done", dict[str, Lock]()
    done.mkdir(exist_ok=True)

    def answer(line: Connection) -> None:
        key, work = line.recv()
        with locks.setdefault(key, Lock()):
            kept = done / key
            if not kept.exists():
                written = done / f".{key}"
                written.write_bytes(pickle.dumps(pickle.loads(work)()))
                written.rename(kept)
        try:
            line.send_bytes(kept.read_bytes())
        except OSError:  # whoever asked has died
            return

    with Listener(str(directory / "engine"), authkey=SECRET) as listener:
        print("ready", flush=True)
        while True:
            Thread(target=answer, args=(listener.accept(),), daemon=True).start()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
