"""The log levels that MCP clients set for their sessions, below which no log message is sent to them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

#: MCP's levels, the least severe first.
LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
#: The level of a message that does not have one of these, and of a session that has set none.
DEFAULT: Final = "info"
#: So much of a session's id is compared: what a client sends as one may have any length.
_LONGEST_ID: Final = 100
#: How many sessions of a user are remembered. The one that set its level longest ago is forgotten first.
MOST_SESSIONS: Final = 50


class ClientLogLevels:
    """The levels of all users' sessions. They are not stored: after a restart, a client gets `DEFAULT` again."""

    def __init__(self) -> None:
        self._levels: dict[str, OrderedDict[str, str]] = {}

    def set(self, user: str, session: str, level: object) -> bool:
        """Set the level of a user's session; return whether it is one of `LEVELS`."""
        if not isinstance(level, str) or level not in LEVELS:
            return False
        sessions = self._levels.setdefault(user, OrderedDict())
        sessions.pop(session[:_LONGEST_ID], None)
        sessions[session[:_LONGEST_ID]] = level
        if len(sessions) > MOST_SESSIONS:
            sessions.popitem(last=False)
        return True

    def forget(self, user: str, session: str) -> None:
        """Forget the level of a session that has ended."""
        sessions = self._levels.get(user)
        if sessions is not None and sessions.pop(session[:_LONGEST_ID], None) is not None and not sessions:
            del self._levels[user]

    def wants(self, user: str, session: str, level: str) -> bool:
        """Whether a session is to be sent messages of a level."""
        sessions = self._levels.get(user)
        least = DEFAULT if sessions is None else sessions.get(session[:_LONGEST_ID], DEFAULT)
        return LEVELS.index(level) >= LEVELS.index(least)


def known_level(level: str) -> str:
    """Return the level of a server's message, or `DEFAULT` if MCP has no such level."""
    return level if level in LEVELS else DEFAULT
