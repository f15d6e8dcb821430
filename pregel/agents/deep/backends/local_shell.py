"""A directory of this machine together with its shell, without any isolation: the agent may do what the process may."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

from pregel.agents.deep.backends.base import ExecuteResponse, SandboxBackend
from pregel.agents.deep.backends.filesystem import FilesystemBackend
from pregel.errors import DefinitionError

TIMED_OUT = 124
DEFAULT_EXECUTE_TIMEOUT = 120
"""Seconds that a command may take unless told otherwise."""


class LocalShellBackend(FilesystemBackend, SandboxBackend):
    """A `FilesystemBackend` whose agent may also run commands in `root_dir`, as this process's user.

    `timeout` limits a command in seconds, `max_output_bytes` what is kept of its output (from both ends). The
    environment is `env` alone unless `inherit_env`.
    """

    def __init__(
        self,
        root_dir: str | Path | None = None,
        *,
        virtual_mode: bool = True,
        timeout: int = DEFAULT_EXECUTE_TIMEOUT,
        max_output_bytes: int = 100_000,
        env: Mapping[str, str] | None = None,
        inherit_env: bool = False,
    ) -> None:
        super().__init__(root_dir, virtual_mode=virtual_mode)
        if timeout <= 0:
            raise DefinitionError(f"timeout is {timeout}.", fix="Give a positive number of seconds.")
        self.timeout, self.max_output_bytes = timeout, max_output_bytes
        self.env = {**(os.environ if inherit_env else {}), **(env or {})}
        self._id = f"local-{uuid4().hex[:8]}"

    @property
    def id(self) -> str:
        return self._id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        if not command.strip():
            return ExecuteResponse("The command is empty.", 1)
        seconds = self.timeout if timeout is None else timeout
        if seconds <= 0:
            return ExecuteResponse(f"A timeout of {seconds} seconds is not positive.", 1)
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=self.cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # so that what it started can be stopped with it
        )
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):  # it ended by itself meanwhile
                os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            late = f"The command was stopped after {seconds} seconds.\n".encode()
            return self._response(late + out, err, TIMED_OUT)
        return self._response(out, err, process.returncode)

    def _response(self, out: bytes, err: bytes, exit_code: int) -> ExecuteResponse:
        lines = err.decode("utf-8", "replace").splitlines()
        told = out.decode("utf-8", "replace") + "".join(f"\n[stderr] {line}" for line in lines)
        most = self.max_output_bytes
        truncated = len(told) > most
        if truncated:
            told = f"{told[: most // 2]}\n[... {len(told) - most} characters left out ...]\n{told[-most // 2 :]}"
        return ExecuteResponse(told.strip("\n") or "<no output>", exit_code, truncated)
