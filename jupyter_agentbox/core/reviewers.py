"""Reviewers: who decided a request, how the answer arrived, and whether it counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from jupyter_agentbox.exceptions import NeedsPersonError

#: Replaces quotation marks in a text that is quoted.
_NO_QUOTES: Final = str.maketrans(dict.fromkeys('“”„‟"«»', "'"))
#: The name that Jupyter makes up at each login where nobody has one, and for each request with the server's token.
_MADE_UP: Final = re.compile(r"[0-9a-f]{32}")
#: Stands for a name in the words for a reviewer.
_NAME: Final = "\0"


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

    @property
    def is_program(self) -> bool:
        """Whether the program that runs the code, a model or nobody decided, as a rule does.

        An answer with a token counts as a person's: a program has the token, but perhaps because a person gave it.
        """
        return self in (Via.PROGRAM, Via.MODEL, Via.NOBODY)


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
#: The same for reading requests, records and rules, where `ScopeAuthorizer` is in use.
READ_SCOPE: Final = "custom:agentbox:read"
#: The same for changing what decides and runs: rules, grants, servers and agents' threads.
MANAGE_SCOPE: Final = "custom:agentbox:manage"


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
    token_note : str
        The note that the user gave the token at JupyterHub; empty if there is none, or the Hub does not tell it.
    """

    name: str
    via: Via = Via.UNKNOWN
    kind: ReviewerKind = ReviewerKind.USER
    display_name: str = ""
    credential: str = ""
    hub_server: str = ""
    token_note: str = ""

    @property
    def in_words(self) -> str:
        """The reviewer, for records that people read. The name may be any text."""
        if self.kind is ReviewerKind.SERVICE:
            return f"the service {self.name}"
        is_made_up = _MADE_UP.fullmatch(self.name) is not None
        name = self.display_name or (f"user {self.name[:6]}" if is_made_up else self.name)
        match self.via:
            case Via.BREAK_GLASS:
                return f"{name}, who broke the glass"
            case Via.API_TOKEN:
                # Jupyter makes up another name for the next request with its token.
                return "a program with the server's token" if is_made_up else self._token_in_words(name)
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

    def _token_in_words(self, name: str) -> str:
        # It is what the token's maker wrote, and must not seem to be more.
        note = self.token_note.translate(_NO_QUOTES)
        return f"a program with a token of {name}" + (f" (“{note}”)" if note else "")

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


def meanings_of(text: str) -> Iterator[tuple[Via | None, str]]:
    """Yield what a text, ignoring case, may say of a reviewer as `Reviewer.in_words` does.

    Parameters
    ----------
    text : str
        Words for a reviewer, or a part of them.

    Yields
    ------
    tuple of (Via or None, str)
        How the answer arrived, and a part of the name. ``None`` means any way, an empty part any name.
    """
    yield None, text
    for via, words in _phrases():
        before, _, after = words.partition(_NAME)
        if re.search(rf"\b{re.escape(text)}", f"{before} {after}", re.IGNORECASE):
            yield via, ""
        elif text.lower().startswith(before) and text.lower().endswith(after):
            yield via, text[len(before) : len(text) - len(after)]


def _phrases() -> Iterator[tuple[Via | None, str]]:
    """Yield the words for a reviewer that are more than a name."""
    yield None, Reviewer(name=_NAME, kind=ReviewerKind.SERVICE).in_words
    yield Via.API_TOKEN, Reviewer(name="0" * 32, via=Via.API_TOKEN).in_words
    yield from ((via, words) for via in Via if (words := Reviewer(name=_NAME, via=via).in_words) != _NAME)
