"""What competes: this package, the peer when it is asked for, and the floor: the same work without a library."""

from __future__ import annotations

from importlib import import_module, metadata
from types import SimpleNamespace

OURS, FLOOR = "ours", "floor"
PEERS = {"langgraph": "langgraph"}
"""Names of `--peer`, and the package that each is."""


def implementation(package: str) -> SimpleNamespace:
    """The public names that the benchmarks use of one implementation."""
    graph, types = import_module(f"{package}.graph"), import_module(f"{package}.types")
    return SimpleNamespace(
        package=package,
        StateGraph=graph.StateGraph,
        START=graph.START,
        END=graph.END,
        Send=types.Send,
        Command=types.Command,
        interrupt=types.interrupt,
        InMemorySaver=import_module(f"{package}.checkpoint.memory").InMemorySaver,
    )


def implementation_of(side: str) -> SimpleNamespace:
    """Ours, or the peer of a name."""
    return implementation("pregel" if side == OURS else PEERS[side])


def messages_of(side: SimpleNamespace) -> SimpleNamespace:
    """The message classes that go with an implementation, and the reducer of a list of them."""
    module = import_module("pregel.messages" if side.package == "pregel" else "langchain_core.messages")
    reducer = import_module(f"{side.package}.graph.message").add_messages
    return SimpleNamespace(
        ai=module.AIMessage, human=module.HumanMessage, tool=module.ToolMessage, add_messages=reducer
    )


def version(distribution: str) -> str:
    """An installed version; "(source)" for ours from a checkout, "(not installed)" for anything else."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "(source)" if distribution == "pregel" else "(not installed)"
