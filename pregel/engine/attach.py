"""Attach: a process that did not start a run goes along with it, once it is known to mean the same run.

What is compared is what the thread says of itself: graph, version, the config and the input that it was started with,
and the code that it was started as. The first that differs is named. Nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pregel.channels import MISSING
from pregel.checkpoint.keys import thread_text
from pregel.checkpoint.labels import named
from pregel.checkpoint.records import Page, ThreadRow
from pregel.config import RunnableConfig
from pregel.engine.code import code_of
from pregel.engine.started import STARTED_AS, STARTED_CODE, STARTED_WITH
from pregel.engine.starts import RunHandle, check_named, kept_of, spec_of
from pregel.errors import AttachMismatchError, ThreadNotFoundError

if TYPE_CHECKING:
    from pregel.engine.pregel import Pregel


def attach(graph: Pregel, thread_id: str, input: Any, config: RunnableConfig | None) -> RunHandle:
    """The handle of the run of a thread."""
    asked = Attachment(graph, thread_id, input, config)
    row = asked.found(graph.saver.load(asked.thread, []).thread)
    return asked.checked(row, graph.saver.page(asked.thread, asked.newest), graph.saver.page(asked.thread, asked.spec))


async def aattach(graph: Pregel, thread_id: str, input: Any, config: RunnableConfig | None) -> RunHandle:
    """Async twin of `attach`."""
    asked = Attachment(graph, thread_id, input, config)
    saver = graph.saver
    row = asked.found((await saver.aload(asked.thread, [])).thread)
    newest = await saver.apage(asked.thread, asked.newest)
    return asked.checked(row, newest, await saver.apage(asked.thread, asked.spec))


class Attachment:
    """What a process takes a thread for."""

    newest = Page("", limit=1)

    def __init__(self, graph: Pregel, thread_id: str, input: Any, config: RunnableConfig | None) -> None:
        check_named(graph)
        self.graph, self.thread = graph, thread_text(thread_id)
        self.has_input = input is not MISSING
        self.kept = kept_of(config)
        self.fingerprint = spec_of(graph, input, self.kept) if self.has_input else ""

    @property
    def spec(self) -> Page:
        """The newest checkpoint of a start with this input and config; of any, where no input is given."""
        return Page("", limit=1, filter={STARTED_AS: self.fingerprint} if self.has_input else None)

    def found(self, row: ThreadRow) -> ThreadRow:
        """The row, of the graph that is meant; a named error for what is not there, or another's."""
        if not row.tno:
            raise ThreadNotFoundError(f"There is no thread {self.thread!r} to attach to.", thread=self.thread)
        name, version = named(row.graph)
        self._compare("graph", self.graph.get_name(), name)
        self._compare("version", self.graph.version, version)
        return row

    def checked(self, row: ThreadRow, newest: Any, spec: Any) -> RunHandle:
        """The handle, when what was started is what is meant."""
        told: Mapping[str, Any] = newest[0][1].metadata if newest else {}
        if self.has_input and not spec:
            self._compare("config", self.kept, json.loads(told.get(STARTED_WITH, "{}")))
            raise self._mismatch("input", "what was given", "another one")
        started: Mapping[str, Any] = spec[0][1].metadata if spec else told
        if STARTED_CODE in started:
            self._compare("code", code_of(self.graph), started[STARTED_CODE])
        run_id = str(started.get("run_id", ""))
        return RunHandle(self.thread, run_id, None, existing=True, url=None, _graph=self.graph)

    def _compare(self, field: str, ours: Any, theirs: Any) -> None:
        if ours != theirs:
            raise self._mismatch(field, repr(ours), repr(theirs))

    def _mismatch(self, field: str, ours: str, theirs: str) -> AttachMismatchError:
        return AttachMismatchError(
            f"Thread {self.thread!r} cannot be attached to: its {field} is {theirs}, and not {ours}.",
            fix="Attach with the graph, the input and the config that it was started with.",
            field=field,
            thread=self.thread,
        )
