"""Reading files that somebody else may have put there."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

#: Reading a pipe waits for who writes.
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def read_plain_bytes(path: Path, *, longest: int) -> bytes:
    """Read an ordinary file, and wait for nothing that stands in its place.

    Parameters
    ----------
    path : Path
        The file.
    longest : int
        How many bytes it may have.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is no ordinary file, or longer than allowed.
    """
    descriptor = os.open(path, _FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is not an ordinary file")
        content = file.read(longest + 1)
    if len(content) > longest:
        raise ValueError(f"it has more than {longest // 1_000_000} MB")
    return content


def read_plain_text(path: Path, *, longest: int) -> str:
    """Read an ordinary file of UTF-8 text; a mark of the order of bytes is left out.

    Raises
    ------
    OSError, ValueError
        As `read_plain_bytes`; also if it is not UTF-8.
    """
    try:
        return read_plain_bytes(path, longest=longest).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
