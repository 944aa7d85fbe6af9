"""The levels of a kernel's isolation."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Isolation(str, Enum):
    """A level of isolation, as in requests, in records and on cards."""

    BUBBLEWRAP = "bubblewrap"
    """Namespaces of its own: no network, no foreign processes, only listed files."""

    BUBBLEWRAP_HOST_PROC = "bubblewrap-host-proc"
    """The same, but with the host's ``/proc`` read-only: the command lines of all processes are visible."""

    LANDLOCK = "landlock"
    """Landlock and seccomp, without namespaces: files by an allow-list, no sockets, no foreign process touched."""

    SRT = "srt"
    """Anthropic's sandbox runtime (bubblewrap on Linux, ``sandbox-exec`` on macOS): only listed files and domains."""

    NONE = "none"
    """A plain process of the user."""

    REMOTE = "remote"
    """A kernel on another machine, behind a gateway: its isolation there is unknown."""

    def at_least(self, level: Isolation) -> bool:
        """Whether it is at least as strong as another level; false if unknown."""
        if self not in LADDER or level not in LADDER:
            return False
        return LADDER.index(self) <= LADDER.index(level)


#: The comparable levels, strongest first: those that a rule can require.
LADDER: Final = (
    Isolation.BUBBLEWRAP,
    Isolation.BUBBLEWRAP_HOST_PROC,
    Isolation.LANDLOCK,
    Isolation.SRT,
    Isolation.NONE,
)
