"""References in a request to the grant that answered it, or to a void grant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from .reviewers import Reviewer
from .tools import ToolDescription


class Scope(str, Enum):
    """The calls that a grant covers. All scopes but `USER` are for one kernel, and end with it."""

    CALL = "call"
    """The same tool with the same arguments."""

    KERNEL = "kernel"
    """The tool."""

    THREAD = "thread"
    """The tool, called by code of one thread of an agent."""

    USER = "user"
    """The tool, in all kernels, until a time or for a number of calls."""

    SERVER_READ_ONLY = "server-read-only"
    """The server's tools that it declared read-only when the grant was given."""


class Void(str, Enum):
    """Why a grant no longer applies."""

    DEFINITION = "definition"
    """The server has changed the tool's description."""

    SERVER = "server"
    """The server's command or address has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantUse:
    """The grant that answered a request.

    Parameters
    ----------
    id : str
        The grant's id.
    scope : Scope
        The calls that it covers.
    granter : Reviewer
        Who gave it.
    granted_at : datetime
        Time of the grant, with time zone.
    reason : str
        The granter's reason.
    """

    id: str
    scope: Scope
    granter: Reviewer
    granted_at: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoidGrant:
    """A grant that would have allowed a call if nothing had changed.

    Parameters
    ----------
    grant : GrantUse
        The grant.
    void : Void
        What changed.
    before : ToolDescription or None
        The tool as described when the grant was given, if known.
    server_before, server_now : str
        How the server was started or reached then and is now, as in `Grant.server_entry`; empty if unknown or the
        same.
    """

    grant: GrantUse
    void: Void
    before: ToolDescription | None = None
    server_before: str = ""
    server_now: str = ""
