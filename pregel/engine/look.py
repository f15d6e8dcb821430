"""A look at a thread from outside of any run: its state, and its history. It claims nothing and writes nothing.

A look is one read of the saver and what that shows; no run, no journal and no driver is made for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pregel import flow as runner
from pregel.checkpoint.keys import checked_place
from pregel.checkpoint.pages import Pages, asked_page
from pregel.checkpoint.records import Load, Page, Saved
from pregel.config import RunnableConfig, configurable_of
from pregel.engine.call import as_journal, thread_of
from pregel.engine.nested import graphs_of, place_of
from pregel.engine.snapshot import Inside, empty_snapshot, snapshot
from pregel.errors import NoCheckpointerError
from pregel.types import StateSnapshot

if TYPE_CHECKING:
    from pregel.engine.pregel import Pregel


class Look:
    """What a config addresses: the graph that lives there, the place in the saver, and a checkpoint, if it names one.

    NoCheckpointerError without a saver, MissingThreadError without a thread.
    """

    __slots__ = ("checkpoint", "graph", "inside", "ns", "saver", "thread")

    def __init__(self, graph: Pregel, config: RunnableConfig) -> None:
        self.graph, saver = graph, graph.checkpointer
        if not saver or saver is True:
            raise NoCheckpointerError()
        place = configurable_of(graph.config, config)
        self.saver, _ = as_journal(saver, place, "sync")
        self.thread, self.ns = thread, ns = thread_of(place), str(place.get("checkpoint_ns") or "")
        if not (thread.isascii() and ns.isascii()):
            checked_place(thread, ns)
        self.checkpoint: str | None = place.get("checkpoint_id") or None
        if ns and (found := place_of(graph, ns)) is not None:
            self.graph, self.ns = found
        self.inside = Inside(thread)

    # -- the state ---------------------------------------------------------------------------------------------------

    def state(self, config: RunnableConfig, *, subgraphs: bool) -> StateSnapshot:
        """The snapshot of the place; an empty one with this config when nothing is stored there."""
        saved = self.saver.look(self.thread, self.ns, self.checkpoint)
        found = self._state(saved, config)
        return runner.run(self._inner_flow(self.graph, found), self._answer) if subgraphs else found

    async def astate(self, config: RunnableConfig, *, subgraphs: bool) -> StateSnapshot:
        """Like `state`, awaited."""
        saved = await self.saver.alook(self.thread, self.ns, self.checkpoint)
        found = self._state(saved, config)
        return await runner.arun(self._inner_flow(self.graph, found), self._aanswer) if subgraphs else found

    def _state(self, saved: Saved | None, config: RunnableConfig) -> StateSnapshot:
        if saved is None:
            return empty_snapshot(config)
        return snapshot(self.graph, self.thread, saved, self.inside, live=self.checkpoint is None)

    def _inner_flow(self, graph: Pregel, found: StateSnapshot) -> runner.Flow[StateSnapshot]:
        """The snapshot with the states of the graphs that its tasks run in their places, and so on in these."""
        running = [task for task in found.tasks if task.state is not None]
        if not running:
            return found
        states: dict[str, Any] = {}
        loads = [Load(task.state["configurable"]["checkpoint_ns"]) for task in running]
        for task, saved in zip(running, (yield loads), strict=True):
            if saved is not None:
                inner = graphs_of(graph.plan.nodes[task.name])[0]
                state = snapshot(inner, self.thread, saved, self.inside, live=True)
                states[task.id] = yield from self._inner_flow(inner, state)
        return found._replace(
            tasks=tuple([task._replace(state=states.get(task.id, task.state)) for task in found.tasks])
        )

    # -- the history -------------------------------------------------------------------------------------------------

    def history(self, filter: Mapping[str, Any] | None, before: RunnableConfig | None, limit: int | None) -> Pages:
        """A walk through the history, newest first, as a caller asks for it."""
        return Pages(asked_page(self.ns, filter, before, limit), at_once=not self.saver.in_pages)

    def entries(self, pages: Pages, part: Page) -> Sequence[Saved]:
        """The next part of the history; just the checkpoint that is addressed, if any is."""
        if self.checkpoint is None:
            return pages.took(part, self.saver.page(self.thread, part))
        return pages.last(self.saver.look(self.thread, self.ns, self.checkpoint))

    async def aentries(self, pages: Pages, part: Page) -> Sequence[Saved]:
        """Like `entries`, awaited."""
        if self.checkpoint is None:
            return pages.took(part, await self.saver.apage(self.thread, part))
        return pages.last(await self.saver.alook(self.thread, self.ns, self.checkpoint))

    def shown(self, saved: Saved) -> StateSnapshot:
        """An entry of the history."""
        return snapshot(self.graph, self.thread, saved, self.inside, live=False)

    def _answer(self, loads: Sequence[Load]) -> list[Saved | None]:
        return self.saver.load(self.thread, loads).saved  # type: ignore[no-any-return]  # a saver of either tier

    async def _aanswer(self, loads: Sequence[Load]) -> list[Saved | None]:
        return (await self.saver.aload(self.thread, loads)).saved  # type: ignore[no-any-return]
