"""Tools for testing graphs: every order, every death, no threads and no clocks."""

from pregel.testing.clock import FakeClock
from pregel.testing.explore import End, ExploreFailure, Report, crash_matrix, explore
from pregel.testing.landed import Landed
from pregel.testing.recovers import Recovery, aassert_recovers, assert_recovers
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
    "Trace",
    "aassert_recovers",
    "assert_recovers",
    "crash_matrix",
    "explore",
]
