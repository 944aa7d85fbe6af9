"""What an MCP server may use, and where it starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Values in the largest message that is read. Reading one is a single step that nothing else in the process can
#: interrupt, and a million values take up to a second.
MOST_VALUES: Final = 2_000_000


def inherit_working_directory() -> None:
    """Return ``None``: a server starts in the working directory of this process."""


def safe_working_directory(can_write: Callable[[Path], bool]) -> str | None:
    """Return where servers start that name no ``cwd``; ``None`` for where this process works.

    Where a sandboxed kernel can write, a program may run what it left: ``python -m`` looks for modules there, others
    for programs and settings. Then it is the home directory, or the root.

    Parameters
    ----------
    can_write : callable
        Says whether a sandboxed kernel can write in a directory, which is without links.
    """
    if not can_write(Path.cwd().resolve()):
        return None
    home = Path.home().resolve()
    return "/" if can_write(home) else str(home)


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """What an MCP server may use, and where it starts.

    Parameters
    ----------
    start_timeout : float
        Seconds to start and to list the tools; a first start may download a package.
    call_timeout : float
        Seconds that a tool may run where the configuration does not say.
    message_cap : int
        The longest message that is read, in bytes. A longer one fails its own call only.
    log_lines : int
        How many lines of the server's log are kept.
    idle_timeout : float or None
        Seconds after which a program is stopped that nobody used; ``None`` for never.
    most_processes : int or None
        How many programs run at a time; ``None`` for no limit.
    memory : int or None
        How many bytes of data each process of a program may have; ``None`` for no limit.
    default_cwd : callable
        Returns the directory in which a server starts that names no ``cwd``; ``None`` for the one of this process.
    """

    start_timeout: float = 60.0
    call_timeout: float = 600.0
    message_cap: int = 256_000_000
    log_lines: int = 200
    idle_timeout: float | None = None
    most_processes: int | None = None
    memory: int | None = None
    default_cwd: Callable[[], str | None] = inherit_working_directory
