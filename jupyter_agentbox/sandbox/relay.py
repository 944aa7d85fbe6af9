"""Passes on what a sandboxed kernel writes to its raw standard output and error.

The kernel does not get the server's own: a terminal could be read and steered, a log file could be cut.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Final

_BLOCK: Final = 65536

#: Control characters, of both sets, but for tab and newline.
_CONTROLS: Final = {code: "\ufffd" for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in (0x09, 0x0A)}


def relay() -> int:
    """Return the writing end of a pipe, whose lines go to this process's standard error until all writers are gone."""
    reader, writer = os.pipe()
    threading.Thread(target=_pass_on, args=(reader,), name="agentbox-relay", daemon=True).start()
    return writer


def harmless(text: bytes) -> str:
    """Return text without the characters that steer a terminal."""
    return text.decode("utf-8", "replace").translate(_CONTROLS)


def _pass_on(reader: int) -> None:
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while block := pipe.read(_BLOCK):
            sys.stderr.write(harmless(block))
            sys.stderr.flush()
