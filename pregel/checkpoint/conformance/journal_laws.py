"""The second tier of laws, for savers with guarded appends."""

from __future__ import annotations

from pregel.checkpoint.conformance.append_laws import AppendLaws
from pregel.checkpoint.conformance.housekeeping_laws import HousekeepingLaws
from pregel.checkpoint.conformance.item_laws import ItemLaws
from pregel.checkpoint.conformance.model import random_calls
from pregel.checkpoint.conformance.saver_laws import SaverLaws


class JournalLaws(SaverLaws, AppendLaws, HousekeepingLaws, ItemLaws):
    """What holds for every journal. Subclass it and define `open`."""

    def test_random_calls_agree_with_a_dict(self) -> None:
        random_calls(self.saver, examples=self.examples, housekeeping=True)
