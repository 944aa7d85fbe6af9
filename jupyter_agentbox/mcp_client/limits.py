"""Resource limits and working directories of MCP servers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Maximum number of values in a message. Parsing is a single step that blocks the process, and a million values take up
#: to a second.
MOST_VALUES: Final = 2_000_000


def inherit_working_directory() -> None:
    """Return ``None``: servers start in this process's working directory."""


def safe_working_directory(can_write: Callable[[Path], bool]) -> str | None:
    """Return the working directory of servers that configure none; ``None`` for this process's.

    In a directory that a sandboxed kernel can write to, a program may run files left there: ``python -m`` looks there
    for modules, others for programs and settings. Then it is the home directory, or the root.

    Parameters
    ----------
    can_write : callable
        Returns whether a sandboxed kernel can write to a directory, given without links.
    """
    if not can_write(Path.cwd().resolve()):
        return None
    home = Path.home().resolve()
    return "/" if can_write(home) else str(home)


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """Resource limits and working directories of MCP servers.

    Parameters
    ----------
    start_timeout : float
        How long starting and listing the tools may take, in seconds; a first start may download a package.
    call_timeout : float
        Default timeout of a tool call, in seconds.
    message_cap : int
        Maximum size of a message, in bytes. A longer one fails only its own call.
    log_lines : int
        How many lines of the server's log are kept.
    idle_timeout : float or None
        Seconds after which an unused program is stopped; ``None`` for never.
    most_processes : int or None
        Maximum number of running programs; ``None`` for no limit.
    memory : int or None
        Maximum data size of each process, in bytes; ``None`` for no limit.
    default_cwd : callable
        Returns the working directory of servers that configure none; ``None`` for this process's.
    """

    start_timeout: float = 60.0
    call_timeout: float = 600.0
    message_cap: int = 256_000_000
    log_lines: int = 200
    idle_timeout: float | None = None
    most_processes: int | None = None
    memory: int | None = None
    default_cwd: Callable[[], str | None] = inherit_working_directory
