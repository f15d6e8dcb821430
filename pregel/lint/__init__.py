"""A static check of durable code: what goes wrong when a node or an entrypoint runs again (`pregel lint`).

It reads source and runs nothing. It knows the nodes, tasks, tools and entrypoints of one module, and the functions of
that module that they call. docs/lint.md has each rule with an example.
"""

from __future__ import annotations

from pregel.lint.check import check_file, check_source
from pregel.lint.rules import RULES, Problem, Rule

__all__ = ["RULES", "Problem", "Rule", "check_file", "check_source"]
