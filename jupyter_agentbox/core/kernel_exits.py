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
    """

    reason: str
    limit: str | None = None
