"""Labels: how the row of a thread names the graph that began its present execution, with its version if it has one."""

from __future__ import annotations

SEPARATOR = " @ "


def label(name: str, version: str | None) -> str:
    """A graph as the row of its threads names it."""
    return name if version is None else f"{name}{SEPARATOR}{version}"


def named(label: str) -> tuple[str, str | None]:
    """The name and the version in a label."""
    name, separator, version = label.rpartition(SEPARATOR)
    return (name, version) if separator else (label, None)
