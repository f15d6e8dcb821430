"""What every class of laws has: a saver that is opened for each test."""

from __future__ import annotations

from pregel.checkpoint.conformance.verbs import Opening, Verbs


class Laws:
    """Subclass it in a test file and define `open`."""

    awaited: bool = False
    """Whether the async twins are called."""

    saver: Verbs

    def open(self) -> Opening:
        """A context manager, blocking or async, that gives a saver on empty storage."""
        raise NotImplementedError(f"{type(self).__name__} must define open().")

    def setup_method(self) -> None:
        """Open the saver of one test. pytest calls it."""
        self.saver = Verbs(self.open(), awaited=self.awaited)

    def teardown_method(self) -> None:
        """Close the saver of one test. pytest calls it."""
        self.saver.close()
