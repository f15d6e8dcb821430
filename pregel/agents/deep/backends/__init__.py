"""Where the files of an agent are: in its state, in a store, on disk, or in several of these at once."""

from pregel.agents.deep.backends.base import (
    Backend,
    BackendProtocol,
    DeleteResult,
    EditResult,
    ExecuteResponse,
    FileData,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    SandboxBackend,
    SandboxBackendProtocol,
    WriteResult,
)
from pregel.agents.deep.backends.composite import CompositeBackend
from pregel.agents.deep.backends.filesystem import FilesystemBackend
from pregel.agents.deep.backends.local_shell import DEFAULT_EXECUTE_TIMEOUT, LocalShellBackend
from pregel.agents.deep.backends.state import StateBackend
from pregel.agents.deep.backends.store import NamespaceFactory, StoreBackend
from pregel.agents.deep.backends.table import create_file_data

__all__ = [
    "DEFAULT_EXECUTE_TIMEOUT",
    "Backend",
    "BackendProtocol",
    "CompositeBackend",
    "DeleteResult",
    "EditResult",
    "ExecuteResponse",
    "FileData",
    "FileDownloadResponse",
    "FileInfo",
    "FileUploadResponse",
    "FilesystemBackend",
    "GlobResult",
    "GrepMatch",
    "GrepResult",
    "LocalShellBackend",
    "LsResult",
    "NamespaceFactory",
    "ReadResult",
    "SandboxBackend",
    "SandboxBackendProtocol",
    "StateBackend",
    "StoreBackend",
    "WriteResult",
    "create_file_data",
]
