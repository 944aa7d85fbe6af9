"""Log levels of the programs that this package starts."""

from __future__ import annotations

import logging


def set_log_level(level: int | str) -> None:
    """Log this package's messages from a level on, and those of other packages only from ``WARNING`` on.

    At lower levels, HTTP and MCP clients log whole addresses and messages, which may contain credentials and arguments.

    Parameters
    ----------
    level : int or str
        The lowest level, such as ``"INFO"``.
    """
    own = logging.getLogger("jupyter_agentbox")
    own.setLevel(level)
    logging.getLogger().setLevel(max(own.level, logging.WARNING))
