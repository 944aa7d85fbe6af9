"""How far a kernel is kept from what is around it."""

from __future__ import annotations

from enum import Enum


class Isolation(str, Enum):
    """A level of isolation, as it stands in requests, records and on cards. The strongest comes first."""

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

    def at_least(self, level: Isolation) -> bool:
        """Whether it keeps a kernel apart as far as another level does, or farther."""
        order = list(Isolation)
        return order.index(self) <= order.index(level)
