"""Why a kernel ended unexpectedly."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelExit:
    """How a kernel ended, as observed from outside.

    Parameters
    ----------
    reason : str
        A clause about the kernel, for people: ``it needed more than 512 MiB of memory``. No text of the kernel's.
    limit : str or None
        The setting whose limit was exceeded; ``None`` if there was none.
    most : int or None
        The value of that setting: bytes, or processes and threads.
    signal : str or None
        The name of the signal that killed the kernel's process, if no limit was exceeded.
    status : int or None
        The exit status of its process, if neither a limit nor a signal ended it.
    """

    reason: str
    limit: str | None = None
    most: int | None = None
    signal: str | None = None
    status: int | None = None
