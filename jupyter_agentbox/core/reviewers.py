"""Who answers a request, by which way the answer came, and which ways count."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from jupyter_agentbox.exceptions import NeedsPersonError

_MADE_UP: Final = re.compile(r"[0-9a-f]{32}")


class Via(str, Enum):
    """The way an answer came, as the program that took it observed it. No answer says it of itself."""

    BROWSER = "browser"
    """A login session of a browser."""

    API_TOKEN = "api_token"  # noqa: S105  # the name of a way
    """A token, so a program that has it."""

    SERVER_TOKEN = "server_token"  # noqa: S105  # the name of a way
    """The token with which the Jupyter server itself asks JupyterHub. Code in plain kernels has it, too."""

    PROGRAM = "program"
    """The program that runs the code, by `CodeExecutor`."""

    MCP_CLIENT = "mcp_client"
    """An MCP client, which says that it asked its user."""

    TERMINAL = "terminal"
    """The terminal in which `jupyter agentbox exec` runs."""

    MODEL = "model"
    """A model that reviews what an agent asks for, in a thread whose approval mode is ``auto_review``."""

    NOBODY = "nobody"
    """None: a program had nobody to ask, and said so at once."""

    UNKNOWN = "unknown"
    """Not known: an earlier release took the answer, or the identity provider does not say."""


class ReviewerKind(str, Enum):
    """What a reviewer is. JupyterHub tells users and services apart."""

    USER = "user"
    SERVICE = "service"
    MODEL = "model"


class DecideWith(str, Enum):
    """What it takes to decide over the REST API."""

    PERSON = "person"
    """A login session of a browser."""

    ANY = "any"
    """Any credential that the Jupyter server accepts."""


class Deciders(str, Enum):
    """Who may decide at a server of JupyterHub, of those who may use it."""

    OWNER = "owner"
    """The user whose server it is, and nobody else."""

    SCOPE = "scope"
    """Who has the scope `DECIDE_SCOPE` for this server. The user whose server it is needs it, too."""


#: JupyterHub's name of the right to decide. An administrator defines it (``c.JupyterHub.custom_scopes``) and gives it
#: by roles, for all servers, those of a user, or one.
DECIDE_SCOPE: Final = "custom:agentbox:decide"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewer:
    """Who answered a request, and how that is known.

    Parameters
    ----------
    name : str
        The user's or service's name, by the identity of the session or token: never what a request's body says.
    via : Via
        The way the answer came.
    kind : ReviewerKind
        Whose name it is.
    display_name : str
        What people call them, if the identity provider has a name for that; else empty.
    credential : str
        SHA-256, in hexadecimal digits, of JupyterHub's id of the browser's session, or else of the token; empty where
        there is none. Two answers with the same value came with the same one.
    hub_server : str
        The server of JupyterHub at which it was answered, as in its scopes: ``ada/`` or ``ada/gpu``; empty without Hub.
    """

    name: str
    via: Via = Via.UNKNOWN
    kind: ReviewerKind = ReviewerKind.USER
    display_name: str = ""
    credential: str = ""
    hub_server: str = ""

    @property
    def in_words(self) -> str:
        """Who answered, for records that people read. The name may be any text."""
        if self.kind is ReviewerKind.SERVICE:
            return f"the service {self.name}"
        # What Jupyter makes up for a browser that nobody signed in with says nothing to anybody.
        name = f"user {self.name[:6]}" if _MADE_UP.fullmatch(self.name) else self.display_name or self.name
        match self.via:
            case Via.API_TOKEN:
                return f"a program with a token of {name}"
            case Via.SERVER_TOKEN:
                return "a program with the server's own token"
            case Via.PROGRAM:
                return f"a program run by {name}"
            case Via.MCP_CLIENT:
                return f"an MCP client run by {name}"
            case Via.TERMINAL:
                return f"{name} in the terminal"
            case Via.NOBODY:
                return "a program that had nobody to ask"
            case Via.MODEL:
                return f"the model {self.name.removeprefix('model:')}"
            case _:
                return name

    def check(self, decide_with: DecideWith) -> None:
        """Refuse a reviewer whose answers do not count.

        Raises
        ------
        NeedsPersonError
        """
        if decide_with is DecideWith.PERSON and self.via is not Via.BROWSER:
            raise NeedsPersonError(
                "only a person who is logged in with a browser can decide here: a token is not enough"
                " (see `AgentBoxApp.decide_with`). The request is unchanged."
            )
