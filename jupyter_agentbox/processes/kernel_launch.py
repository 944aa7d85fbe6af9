"""What a kernel of ours is started with, in a sandbox or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLaunch:
    """What a kernel's process is started with.

    Parameters
    ----------
    connection : str
        The content of its connection file.
    preparation : str
        What is done before its first cell, as JSON.
    env : mapping
        Variables for it, besides those that any process needs.
    cwd : str or None
        Where it starts; ``None`` for where this process is.
    pass_fds : tuple of int
        File descriptors of ours that it inherits, by these numbers.
    """

    connection: str = field(repr=False)
    preparation: str
    env: Mapping[str, str] = field(repr=False)
    cwd: str | None = None
    pass_fds: tuple[int, ...] = ()
