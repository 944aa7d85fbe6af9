"""Chooses the kind of sandbox for a level of isolation."""

from __future__ import annotations

from jupyter_agentbox.core.isolation import Isolation

from .backends import BubblewrapBackend, LandlockBackend, SandboxBackend, SandboxSpec
from .srt_backend import SrtBackend


def make_backend(spec: SandboxSpec, level: Isolation, *, bubblewrap: str, srt: str) -> SandboxBackend:
    """Return a sandbox that nothing runs in yet.

    Parameters
    ----------
    spec : SandboxSpec
        What is asked for.
    level : Isolation
        The level of isolation that it must give.
    bubblewrap, srt : str
        The paths of ``bwrap`` and ``srt``; empty to look for them.

    Raises
    ------
    SandboxRefusedError
        If no such sandbox can be made here.
    """
    if level is Isolation.SRT:
        return SrtBackend(spec, srt)
    return LandlockBackend(spec) if level is Isolation.LANDLOCK else BubblewrapBackend(spec, level, bubblewrap)
