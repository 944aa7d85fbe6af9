"""Importing large libraries, faster."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Iterator[None]:
    """Have no garbage collected meanwhile.

    An import makes hundreds of thousands of objects that stay. Looking through them again and again takes a fifth of
    the time that the libraries of models take to import.
    """
    if not gc.isenabled():  # somebody wants it so; or another thread imports, and will end this
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
