"""Who is calling or deciding. Only JupyterHub is trusted to say."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tornado import web

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.calls import Origin
from jupyter_agentbox.core.reviewers import Reviewer, ReviewerKind, Via
from jupyter_agentbox.exceptions import UnknownReviewerError

#: The Hub scope needed to set and release legal holds.
HOLD_SCOPE: Final = "custom:agentbox:hold"
#: The Hub scope that lets its holder read the record, and nothing else.
AUDIT_SCOPE: Final = "custom:agentbox:audit"
#: Seconds to wait for the Hub's answer.
_PATIENCE: Final = 10.0


class HubAuth(Protocol):
    """The part of `jupyterhub.services.auth.HubOAuth` that is used here."""

    access_scopes: Any
    cookie_name: str

    def get_token(self, handler: web.RequestHandler, in_cookie: bool = True) -> str | None:
        """Return the token in a request's header."""

    def get_session_id(self, handler: web.RequestHandler) -> str:
        """Return the id of the browser's session at the Hub; empty if it has none."""

    def user_for_token(
        self, token: str, use_cache: bool = True, *, sync: bool = True, session_id: str | None = None
    ) -> Any:
        """Ask the Hub who owns a token. The answer is cached for this token and session."""

    def check_scopes(self, required_scopes: Any, user: Mapping[str, Any]) -> Any:
        """Return the scopes that the user has, of those given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The user or service that sent an HTTP request, according to the Hub.

    Parameters
    ----------
    name : str
        The name of the user or service.
    kind : ReviewerKind
        Whether it is a user or a service.
    groups : frozenset of str
        The groups that the user is a member of.
    via : Via
        Whether the caller has a browser's login session or a token.
    credential : str
        SHA-256 of the Hub's id for that session or token.
    may_hold : bool
        Whether the caller has the scope for legal holds.
    may_audit : bool
        Whether the caller has the scope for reading the record.
    """

    name: str
    kind: ReviewerKind = ReviewerKind.USER
    groups: frozenset[str] = frozenset()
    via: Via = Via.API_TOKEN
    credential: str = ""
    may_hold: bool = False
    may_audit: bool = False

    @property
    def is_user(self) -> bool:
        """Whether the caller is a user of the Hub rather than a service."""
        return self.kind is ReviewerKind.USER

    @property
    def origin(self) -> Origin:
        """The origin of this caller's tool calls. In this service, the user takes the place of the kernel."""
        return Origin(kernel_id=self.name, groups=self.groups)

    @property
    def reviewer(self) -> Reviewer:
        """The caller as a reviewer."""
        return Reviewer(name=self.name, via=self.via, kind=self.kind, credential=self.credential)

    def has_credential(self, id: str) -> bool:
        """Whether the caller has the session or token to which the Hub gives this id."""
        return self.credential == _digest(id)

    def is_in(self, groups: frozenset[str]) -> bool:
        """Whether the caller is a user who belongs to one of these groups."""
        return self.is_user and bool(self.groups & groups)


def asker_of(request: ApprovalRequest) -> str:
    """Return the name of the user whose code made the call."""
    return request.call.origin.kernel_id or ""


def _digest(id: str) -> str:
    return hashlib.sha256(id.encode()).hexdigest()


async def caller_by_token(
    hub_auth: HubAuth, token: str, *, session: str | None = None, use_cache: bool
) -> Caller | None:
    """Return the owner of a token; ``None`` if it is invalid or may not be used for this service.

    Parameters
    ----------
    hub_auth : HubAuth
        The connection to the Hub.
    token : str
        The token.
    session : str or None
        If it came in the cookie that a browser gets at login, the id of the browser's session at the Hub, which ends
        with a logout there; empty if it is unknown. A token without a session is refused in this cookie.
    use_cache : bool
        Whether the Hub's answer from a few minutes ago may be used.

    Raises
    ------
    UnknownReviewerError
        If the Hub does not answer.
    """
    try:
        async with asyncio.timeout(_PATIENCE):
            model: dict[str, Any] | None = await hub_auth.user_for_token(
                token, use_cache=use_cache, sync=False, session_id=session or ""
            )
    except (web.HTTPError, TimeoutError) as error:
        raise UnknownReviewerError(
            "JupyterHub does not answer, so the service cannot tell who you are. Nothing changed."
            " Try again when the Hub is back."
        ) from error
    if model is None or not hub_auth.check_scopes(hub_auth.access_scopes, model):
        return None
    is_session, session_id = session is not None, model.get("session_id") or ""
    if is_session and not session_id:
        return None
    credential = session_id if is_session else model.get("token_id") or ""
    return Caller(
        name=model["name"],
        kind=ReviewerKind.SERVICE if model.get("kind") == "service" else ReviewerKind.USER,
        groups=frozenset(model.get("groups") or ()),
        via=Via.BROWSER if is_session else Via.API_TOKEN,
        credential=_digest(credential) if credential else "",
        may_hold=bool(hub_auth.check_scopes({HOLD_SCOPE}, model)),
        may_audit=bool(hub_auth.check_scopes({AUDIT_SCOPE}, model)),
    )
