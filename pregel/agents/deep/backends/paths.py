"""Paths of files as agents write them: made absolute, or refused.

``a.txt``, ``/a.txt``, ``//a.txt`` and ``/./a.txt`` are one file. A ``..`` may leave the root of a backend: it is
refused, wherever it leads.
"""

from __future__ import annotations

import posixpath
import re

from pregel.agents.deep.backends.errors import invalid_path

_DRIVE = re.compile(r"[A-Za-z]:([\\/]|$)")


def checked(path: str) -> str:
    """The absolute path; Refused for one that leads out, to somebody's home, to a drive, or that no file can have."""
    if "\0" in path:
        raise invalid_path(path, "holds a NUL character.")
    if any("\ud800" <= character <= "\udfff" for character in path):
        raise invalid_path(path, "holds half a surrogate pair.")
    if path.startswith("~"):
        raise invalid_path(path, "starts with '~'; there are no homes here.")
    if _DRIVE.match(path):
        raise invalid_path(path, "starts with a drive; paths are written /like/this.")
    if ".." in re.split(r"[\\/]", path):
        raise invalid_path(path, "goes up with '..'.")
    return "/" + posixpath.normpath("/" + path).strip("/")


def parent_of(path: str) -> str:
    """The directory that holds it."""
    return posixpath.dirname(path)


def below(path: str, directory: str) -> bool:
    """Whether a path lies in a directory, at any depth."""
    return directory == "/" or path.startswith(directory + "/")


def relative(path: str, directory: str) -> str:
    """The path as seen from a directory that it lies in."""
    return path[1:] if directory == "/" else path[len(directory) + 1 :]
