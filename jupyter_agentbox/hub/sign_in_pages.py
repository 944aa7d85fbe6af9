"""The pages on which users sign in to central MCP servers. They run no script."""

from __future__ import annotations

import logging
from typing import Any, Final
from urllib.parse import urlsplit

from tornado import web

from jupyter_agentbox.core.changes import Change
from jupyter_agentbox.core.text import one_line, visible
from jupyter_agentbox.services.servers.sign_in_cookies import SignInCookie, read_answer
from jupyter_agentbox.services.servers.sign_ins import SignInManager

from .callers import Caller
from .handlers import PageHandler
from .sign_in_addresses import CALLBACK, SIGN_IN_PAGE

log = logging.getLogger(__name__)

#: The cookie with the browser's session at the Hub.
_HUB_SESSION: Final = "jupyterhub-session-id"
_NOT_LOGGED_IN: Final = (
    "you are not signed in, because this browser is not logged in here: your login has ended, the service was"
    " restarted, or you began at another address. Begin again from the list of servers"
)


class SignInBaseHandler(PageHandler):
    """Base of the handlers of sign-ins."""

    asks_anew = True
    back = (SIGN_IN_PAGE, "Servers to sign in to")

    def set_default_headers(self) -> None:
        """Set the headers of all pages; providers do not learn from which page a person comes."""
        super().set_default_headers()
        self.set_header("Referrer-Policy", "no-referrer")

    async def caller_by_cookie(self, *, use_cache: bool) -> Caller | None:
        """Return the person logged in with this browser, and at the Hub with the same one; ``None`` if nobody is.

        To a browser, a Hub with one domain is one origin: a script of another user's page can add that user's login to
        the cookies, so that the person would sign in for the other user.
        """
        hub_auth = self.parts.hub_auth
        names = [one.partition("=")[0].strip() for one in ";".join(self.request.headers.get_list("Cookie")).split(";")]
        if max(names.count(hub_auth.cookie_name), names.count(_HUB_SESSION)) > 1:
            raise web.HTTPError(
                403, "your browser has the logins of several people, and one may be forged: delete this site's cookies"
            )
        caller = await super().caller_by_cookie(use_cache=use_cache)
        session = hub_auth.get_session_id(self)
        return caller if caller is None or not session or caller.has_credential(session) else None

    def check_server(self, name: str) -> None:
        """Refuse a server to which users do not sign in."""
        if name not in self.parts.policy.current.sign_in_servers:
            raise web.HTTPError(404, "there is no such central server to sign in to")

    @property
    def manager(self) -> SignInManager:
        """The manager of this user's sign-ins."""
        return self.parts.sign_in_managers.of(self.caller)

    @property
    def cookie(self) -> SignInCookie:
        """The browser's cookie for a sign-in."""
        return SignInCookie(prefix="agentbox-sign-in", path=f"{self.parts.prefix}{CALLBACK}")


class SignInServersHandler(SignInBaseHandler):
    """Lists the central servers to which users sign in."""

    async def get(self) -> None:
        """Show the servers, and whether this user has signed in."""
        found = await self.parts.sign_in_managers.signed_in(self.caller)
        self.render(
            "servers.html",
            caller=self.caller,
            prefix=self.parts.prefix,
            rows=[
                {"name": name, "is_signed_in": is_signed_in, "failure": visible(self.manager.failure_of(name))}
                for name, is_signed_in in found.items()
            ],
        )


class SignInHandler(SignInBaseHandler):
    """Begins a sign-in to one server."""

    async def get(self, name: str) -> None:
        """Show the list instead, to who opens the address of the form's answer anew."""
        self.check_server(name)
        self.redirect(f"{self.parts.prefix}{SIGN_IN_PAGE}")

    async def post(self, name: str) -> None:
        """Show where the provider's page is. Only the person opens it."""
        self.check_server(name)
        redirect = self.parts.sign_in_managers.redirect_for(name)
        begun = await self.manager.begin(name, person=self.caller.name, redirect=redirect)
        self.cookie.set(self, begun, secure=self.parts.sign_in_managers.is_secure)
        host = visible(urlsplit(begun.address).netloc)
        self.render(
            "sign_in.html", caller=self.caller, prefix=self.parts.prefix, name=name, address=begun.address, host=host
        )


class SignOutHandler(SignInBaseHandler):
    """Ends a user's sign-in to one server."""

    async def post(self, name: str) -> None:
        """Forget the tokens, tell the provider, and show the list."""
        self.check_server(name)
        await self.manager.sign_out(name)
        log.info("%s signed out of the central server %s", one_line(self.caller.name), name)
        await self.parts.changes.note(Change.SIGNED_OUT, {"name": name}, by=self.caller.reviewer)
        self.redirect(f"{self.parts.prefix}{SIGN_IN_PAGE}", status=303)


class SignInCallbackHandler(SignInBaseHandler):
    """The page to which a provider sends a person back.

    The browser comes from a page of the provider, without `_xsrf`. Instead, three things are required: a state known
    only to the provider's page, the login of the person who began, and a cookie of the browser in which they did.
    """

    failed = "You are not signed in"

    def get_login_url(self) -> str:
        """Refuse instead of a redirect to the Hub's login page, which would carry the provider's code along."""
        raise web.HTTPError(403, _NOT_LOGGED_IN)

    async def get(self, name: str) -> None:
        """Process the provider's answer, and show the outcome."""
        self.check_server(name)  # the policy may have changed since the person began
        answer = read_answer(self)
        key = self.cookie.read(self, answer.state)
        await self.manager.finish(name, answer, person=self.caller.name, browser_key=key)
        self.cookie.clear(self, answer.state)
        log.info("%s signed in to the central server %s", one_line(self.caller.name), name)
        await self.parts.changes.note(Change.SIGNED_IN, {"name": name}, by=self.caller.reviewer)
        self.render("signed_in.html", caller=self.caller, prefix=self.parts.prefix, name=name)


def routes(prefix: str) -> list[tuple[Any, ...]]:
    """Return the routes of the pages below the service's prefix."""
    name = "(?P<name>[A-Za-z0-9_-]+)"
    return [
        (rf"{prefix}{SIGN_IN_PAGE}", SignInServersHandler),
        (rf"{prefix}{SIGN_IN_PAGE}/{name}/sign-in", SignInHandler),
        (rf"{prefix}{SIGN_IN_PAGE}/{name}/sign-out", SignOutHandler),
        (rf"{prefix}{CALLBACK}{name}", SignInCallbackHandler),
    ]
