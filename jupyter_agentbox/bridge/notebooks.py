"""Looks up the document of a kernel in Jupyter's session manager."""

from __future__ import annotations

from typing import Any

from jupyter_server.services.sessions.sessionmanager import SessionManager


class SessionNotebooks:
    """A `NotebookFinder` for the server's sessions.

    Parameters
    ----------
    sessions : SessionManager
        The server's.
    """

    def __init__(self, sessions: SessionManager) -> None:
        self._sessions = sessions

    async def path_of(self, kernel_id: str) -> str | None:
        """Return the path of the first session with this kernel, if any."""
        sessions: list[dict[str, Any]] = await self._sessions.list_sessions()  # type: ignore[no-untyped-call]
        for session in sessions:
            if session["kernel"]["id"] == kernel_id:
                return str(session["path"])
        return None
