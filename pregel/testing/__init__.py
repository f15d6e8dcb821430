"""Tools for testing graphs: every order, every death, no threads and no clocks."""

from pregel.testing.clock import FakeClock
from pregel.testing.explore import End, ExploreFailure, Report, crash_matrix, explore
from pregel.testing.landed import Landed
from pregel.testing.recovers import Recovery, aassert_recovers, assert_recovers
from pregel.testing.same_state import StateDiffers, aassert_same_state, assert_same_state
from pregel.testing.scripted import Died, Fault, SaverFailed, Script, ScriptedDriver, ScriptedJournal
from pregel.testing.trace import Trace

__all__ = [
    "Died",
    "End",
    "ExploreFailure",
    "FakeClock",
    "Fault",
    "Landed",
    "Recovery",
    "Report",
    "SaverFailed",
    "Script",
    "ScriptedDriver",
    "ScriptedJournal",
    "StateDiffers",
    "Trace",
    "aassert_recovers",
    "aassert_same_state",
    "assert_recovers",
    "assert_same_state",
    "crash_matrix",
    "explore",
]
