"""Says why a sandboxed kernel ended: by a limit, or how else its process ended."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Final

from jupyter_agentbox.core.kernel_exits import KernelExit

_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitExceeded:
    """A limit that the processes of a sandbox exceeded together.

    Parameters
    ----------
    limit : str
        The setting: ``memory_limit`` or ``process_limit``.
    most : int
        The value that is set for it.
    words : str
        The consequence, for the log.
    is_end : bool
        Whether everything in the sandbox was ended because of it; otherwise Linux ended some of its processes.
    """

    limit: str
    most: int
    words: str
    is_end: bool

    @property
    def reason(self) -> str:
        """What the kernel did, in words for people."""
        if self.limit == "memory_limit":
            return f"it needed more than {size(self.most)} of memory"
        return f"it had more than {self.most} processes and threads"


def exit_of(status: int, limit_exceeded: LimitExceeded | None) -> KernelExit | None:
    """Return why a kernel ended; ``None`` if it ended of its own accord.

    Parameters
    ----------
    status : int
        The exit status of its process, or of the process around it: -n or 128 + n for signal n.
    limit_exceeded : LimitExceeded or None
        The limit that was exceeded, if any.
    """
    ended_by = -status if status < 0 else status - 128
    # Where Linux ended some process for its memory, it need not have been the kernel.
    if limit_exceeded is not None and (limit_exceeded.is_end or ended_by == signal.SIGKILL):
        return KernelExit(reason=limit_exceeded.reason, limit=limit_exceeded.limit, most=limit_exceeded.most)
    if status == 0:
        return None
    if ended_by in set(signal.Signals):
        name = signal.Signals(ended_by).name
        return KernelExit(reason=f"its process was killed by {name}", signal=name)
    return KernelExit(reason=f"its process exited with status {status}", status=status)


def size(number: int) -> str:
    """Return a number of bytes in the unit that makes it shortest."""
    value, unit = float(number), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{round(value, 2):g} {_UNITS[unit]}"
