"""The tools of an agent that writes workflows: it reads the documents, and has checked what it wrote."""

from __future__ import annotations

from pregel.agents.tools import BaseTool, tool
from pregel.guide.check import check
from pregel.guide.pages import listing, page


@tool
def read_pregel_docs(name: str = "") -> str:
    """Read a page of the documentation of pregel, the library that workflows are written with.

    Without a name: the names and titles of all pages. Begin with "guide".
    """
    return page(name) if name else listing()


@tool
def check_workflow(source: str) -> str:
    """Check the Python source of a workflow before it is registered: what is wrong with it, and how to mend it.

    It has to build its graph at the top level, named `graph`. The source is imported and compiled, and not run.
    """
    found = check(source)
    return "\n".join(map(str, found)) if found else "Nothing is wrong: it may be registered."


def made() -> list[BaseTool]:
    """Both."""
    return [read_pregel_docs, check_workflow]
