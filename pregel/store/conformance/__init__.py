"""The laws of stores, to be run on a store of your own: subclass a class of laws in a test file and say how to open it.

::

    from pregel.store.conformance import StoreLaws

    class TestMyStore(StoreLaws):
        def open(self):
            return my_store(ttl=self.ttl)     # a context manager, blocking or async, on empty storage

        def pass_time(self, seconds):
            my_clock.advance(seconds)

    class TestMyStoreAwaited(TestMyStore):
        awaited = True                        # the async twins, on one event loop a test

1. `StoreLaws` are the laws of any store. `IndexLaws` and `HybridLaws` are those of one that was opened with
   ``index=self.index``.
2. Each test opens a store of its own.
3. A test with hypothesis compares random calls with a dict; it passes over itself where hypothesis is not installed.
"""

from pregel.store.conformance.hybrid_laws import HybridLaws
from pregel.store.conformance.index_laws import IndexLaws
from pregel.store.conformance.store_laws import StoreLaws

__all__ = ["HybridLaws", "IndexLaws", "StoreLaws"]
