"""Importing large libraries, faster."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Iterator[None]:
    """Suspend garbage collection meanwhile.

    An import creates hundreds of thousands of objects that stay. Scanning them again and again takes a fifth of
    the time in which the libraries for models are imported.
    """
    if not gc.isenabled():  # somebody wants it so; or another thread imports, and will end this
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
