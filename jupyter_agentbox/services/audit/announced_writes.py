"""Writes whose audit record was made first: what is then not written is revoked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from jupyter_agentbox.background import to_completion


async def write_announced(write: Callable[[], Awaitable[bool]], *, revoke: Callable[[], None]) -> bool:
    """Write what is recorded already; return whether it was written.

    A cancelled caller reverts what was written, which is recorded. By then it must be written, or revoked, so the write
    runs to its end even if the caller is cancelled.

    Parameters
    ----------
    write : callable
        Writes, and returns whether the store took it.
    revoke : callable
        Called if nothing was written.
    """

    async def work() -> bool:
        is_written = False
        try:
            is_written = await write()
        finally:
            if not is_written:
                revoke()
        return is_written

    return await to_completion(work())
