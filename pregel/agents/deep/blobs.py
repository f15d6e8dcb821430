"""Pictures, sound and other bytes of messages as files: the state holds where they are, the model is given the bytes.

1. Bytes are kept at ``blobs/<sha256>`` under the artifacts' root: the name says what is in it, nobody else chooses it,
   and the same bytes are kept once.
2. A block whose bytes are in a file has the key `blob`, the path, in the place of `base64`. When no file could be
   written, the block stays as it is.
3. Only such paths are followed: a message cannot name another file.
4. Each call of the model gets the bytes back; where they are gone, or may not be read, a text says so.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from pregel.agents.deep.backends.base import Backend
from pregel.agents.deep.backends.composite import CompositeBackend
from pregel.agents.deep.backends.state import StateBackend
from pregel.agents.deep.eviction import artifacts_root
from pregel.agents.deep.permissions import GuardedBackend
from pregel.agents.flow import AgentFlow, either
from pregel.messages.blocks import standard_blocks

BLOB = "blob"
"""Where a block says which file has its bytes."""


def blobs_root(backend: Backend) -> str:
    """The directory of the files."""
    return f"{artifacts_root(backend)}/blobs"


def in_state(backend: Backend) -> bool:
    """Whether the files would be in the state, where the bytes are already."""
    inner = backend.backend if isinstance(backend, GuardedBackend) else backend
    if isinstance(inner, CompositeBackend):
        inner = inner.at(blobs_root(inner))
    return isinstance(inner, StateBackend)


def without_bytes(backend: Backend, message: Any) -> AgentFlow[Any]:
    """The message with its bytes in files; the message itself when it has none."""
    if isinstance(message.content, str):
        return message
    files: dict[str, bytes] = {}
    content = [_put_off(block, files, blobs_root(backend)) for block in message.content]
    if not files:
        return message
    answers = yield either(backend.upload_files, backend.aupload_files, list(files.items()))
    failed = {path for path, answer in zip(files, answers, strict=True) if answer.error is not None}
    kept = [
        old if isinstance(new, dict) and new.get(BLOB) in failed else new
        for old, new in zip(message.content, content, strict=True)
    ]
    return message.model_copy(update={"content": kept})


def with_bytes(backend: Backend, messages: Sequence[Any]) -> AgentFlow[list[Any]]:
    """The messages as a model takes them."""
    name = re.compile(re.escape(blobs_root(backend)) + "/[0-9a-f]{64}")
    places = [[_path(block, name) for block in _blocks(message)] for message in messages]
    paths = list(dict.fromkeys(path for row in places for path in row if path is not None))
    if not paths:
        return list(messages)
    answers = yield either(backend.download_files, backend.adownload_files, paths)
    found = {path: answer.content for path, answer in zip(paths, answers, strict=True)}
    return [
        message.model_copy(update={"content": list(map(partial(_given_back, found), message.content, row))})
        if any(row)
        else message
        for message, row in zip(messages, places, strict=True)
    ]


def _blocks(message: Any) -> list[Any]:
    return [] if isinstance(message.content, str) else message.content


def _path(block: Any, name: re.Pattern[str]) -> str | None:
    """The file that has a block's bytes."""
    path = block.get(BLOB) if isinstance(block, dict) else None
    return path if isinstance(path, str) and name.fullmatch(path) else None


def _put_off(block: Any, files: dict[str, bytes], root: str) -> Any:
    """A block without its bytes, which are noted under their path."""
    standard = block if isinstance(block, str) else standard_blocks([block])[0]
    if isinstance(standard, str) or not isinstance(standard.get("base64"), str):
        return block
    try:
        raw = base64.b64decode(standard["base64"], validate=True)
    except binascii.Error:
        return block
    path = f"{root}/{sha256(raw).hexdigest()}"
    files[path] = raw
    return {**{key: value for key, value in standard.items() if key != "base64"}, BLOB: path}


def _given_back(found: dict[str, bytes | None], block: Any, path: str | None) -> Any:
    if path is None:
        return block
    raw = found[path]
    if raw is None:
        return {"type": "text", "text": f"(What was here is in the file {path}, which cannot be read.)"}
    rest = {key: value for key, value in block.items() if key != BLOB}
    return {**rest, "base64": base64.b64encode(raw).decode("ascii")}
