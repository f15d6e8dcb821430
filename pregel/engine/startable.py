"""The verb of a graph that admits a run and leaves it to a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.channels import MISSING
from pregel.config import RunnableConfig
from pregel.engine.versions import chosen

if TYPE_CHECKING:
    from pregel.engine.starts import RunHandle


class Startable:
    """The verb of a graph that starts a run elsewhere."""

    def start(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        key: str | None = None,
        base_url: str | None = None,
        version: str | None = None,
    ) -> RunHandle:
        """Admit a run durably and return at once: no node runs here, a `pregel.durable.Worker` takes it up.

        With a `key` it is admitted once: the thread's id is the key, and a start with the same key, input and config
        gives the run that is there (`existing`). IdempotencyConflictError, and nothing is written, when the key belongs
        to something else. Without one the run is the next input of its thread, of a new one where the config names
        none; ThreadBusy when somebody runs that, or it was started already. `base_url`: where the workers' status page
        is reached, for the handle's `url`. `version`: of the graph of this name that is meant, where this process has
        compiled it; from code of a node, a graph without a version means that of the run around it.
        """
        from pregel.engine.starts import start  # few programs start runs elsewhere

        graph: Any = self
        return start(chosen(graph, version), input, config, key=key, base_url=base_url)

    async def astart(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        key: str | None = None,
        base_url: str | None = None,
        version: str | None = None,
    ) -> RunHandle:
        """Async twin of `start`."""
        from pregel.engine.starts import astart

        graph: Any = self
        return await astart(chosen(graph, version), input, config, key=key, base_url=base_url)

    def attach(self, thread_id: str, input: Any = MISSING, config: RunnableConfig | None = None) -> RunHandle:
        """The handle of a run that some process started, once it is known to be the one that is meant.

        Graph, version, and the code that it was started as are compared, and with an `input` that and the config of the
        start. AttachMismatchError names the field that differs; nothing is written. ThreadNotFoundError where there is
        no such thread.
        """
        from pregel.engine.attach import attach  # few programs attach

        return attach(self, thread_id, input, config)  # type: ignore[arg-type]  # it is a Pregel

    async def aattach(self, thread_id: str, input: Any = MISSING, config: RunnableConfig | None = None) -> RunHandle:
        """Async twin of `attach`."""
        from pregel.engine.attach import aattach

        return await aattach(self, thread_id, input, config)  # type: ignore[arg-type]  # it is a Pregel
