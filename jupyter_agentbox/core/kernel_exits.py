"""Why a kernel ended without being asked to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelExit:
    """How a kernel ended, as it is seen from outside.

    Parameters
    ----------
    reason : str
        For people: a clause about the kernel, ``it needed more than 512 MiB of memory``. Nothing in it is the kernel's.
    limit : str or None
        The setting whose limit ended it; ``None`` if it was no limit.
    """

    reason: str
    limit: str | None = None
