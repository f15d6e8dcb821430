"""A shell for the model, off unless it is asked for by name: each command is a process of its own.

1. There is no shell without an execution policy that the user named: `HostExecutionPolicy` runs on this machine with
   the rights of this process, `DockerExecutionPolicy` in a container without network.
2. A command has a time limit; when it is over, the command and all that it started are killed.
3. The environment is empty but for what `env` names: no secret of the process reaches the model's commands.
4. Nothing survives between commands but the files of the workspace: a resumed run finds the same shell as before.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pregel.agents.middleware.base import AgentMiddleware
from pregel.agents.middleware.redaction import RedactionRule
from pregel.agents.tools.base import Tool
from pregel.agents.tools.inject import ToolRuntime
from pregel.errors import DefinitionError
from pregel.messages import ToolMessage

DESCRIPTION = """Run a command in a shell, in the workspace directory. Each command starts anew there: nothing but files
stays. The output is cut when it is long."""
SAFE_PATH = "/usr/local/bin:/usr/bin:/bin"


class ExecutionPolicy(Protocol):
    """Where and under which limits commands run."""

    @property
    def command_timeout(self) -> float: ...
    @property
    def max_output_lines(self) -> int: ...

    def argv(self, shell: str, command: str, workspace: Path, env: Mapping[str, str]) -> Sequence[str]:
        """The process to start for a command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostExecutionPolicy:
    """Commands run on this machine, as this user. Times in seconds."""

    command_timeout: float = 30.0
    max_output_lines: int = 100

    def argv(self, shell: str, command: str, workspace: Path, env: Mapping[str, str]) -> Sequence[str]:
        """The shell itself."""
        return [shell, "-c", command]


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerExecutionPolicy:
    """Commands run in a container that sees the workspace alone. Times in seconds, memory in bytes."""

    image: str = "debian:stable-slim"
    command_timeout: float = 30.0
    max_output_lines: int = 100
    network_enabled: bool = False
    memory_bytes: int | None = None
    cpus: float | None = None
    read_only_rootfs: bool = True
    user: str | None = None

    def argv(self, shell: str, command: str, workspace: Path, env: Mapping[str, str]) -> Sequence[str]:
        """A container for the command."""
        options = ["--rm", "--init", "-v", f"{workspace}:/workspace", "-w", "/workspace"]
        options += [] if self.network_enabled else ["--network", "none"]
        options += ["--read-only"] if self.read_only_rootfs else []
        options += ["--memory", str(self.memory_bytes)] if self.memory_bytes else []
        options += ["--cpus", str(self.cpus)] if self.cpus else []
        options += ["--user", self.user] if self.user else []
        options += [part for key, value in env.items() for part in ("-e", f"{key}={value}")]
        return ["docker", "run", *options, self.image, shell, "-c", command]


class ShellToolMiddleware(AgentMiddleware):
    """The tool `shell`. `execution_policy` must be given: there is no default.

    `workspace_root`: the directory of all commands (default: a new temporary one); `redaction_rules` are applied to the
    output; `env` is the whole environment beside PATH and HOME.
    """

    def __init__(
        self,
        workspace_root: str | Path | None = None,
        *,
        execution_policy: ExecutionPolicy | None = None,
        redaction_rules: Sequence[RedactionRule] = (),
        tool_description: str = DESCRIPTION,
        tool_name: str = "shell",
        shell_command: str = "/bin/sh",
        env: Mapping[str, str] | None = None,
    ) -> None:
        if execution_policy is None:
            raise DefinitionError(
                "A shell runs whatever the model writes, so it needs an execution_policy.",
                fix="Pass DockerExecutionPolicy(), or HostExecutionPolicy() if this machine may be changed.",
            )
        self.policy, self.shell = execution_policy, shell_command
        self.workspace = Path(workspace_root or tempfile.mkdtemp(prefix="pregel-shell-")).resolve()
        self.workspace.mkdir(parents=True, exist_ok=True)
        self.env = {"PATH": SAFE_PATH, "HOME": str(self.workspace), **(env or {})}
        self.clean = [rule.resolved() for rule in redaction_rules]
        self.tools = [Tool(self.run, name=tool_name, description=tool_description)]

    def run(self, command: str, runtime: ToolRuntime) -> ToolMessage:
        """Run a command."""
        argv = self.policy.argv(self.shell, command, self.workspace, self.env)
        process = subprocess.Popen(
            argv,
            cwd=self.workspace,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        timed_out = False
        try:
            raw, _ = process.communicate(timeout=self.policy.command_timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            os.killpg(process.pid, signal.SIGKILL)
            raw, _ = process.communicate()
        return self._message(raw.decode(errors="replace"), process.returncode, timed_out, runtime.tool_call_id)

    def _message(self, output: str, code: int, timed_out: bool, call_id: Any) -> ToolMessage:
        for clean in self.clean:
            output = clean(output)
        lines = output.splitlines()
        kept = lines[: self.policy.max_output_lines]
        notes = [f"[{len(lines) - len(kept)} more lines were cut]"] if len(kept) < len(lines) else []
        if timed_out:
            notes.append(f"[killed after {self.policy.command_timeout:g} seconds]")
        elif code:
            notes.append(f"[exit code {code}]")
        return ToolMessage(
            "\n".join([*kept, *notes]) or "[no output]",
            tool_call_id=call_id or "",
            status="error" if timed_out or code else "success",
            artifact={"exit_code": code, "timed_out": timed_out, "total_lines": len(lines)},
        )
