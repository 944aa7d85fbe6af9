"""`Interrupts`: makes an interrupt end a cell in the kernel's event loop at once, whatever it waits for.

ipykernel handles an interrupt of such a cell by cancelling its task, in a callback of its loop. The loop gets there
only when blocking code has returned, and something wakes it: a signal alone does not.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Collection
from types import CodeType, FrameType, TracebackType
from typing import Any, Self


class Interrupts:
    """A context in which an interrupt raises `KeyboardInterrupt` in blocking code, and wakes a waiting loop.

    Parameters
    ----------
    blocking : collection of CodeType
        Functions below which code may block: while one of them runs, it is interrupted.

    Attributes
    ----------
    count : int
        Number of interrupts so far.
    """

    def __init__(self, blocking: Collection[CodeType]) -> None:
        self.count = 0
        self._blocking = blocking
        self._before: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> Self:
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and callable(before):
            self._before, self._loop = before, asyncio.get_running_loop()
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self._is_blocking(frame):
            raise KeyboardInterrupt
        if self._before is not None and self._loop is not None:
            self._before(number, frame)
            self._loop.call_soon_threadsafe(_wake)

    def _is_blocking(self, frame: FrameType | None) -> bool:
        while frame is not None:
            if frame.f_code in self._blocking:
                return True
            frame = frame.f_back
        return False


def _wake() -> None:
    """Do nothing, except wake the loop."""
