"""The garbage collector, while much is made at once that all lives.

It runs each time so many objects have been made, and looks at everything once what lives has grown by a quarter. While
a long list is decoded that is work in vain, many times over: what is made is held by the list. CPython 3.12 and later
begin no round inside of one call of C code; 3.11 does.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 256  # items, from which on a pause is worth its two calls


@contextmanager
def uncollected(items: int) -> Iterator[None]:
    """No round of the collector begins meanwhile, if there are many items to be made and nobody else has paused it."""
    if items < MANY or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
