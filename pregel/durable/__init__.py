"""Runs that are started in one process and run in others: the worker, entities, and how a run stands."""

from pregel.durable.entities import Entities, Operation
from pregel.durable.status import StatusPage
from pregel.durable.worker import Worker
from pregel.engine.starts import RunHandle

__all__ = ["Entities", "Operation", "RunHandle", "StatusPage", "Worker"]
