"""Launch parameters of headless kernels, with or without a sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLaunch:
    """The launch parameters of a kernel process.

    Parameters
    ----------
    connection : str
        Content of its connection file.
    preparation : str
        What to do before its first cell, as JSON.
    env : mapping
        Its environment variables, besides those that every process needs.
    cwd : str or None
        Its working directory; ``None`` for this process's.
    pass_fds : tuple of int
        File descriptors that it inherits, with the same numbers.
    """

    connection: str = field(repr=False)
    preparation: str
    env: Mapping[str, str] = field(repr=False)
    cwd: str | None = None
    pass_fds: tuple[int, ...] = ()
