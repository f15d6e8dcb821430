"""A run (one call of a public method) and its frames (one for each graph that it runs, by namespace)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol

from pregel.checkpoint.keys import PULL
from pregel.config import RunnableConfig
from pregel.engine.apply import Applied
from pregel.engine.ids import Ids
from pregel.engine.plan import Plan
from pregel.engine.state import State
from pregel.engine.trace import TRACES
from pregel.errors import GraphDrained, RunDisplaced
from pregel.runtime import RunControl

if TYPE_CHECKING:
    from pregel.checkpoint.records import Write
    from pregel.engine.effects import Dropped, Flow, Noted, Pushed, Step
    from pregel.engine.future import CallFuture
    from pregel.engine.heard import Heard
    from pregel.engine.journal import Journal
    from pregel.engine.resume import Replay
    from pregel.engine.running import Running
    from pregel.engine.task import Task
    from pregel.types import Interrupt
    from pregel.waits import Wait

NO_ANSWERS: Mapping[str, Any] = {}
LIVE = frozenset(("custom", "messages", "tools"))  # modes that node code writes to while it runs
ENDS = frozenset(("updates", "tasks", "debug"))  # modes that show how each task ends
NO_MODES = frozenset[str]()
Post = Callable[[tuple[str, str, Any], "Running"], None]
Multiplex = Callable[["Flow[Step]", "Iterable[Task]", "Frame"], "Flow[Step]"]


class Run:
    """What all frames of one call share."""

    __slots__ = (
        "after",
        "around",
        "before",
        "bodies_heard",
        "cache",
        "config",
        "context",
        "control",
        "died",
        "heard",
        "host",
        "ids",
        "journal",
        "limit",
        "live",
        "metadata",
        "modes",
        "multiplex",
        "multiplexed",
        "outcomes",
        "post",
        "replay",
        "shows_calls",
        "spoken",
        "store",
        "subgraphs",
        "takes_older",
        "thread",
        "told",
        "version",
        "waits",
    )

    def __init__(
        self,
        *,
        ids: Ids,
        config: RunnableConfig,
        limit: int,
        thread: str = "",
        journal: Journal | None = None,
        modes: frozenset[str] = NO_MODES,
        subgraphs: bool = False,
        context: Any = None,
        store: Any = None,
        cache: Any = None,
        control: RunControl | None = None,
        metadata: Mapping[str, Any] | None = None,
        before: frozenset[str] | str | None = None,
        after: frozenset[str] | str | None = None,
        around: frozenset[bytes] = frozenset(),
    ) -> None:
        self.ids = ids
        self.config = config
        self.limit = limit
        self.thread = thread
        self.journal = journal
        self.modes = modes
        self.subgraphs = subgraphs
        self.context: Any = context
        self.store: Any = store
        self.cache: Any = cache  # of the graph that was called; those inside without one of their own share it
        self.control = control
        self.metadata = dict(metadata or {})
        self.before, self.after = before, after  # static breakpoints of the call; None: the graph's own
        self.live = not modes.isdisjoint(LIVE)  # chunks must show before their node ends
        self.shows_calls = subgraphs or not modes.isdisjoint(ENDS)  # and what a node calls, before the node does
        self.spoken: set[str | None] = set()  # ids of the messages that have shown
        self.post: Post = _nobody_listens
        self.died = False  # the process that ran this thread before died in the middle of it
        self.around = around  # tokens of the runs in whose nodes this one runs
        self.replay: Replay | None = None  # what persistent subgraphs go back to
        self.waits: dict[str, Wait] = {}  # as they were first stored, by the id of their question
        self.outcomes: Mapping[str, Any] = NO_ANSWERS  # what has come of those that are over
        self.told: set[str] = set()  # of those that are failures, which its tasks were told of
        self.host: Host | None = None  # the driver, which hears what running tasks call
        self.multiplex: Multiplex  # set by the family, which may be needed only when a node calls a graph
        self.multiplexed = False
        self.bodies_heard = False  # somebody listens to each task's body: none is spared
        self.version: str | None = None  # of the graph that was called; what has none inherits that of the run around
        self.takes_older = False  # whether it goes on with a thread of an older version
        self.heard: Heard | None = None  # handlers of another library, told of the graphs inside

    @property
    def loop(self) -> Any:
        """The event loop that this run lives on, if any."""
        return self.host.loop if self.host is not None else None

    def inside(self, **news: Any) -> Run:
        """The same run as a graph that a node calls sees it, with a config, context and limit of its own."""
        inner = copy(self)
        for name, value in news.items():
            setattr(inner, name, value)
        return inner

    @property
    def held(self) -> frozenset[bytes]:
        """The tokens of this run and of those around it: none of them may be waited for from inside."""
        return self.around if self.journal is None else self.around | {self.journal.token}


class Host(Protocol):
    """The driver of a run, as its tasks see it."""

    @property
    def loop(self) -> Any:
        """The event loop that it lives on; None for one that blocks."""

    def push(self, event: Pushed | Dropped | Noted) -> None:
        """Tell the run what a task calls, from any thread."""


def _nobody_listens(chunk: tuple[str, str, Any], task: Running) -> None:
    return None


class Frame:
    """One graph on its way: its plan, its namespace, its state."""

    __slots__ = (
        "after",
        "answers",
        "asked_before",
        "before",
        "below",
        "caller",
        "changed_news",
        "emitted",
        "fresh",
        "graph",
        "home",
        "inside",
        "is_root",
        "journal",
        "last_values",
        "metadata",
        "ns",
        "output_keys",
        "parents",
        "plan",
        "recalled",
        "run",
        "seen_news",
        "shows",
        "state",
        "stored",
        "stream_keys",
        "tasks_fresh",
        "traced",
        "traced_id",
        "watched",
    )

    def __init__(
        self,
        run: Run,
        graph: Any,
        ns: str | None = "",
        *,
        is_root: bool = True,
        fresh: bool = False,
        output_keys: str | tuple[str, ...] | None = None,
        around: Frame | None = None,
        home: str = "",
        answers: Mapping[str, Any] | None = None,
        caller: CallFuture[Any] | None = None,
    ) -> None:
        self.run: Run = run
        self.caller = caller  # the call that this graph runs for: whoever waits for it may run its nodes
        self.recalled: dict[str, list[Write]] = {}  # what calls and memos of the pending step are stored
        self.asked_before: Mapping[str, Sequence[Interrupt]] = NO_ANSWERS  # what its tasks had asked, by task id
        self.inside: Running | None = None  # the task of another frame that runs this graph
        self.home = home  # stands in for a checkpoint id where nothing is stored: the task that runs this graph
        self.answers = answers or NO_ANSWERS  # interrupt id -> answer, for a graph that stores none itself
        self.journal = None if graph.checkpointer is False and not is_root else run.journal
        self.graph = graph
        self.plan: Plan = graph.plan
        if ns is not None:  # else it is an `UnnamedFrame`
            self.ns = ns
        self.is_root = is_root
        self.fresh = fresh  # nothing can be stored under this namespace
        self.tasks_fresh = True  # nothing can be stored under the namespaces of the next tasks
        self.stored = False  # whether state.checkpoint names a stored checkpoint
        self.below: tuple[str, Mapping[str, str], Mapping[str, Any]] | None = None
        self.parents: Mapping[str, str]
        self.metadata: Mapping[str, Any]  # of its checkpoints, beside source and step; shared with its siblings
        if around is None:
            self.parents, self.metadata = {}, {"parents": {}, **run.metadata}
        else:
            self.parents, self.metadata = around.within()
        self.state = State(self.plan, stored=self.journal is not None)
        self.output_keys: str | tuple[str, ...] = graph.output_keys if output_keys is None else output_keys
        self.stream_keys: str | tuple[str, ...] = graph.stream_keys if output_keys is None else output_keys
        self.shows = shows = run.modes if run.subgraphs or is_root else NO_MODES
        self.traced = bool(shows) and not shows.isdisjoint(TRACES)
        self.traced_id = ""  # the checkpoint that has shown
        self.before: frozenset[str] | str = run.before if is_root and run.before is not None else graph.before
        self.after: frozenset[str] | str = run.after if is_root and run.after is not None else graph.after
        self.watched = "values" in shows or graph.outputs_expire  # every change of an output counts
        self.emitted = False  # whether there is a value to return
        self.last_values: Any = None
        self.seen_news: Sequence[str] = ()  # seen entries and channels that changed without a checkpoint of their own
        self.changed_news: Sequence[str] = ()

    def within(self) -> tuple[Mapping[str, str], Mapping[str, Any]]:
        """The parents and the metadata of the graphs that this step's tasks run: one object for all of them."""
        checkpoint = self.state.checkpoint
        if self.below is None or self.below[0] != checkpoint:
            parents = {**self.parents, self.ns: checkpoint}
            self.below = checkpoint, parents, {"parents": parents, **self.run.metadata}
        return self.below[1:]

    def note(self, applied: Applied) -> None:
        """Remember what an apply changed until the next checkpoint carries it."""
        changed, seen = applied
        self.seen_news = tuple({*self.seen_news, *seen})
        self.changed_news = tuple(dict.fromkeys((*self.changed_news, *changed)))

    def says_alone(self, task: Task) -> bool:
        """Whether a superstep of this task is told by a `Lone`: it was triggered, and nothing older is to be told."""
        return self.stored and task.path[0] == PULL and not (self.seen_news or self.changed_news)

    @property
    def cache(self) -> Any:
        """Where this graph's nodes look for results; None when there is no cache."""
        return self.run.cache if self.graph.cache is None else self.graph.cache

    @property
    def keeps_questions(self) -> bool:
        """Whether somebody could answer: this graph, or one around it, has a saver."""
        return self.run.journal is not None or not self.is_root or bool(self.home)

    @property
    def drain_asked(self) -> str:
        """Why the run is to stop after this step: its caller wants it to, or another run does; empty for no reason."""
        control, journal = self.run.control, self.run.journal
        if control is not None and control.drain_reason:
            return control.drain_reason
        return journal.asked if journal is not None else ""

    @property
    def hands_back(self) -> bool:
        """Whether a run that is drained is left to another worker."""
        return bool(getattr(self.run.control, "hands_back", False))

    def stopped(self, why: str) -> GraphDrained:
        """What the caller of a run that stopped is told."""
        journal = self.run.journal
        return RunDisplaced(journal.asked) if journal is not None and journal.asked else GraphDrained(why)


class UnnamedFrame(Frame):
    """A frame under whose namespace nothing is stored: the name is made when somebody asks for it.

    A class of its own, since Python reads every attribute of one with `__getattr__` the slow way.
    """

    __slots__ = ()

    @property
    def ns(self) -> str:  # type: ignore[override]  # nobody sets it
        """The namespace of what runs in the task that runs this graph."""
        assert self.inside is not None
        return self.inside.ns
