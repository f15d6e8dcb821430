"""Runs that are started in one process and run in others: workers, entities, work done elsewhere, how a run stands."""

from pregel.durable.elsewhere import WorkItem, elsewhere
from pregel.durable.entities import Entities, Operation
from pregel.durable.matching import REGISTERED
from pregel.durable.node_worker import NodeWorker
from pregel.durable.status import StatusPage
from pregel.durable.worker import Worker
from pregel.engine.away import Executor, Outcome, Work
from pregel.engine.starts import RunHandle
from pregel.errors import ContinueAsNew

__all__ = [
    "REGISTERED",
    "ContinueAsNew",
    "Entities",
    "Executor",
    "NodeWorker",
    "Operation",
    "Outcome",
    "RunHandle",
    "StatusPage",
    "Work",
    "WorkItem",
    "Worker",
    "elsewhere",
]
