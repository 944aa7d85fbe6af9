"""Chooses the kind of box for a level of isolation."""

from __future__ import annotations

from jupyter_agentbox.core.isolation import Isolation

from .boxes import Box, BubblewrapBox, LandlockBox, Order
from .srt_box import SrtBox


def make_box(order: Order, level: Isolation, *, bubblewrap: str, srt: str) -> Box:
    """Return a box that nothing runs in yet.

    Parameters
    ----------
    order : Order
        What is asked for.
    level : Isolation
        The isolation that it gives.
    bubblewrap, srt : str
        The paths of ``bwrap`` and ``srt``; empty to look for them.

    Raises
    ------
    SandboxRefusedError
        If there can be no such box.
    """
    if level is Isolation.SRT:
        return SrtBox(order, srt)
    return LandlockBox(order) if level is Isolation.LANDLOCK else BubblewrapBox(order, level, bubblewrap)
