"""Reviewers: who decided a request, how the answer arrived, and whether it counts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from jupyter_agentbox.exceptions import NeedsPersonError

_MADE_UP: Final = re.compile(r"[0-9a-f]{32}")


class Via(str, Enum):
    """How an answer arrived, as observed by the program that received it. An answer cannot claim it."""

    BROWSER = "browser"
    """A browser's login session."""

    BREAK_GLASS = "break_glass"
    """A browser's login session, at the Hub service: alone and in an emergency, as the rule let its user."""

    API_TOKEN = "api_token"  # noqa: S105  # the name of a way
    """A token, and so a program that holds it."""

    SERVER_TOKEN = "server_token"  # noqa: S105  # the name of a way
    """The Jupyter server's own token for JupyterHub. Code in plain kernels also has it."""

    PROGRAM = "program"
    """The program that runs the code, with `CodeExecutor`."""

    MCP_CLIENT = "mcp_client"
    """An MCP client, which states that it asked its user."""

    TERMINAL = "terminal"
    """The terminal in which `jupyter agentbox exec` runs."""

    MODEL = "model"
    """A model that reviews an agent's calls, in a thread with the approval mode ``auto_review``."""

    NOBODY = "nobody"
    """No reviewer: a program reported at once that nobody could be asked."""

    UNKNOWN = "unknown"
    """Unknown: an earlier release received the answer, or the identity provider does not say."""


class ReviewerKind(str, Enum):
    """The kind of a reviewer. JupyterHub distinguishes users and services."""

    USER = "user"
    SERVICE = "service"
    MODEL = "model"


class DecideWith(str, Enum):
    """The credentials required to decide over the REST API."""

    PERSON = "person"
    """A browser's login session."""

    ANY = "any"
    """Any credential that the Jupyter server accepts."""


class Deciders(str, Enum):
    """Which of the users of a JupyterHub server may decide there."""

    OWNER = "owner"
    """Only the server's owner."""

    SCOPE = "scope"
    """Holders of the scope `DECIDE_SCOPE` for this server. The owner needs it, too."""


#: JupyterHub's custom scope for deciding. An administrator defines it (``c.JupyterHub.custom_scopes``) and assigns
#: it with roles, for all servers, a user's servers, or one.
DECIDE_SCOPE: Final = "custom:agentbox:decide"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewer:
    """Who decided a request, and how they were identified.

    Parameters
    ----------
    name : str
        The user's or service's name, from the identity of the session or token: never from a request's body.
    via : Via
        How the answer arrived.
    kind : ReviewerKind
        Whether the name is a user's or a service's.
    display_name : str
        Display name from the identity provider; empty if there is none.
    credential : str
        SHA-256, in lower-case hex, of JupyterHub's id of the browser session, or else of the token; empty if there is
        neither. Answers with the same value used the same credential.
    hub_server : str
        The JupyterHub server at which it was decided, as in scopes: ``ada/`` or ``ada/gpu``; empty without a Hub.
    """

    name: str
    via: Via = Via.UNKNOWN
    kind: ReviewerKind = ReviewerKind.USER
    display_name: str = ""
    credential: str = ""
    hub_server: str = ""

    @property
    def in_words(self) -> str:
        """The reviewer, for records that people read. The name may be any text."""
        if self.kind is ReviewerKind.SERVICE:
            return f"the service {self.name}"
        # Jupyter's generated name for an anonymous browser means nothing to people.
        name = f"user {self.name[:6]}" if _MADE_UP.fullmatch(self.name) else self.display_name or self.name
        match self.via:
            case Via.BREAK_GLASS:
                return f"{name}, who broke the glass"
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
        """Reject a reviewer whose answers do not count.

        Raises
        ------
        NeedsPersonError
        """
        if decide_with is DecideWith.PERSON and self.via not in (Via.BROWSER, Via.BREAK_GLASS):
            raise NeedsPersonError(
                "only a person who is logged in with a browser can decide here: a token is not enough"
                " (see `AgentBoxApp.decide_with`). The request is unchanged."
            )
