"""Checks of a compiled graph and of updates from outside, before anything runs or is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pregel.channels import BaseChannel
from pregel.checkpoint.keys import is_text
from pregel.engine.node import PregelNode
from pregel.errors import GraphValidationError, InvalidInputError, InvalidUpdateError
from pregel.types import StateUpdate

if TYPE_CHECKING:
    from pregel.engine.pregel import Pregel

RESERVED = frozenset(
    (
        "__input__",
        "__interrupt__",
        "__resume__",
        "__error__",
        "__error_source_node__",
        "__no_writes__",
        "__snapshot_bumps__",
        "__pregel_push",
        "__pregel_pull",
        "langsmith:hidden",
        "checkpoint_map",
        "checkpoint_id",
        "checkpoint_ns",
        "configurable",
        "|",
        ":",
    )
)


def check_graph(graph: Pregel) -> None:
    """Nothing when the graph fits together; TypeError or GraphValidationError with all that does not."""
    for name, node in graph.nodes.items():
        if not isinstance(node, PregelNode):
            raise TypeError(f"Node {name!r} must be a PregelNode or a NodeBuilder, got {type(node).__name__}.")
    problems = [*_name_problems("Node", graph.nodes), *_name_problems("Channel", graph.channels)]
    triggers = {channel for node in graph.nodes.values() for channel in node.triggers}
    reads = {_reads(node) for node in graph.nodes.values()}  # most nodes read the same keys
    if not triggers.union(*reads) <= graph.channels.keys():
        problems += _unknown_channels(graph)
    for name, node in graph.nodes.items():
        handler = node.error_handler or graph.node_error_handler_map.get(name)
        if handler is not None and handler not in graph.nodes:
            problems.append(f"Node {name!r} has the unknown node {handler!r} as its error handler.")
    problems += _channel_problems(graph, triggers)
    for nodes in (graph.interrupt_before_nodes, graph.interrupt_after_nodes):
        for name in [] if nodes == "*" else [nodes] if isinstance(nodes, str) else nodes:
            if name not in graph.nodes:
                problems.append(f"Interrupt node {name!r} is not a node of the graph.")
    if problems:
        raise GraphValidationError(problems)
    if graph.step_timeout is not None and graph.step_timeout <= 0:
        raise InvalidInputError(f"step_timeout must be greater than 0, got {graph.step_timeout}.")


def _name_problems(kind: str, names: Iterable[str]) -> Iterator[str]:
    for name in RESERVED.intersection(names):
        yield f"{kind} name {name!r} is reserved."
    if not "".join(names).isascii():
        for name in names:
            if not is_text(name):
                yield f"{kind} name {name!r} has half a surrogate pair, which no store keeps."


def _reads(node: PregelNode) -> tuple[str, ...]:
    return (node.channels,) if isinstance(node.channels, str) else node.keys


def _unknown_channels(graph: Pregel) -> Iterator[str]:
    for name, node in graph.nodes.items():
        for channel in (*_reads(node), *node.triggers):
            if channel not in graph.channels:
                yield f"Node {name!r} subscribes to or reads the unknown channel {channel!r}."


def _channel_problems(graph: Pregel, triggers: set[str]) -> list[str]:
    problems: list[str] = []
    inputs = [graph.input_channels] if isinstance(graph.input_channels, str) else list(graph.input_channels)
    problems += [f"Input channel {name!r} does not exist." for name in inputs if name not in graph.channels]
    if not triggers & set(inputs):
        problems.append(f"No node subscribes to the input channel {', '.join(map(repr, inputs))}.")
    for kind, channels in (("Output", graph.output_channels), ("Stream", graph.stream_channels or [])):
        for name in [channels] if isinstance(channels, str) else channels:
            if not isinstance(graph.channels.get(name), BaseChannel):
                problems.append(f"{kind} channel {name!r} does not exist.")
    return problems


def checked_updates(supersteps: Sequence[Sequence[Any]]) -> list[list[StateUpdate]]:
    """The updates as StateUpdate; a named error when a list is empty or END and friends are mixed in."""
    if not supersteps:
        raise InvalidInputError("No supersteps provided.", fix="Give at least one list of updates.")
    checked: list[list[StateUpdate]] = []
    for updates in supersteps:
        if not updates:
            raise InvalidInputError("No updates provided.", fix="Give at least one update a superstep.")
        checked.append([update if isinstance(update, StateUpdate) else StateUpdate(*update) for update in updates])
        alone = {update.as_node for update in checked[-1] if update.as_node in ("__end__", "__input__", "__copy__")}
        if alone and len(updates) > 1:
            raise InvalidUpdateError(f"An update as {', '.join(map(str, alone))} must stand alone in its superstep.")
    return checked
