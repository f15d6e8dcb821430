"""The first tier of laws, for every saver."""

from __future__ import annotations

from pregel.checkpoint.conformance.model import random_calls
from pregel.checkpoint.conformance.put_laws import PutLaws
from pregel.checkpoint.conformance.read_laws import GetLaws, ListLaws
from pregel.checkpoint.conformance.thread_laws import DeleteLaws, HistoryLaws, TogetherLaws, VersionLaws
from pregel.checkpoint.conformance.writes_laws import WritesLaws


class SaverLaws(PutLaws, WritesLaws, GetLaws, ListLaws, DeleteLaws, VersionLaws, HistoryLaws, TogetherLaws):
    """What holds for every saver with the verbs of the contract. Subclass it and define `open`."""

    examples: int = 50
    """How many random series of calls are tried."""

    def test_random_calls_agree_with_a_dict(self) -> None:
        random_calls(self.saver, examples=self.examples, housekeeping=False)
