"""``jupyter agentbox exec --ask jupyterlab``: runs code in a kernel of a running JupyterLab, where its calls wait."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupyter_agentbox.headless.server_api import ServerAddress
from jupyter_agentbox.mcp_server.activity import Activity
from jupyter_agentbox.mcp_server.consent import Refuser
from jupyter_agentbox.mcp_server.jupyter import JupyterSession, find_jupyterlab, server_address
from jupyter_agentbox.mcp_server.sessions import CellRequest, Executed, SessionError

__all__ = ["End", "SessionError", "run_cells"]

#: Seconds that a cell waits for an earlier one. There is none: each is awaited.
_BUSY: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How the last cell ended.

    Parameters
    ----------
    error : str or None
        Why it did not finish, with the kernel's traceback; ``None`` if it did.
    is_out_of_time : bool
        Whether that is because it took too long.
    has_rejected : bool
        Whether a person rejected a call of any cell; ``False`` too if the server is gone.
    """

    error: str | None
    is_out_of_time: bool
    has_rejected: bool


async def run_cells(
    cells: Iterable[str],
    *,
    url: str | None,
    token: str | None,
    working_dir: Path | None,
    images_dir: Path,
    timeout: float | None,
    write: Callable[[str], None],
    tell: Callable[[str], None],
) -> End:
    """Run cells in a kernel of their own, up to the first that fails.

    Parameters
    ----------
    cells : iterable of str
        The code.
    url, token : str or None
        Address and token of the Jupyter server; by default, those of this user's latest JupyterLab on this machine.
    working_dir : Path or None
        Where the kernel starts; ``None`` leaves it to the server.
    images_dir : Path
        Where images are written.
    timeout : float or None
        Seconds that each cell may run. Waiting for decisions does not count.
    write : callable
        Gets the output, in pieces.
    tell : callable
        Gets a sentence for each request that begins to wait, and what tools report. Untrusted text.

    Raises
    ------
    SessionError
        If there is no such server, it does not answer, has no agentbox, or starts no kernel.
    """
    address = await _address(url, token)
    session = JupyterSession(address, working_dir=working_dir, images_dir=images_dir, busy_timeout=_BUSY)
    try:
        await session.check()
        done = Executed()
        for code in cells:
            done = await session.execute(
                CellRequest(
                    code=code,
                    timeout=timeout,
                    consents=Refuser("JupyterLab is asked"),
                    activity=_TellingActivity(tell),
                    report=tell,
                    write=write,
                )
            )
            if done.error is not None:
                break
        return End(
            error=done.error,
            is_out_of_time=done.is_out_of_time,
            has_rejected=await _has_rejected(session, may_be_gone=done.error is not None),
        )
    finally:
        await session.aclose()


async def _has_rejected(session: JupyterSession, *, may_be_gone: bool) -> bool:
    try:
        return await session.has_rejected()
    except SessionError:
        if may_be_gone:
            return False  # the cell's own error says what happened
        raise


async def _address(url: str | None, token: str | None) -> ServerAddress:
    if url is not None:
        return server_address(url, token)
    found = await find_jupyterlab()
    if found is None:
        raise SessionError(
            "no JupyterLab of yours with agentbox is running on this machine: start one, or name its address with"
            " `--server`"
        )
    return found


class _TellingActivity(Activity):
    """Says for which decisions a cell waits, each once."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell
        self._told: set[Hashable] = set()

    def wait_for_decision(self, key: Hashable, what: str) -> None:
        if key not in self._told:
            self._told.add(key)
            self._tell(f"waiting for a decision about {what}")
        super().wait_for_decision(key, what)
