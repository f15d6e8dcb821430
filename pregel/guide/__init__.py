"""The documents, offline; and `check`, which tells what is wrong with a workflow before it is used.

A wheel carries the pages; in a source tree they are those of the repository. For people and for models: `pregel guide`,
`pregel check`, and `tools()` for an agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pregel.guide.check import check, check_target
from pregel.guide.pages import Page, listing, page, pages, path

if TYPE_CHECKING:
    from pregel.agents.tools import BaseTool

__all__ = ["Page", "check", "check_target", "listing", "page", "pages", "path", "tools"]


def tools() -> list[BaseTool]:
    """Two tools for an agent that writes workflows: `read_pregel_docs` and `check_workflow`."""
    from pregel.guide.tools import made

    return made()
