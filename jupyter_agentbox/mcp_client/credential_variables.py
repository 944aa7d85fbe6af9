"""Environment variables that the MCP configuration passes to servers as credentials."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from .secret_names import is_credential_variable
from .variables import names_in

#: Maximum size of a file, in bytes. A program may have written it.
_LARGEST: Final = 1_000_000
#: Non-blocking: a file that is really a pipe must not block the server.
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def credential_variables(paths: Iterable[Path]) -> frozenset[str]:
    """Return the variables that MCP configuration files refer to, and whose names indicate a secret.

    Servers that are disabled or malformed are included.

    Parameters
    ----------
    paths : iterable of Path
        The files. Unreadable ones are skipped.
    """
    return frozenset(name for path in paths for name in names_in(_text_of(path)) if is_credential_variable(name))


def _text_of(path: Path) -> str:
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
