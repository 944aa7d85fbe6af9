"""Reading of files that somebody else may have created."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

#: Non-blocking: opening a pipe would wait for a writer.
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def read_regular_file(path: Path, *, longest: int) -> bytes:
    """Read a regular file, without blocking on anything else in its place.

    Parameters
    ----------
    path : Path
        The file.
    longest : int
        Maximum size, in bytes.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is not a regular file, or too large.
    """
    descriptor = os.open(path, _FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is not an ordinary file")
        content = file.read(longest + 1)
    if len(content) > longest:
        raise ValueError(f"it has more than {longest // 1_000_000} MB")
    return content


def read_regular_text(path: Path, *, longest: int) -> str:
    """Read a regular UTF-8 text file, without its byte order mark.

    Raises
    ------
    OSError, ValueError
        As `read_regular_file`; also if it is not UTF-8.
    """
    try:
        return read_regular_file(path, longest=longest).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
