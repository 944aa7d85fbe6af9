"""Standard output and error of a kernel, in which the output of programs arrives in time for its cell."""

from __future__ import annotations

import codecs
import fcntl
import os
import select
import sys
import termios
import threading
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from ipykernel.iostream import OutStream

_CHUNK = 65536


class WatchedStream(OutStream):
    """Standard output or error. What programs write to the file descriptor appears in the cell that started them."""

    @cached_property
    def _decoder(self) -> codecs.IncrementalDecoder:
        return codecs.getincrementaldecoder("utf-8")("replace")

    def flush(self) -> None:
        """Send buffered text from this thread: a round trip to the other thread for each line would be slow."""
        if os.getpid() == _process:
            self.drain()
            self._flush()
        else:
            super().flush()

    def _flush(self) -> None:
        # A caller that flushes while another thread does must wait until that thread's text is sent.
        with _flushing:
            super()._flush()

    def _flush_buffers(self) -> Iterator[tuple[dict[str, Any], str]]:
        global _texts_sent
        for parent, text in super()._flush_buffers():
            if text:
                _texts_sent += 1
            yield parent, text

    def write(self, string: str) -> int | None:  # type: ignore[override]  # as ipykernel's
        """Write text, after everything that programs wrote before."""
        self.drain()
        return super().write(string)

    def _watch_pipe_fd(self) -> None:
        fid = getattr(self, "_fid", None)
        while fid is not None and self._should_watch:
            select.select([fid], [], [])
            self.drain()

    def drain(self) -> None:
        """Read what was written to the file descriptor so far."""
        fid = getattr(self, "_fid", None)
        if fid is None or os.getpid() != _process:
            return
        with _draining:  # even if nothing waits: another thread may have read it without having written it yet
            while _waiting(fid):
                super().write(self._decoder.decode(os.read(fid, _CHUNK)))


def drain() -> None:
    """Read what programs have written so far."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, WatchedStream):
            stream.drain()


def texts_sent() -> int:
    """Return the number of messages with text that this process has sent."""
    return _texts_sent


def _waiting(fid: int) -> int:
    size = bytearray(4)
    try:
        fcntl.ioctl(fid, termios.FIONREAD, size)
    except OSError:
        return 0
    return int.from_bytes(size, sys.byteorder)


def _renew_locks() -> None:
    """Let a forked child write: the thread that held a lock does not exist in it."""
    global _draining, _flushing
    _draining, _flushing = threading.RLock(), threading.RLock()


_texts_sent = 0
_process = os.getpid()
_draining = threading.RLock()
_flushing = threading.RLock()
os.register_at_fork(after_in_child=_renew_locks)
