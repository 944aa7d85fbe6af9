"""Identifies who sends a decision over HTTP, and whether with a browser's login session or a token."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import quote

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import ensure_async
from tornado import web
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest

from jupyter_agentbox.core.reviewers import (
    DECIDE_SCOPE,
    MANAGE_SCOPE,
    READ_SCOPE,
    Deciders,
    Reviewer,
    ReviewerKind,
    Via,
)
from jupyter_agentbox.core.text import one_line
from jupyter_agentbox.exceptions import NotAuthorizedError, NotDeciderError, UnknownReviewerError

#: Timeout of the Hub's answer, in seconds.
_PATIENCE: Final = 10.0
#: Key of the `Deciders` in the web application's settings. If missing, only the owner decides.
DECIDERS_KEY: Final = "jupyter_agentbox_deciders"
#: Maximum length of a token's note that is shown and recorded, in characters.
_LONGEST_NOTE: Final = 80
_REFUSED: Final = "Forbidden: the session or token is no longer valid here"
#: Scope -> what its holders can do.
_ALLOWS: Final = {READ_SCOPE: "read requests", DECIDE_SCOPE: "decide", MANAGE_SCOPE: "manage rules and servers"}


class HubAuth(Protocol):
    """The part of `jupyterhub.services.auth.HubOAuth`, version 5 or later, that this module uses."""

    api_token: str
    api_url: str
    certfile: str
    keyfile: str
    client_ca: str
    access_scopes: Any
    cookie_name: str

    def get_token(self, handler: web.RequestHandler, in_cookie: bool = True) -> str | None:
        """Return the token in a request's header or, if `in_cookie`, in its cookie."""

    def user_for_token(self, token: str, use_cache: bool = True, *, sync: bool = True) -> Any:
        """Ask the Hub for the owner of a token."""

    def check_scopes(self, required_scopes: Any, user: Mapping[str, Any]) -> Any:
        """Return the subset of the scopes that the user has."""


def hub_auth_of(server: Any) -> HubAuth | None:
    """Return a Jupyter server's connection to JupyterHub; ``None`` if it belongs to none.

    Parameters
    ----------
    server : ServerApp
        The server. With a Hub, its identity provider has it, or the server itself in the older single-user app.
    """
    found: HubAuth | None = getattr(server.identity_provider, "hub_auth", None) or getattr(server, "hub_auth", None)
    return found


async def who_am_i(hub_auth: HubAuth) -> Mapping[str, Any] | None:
    """Return the Hub's current model of this server's user, using the server's own token.

    Parameters
    ----------
    hub_auth : HubAuth
        The server's connection to the Hub.

    Returns
    -------
    mapping or None
        The user's model, with `name` and `groups`; ``None`` if the token is invalid.

    Raises
    ------
    UnknownReviewerError
        If the Hub does not answer.
    """
    try:
        async with asyncio.timeout(_PATIENCE):
            model: dict[str, Any] | None = await hub_auth.user_for_token(
                hub_auth.api_token, use_cache=False, sync=False
            )
    except (web.HTTPError, TimeoutError) as error:
        raise UnknownReviewerError("JupyterHub does not answer") from error
    return model


def sign_cookies_anew(server: Any) -> None:
    """Make a Hub's single-user server sign its cookies with a secret that exists only in its memory.

    Jupyter stores the secret in a file of the user's, which code in a plain kernel can read. With it and the token of a
    logged-in page, that code could forge the cookie that proves that a person decides. Clients with an older cookie are
    redirected to the Hub, and return with a new one.

    Parameters
    ----------
    server : ServerApp
        The server. Without a Hub it is left unchanged.
    """
    if hub_auth_of(server) is not None:
        server.web_app.settings["cookie_secret"] = secrets.token_bytes(32)


def why_no_scope_reaches_browsers(environment: Mapping[str, str], scope: str = DECIDE_SCOPE) -> str:
    """Return why no browser session can have a scope of this package, and what to do; empty if one can.

    Parameters
    ----------
    environment : mapping
        Environment of a Hub's single-user server, in which the Hub lists the scopes of its sessions.
    scope : str
        The scope.
    """
    try:
        allowed = json.loads(environment.get("JUPYTERHUB_OAUTH_CLIENT_ALLOWED_SCOPES", "[]"))
    except ValueError:
        allowed = []
    if any(str(one).partition("!")[0] == scope for one in allowed or ()):
        return ""
    return (
        f"no browser's session gets the right `{scope}` here, so nobody can {_ALLOWS[scope]}: the Hub's administrator"
        " must name it in `c.Spawner.oauth_client_allowed_scopes`, and the server must be started again"
    )


def no_scope(scope: str, what: str = "this") -> NotAuthorizedError:
    """Return the error for a client of this Hub server who lacks a scope of this package, which `what` requires."""
    hint = why_no_scope_reaches_browsers(os.environ, scope)
    return NotAuthorizedError(
        f"{what} requires the right `{scope}` for this server, which your session or token does not have."
        + (f" Also, {hint}." if hint else "")
    )


