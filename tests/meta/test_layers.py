"""What may import what. An import inside a function counts; one that only a type checker reads does not."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable

import pytest

from tests.meta.source import Import, When, imports, modules, package_of

# Lowest first. A package may import those of lower layers, and those of its own layer where that makes no circle.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "extras", "pickled", "question", "text", "version", "warnings", "constants"),
    ("config",),
    ("typing",),
    ("parts",),
    ("types",),
    (
        "messages",
        "replay_log",
        "runtime",
        "channels",
        "flow",
        "hops",
        "owned",
        "runnable",
        "managed",
        "callbacks",
        "tokens",
        "telemetry",
        "waits",
    ),
    ("checkpoint", "store", "cache", "stream", "lint"),
    ("engine",),
    ("graph", "func", "signals", "remote", "interop"),
    ("agents", "durable"),
    ("testing", "cli", "studio", "guide"),
)
RANK = {package: rank for rank, layer in enumerate(LAYERS) for package in layer}
STORAGE = RANK["checkpoint"]
TOP = RANK["testing"]

# Third-party packages: from which layer on, and what a file that uses a driver is called after.
CORE = {"typing_extensions": 0, "msgpack": STORAGE, "orjson": STORAGE}
DRIVERS = {"sqlite3": "sqlite", "aiosqlite": "sqlite", "psycopg": "postgres", "psycopg_pool": "postgres"}
SDKS = {"openai": "openai", "anthropic": "anthropic", "mcp": "mcp"}
SCHEMAS = {"pydantic": "pydantic"}
AT_HOME = {
    "numpy": {"checkpoint", "store"},
    "rich": {"cli"},
    "starlette": {"studio"},
    "uvicorn": {"studio"},
    "pytest": {"testing"},
}

# Time, ids and randomness enter these only through the replies of a driver: a run is a function of its event list.
PURE = ("pregel.engine.plan", "pregel.engine.apply", "pregel.engine.loop", "pregel.channels")
IMPURE = {"asyncio", "threading", "time", "random", "uuid", "os", "logging"}


def listed(found: Iterable[Import]) -> list[str]:
    return sorted(str(one) for one in found)


def run_time() -> list[Import]:
    return [one for one in imports() if one.when is not When.CHECKED and one.importer != "pregel"]


def third_party() -> list[Import]:
    return [one for one in run_time() if not one.inside and _top(one) not in sys.stdlib_module_names]


def _top(one: Import) -> str:
    return one.module.split(".")[0]


def _file_says(one: Import, word: str) -> bool:
    return word in one.importer.rpartition("pregel.")[2]


def test_every_package_has_a_layer() -> None:
    assert {package_of(module) for module in modules()} - {"", "__main__"} <= set(RANK)


def test_nothing_imports_a_higher_layer() -> None:
    ranked = [one for one in run_time() if one.inside and package_of(one.importer) in RANK]

    assert [] == listed(one for one in ranked if RANK.get(one.package, -1) > RANK[package_of(one.importer)])


def test_packages_of_one_layer_import_each_other_in_no_circle() -> None:
    edges: dict[str, set[str]] = defaultdict(set)
    for one in run_time():
        if one.package and one.package != package_of(one.importer):
            edges[package_of(one.importer)].add(one.package)

    assert [] == circles(edges)


def test_modules_load_each_other_in_no_circle() -> None:
    edges: dict[str, set[str]] = defaultdict(set)
    for one in run_time():
        if one.inside and one.when is When.LOADED and one.target != one.importer:
            edges[one.importer].add(one.target)

    assert [] == circles(edges)


def test_private_names_stay_in_their_package() -> None:
    across = [one for one in run_time() if one.inside and one.package != package_of(one.importer)]
    private = [one for one in across if any(_is_private(part) for part in [*one.module.split("."), one.name or ""])]

    assert [] == listed(private)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def test_the_package_does_not_import_its_own_face() -> None:
    faced = [one for one in run_time() if one.target == "pregel"]

    assert [] == listed(one for one in faced if RANK.get(package_of(one.importer), -1) < TOP or one.name is None)


def test_the_core_of_a_run_reaches_for_no_clock_thread_or_chance() -> None:
    pure = [one for one in run_time() if one.importer in PURE or one.importer.startswith("pregel.channels.")]

    assert [] == listed(one for one in pure if _top(one) in IMPURE)


def test_core_dependencies_stay_in_their_layers() -> None:
    core = [one for one in third_party() if _top(one) in CORE]

    assert [] == listed(one for one in core if RANK.get(package_of(one.importer), 0) < CORE[_top(one)])


@pytest.mark.parametrize(("package", "word"), [*DRIVERS.items(), *SDKS.items(), *SCHEMAS.items()])
def test_a_client_library_is_imported_only_in_files_that_are_called_after_it(package: str, word: str) -> None:
    used = [one for one in run_time() if _top(one) == package]

    assert [] == listed(one for one in used if not _file_says(one, word))


@pytest.mark.parametrize("package", list(DRIVERS))
def test_only_storage_and_what_is_above_graphs_touches_a_database(package: str) -> None:
    middle = {"engine", "graph", "func"} | {name for layer in LAYERS[:STORAGE] for name in layer}

    assert [] == listed(one for one in run_time() if _top(one) == package and package_of(one.importer) in middle)


def test_an_optional_package_is_imported_in_one_file() -> None:
    users: dict[str, set[str]] = defaultdict(set)
    for one in third_party():
        at_home = AT_HOME.get(_top(one), set())
        if _top(one) not in {*CORE, *DRIVERS, *SDKS, *SCHEMAS} and package_of(one.importer) not in at_home:
            users[_top(one)].add(one.importer)

    assert {} == {package: sorted(files) for package, files in users.items() if len(files) > 1}


def test_an_optional_package_is_imported_on_use_not_on_load() -> None:
    optional = [one for one in third_party() if _top(one) not in CORE and one.when is When.LOADED]
    below = [one for one in optional if RANK.get(package_of(one.importer), 0) < RANK["agents"]]

    assert [] == listed(one for one in below if _top(one) not in DRIVERS)


def circles(edges: dict[str, set[str]]) -> list[str]:
    """The nodes between which one can go round, found by peeling off the ends that lead, or are led to, nowhere."""
    left = {node: set(ends) for node, ends in edges.items()}
    while True:
        led_to = set().union(*left.values())
        kept = {node: {end for end in ends if end in left} for node, ends in left.items() if node in led_to and ends}
        if kept == left:
            return sorted(left)
        left = kept


def test_circles_are_found() -> None:
    assert ["a", "b"] == circles({"x": {"a"}, "a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": set()})
    assert [] == circles({"a": {"b", "c"}, "b": {"c"}})
