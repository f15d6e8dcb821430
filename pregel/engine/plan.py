"""Plan: which tasks the next superstep runs. Pure.

1. A node runs when a channel that triggers it is available and newer than what the node has seen of it.
2. Only nodes triggered by channels that changed in the last step are looked at; all of them when that is not known.
3. Tasks come in one order whatever happened before: Sends as they were sent, then nodes by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pregel.channels import MISSING, BaseChannel, BinaryOperatorAggregate, UntrackedValue
from pregel.channels.base import of_kind
from pregel.checkpoint.keys import pull_text
from pregel.engine.node import PregelNode
from pregel.engine.task import PULL, PUSH, Task
from pregel.errors import InvalidUpdateError, UnknownTargetError
from pregel.types import CachePolicy, RetryPolicy, Send

if TYPE_CHECKING:
    from pregel.engine.frame import Frame

TASKS, START, END, INPUT, INTERRUPT_SEEN = "__pregel_tasks", "__start__", "__end__", "__input__", "__interrupt__"
HIDDEN = "langsmith:hidden"
PUSH_TRIGGERS = (PUSH,)
MANY = 32  # changed channels: then it pays to ask first which of them wake anybody


class Policies(NamedTuple):
    """What a graph gives to its nodes that do not say otherwise, and the seconds that a superstep may take."""

    retry_policy: tuple[RetryPolicy, ...] = ()
    cache_policy: CachePolicy | None = None
    step_timeout: float | None = None
    error_handlers: Mapping[str, str] = {}
    graph: str = ""  # the graph's name, under which results are cached

    def over(self, nodes: Mapping[str, PregelNode]) -> dict[str, PregelNode]:
        """The nodes under these policies."""
        if self.retry_policy or self.cache_policy or self.error_handlers or self.step_timeout is not None:
            return {name: self.on(name, node) for name, node in nodes.items()}
        return {name: node if node.cache_policy is None else self.on(name, node) for name, node in nodes.items()}

    def on(self, name: str, node: PregelNode) -> PregelNode:
        """The node under these policies: itself where they change nothing."""
        news: dict[str, Any] = {}
        if self.retry_policy and not node.retry_policy and not node.pure:
            news["retry_policy"] = self.retry_policy
        if self.cache_policy is not None and node.cache_policy is None and not (node.pure or node.is_error_handler):
            news["cache_policy"] = self.cache_policy
        if name in self.error_handlers and node.error_handler is None:
            news["error_handler"] = self.error_handlers[name]
        found = node.under(**news) if news else node
        if found.cache_policy is not None and found.bound is not None:
            from pregel.engine.caching import Caching  # which only graphs with a cache policy need

            found = found.behind(Caching(found.bound, found.cache_policy, self.graph, name))
        if self.step_timeout is not None and found.direct:
            found = found.under()
            found.direct = False
        return found


NO_POLICIES = Policies()


class Plan:
    """A compiled graph as the core sees it: nodes, channel prototypes, and the indexes made from them."""

    __slots__ = (
        "channels",
        "consumers",
        "expiring",
        "finishers",
        "has_subgraphs",
        "hidden",
        "initially_live",
        "joins",
        "lasting",
        "logged",
        "nodes",
        "output_keys",
        "paths",
        "policed",
        "pulls",
        "start",
        "step_timeout",
        "trigger_to_nodes",
        "triggers",
        "unstored",
        "untracked",
    )

    def __init__(
        self,
        nodes: Mapping[str, PregelNode],
        channels: Mapping[str, BaseChannel[Any, Any, Any]],
        output_channels: str | Iterable[str],
        joins: Mapping[str, str] | None = None,
        policies: Policies = NO_POLICIES,
    ) -> None:
        self.step_timeout = policies.step_timeout
        self.nodes = policies.over(nodes)
        self.policed = self.step_timeout is not None or any(
            node.timeout is not None or node.retry_policy for node in self.nodes.values()
        )
        self.channels = dict(channels)
        self.joins = dict(joins or {})
        self.pulls = {name: (PULL, name) for name in nodes}
        self.paths = {name: (pull_text(name),) for name in nodes}  # what a step of this one task applied
        self.triggers = {
            name: tuple(node.triggers if len(node.triggers) < 2 else sorted(node.triggers))
            for name, node in nodes.items()
        }
        self.trigger_to_nodes = _woken(nodes)
        self.start = self._plain_start()
        self.hidden = frozenset(name for name, node in nodes.items() if HIDDEN in node.tags)
        self.has_subgraphs = any(node.subgraph is not None for node in nodes.values())
        self.finishers = [name for name, channel in self.channels.items() if channel.finishes]
        self.expiring = frozenset(name for name, channel in self.channels.items() if channel.expires)
        self.lasting = frozenset(n for n, c in self.channels.items() if c.keeps_last and not c.expires)
        self.consumers = frozenset(name for name, channel in self.channels.items() if channel.consumes)
        self.logged = frozenset(n for n, c in self.channels.items() if c.growth is not None or c.snapshots)
        self.unstored = self.channels  # prototypes for who stores nothing
        if grown := {n: c for n in self.logged if type(c := self.channels[n]) is BinaryOperatorAggregate}:
            self.unstored = {**self.channels, **{name: channel.ungrown() for name, channel in grown.items()}}
        self.untracked = frozenset(of_kind(self.channels, UntrackedValue))
        self.initially_live = [name for name in self.expiring if self.channels[name].is_available()]
        self.output_keys = (output_channels,) if isinstance(output_channels, str) else tuple(output_channels)

    def _plain_start(self) -> PregelNode | None:
        """START, where an input wakes nothing else and no user code runs on its way through it."""
        start = self.nodes.get(START)
        if start is None or not start.pure or start.channels != START or start.triggers != [START]:
            return None
        return start if self.trigger_to_nodes[START] == [START] else None


def _woken(nodes: Mapping[str, PregelNode]) -> dict[str, list[str]]:
    """The nodes that each channel wakes, by name."""
    woken: dict[str, list[str]] = {}
    for name in sorted(nodes):
        for channel in nodes[name].triggers:
            woken.setdefault(channel, []).append(name)
    return woken


def plan(graph: Plan, frame: Frame) -> list[Task]:
    """The tasks of the next superstep, none when the graph has come to rest."""
    state = frame.state
    channels, counters, updated = state.channels, state.counters, state.updated
    tasks: list[Task] = []
    if (updated is None or TASKS in updated) and TASKS in channels and channels[TASKS].is_available():
        tasks.extend(_sent(graph, frame, index, send) for index, send in enumerate(channels[TASKS].get()))
    for name in _candidates(graph, updated):
        node, seen = graph.nodes[name], state.seen.get(name)
        for trigger in node.triggers:
            if seen is None or counters.get(trigger, 0) > seen.get(trigger, 0):
                channel = channels[trigger]
                if channel.value is MISSING if channel.bare else not channel.is_available():
                    continue
                reads = node.channels
                if node.keys or reads == trigger or not isinstance(reads, str) or channels[reads].is_available():
                    tasks.append(Task(frame, name, node, graph.pulls[name], graph.triggers[name]))
                break
    return tasks


def _candidates(graph: Plan, updated: list[str] | None) -> Iterable[str]:
    """The nodes that may have been woken, by name."""
    if updated is None:
        return graph.nodes
    wakes = graph.trigger_to_nodes
    if len(updated) > MANY:
        updated = list(wakes.keys() & updated)
    first: Sequence[str] = ()
    several: set[str] | None = None
    for channel in updated:
        names = wakes.get(channel)
        if names:
            if not first:
                first = names
            elif several is None:
                several = {*first, *names}
            else:
                several.update(names)
    return first if several is None else sorted(several)


def _sent(graph: Plan, frame: Frame, index: int, send: Any) -> Task:
    if not isinstance(send, Send):
        raise InvalidUpdateError(f"Only Send objects may be sent, got {type(send).__name__}: {send!r}.")
    node = graph.nodes.get(send.node)
    if node is None:
        raise UnknownTargetError(
            f"Send to unknown node {send.node!r}.", fix=f"Known nodes: {', '.join(sorted(graph.nodes))}."
        )
    if send.timeout is not None:
        node = node.under(timeout=send.timeout)
        graph.policed = True
    task = Task(frame, send.node, node, (PUSH, index, False), PUSH_TRIGGERS)
    task.arg = send.arg
    return task