def is_owner(handler: JupyterHandler) -> bool:
    """Whether the client is the user of this Hub server; without a Hub, always true.

    Suitable for reading only: it trusts the Hub's answer from some minutes ago.
    """
    if hub_auth_of(handler.serverapp) is None:
        return True
    user: Any = handler.current_user
    model = getattr(user, "hub_user", None) or user
    return isinstance(model, Mapping) and _is_owner(model)


def _is_owner(model: Mapping[str, Any]) -> bool:
    owner = os.environ.get("JUPYTERHUB_USER", "")
    return model.get("kind") == "user" and bool(owner) and model.get("name") == owner


async def reviewer_of(handler: JupyterHandler, resource: str) -> Reviewer:
    """Return the sender of a decision, or of an equivalent action, in an authenticated and authorized request.

    A Hub's single-user server caches the Hub's answer about a token for some minutes. That is too long for a decision,
    so the Hub is asked again.

    Parameters
    ----------
    handler : JupyterHandler
        The handler of the request.
    resource : str
        The resource that they must be allowed to write.

    Raises
    ------
    HTTPError
        If the Hub no longer accepts the session or token, or it may no longer be used here.
    NotDeciderError
        If they may use this Hub server but not decide there.
    UnknownReviewerError
        If the Hub does not answer.
    """
    hub_auth = hub_auth_of(handler.serverapp)
    if hub_auth is None:
        return await _reviewer_of_server(handler)
    return await _HubReviewer(handler, hub_auth, resource).find()


async def note_of_token(hub_auth: HubAuth, token: str, model: Mapping[str, Any], *, patience: float) -> str:
    """Return the note of a user's token; empty if it has none, or the Hub does not tell it.

    The Hub tells it to a token that may do all that its user may, the token itself included, and to this server's
    own if its role has ``read:tokens!user``.

    Parameters
    ----------
    hub_auth : HubAuth
        The server's connection to the Hub.
    token : str
        The token.
    model : mapping
        The Hub's model of the token's user.
    patience : float
        Timeout of each of the Hub's answers, in seconds.
    """
    user, id = (quote(str(model.get(name) or ""), safe="") for name in ("name", "token_id"))
    if not user or not id:
        return ""
    for asker in (token, hub_auth.api_token):
        request = HTTPRequest(
            f"{hub_auth.api_url.rstrip('/')}/users/{user}/tokens/{id}",
            headers={"Authorization": f"token {asker}"},
            follow_redirects=False,
            connect_timeout=patience,
            request_timeout=patience,
            client_cert=hub_auth.certfile or None,
            client_key=hub_auth.keyfile or None,
            ca_certs=hub_auth.client_ca or None,
        )
        try:
            answer = await AsyncHTTPClient().fetch(request, raise_error=False)
            note = json.loads(answer.body).get("note") if answer.code == 200 else None
        except (HTTPClientError, OSError, ValueError, AttributeError):
            return ""
        if isinstance(note, str):
            return one_line(note, _LONGEST_NOTE)
    return ""


async def author_of(handler: JupyterHandler) -> Reviewer:
    """Return the sender of a request other than a decision, for the record of what it changed.

    Everyone who may use the server may send such a request, so nobody is rejected. If the Hub does not tell how they
    are authenticated, that is recorded as unknown.

    Parameters
    ----------
    handler : JupyterHandler
        Handler of the authenticated and authorized request.
    """
    hub_auth = hub_auth_of(handler.serverapp)
    if hub_auth is None:
        return await _reviewer_of_server(handler)
    return await _HubReviewer(handler, hub_auth, resource="").author()


async def _reviewer_of_server(handler: JupyterHandler) -> Reviewer:
    """Return the sender of a request to a server without a Hub.

    JupyterLab sends the server's token with each request, as programs do. A browser also sends its login cookie, which
    the server signed.
    """
    provider, user = handler.identity_provider, handler.current_user
    in_cookie = await ensure_async(provider.get_user_cookie(handler))
    if in_cookie is not None and in_cookie.username == user.username:
        via = Via.BROWSER
    elif provider.is_token_authenticated(handler):
        via = Via.API_TOKEN
    else:
        via = Via.UNKNOWN
    return Reviewer(name=user.username, via=via, display_name=_display_name(user))


