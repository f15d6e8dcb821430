"""Without an optional package, what needs it says which extra installs it; everything else works."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
EXTRAS = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"]

CLIENT = (
    "from types import SimpleNamespace as N; client = N(pipeline=None, get_encoder=lambda: N(decode_responses=False))"
)
GRAPH = "from pregel import StateGraph; graph = StateGraph(dict).add_node('a', dict).set_entry_point('a')"

# What a program does, the package that is not there, and the extra that brings it.
USES = {
    "import pregel.checkpoint.postgres": ("psycopg", "postgres"),
    "import pregel.checkpoint.postgres.aio": ("psycopg", "postgres"),
    "from pregel.store.postgres import PostgresStore": ("psycopg", "postgres"),
    "import pregel.store.postgres.aio": ("psycopg", "postgres"),
    "import pregel.agents.models.openai": ("openai", "openai"),
    "import pregel.agents.models.anthropic": ("anthropic", "anthropic"),
    "from pregel.agents import init_chat_model; init_chat_model('openai:gpt-5')": ("openai", "openai"),
    "from pregel.agents import create_agent; create_agent('claude-opus-4-1')": ("anthropic", "anthropic"),
    "import pregel.agents.tools.mcp": ("mcp", "mcp"),
    f"{CLIENT}; from pregel.cache.redis import RedisCache; RedisCache(client).clear()": ("redis", "redis"),
    "from pregel.checkpoint.serde.encrypted import AesGcm; AesGcm(bytes(32))": ("cryptography", "encryption"),
    f"{GRAPH}; graph.compile().get_graph().draw_png()": ("PIL", "draw"),
    "from pregel.telemetry import instrument; instrument()": ("opentelemetry", "otel"),
    "from pregel.agents import tool; tool(print)": ("pydantic", "agents"),
    "import pregel.agents.state_pydantic": ("pydantic", "agents"),
    "from pregel.agents.deep.frontmatter import frontmatter; frontmatter('---')": ("yaml", "agents"),
}

# Each use in turn, with all the packages gone as if they had never been installed.
PROGRAM = """
import json, sys


class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


uses = json.load(sys.stdin)
packages = {package for package, _ in uses.values()}
sys.meta_path.insert(0, Gone())
found = {}
for use in uses:
    try:
        exec(use, {})
    except Exception as error:
        found[use] = [type(error).__name__, getattr(error, "name", ""), str(error)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def said() -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(USES), cwd=TOP, capture_output=True, text=True, check=True
    )
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("use", list(USES))
def test_what_needs_a_missing_package_names_its_extra(use: str, said: dict[str, list[str]]) -> None:
    package, extra = USES[use]

    kind, name, message = said.get(use, ["no error", "", ""])

    assert ("MissingExtraError", package) == (kind, name), message
    assert f"needs {package}, which is not installed." in message
    assert f"\nFix: pip install 'pregel[{extra}]'" in message
    assert extra in EXTRAS
