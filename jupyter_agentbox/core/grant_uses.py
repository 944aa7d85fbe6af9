"""What a request says of the grant that answered it, or of one that no longer holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from .reviewers import Reviewer
from .tools import ToolDescription


class Scope(str, Enum):
    """Which calls a grant is for. All but `USER` are for one kernel, and end with it."""

    CALL = "call"
    """The same tool with the same arguments."""

    KERNEL = "kernel"
    """The tool."""

    THREAD = "thread"
    """The tool, called by code of one thread of an agent."""

    USER = "user"
    """The tool, in all kernels, until a time or for a number of calls."""

    SERVER_READ_ONLY = "server-read-only"
    """The tools of the server that said, when the grant was given, that they only read."""


class Void(str, Enum):
    """Why a grant no longer holds."""

    DEFINITION = "definition"
    """The server describes the tool in another way."""

    SERVER = "server"
    """The server is started with another command, or reached at another address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantUse:
    """The grant that answered a request.

    Parameters
    ----------
    id : str
        The grant's.
    scope : Scope
        Which calls it is for.
    granter : Reviewer
        Who gave it.
    granted_at : datetime
        When, with time zone.
    reason : str
        What they wrote.
    """

    id: str
    scope: Scope
    granter: Reviewer
    granted_at: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoidGrant:
    """A grant that would have allowed a call, had nothing changed since.

    Parameters
    ----------
    grant : GrantUse
        The grant.
    void : Void
        What changed.
    before : ToolDescription or None
        The tool as its server described it when the grant was given, if that is known.
    """

    grant: GrantUse
    void: Void
    before: ToolDescription | None = None
