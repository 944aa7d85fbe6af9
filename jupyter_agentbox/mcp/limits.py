"""What an MCP server may use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What an MCP server may use.

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
    start_in : str or None
        The directory in which a server starts that names no ``cwd``; ``None`` for the one of this process.
    """

    start_timeout: float = 60.0
    call_timeout: float = 600.0
    message_cap: int = 256_000_000
    log_lines: int = 200
    start_in: str | None = None
