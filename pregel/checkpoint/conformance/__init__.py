"""The laws of savers, to be run on a saver of your own: subclass a class of laws in a test file and say how to open it.

::

    from pregel.checkpoint.conformance import SaverLaws

    class TestMySaver(SaverLaws):
        def open(self):
            return my_saver()           # a context manager, blocking or async

    class TestMySaverAwaited(SaverLaws):
        awaited = True                  # the async twins, on one event loop a test

        def open(self):
            return my_async_saver()

1. `SaverLaws` is the first tier: `put put_writes get_tuple list delete_thread`, all that an engine needs.
2. `JournalLaws` has the second tier as well: guarded appends, claims, `prune copy_thread delete_for_runs`.
3. Each test opens a saver of its own, on empty storage.
4. A test with hypothesis compares random calls with a dict; it passes over itself where hypothesis is not installed.
"""

from pregel.checkpoint.conformance.journal_laws import JournalLaws
from pregel.checkpoint.conformance.saver_laws import SaverLaws

__all__ = ["JournalLaws", "SaverLaws"]
