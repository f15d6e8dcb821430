"""`pregel chat --model` over the wire: words are shown while the model speaks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .service import ROOT, Conversation


def test_a_model_alone_is_talked_to(conversation: Conversation, tmp_path: Path) -> None:
    conversation.will_say({"text": "Grüße.", "id": "a"}, {"text": "Bye.", "id": "b"})
    command = [sys.executable, "-W", "error", "-m", "pregel.cli", "chat", "--model", "openai:gpt", "--thread", "t"]
    given = {"PYTHONPATH": str(ROOT), "OPENAI_BASE_URL": f"{conversation.url}/v1", "OPENAI_API_KEY": conversation.key}
    done = subprocess.run(
        [*command, "--system", "Be brief."],
        cwd=tmp_path,
        env={**os.environ, **given, "PYTHONIOENCODING": "utf-8"},
        input="hi\nbye\n",
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith("Thread t in pregel.db.\nGrüße.\nBye.\nGo on with: pregel chat --model openai:gpt")
    assert [True, True] == [entry["body"]["stream"] for entry in conversation.log]
    assert ["system", "user", "assistant", "user"] == [one["role"] for one in conversation.log[1]["body"]["messages"]]