class _HubReviewer:
    """Identifies the sender of a request to a Hub's single-user server.

    The Hub knows for each token whether it was issued in a browser's login: such a token has a session. JupyterLab's
    page holds one, so scripts in the page can read it and pass it to a kernel. No script can read the cookie, which
    also holds it, so a person's decision requires that cookie.
    """

    def __init__(self, handler: JupyterHandler, hub_auth: HubAuth, resource: str) -> None:
        self._handler = handler
        self._resource = resource
        self._hub_auth = hub_auth

    async def find(self) -> Reviewer:
        """Return who it is, if they may decide now."""
        known = await self._known()
        found = self._whose(known)
        if found is None:
            raise web.HTTPError(403, _REFUSED)
        await self._authorize(found[1])
        self._check_decider(found[1])
        return await self._reviewer(*found, known)

    async def author(self) -> Reviewer:
        """Return the sender, whatever their rights."""
        user = self._handler.current_user
        try:
            known = await self._known()
        except UnknownReviewerError:
            known = {}
        found = self._whose(known)
        if found is None:
            return Reviewer(name=user.username, display_name=_display_name(user), hub_server=hub_server())
        return await self._reviewer(*found, known)

    async def _known(self) -> dict[str, dict[str, Any] | None]:
        """Return the Hub's model of each token in the request."""
        in_header = self._hub_auth.get_token(self._handler, in_cookie=False)
        tokens = dict.fromkeys((in_header, self._token_in_cookie()))
        return {token: await self._ask(token) for token in tokens if token}

    def _whose(self, known: Mapping[str, dict[str, Any] | None]) -> tuple[str, dict[str, Any]] | None:
        """Return the current user's token and its model; ``None`` if no token is theirs."""
        name = self._handler.current_user.username
        return next(((token, model) for token, model in known.items() if model and model["name"] == name), None)

    async def _reviewer(
        self, token: str, model: Mapping[str, Any], known: Mapping[str, dict[str, Any] | None]
    ) -> Reviewer:
        user, in_cookie = self._handler.current_user, self._token_in_cookie()
        in_browser = known.get(in_cookie) if in_cookie else None
        if in_browser and in_browser["name"] == user.username and in_browser.get("session_id"):
            via, credential = Via.BROWSER, in_browser["session_id"]
        else:
            is_ours = hmac.compare_digest(token.encode(), self._hub_auth.api_token.encode())
            via, credential = Via.SERVER_TOKEN if is_ours else Via.API_TOKEN, model.get("token_id") or ""
        kind = ReviewerKind.SERVICE if model.get("kind") == "service" else ReviewerKind.USER
        has_note = via is Via.API_TOKEN and kind is ReviewerKind.USER and bool(credential)
        return Reviewer(
            name=user.username,
            via=via,
            kind=kind,
            display_name=_display_name(user),
            credential=hashlib.sha256(credential.encode()).hexdigest() if credential else "",
            hub_server=hub_server(),
            token_note=await note_of_token(self._hub_auth, token, model, patience=_PATIENCE) if has_note else "",
        )

    def _token_in_cookie(self) -> str | None:
        cookie = self._handler.get_secure_cookie(self._hub_auth.cookie_name)
        return cookie.decode("ascii", "replace") if cookie else None

    async def _ask(self, token: str) -> dict[str, Any] | None:
        """Return the Hub's current model of a token's owner; ``None`` if it is invalid."""
        try:
            async with asyncio.timeout(_PATIENCE):
                model: dict[str, Any] | None = await self._hub_auth.user_for_token(token, use_cache=False, sync=False)
        except (web.HTTPError, TimeoutError) as error:
            raise UnknownReviewerError(
                "JupyterHub does not answer, so it is unknown whether you may decide. The request is "
                "unchanged: try again when the Hub is back."
            ) from error
        return model

    async def _authorize(self, model: dict[str, Any]) -> None:
        """Reject a client whose cached authorization is no longer valid."""
        handler, hub_auth = self._handler, self._hub_auth
        if not hub_auth.check_scopes(hub_auth.access_scopes, model):
            raise web.HTTPError(403, _REFUSED)
        if hasattr(handler.current_user, "hub_user"):
            handler.current_user.hub_user = model
            allowed = handler.authorizer.is_authorized(handler, handler.current_user, "write", self._resource)
            if not await ensure_async(allowed):
                raise web.HTTPError(403, _REFUSED)

    def _check_decider(self, model: Mapping[str, Any]) -> None:
        """Reject a client who may use the server but not decide here."""
        deciders = self._handler.settings.get(DECIDERS_KEY, Deciders.OWNER)
        if deciders is Deciders.SCOPE:
            # The Hub's own code: a scope for another user or server does not match this one.
            may_decide = bool(self._hub_auth.check_scopes({f"{DECIDE_SCOPE}!server={hub_server()}"}, model))
            who = f"somebody with the right `{DECIDE_SCOPE}` for this server"
            hint = why_no_scope_reaches_browsers(os.environ)
        else:
            owner = os.environ.get("JUPYTERHUB_USER", "")
            may_decide = _is_owner(model)
            who, hint = f"`{owner}`, whose server this is,", ""
        if not may_decide:
            raise NotDeciderError(
                f"only {who} can decide here (see `AgentBoxApp.deciders`). Nothing was changed."
                + (f" Also, {hint}." if hint else "")
            )


def hub_server() -> str:
    """Return the name of this JupyterHub server in scopes: ``ada/`` or ``ada/gpu``."""
    return f"{os.environ.get('JUPYTERHUB_USER', '')}/{os.environ.get('JUPYTERHUB_SERVER_NAME', '')}"


def _display_name(user: Any) -> str:
    return user.display_name if user.display_name != user.username else ""
