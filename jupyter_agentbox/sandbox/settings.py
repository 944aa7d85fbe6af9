"""What a person or an administrator may set for sandboxed kernels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jupyter_agentbox.core.isolation import Isolation

#: The levels that can be reached, in the order in which they are tried.
SANDBOX_LEVELS = (Isolation.BUBBLEWRAP, Isolation.BUBBLEWRAP_HOST_PROC, Isolation.LANDLOCK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a kernel may use up. ``None`` is no limit.

    Parameters
    ----------
    memory : int or None
        Bytes of address space of each process (``RLIMIT_AS``).
    processes : int or None
        Processes and threads of the whole sandbox (``RLIMIT_NPROC``).
    file_size : int or None
        Bytes of the largest file that can be written (``RLIMIT_FSIZE``).
    temporary : int or None
        Bytes of each file system in memory: ``/tmp``, the home directory, ``/dev/shm``.
    """

    memory: int | None = None
    processes: int | None = None
    file_size: int | None = None
    temporary: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Files and directories beside the work directory.

    Parameters
    ----------
    readable : tuple of Path
        Can be read and run.
    writable : tuple of Path
        Can be read, run and written.
    hidden : tuple of Path
        Cannot be seen, wherever they are.
    """

    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
