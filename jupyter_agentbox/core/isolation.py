"""How far a kernel is kept from what is around it."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Isolation(str, Enum):
    """A level of isolation, as it stands in requests, records and on cards."""

    BUBBLEWRAP = "bubblewrap"
    """Own namespaces of the Linux kernel: no network, no foreign process, only named files."""

    BUBBLEWRAP_HOST_PROC = "bubblewrap-host-proc"
    """The same, but the host's ``/proc`` is seen read-only: the command lines of all processes can be read."""

    LANDLOCK = "landlock"
    """Landlock and seccomp, without namespaces: files by an allow-list, no sockets, no foreign process touched."""

    SRT = "srt"
    """Anthropic's sandbox runtime (bubblewrap on Linux, ``sandbox-exec`` on macOS): only named files and domains."""

    NONE = "none"
    """A plain process of the user."""

    REMOTE = "remote"
    """A kernel on another machine, behind a gateway: nobody here knows what it is kept from there."""

    def at_least(self, level: Isolation) -> bool:
        """Whether it keeps a kernel apart as far as another level does, or farther; not where that is unknown."""
        if self not in LADDER or level not in LADDER:
            return False
        return LADDER.index(self) <= LADDER.index(level)


#: The levels that can be compared, the strongest first: those that a rule may ask for.
LADDER: Final = (
    Isolation.BUBBLEWRAP,
    Isolation.BUBBLEWRAP_HOST_PROC,
    Isolation.LANDLOCK,
    Isolation.SRT,
    Isolation.NONE,
)
